package child

import (
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// clear ends everything that outlived the leader: asks, waits a lull, kills,
// and looks again until nothing is left. Most children leave nothing, and then
// it costs one look.
func (c *Child) clear() Ending {
	var ending Ending
	asked := c.isForced()
	deadline := time.Now().Add(lull)
	giveUp := time.Now().Add(unkillable)
	for round := 0; ; round++ {
		left := c.members()
		if len(left) == 0 {
			return ending
		}
		c.note(&ending, left)
		now := time.Now()
		switch {
		case now.After(giveUp):
			ending.Survivors = left
			return ending
		case asked && (c.isForced() || now.After(deadline)):
			c.leaf.kill()
			signalGroup(c.pid, unix.SIGKILL)
			signalAll(left, unix.SIGKILL)
			awaitAny(left, 20*time.Millisecond)
		case !asked:
			asked = true
			signalAll(left, unix.SIGTERM)
			signalAll(left, unix.SIGCONT)
			awaitAny(left, 20*time.Millisecond)
		default:
			awaitAny(left, min(time.Until(deadline), 50*time.Millisecond))
		}
	}
}

// note remembers left-overs by name, and which of them kept the output open.
func (c *Child) note(ending *Ending, left []Process) {
	for _, p := range left {
		if slices.ContainsFunc(ending.LeftOver, p.same) {
			continue
		}
		p.Held = holds(p.PID, []string{c.out.pipeName(), c.err.pipeName()})
		ending.LeftOver = append(ending.LeftOver, p)
	}
}

// members counts what is left of the tree, the leader apart: what sits in the
// leaf, and what we adopted that bears the mark or belongs to the leader's
// group or session, with all below it.
func (c *Child) members() []Process {
	found := make(map[int]Process)
	for _, pid := range c.leaf.members() {
		if pid != c.pid {
			enter(found, pid)
		}
	}
	for _, o := range c.host.orphans() {
		if o.group == c.pid || o.session == c.pid || o.run == c.spec.Run {
			enter(found, o.pid)
		}
	}
	return inOrder(found)
}

// enter records a living process and everything below it.
func enter(found map[int]Process, pid int) {
	if _, known := found[pid]; known {
		return
	}
	s, err := readStat(pid)
	if err != nil || s.dead() {
		return
	}
	found[pid] = Process{PID: pid, Program: s.program, born: s.born}
	for _, below := range childrenOf(pid) {
		enter(found, below)
	}
}

// orphan is a process that the kernel gave us.
type orphan struct {
	pid, group, session int
	run                 string // its mark
}

// look is one look at all orphans, shared by all who asked before it began.
type look struct {
	done    chan struct{}
	orphans []orphan
}

// orphans lists those that live, as of now or a moment later. A thousand
// children that end together share a few looks.
func (h *Host) orphans() []orphan {
	h.lookMu.Lock()
	mine, first := h.nextLook, h.nextLook == nil
	if first {
		mine = &look{done: make(chan struct{})}
		h.nextLook = mine
	}
	h.lookMu.Unlock()
	if !first {
		<-mine.done
		return mine.orphans
	}
	h.census.Lock()
	defer h.census.Unlock()
	h.lookMu.Lock()
	h.nextLook = nil // whoever asks from here on wants to see what is after this
	h.lookMu.Unlock()
	mine.orphans = h.adopted()
	close(mine.done)
	return mine.orphans
}

// adopted lists the living orphans and reaps the dead ones. Only here is a
// process reaped that Start did not make, and only while census is held, so
// nobody's child is ever taken away. It looks again whenever it met a dead
// one: what that one left behind may have become ours after the list was read.
func (h *Host) adopted() []orphan {
	for {
		settled := true
		var living []orphan
		for _, pid := range h.notLeaders(childrenOf(os.Getpid())) {
			s, err := readStat(pid)
			if err != nil || s.dead() {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
				settled = false
				continue
			}
			_, run := marks(pid)
			living = append(living, orphan{pid: pid, group: s.group, session: s.session, run: run})
		}
		if settled {
			return living
		}
	}
}

func inOrder(found map[int]Process) []Process {
	list := slices.Collect(maps.Values(found))
	slices.SortFunc(list, func(a, b Process) int { return a.PID - b.PID })
	return list
}

// clearStrays ends every orphan that is left when no child is: those that
// could not be told whose they are.
func (h *Host) clearStrays() []Process {
	var ended []Process
	deadline := time.Now().Add(unkillable)
	for time.Now().Before(deadline) {
		found := make(map[int]Process)
		for _, o := range h.orphans() {
			enter(found, o.pid)
		}
		left := inOrder(found)
		if len(left) == 0 {
			break
		}
		for _, p := range left {
			if !slices.ContainsFunc(ended, p.same) {
				ended = append(ended, p)
			}
		}
		signalAll(left, unix.SIGKILL)
		awaitAny(left, 20*time.Millisecond)
	}
	return ended
}

func signalAll(processes []Process, sig unix.Signal) {
	for _, p := range processes {
		_ = signalProcess(p, sig)
	}
}

// awaitAny waits until one of the processes is dead, or patience is over.
func awaitAny(processes []Process, patience time.Duration) {
	if patience <= 0 {
		return
	}
	var watch []unix.PollFd
	for _, p := range processes {
		if fd, err := unix.PidfdOpen(p.PID, 0); err == nil {
			defer unix.Close(fd)
			watch = append(watch, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	if len(watch) < len(processes) {
		return // one is gone already
	}
	_, _ = unix.Poll(watch, int(patience.Milliseconds())+1)
}
