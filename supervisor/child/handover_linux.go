package child

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// At an upgrade this process executes another program. It keeps its process id, so its children stay its children, and
// their pipes stay open. Host.Exec does this on the thread that has forked all of them. The new program adopts them by
// the result of Host.Handover.

var errEnding = errors.New("it is ending")

// Hold stops the reading of the child's output and the handling of its end, until Resume is called.
// It returns an error if the child has ended, or if its Output func needs longer than patience;
// then the child goes on.
func (c *Child) Hold(patience time.Duration) error {
	c.mu.Lock()
	if c.dead || c.asked {
		c.mu.Unlock()
		return errEnding
	}
	c.handed = make(chan struct{})
	c.mu.Unlock()
	end := time.Now().Add(patience)
	for _, p := range []*pump{c.out, c.err} {
		if !p.hold(time.Until(end)) {
			c.Resume()
			return errors.New("its output is not read, because it does not read its stdin or because the disk is slow")
		}
	}
	return nil
}

// Resume undoes Hold.
func (c *Child) Resume() {
	c.out.resume()
	c.err.resume()
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.handed)
	c.handed = nil
}

// handover returns the state of a held child for the next program.
func (c *Child) handover() Handed {
	h := Handed{Run: c.spec.Run, PID: c.pid, StartedAt: c.began, Stdin: -1, Stdout: numberOf(c.out.raw), Stderr: numberOf(c.err.raw), Temporary: c.temporary, Below: seenOf(c.traced())}
	if c.stdin != nil {
		h.Stdin = numberOf(c.stdin.conn)
	}
	return h
}

// numberOf returns the file descriptor of an open file, or -1.
func numberOf(conn syscall.RawConn) int {
	number := -1
	_ = conn.Control(func(fd uintptr) { number = int(fd) })
	return number
}

// Handover returns the state for the next program. It returns an error unless all children are held.
func (h *Host) Handover() (Handover, error) {
	if h.leafs == nil {
		h.trace() // the next program cannot find out from where an orphan comes
	}
	h.census.RLock()
	defer h.census.RUnlock()
	foreign := slices.Collect(maps.Values(h.foreign))
	dog := h.watchdog.handover()
	if dog != nil {
		stat, err := readStat(dog.PID)
		if err != nil {
			return Handover{}, fmt.Errorf("looking at the watchdog: %w", err)
		}
		foreign = append(foreign, stat.process(dog.PID))
	}
	o := Handover{Foreign: seenOf(foreign), Watchdog: dog}
	h.mu.Lock()
	children := slices.Collect(maps.Values(h.leaders))
	h.mu.Unlock()
	for _, c := range children {
		c.mu.Lock()
		held := c.handed != nil
		c.mu.Unlock()
		if !held {
			return o, fmt.Errorf("process %d does not go over", c.pid)
		}
		o.Children = append(o.Children, c.handover())
	}
	return o, nil
}

// seenOf returns the state of processes for the next program.
func seenOf(processes []Process) []Seen {
	var seen []Seen
	for _, p := range processes {
		seen = append(seen, Seen{PID: p.PID, Born: p.born, Group: p.group, Program: p.Program})
	}
	return seen
}

// Exec replaces the program of this process. The files stay open, and also the files of the latest Handover. It returns
// only with an error, and then the host goes on.
func (h *Host) Exec(path string, argv, env []string, files []int) error {
	h.census.Lock() // no process is started or reaped
	defer h.census.Unlock()
	release, err := h.watchdog.holdStill()
	if err != nil {
		return err
	}
	defer release()
	for _, fd := range files {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("keeping file %d open: %w", fd, err)
		}
		defer unix.CloseOnExec(fd)
	}
	defer h.ask(fork{keep: []int{}})
	files = slices.Concat([]int{0, 1, 2}, files)
	slices.Sort(files)
	for some := range slices.Chunk(slices.Compact(files), maxPassed) {
		if f := h.ask(fork{keep: some}); f.err != nil {
			return f.err
		}
	}
	return h.ask(fork{path: path, argv: argv, attr: &syscall.ProcAttr{Env: env}, exec: true}).err
}

// inherit takes the state that the program before has handed over. The children wait for Adopt.
func (h *Host) inherit(o *Handover) {
	h.foreign, h.unclaimed = make(map[int]Process), make(map[int]Handed)
	for _, p := range processesOf(o.Foreign) {
		if o.Watchdog == nil || p.PID != o.Watchdog.PID {
			h.foreign[p.PID] = p
		}
	}
	for _, c := range o.Children {
		h.unclaimed[c.PID] = c
		for _, fd := range []int{c.Stdin, c.Stdout, c.Stderr} {
			if fd >= 0 {
				unix.CloseOnExec(fd)
			}
		}
	}
}

// Adopt goes on with a child that was handed over. The command of spec is not executed.
func (h *Host) Adopt(spec Spec, from Handed) (*Child, error) {
	c := &Child{host: h, spec: spec, pid: from.PID, began: from.StartedAt, temporary: from.Temporary, below: processesOf(from.Below)}
	if err := c.takeStreams(&from); err != nil {
		return nil, err
	}
	var err error
	if c.leaf, err = h.leafs.find(spec.Run); err != nil {
		return nil, err
	}
	h.watchdog.begins(spec.Run)
	h.census.RLock()
	h.mu.Lock()
	h.leaders[c.pid] = c
	delete(h.unclaimed, c.pid)
	h.mu.Unlock()
	h.census.RUnlock()
	return c, c.watch()
}

// takeStreams opens the streams of a handed child.
func (c *Child) takeStreams(from *Handed) (err error) {
	var terminal *os.File
	if from.Stdin >= 0 {
		terminal = os.NewFile(uintptr(from.Stdin), "stdin")
		if c.stdin, err = newStdin(terminal); err != nil {
			return err
		}
	}
	if c.spec.Pty && from.Stdout >= 0 {
		c.out, err = newPump(Stdout, terminal, c.spec.Listener)
	} else {
		c.out, err = takePump(Stdout, from.Stdout, c.spec.Listener)
	}
	if err == nil {
		c.err, err = takePump(Stderr, from.Stderr, c.spec.Listener)
	}
	return err
}

// takePump returns a pump for a file descriptor. If that is -1, the stream is over.
func takePump(stream Stream, fd int, to Listener) (*pump, error) {
	if fd >= 0 {
		return newPump(stream, os.NewFile(uintptr(fd), "output"), to)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_ = write.Close() // run meets the end at once
	return newPump(stream, read, to)
}

// Unclaimed kills the handed children that Adopt was not called for. They end like orphans.
func (h *Host) Unclaimed() (ended int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for pid := range h.unclaimed {
		signalGroup(pid, unix.SIGKILL)
		ended++
	}
	clear(h.unclaimed)
	return ended
}

// find returns the cgroup of a running child.
func (d *delegation) find(run string) (*leaf, error) {
	if d == nil {
		return nil, nil
	}
	l := &leaf{dir: d.dir + "/" + d.prefix + run, fd: -1}
	if _, err := os.Stat(l.dir); err != nil {
		return nil, err
	}
	return l, nil
}
