package child

import (
	"io"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lastWords is how long the news of an exit waits for the end of the
	// output, so that what was said last is heard first.
	lastWords = 30 * time.Millisecond
	// lull is how long left-overs have between being asked and being killed.
	lull = 500 * time.Millisecond
	// drain is how long the output may stay open when the tree is empty.
	drain = 500 * time.Millisecond
	// unkillable is when a process that does not die of SIGKILL is given up.
	unkillable = 5 * time.Second
)

// Child is one start of one program, and everything that came of it.
type Child struct {
	pid   int // the leader's, and its group's
	began time.Time

	host  *Host
	spec  Spec
	stdin *stdin // nil without stdin; the terminal for a pty
	out   *pump
	err   *pump
	leaf  *leaf // nil without cgroup
	sight sight // how the leader is watched

	mu      sync.Mutex
	ordered bool      // Signal was called: left-overs have until Kill
	forced  bool      // Kill was called: processes are not asked to end any more
	dead    bool      // the leader is a zombie
	asked   bool      // the group was asked to end, by Signal or by clear
	gone    bool      // the leader was reaped: its pid means nothing now
	below   []Process // what the latest look has seen below the leader; see trace
}

// Start makes a child. When it returns an error (always a *StartError), there
// is no process and nothing will be called.
func (h *Host) Start(spec Spec) (*Child, error) {
	if e := checkDir(spec.Dir); e != nil {
		return nil, e
	}
	path, e := find(spec.Command[0], spec.Dir, spec.Env)
	if e != nil {
		return nil, e
	}
	touch(path)
	h.room <- struct{}{}
	defer func() { <-h.room }()
	c := &Child{host: h, spec: spec}
	ends, err := c.open()
	if err != nil {
		return nil, lacking("making its pipes", err)
	}
	c.leaf, err = h.leafs.leaf(spec.Run, spec.Limits.Memory)
	if err != nil {
		ends.closeAll(c)
		return nil, lacking("making its cgroup", err)
	}
	argv := spec.Command
	program := path
	if limits := spec.Limits.forShim(c.leaf); limits != "" {
		program, argv = shimCommand(limits, path, argv)
	}
	attr := &syscall.ProcAttr{
		Dir:   spec.Dir,
		Env:   append(spec.Env[:len(spec.Env):len(spec.Env)], EnvHome+"="+h.home, EnvRun+"="+spec.Run),
		Files: ends.files(),
		Sys:   c.attributes(),
	}
	h.watchdog.begins(spec.Run) // before there is anything to end
	c.began = time.Now()
	err = h.start(c, program, argv, attr)
	closeAll(ends.theirs...)
	if err != nil {
		ends.closeOurs(c)
		c.leaf.remove()
		h.watchdog.ended(spec.Run)
		return nil, startError(path, err)
	}
	if err := c.watch(); err != nil {
		ends.closeOurs(c)
		c.leaf.remove()
		h.watchdog.ended(spec.Run)
		return nil, lacking("watching it", err)
	}
	return c, nil
}

// watch starts the child's three goroutines. They end by themselves, the last
// one by calling Ended.
func (c *Child) watch() error {
	if err := c.sight.open(c.pid); err != nil {
		c.Kill()
		c.reap()
		return err
	}
	go c.out.run()
	go c.err.run()
	go c.attend()
	return nil
}

// attend sees the child to its end. The order matters: the leader stays a
// zombie until the tree is empty, because its number is what the group's
// signals go to.
func (c *Child) attend() {
	exit := c.sight.await(c.pid)
	c.mu.Lock()
	c.dead = true
	c.mu.Unlock()
	c.spec.Exited(c.hearOut(exit))
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
	c.closeStdin()
	if len(ending.Survivors) == 0 && !ending.Unverified {
		c.host.watchdog.ended(c.spec.Run)
	}
	c.spec.Ended(ending)
}

// hearOut gives the last words a moment to arrive.
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

// PID is the leader's process id, and its group's.
func (c *Child) PID() int { return c.pid }

// StartedAt is when the child was made.
func (c *Child) StartedAt() time.Time { return c.began }

// Stdin is the writing end of a child's stdin. Writes can be bounded.
type Stdin interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

// Stdin is where the child reads from: nil when it has none. The caller
// writes, one at a time; CloseStdin closes.
func (c *Child) Stdin() Stdin {
	if c.stdin == nil {
		return nil
	}
	return c.stdin
}

// CloseStdin tells the child that nothing more will come. A raw terminal has no
// end of input, and then it returns false; on one that the child has switched
// to lines it types the end-of-file character.
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

// Signal asks the child's group, and wakes those of it that are stopped: they
// could not act otherwise. It is the beginning of an ordered end: from then on
// left-overs have as long as the caller gives them, until Kill, instead of a
// lull. So it is right also when the leader is dead already; a group that was
// asked by then is not asked again, because many programs take a second
// request for "at once".
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

// Kill ends the whole tree without asking. Ended follows.
func (c *Child) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forced = true
	if c.gone {
		return
	}
	c.leaf.kill()
	signalGroup(c.pid, syscall.SIGKILL)
	c.sight.signal(c.pid, syscall.SIGKILL)
}

// orders returns what the caller wants of what is left.
func (c *Child) orders() (ordered, forced bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ordered, c.forced
}

// askGroup asks what is left of the group, unless that was done.
func (c *Child) askGroup() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asked {
		c.asked = true
		signalGroup(c.pid, syscall.SIGTERM)
		signalGroup(c.pid, syscall.SIGCONT)
	}
}

// reap takes the leader's number back. Not while orphans are counted: the
// kernel may leave one out of a list that gets shorter while it is read.
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
