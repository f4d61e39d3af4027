package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Names of the marks in the environment of every child.
const (
	EnvRun  = "ORC_RUN_ID"    // identifies one run of a child
	EnvHome = "ORC_STATE_DIR" // identifies the orchestrator that started it
)

// A Stream is one of the two output streams of a child.
type Stream uint8

// The streams of a child.
const (
	Stdout Stream = iota
	Stderr
)

// A Spec specifies a child.
type Spec struct {
	Command []string // argv; a first word without a slash is looked up in PATH
	Wrap    []string // words before Command: a program that executes Command, such as a sandbox
	Dir     string
	Env     []string // the complete environment; Start adds the marks
	Run     string   // a unique name for this run
	NoStdin bool     // stdin is /dev/null, not a pipe
	Pty     bool     // stdin and stdout are one raw terminal; stderr stays a pipe
	Limits  Limits
	Confine *Confinement // nil: the child has the rights of its user
	User    *User        // whom it runs as; nil: the user of this process

	Listener Listener
}

// A Listener gets the output and the events of a child.
type Listener interface {
	// Output is called with the child's output as it arrives, by one goroutine for each stream.
	// The chunk is valid until Output returns. Until then that stream is not read; other
	// streams are.
	Output(stream Stream, chunk []byte)
	// Exited is called once, when the leader is dead.
	Exited(exit Exit)
	// Stopped is called when a signal stops the leader (true), and when it continues (false). It
	// must not block. It is not called on systems that do not report stops.
	Stopped(yes bool)
	// Lost is called when EndLost has ended processes.
	Lost(ending Ending)
	// Ended is called once, after Exited and as the last method, when the tree is empty and the
	// streams have ended. A caller of Signal waits for it as long as it grants left-overs, and
	// then calls Kill.
	Ended(ending Ending)
}

// Nobody is a Listener that ignores everything. A type that needs only some of the calls embeds it.
type Nobody struct{}

// Output implements Listener.
func (Nobody) Output(Stream, []byte) {}

// Exited implements Listener.
func (Nobody) Exited(Exit) {}

// Stopped implements Listener.
func (Nobody) Stopped(bool) {}

// Lost implements Listener.
func (Nobody) Lost(Ending) {}

// Ended implements Listener.
func (Nobody) Ended(Ending) {}

// Limits bound a child's tree. Zero means none. Processes and CPU need a delegated cgroup.
type Limits struct {
	OpenFiles int
	Memory    int64   // bytes
	Processes int     // with threads
	CPU       float64 // cores
}

// Exit describes how the leader ended.
type Exit struct {
	At     time.Time
	Code   int            // -1 when a signal ended it
	Signal syscall.Signal // 0 when it exited
}

// String returns a description: "exit 1", "killed by SIGKILL".
func (e Exit) String() string {
	if e.Signal != 0 {
		return "killed by " + SignalName(e.Signal)
	}
	return fmt.Sprintf("exit %d", e.Code)
}

// SignalName returns the name of a signal.
func SignalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}

// Ending describes the processes that outlived the leader.
type Ending struct {
	LeftOver  []Process // outlived the leader and had to be ended
	Survivors []Process // could not be ended: stuck in the kernel, or not permitted
	// Unverified reports that the tree could not be listed completely, for example for lack of
	// file descriptors. The processes found were ended; there may be more.
	Unverified bool
	HeldOpen   bool      // a process outside the tree kept the output open; the output was closed
	HeldBy     []Process // these processes, as far as they are known
}

// A Process is a process of a child's tree other than the leader.
type Process struct {
	PID     int
	Program string
	Held    bool // it kept the child's output open

	born  uint64 // start time in ticks; unique together with PID
	group int    // its group when it was listed
}

// An identity identifies a process uniquely. The program and the group are not part of it,
// because they may change.
type identity struct {
	pid  int
	born uint64
}

func (p Process) identity() identity { return identity{pid: p.PID, born: p.born} }

func (p Process) same(q Process) bool { return p.identity() == q.identity() }

// A StartError explains why a child could not be started.
type StartError struct {
	Reason    string // the explanation, with the path
	Hint      string
	Temporary bool // a resource is used up; a later try may succeed
	Err       error
}

func (e *StartError) Error() string { return e.Reason }

func (e *StartError) Unwrap() error { return e.Err }

// temporary reports whether an error means that a resource is used up.
func temporary(err error) bool {
	used := []error{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.ENOSPC, unix.ETXTBSY}
	return slices.ContainsFunc(used, func(e error) bool { return errors.Is(err, e) })
}

// lacking returns the error of a step that failed before the program was executed.
func lacking(doing string, err error) *StartError {
	return &StartError{Reason: fmt.Sprintf("%s failed: %v", doing, err), Temporary: temporary(err), Err: err}
}

// startError returns the error for a failed exec of path.
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

// shimName is the name under which this binary sets limits on itself, confines itself, gives up the rights of root, and
// then becomes the child. Limits that are set from outside would come too late: the child could fork before. The shim
// begins as root, so that the user of the child need not be able to execute this binary, and so that exceptions of a
// confinement are found in folders closed to the user.
const shimName = "orchestrator-limits"

// forShim returns the order for the shim.
func (s *Spec) forShim(leaf *leaf) *shimOrder {
	o := &shimOrder{Confine: s.Confine, Pty: s.Pty, User: s.User}
	if s.User != nil {
		o.Dir = s.Dir // root would follow a link that the user has put there since
	}
	if s.Confine != nil {
		o.Temporary = s.Confine.temporary
	}
	if l := s.Limits; l.OpenFiles > 0 {
		o.Files = uint64(l.OpenFiles)
	}
	if l := s.Limits; l.Memory > 0 && !leaf.boundsMemory() {
		o.Memory = uint64(l.Memory)
	}
	return o
}

// shimCommand wraps a command in the shim.
func shimCommand(order, path string, argv []string) (string, []string) {
	self, err := os.Executable()
	if err != nil {
		self = "/proc/self/exe"
	}
	return self, append([]string{shimName, order, path}, argv...)
}

// Shim does the work of the shim or of the watchdog if this process was started as one; then it
// does not return. Every program with a Host must call it first in main.
func Shim() {
	if len(os.Args) == 1 && os.Args[0] == watchdogName {
		keepWatch(os.Stdin)
		os.Exit(0)
	}
	if len(os.Args) < 4 || os.Args[0] != shimName {
		return
	}
	path, argv := os.Args[2], os.Args[3:]
	var order shimOrder
	err := json.Unmarshal([]byte(os.Args[1]), &order)
	if err == nil {
		err = order.obey()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "orchestrator: this agent was not started: %v\n", err)
		os.Exit(126)
	}
	err = syscall.Exec(path, argv, os.Environ()) // on the thread that is confined
	fmt.Fprintf(os.Stderr, "orchestrator: %v\n", startError(path, err))
	if order.Confine != nil && errors.Is(err, fs.ErrPermission) {
		fmt.Fprintln(os.Stderr, "orchestrator: its confine block must allow to read it, and its interpreter")
	}
	os.Exit(126)
}

// obey sets the limits, and confines this thread. It takes the rights of root from it.
func (o *shimOrder) obey() error {
	runtime.LockOSThread()
	if o.User != nil {
		o.allowFiles()
	}
	if c := o.Confine; c != nil {
		c.temporary, c.pty = o.Temporary, o.Pty
		if err := c.apply(o.User); err != nil {
			return fmt.Errorf("it cannot be confined: %w", err)
		}
	} else if o.User != nil {
		if err := o.User.giveUp(); err != nil {
			return err
		}
	}
	if o.Dir != "" {
		if err := os.Chdir(o.Dir); err != nil {
			return fmt.Errorf("its folder cannot be entered: %w", err)
		}
	}
	limits := []struct {
		name     string
		resource int
		n        uint64
	}{{"open_files", unix.RLIMIT_NOFILE, o.Files}, {"memory", unix.RLIMIT_AS, o.Memory}}
	for _, l := range limits {
		if l.n == 0 {
			continue
		}
		if err := syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: l.n, Max: l.n}); err != nil {
			return fmt.Errorf("its limits cannot be set (%s = %d): %w", l.name, l.n, err)
		}
	}
	return nil
}

// allowFiles raises the highest number of open files that may be set, which only root can do. Without
// the right to do so, setting the limit fails later.
func (o *shimOrder) allowFiles() {
	var now syscall.Rlimit
	if syscall.Getrlimit(unix.RLIMIT_NOFILE, &now) == nil && o.Files > now.Max {
		now.Max = o.Files
		_ = syscall.Setrlimit(unix.RLIMIT_NOFILE, &now)
	}
}
