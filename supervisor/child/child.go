package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lastWords is how long the report of an exit waits for the end of the output, so that the
	// last output is reported first.
	lastWords = 30 * time.Millisecond
	// lull is the time between SIGTERM and SIGKILL for left-over processes.
	lull = 500 * time.Millisecond
	// drain is how long the output may stay open when the tree is empty.
	drain = 500 * time.Millisecond
	// unkillable is how long a process may survive SIGKILL before it is given up.
	unkillable = 5 * time.Second
)

// A Child is one run of a program, with all processes that come from it.
type Child struct {
	pid   int // of the leader and of its group
	began time.Time

	host  *Host
	spec  Spec
	stdin *stdin // nil without stdin; the terminal for a pty
	out   *pump
	err   *pump
	leaf  *leaf // nil without cgroup
	sight sight // how the leader is watched

	temporary string // its $TMPDIR; "": the one in Spec.Env

	mu      sync.Mutex
	ordered bool          // Signal was called: left-overs have until Kill
	forced  bool          // Kill was called: processes get no more SIGTERM
	dead    bool          // the leader is a zombie
	asked   bool          // the group got a signal to end, from Signal or clear
	gone    bool          // the leader was reaped: its pid may be reused
	below   []Process     // descendants of the leader, as last seen by trace
	handed  chan struct{} // closed by Resume; nil unless Hold was called
}

// Start starts a child. If it returns an error, which is always a *StartError, no process runs
// and the Listener is not called.
func (h *Host) Start(spec Spec) (*Child, error) {
	spec.Command, spec.Wrap = slices.Concat(spec.Wrap, spec.Command), nil
	path, err := spec.User.Find(spec.Command[0], spec.Dir, spec.Env)
	if err != nil {
		return nil, err
	}
	if err := h.canLimit(spec.Limits); err != nil {
		return nil, err
	}
	h.room <- struct{}{}
	defer func() { <-h.room }()
	c := &Child{host: h, spec: spec}
	if err := c.enclose(); err != nil {
		return nil, err
	}
	if err := c.begin(path); err != nil {
		c.removeTemporary()
		return nil, err
	}
	return c, nil
}

// canLimit returns a *StartError if limits need a cgroup and none can set them.
func (h *Host) canLimit(l Limits) error {
	for _, need := range []struct {
		limit, bound string
		is           bool
	}{{"limits.processes", "pids", l.Processes > 0}, {"limits.cpu", "cpu", l.CPU > 0}} {
		if need.is && !h.leafs.has(need.bound) {
			return &StartError{
				Reason: fmt.Sprintf("%s needs a cgroup (v2) with the controller %s, and none is delegated to the orchestrator", need.limit, need.bound),
				Hint:   "with systemd: systemd-run --user --scope -p Delegate=yes orchestrator up",
				Err:    os.ErrPermission,
			}
		}
	}
	return nil
}

// enclose prepares the confinement of the child, and its folder for temporary files if it is confined
// or runs as another user.
func (c *Child) enclose() (err error) {
	if c.spec.Confine == nil && c.spec.User == nil {
		return nil
	}
	if err := c.spec.Confine.Possible(); err != nil {
		return err
	}
	if c.temporary, err = c.host.makeTemporary(c.spec.User); err != nil {
		return lacking("making its folder for temporary files", err)
	}
	c.spec.Confine = c.host.confined(c.spec.Confine, c.temporary)
	return nil
}

// environ returns the environment of the child.
func (c *Child) environ() []string {
	env := append(c.spec.Env[:len(c.spec.Env):len(c.spec.Env)], EnvHome+"="+c.host.home, EnvRun+"="+c.spec.Run)
	if c.temporary == "" {
		return env
	}
	env = slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "TMPDIR=") })
	return append(env, "TMPDIR="+c.temporary)
}

// begin starts the process of the child. The error is a *StartError.
func (c *Child) begin(path string) error {
	h, spec := c.host, &c.spec
	ends, err := c.open()
	if err != nil {
		return lacking("making its pipes", err)
	}
	c.leaf, err = h.leafs.leaf(spec.Run, spec.Limits)
	if err != nil {
		ends.closeAll(c)
		return lacking("making its cgroup", err)
	}
	argv := spec.Command
	program := path
	if order := spec.forShim(c.leaf).encode(); order != "" {
		program, argv = shimCommand(order, path, argv)
	}
	attr := &syscall.ProcAttr{
		Dir:   spec.Dir,
		Env:   c.environ(),
		Files: ends.files(),
		Sys:   c.attributes(),
	}
	if spec.User != nil {
		attr.Dir = "/" // the shim enters the folder, with the rights of the user
	}
	h.watchdog.begins(spec.Run) // before the process exists
	c.began = time.Now()
	err = h.start(c, program, argv, attr)
	spec.Env, spec.Command = nil, nil // the process has its own copies: they are most of the memory of an idle child
	closeAll(ends.theirs...)
	c.leaf.close()
	if err != nil {
		ends.closeOurs(c)
		c.leaf.remove()
		h.watchdog.ended(spec.Run)
		return startError(path, err)
	}
	if err := c.watch(); err != nil {
		ends.closeOurs(c)
		c.leaf.remove()
		h.watchdog.ended(spec.Run)
		return lacking("watching it", err)
	}
	return nil
}

// watch starts the goroutines that read the output of the child. The exit watch attends to its end,
// and then calls Ended.
func (c *Child) watch() error {
	if err := c.sight.open(c.pid); err != nil {
		c.Kill()
		c.reap()
		return err
	}
	go c.out.run()
	go c.err.run()
	c.host.exits.add(c)
	return nil
}

// attend waits for the end of the child and clears its tree. The leader stays a zombie until
// the tree is empty, because signals to the group need its process id.
func (c *Child) attend() {
	exit := c.sight.await(c.pid)
	c.awaitResume()
	c.spec.Listener.Exited(c.hearOut(exit))
	ending := c.clear()
	c.reap()
	c.out.finish(drain)
	c.err.finish(drain)
	for _, p := range []*pump{c.out, c.err} {
		if p.cut {
			ending.HeldOpen, ending.HeldBy = true, append(ending.HeldBy, p.held...)
		}
	}
	c.leaf.remove()
	c.removeTemporary()
	c.closeStdin()
	if len(ending.Survivors) == 0 && !ending.Unverified {
		c.host.watchdog.ended(c.spec.Run)
	}
	c.spec.Listener.Ended(ending)
}

// awaitResume marks the leader as dead. While the child is held, it waits: another program
// attends to the end of the child, or Resume is called.
func (c *Child) awaitResume() {
	for {
		c.mu.Lock()
		handed := c.handed
		c.dead = handed == nil
		c.mu.Unlock()
		if handed == nil {
			return
		}
		<-handed
	}
}

// hearOut waits a moment for the last output.
func (c *Child) hearOut(exit Exit) Exit {
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	for _, p := range []*pump{c.out, c.err} {
		select {
		case <-p.done:
		case <-timer.C:
			return exit
		}
	}
	return exit
}

// PID returns the process id of the leader, which is also the id of its group.
func (c *Child) PID() int { return c.pid }

// StartedAt returns the start time of the child.
func (c *Child) StartedAt() time.Time { return c.began }

// Stdin is the write end of a child's stdin. Its writes can have a deadline.
type Stdin interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

// Stdin returns the write end of the child's stdin, or nil if the child has none. The caller
// must not write concurrently. CloseStdin closes it.
func (c *Child) Stdin() Stdin {
	if c.stdin == nil {
		return nil
	}
	return c.stdin
}

// traced returns the descendants of the leader that the latest trace recorded.
func (c *Child) traced() []Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.below
}

// CloseStdin ends the child's input. A raw terminal has no end of input, so CloseStdin returns
// false for it. On a terminal that the child has switched to line mode, it types the
// end-of-file character.
func (c *Child) CloseStdin() bool {
	if c.stdin == nil {
		return false
	}
	if c.spec.Pty {
		return typeEnd(c.stdin)
	}
	c.closeStdin()
	return true
}

func (c *Child) closeStdin() {
	if c.stdin != nil {
		_ = c.stdin.Close() // a second close is harmless
	}
}

// Signal sends sig to the child's group, and continues stopped processes so that they can
// react. It begins an ordered end: left-overs may then run until Kill, instead of for lull.
// Signal may also be called when the leader is dead. A group that already got a signal then
// gets no second one: many programs take a second signal as a request to end at once.
func (c *Child) Signal(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ordered = true
	if c.gone || c.dead && c.asked {
		return
	}
	c.asked = true
	signalGroup(c.pid, sig)
	c.sight.signal(c.pid, sig)
	signalGroup(c.pid, syscall.SIGCONT)
}

// Kill kills the whole tree. Ended is called afterwards. If processes have outlived the leader, clear lists them first
// and then kills them, because a process that dies before it is listed would not be reported.
func (c *Child) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forced = true
	if c.gone || c.dead {
		return
	}
	c.leaf.kill()
	signalGroup(c.pid, syscall.SIGKILL)
	c.sight.signal(c.pid, syscall.SIGKILL)
}

// orders reports whether Signal and Kill were called.
func (c *Child) orders() (ordered, forced bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ordered, c.forced
}

// askGroup sends SIGTERM to the rest of the group, unless it got a signal before.
func (c *Child) askGroup() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asked {
		c.asked = true
		signalGroup(c.pid, syscall.SIGTERM)
		signalGroup(c.pid, syscall.SIGCONT)
	}
}

// reap reaps the leader. It waits while orphans are counted, because the kernel may omit a
// child from a list that gets shorter while it is read.
func (c *Child) reap() {
	c.host.census.RLock()
	defer c.host.census.RUnlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if _, err := unix.Wait4(c.pid, nil, 0, nil); err != unix.EINTR {
			break
		}
	}
	c.gone = true
	c.sight.close()
	c.host.mu.Lock()
	delete(c.host.leaders, c.pid)
	c.host.mu.Unlock()
}

// ends holds the child's ends of its streams, in the order of its file descriptors.
type ends struct {
	theirs []int // to be closed after the child was started
	stdin  int
	stdout int
	stderr int
}

func (e *ends) files() []uintptr {
	return []uintptr{uintptr(e.stdin), uintptr(e.stdout), uintptr(e.stderr)}
}

// open makes the child's streams and the pumps that read them.
func (c *Child) open() (*ends, error) {
	e := &ends{}
	var err error
	if c.spec.Pty {
		err = c.openPty(e)
	} else {
		err = c.openPipes(e)
	}
	if err == nil {
		var file *os.File
		file, e.stderr, err = pipe("stderr", true)
		if err == nil {
			e.theirs = append(e.theirs, e.stderr)
			c.err, err = newPump(Stderr, file, c.spec.Listener)
		}
	}
	if err == nil {
		err = e.give(c.spec.User, c.spec.NoStdin)
	}
	if err != nil {
		e.closeAll(c)
		return nil, err
	}
	return e, nil
}

// give makes the streams the user's, so that a program can open them again by their names, such as
// /dev/stderr. /dev/null stays root's.
func (e *ends) give(u *User, noStdin bool) error {
	var err error
	for _, fd := range e.files() {
		if !noStdin || int(fd) != e.stdin {
			err = errors.Join(err, u.own(int(fd)))
		}
	}
	return err
}

func (c *Child) openStdin(e *ends) error {
	file, theirs, err := pipe("stdin", false)
	if err != nil {
		return err
	}
	e.stdin = theirs
	c.stdin, err = newStdin(file)
	return err
}

func (c *Child) openPipes(e *ends) error {
	var err error
	if c.spec.NoStdin {
		e.stdin, err = null()
	} else {
		err = c.openStdin(e)
	}
	if err != nil {
		return err
	}
	e.theirs = append(e.theirs, e.stdin)
	file, theirs, err := pipe("stdout", true)
	if err != nil {
		return err
	}
	e.stdout = theirs
	e.theirs = append(e.theirs, theirs)
	c.out, err = newPump(Stdout, file, c.spec.Listener)
	return err
}

func (e *ends) closeAll(c *Child) {
	closeAll(e.theirs...)
	e.closeOurs(c)
}

func (e *ends) closeOurs(c *Child) {
	c.closeStdin()
	for _, p := range []*pump{c.out, c.err} {
		if p != nil {
			_ = p.file.Close()
		}
	}
}

// A stdin is the write end of a child's stdin.
type stdin struct {
	*os.File
	conn syscall.RawConn
}

func newStdin(file *os.File) (*stdin, error) {
	conn, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &stdin{File: file, conn: conn}, nil
}

// TryWrite writes as much as fits without blocking. It ignores the deadline of earlier writes.
func (s *stdin) TryWrite(text []byte) (n int, err error) {
	closed := s.conn.Control(func(fd uintptr) {
		for {
			if n, err = unix.Write(int(fd), text); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	switch {
	case closed != nil:
		return 0, os.ErrClosed
	case errors.Is(err, unix.EAGAIN):
		return 0, nil
	case err != nil:
		return 0, os.NewSyscallError("write", err)
	}
	return n, nil
}
