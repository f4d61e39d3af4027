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
	h := c.host
	h.census.Lock()
	defer h.census.Unlock()
	found := make(map[int]Process)
	for _, pid := range c.leaf.members() {
		if pid != c.pid {
			enter(found, pid)
		}
	}
	h.adopted(func(pid int, s stat) {
		if c.owns(pid, s) {
			enter(found, pid)
		}
	})
	return inOrder(found)
}

// owns says whether an adopted process came of this child.
func (c *Child) owns(pid int, s stat) bool {
	if s.group == c.pid || s.session == c.pid {
		return true
	}
	_, run := marks(pid)
	return run == c.spec.Run
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

// adopted tells see about every living orphan that the kernel gave us, and
// reaps the dead ones. Only here is a process reaped that Start did not make,
// and only while census is held, so nobody's child is ever taken away. It
// looks again whenever it met a dead one: what that one left behind may have
// become ours after the list was read.
func (h *Host) adopted(see func(int, stat)) {
	for {
		settled := true
		for _, pid := range childrenOf(os.Getpid()) {
			if h.isLeader(pid) {
				continue
			}
			s, err := readStat(pid)
			if err != nil || s.dead() {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
				settled = false
				continue
			}
			see(pid, s)
		}
		if settled {
			return
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
		h.census.Lock()
		h.adopted(func(pid int, _ stat) { enter(found, pid) })
		h.census.Unlock()
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
