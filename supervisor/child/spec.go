package child

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Names of the marks that every child finds in its environment.
const (
	EnvRun  = "ORC_RUN_ID"    // one start of one child
	EnvHome = "ORC_STATE_DIR" // the orchestrator that made it
)

// Stream is one of the two things that a child says.
type Stream uint8

// The streams of a child.
const (
	Stdout Stream = iota
	Stderr
)

// Spec says what to run and who listens.
type Spec struct {
	Command []string // argv; a first word without a slash is looked up in PATH
	Dir     string
	Env     []string // whole; the marks are added
	Run     string   // a name for this start, never used before
	NoStdin bool     // stdin is /dev/null, not a pipe
	Pty     bool     // stdin and stdout are one raw terminal; stderr stays a pipe
	Limits  Limits

	// Output gets what the child says, as it comes, from one goroutine a
	// stream. The chunk is lent until Output returns; while it does not
	// return, that stream of that child waits, and no other.
	Output func(Stream, []byte)
	// Exited is called once, when the leader is dead.
	Exited func(Exit)
	// Stopped is called when the leader was stopped by a signal, and when it goes on; it
	// must not wait. It may be nil, and is never called where the system does not tell.
	Stopped func(yes bool)
	// Ended is called once, after Exited: the tree is empty, the streams are
	// at their end, nothing of the child is left. Nothing is called after it.
	// Who has called Signal waits for it as long as left-overs may take, and
	// then calls Kill.
	Ended func(Ending)
}

// Limits bound a child's tree. Zero means none.
type Limits struct {
	OpenFiles int
	Memory    int64 // bytes
}

// Exit is how the leader ended.
type Exit struct {
	At     time.Time
	Code   int            // -1 when a signal ended it
	Signal syscall.Signal // 0 when it exited
}

// String says it as a person would: "exit 1", "killed by SIGKILL".
func (e Exit) String() string {
	if e.Signal != 0 {
		return "killed by " + SignalName(e.Signal)
	}
	return fmt.Sprintf("exit %d", e.Code)
}

// SignalName is the signal's name as people write it.
func SignalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}

// Ending is what was left to do when the leader was dead.
type Ending struct {
	LeftOver  []Process // outlived the leader and had to be ended
	Survivors []Process // could not be ended: stuck in the kernel, or not ours to kill
	// Unverified says that the tree could not be looked at to the end, because
	// this process has no descriptor left, for one. What was found was ended;
	// there may be more.
	Unverified bool
	HeldOpen   bool      // a process outside the tree kept the output open; it was cut off
	HeldBy     []Process // who, as far as can be seen
}

// Process is a process besides the leader.
type Process struct {
	PID     int
	Program string
	Held    bool // it kept the child's output open

	born  uint64 // start time in ticks: with PID, this process and no other
	group int    // when it was seen
}

// identity is what tells a process from all others that ever were: its program
// and its group may change.
type identity struct {
	pid  int
	born uint64
}

func (p Process) identity() identity { return identity{pid: p.PID, born: p.born} }

func (p Process) same(q Process) bool { return p.identity() == q.identity() }

// StartError says why a child could not be started.
type StartError struct {
	Reason    string // a sentence for people, with the path it is about
	Hint      string
	Temporary bool // the machine is short of something: worth another try
	Err       error
}

func (e *StartError) Error() string { return e.Reason }

func (e *StartError) Unwrap() error { return e.Err }

// temporary reports whether the machine is short of something just now.
func temporary(err error) bool {
	for _, short := range []error{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.ENOSPC, unix.ETXTBSY} {
		if errors.Is(err, short) {
			return true
		}
	}
	return false
}

// lacking explains what failed before the program was even tried.
func lacking(doing string, err error) *StartError {
	return &StartError{Reason: fmt.Sprintf("%s failed: %v", doing, err), Temporary: temporary(err), Err: err}
}

// startError explains what the kernel said to executing path.
func startError(path string, err error) *StartError {
	e := &StartError{Err: err, Temporary: temporary(err)}
	switch {
	case e.Temporary:
		e.Reason = fmt.Sprintf("cannot start %q now: %v", path, err)
	case errors.Is(err, unix.ENOEXEC):
		e.Reason, e.Hint = notAProgram(path)
	case errors.Is(err, fs.ErrPermission):
		e.Reason = fmt.Sprintf("%q may not be executed", path)
		e.Hint = "chmod +x " + path
	case errors.Is(err, fs.ErrNotExist):
		e.Reason, e.Hint = noInterpreter(path)
	default:
		e.Reason = fmt.Sprintf("cannot start %q: %v", path, err)
	}
	return e
}
