package child

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// clear ends every process that outlived the leader: it sends SIGTERM, waits, sends SIGKILL,
// and repeats until none is left. It waits for lull, or, if Signal was called, until Kill. Most
// children leave no processes, and then one look is enough.
//
// A failed look is no proof: clear then goes on without a list, and the tree counts as empty only after a successful
// look.
func (c *Child) clear() Ending {
	var ending Ending
	told := false
	began := time.Now()
	var giveUp time.Time // set when the killing begins
	left := c.traced()
	for {
		var err error
		left, err = c.members(left)
		if err == nil && len(left) == 0 {
			return ending
		}
		c.note(&ending, left)
		ordered, forced := c.orders()
		now := time.Now()
		switch {
		case !forced && (ordered || now.Sub(began) < lull):
			c.askGroup()
			if !told && err == nil {
				told = true
				c.askOthers(left)
			}
			pause(left, max(20*time.Millisecond, min(now.Sub(began)/4, 250*time.Millisecond)))
		case giveUp.IsZero():
			giveUp = now.Add(unkillable)
			fallthrough
		case now.Before(giveUp):
			c.leaf.kill()
			signalGroup(c.pid, unix.SIGKILL)
			signalAll(left, unix.SIGKILL)
			pause(left, 20*time.Millisecond)
		default:
			ending.Survivors, ending.Unverified = left, err != nil
			return ending
		}
	}
}

// askOthers sends SIGTERM to left-overs outside the group. It is called once, because processes
// that they start afterwards may be part of an orderly end.
func (c *Child) askOthers(left []Process) {
	for _, p := range left {
		if p.group != c.pid {
			_ = signalProcess(p, unix.SIGTERM)
			_ = signalProcess(p, unix.SIGCONT)
		}
	}
}

// note adds left-overs to ending, and notes which of them kept the output open.
func (c *Child) note(ending *Ending, left []Process) {
	for _, p := range left {
		if slices.ContainsFunc(ending.LeftOver, p.same) {
			continue
		}
		p.Held = holds(p.PID, []string{c.out.pipeName(), c.err.pipeName()})
		ending.LeftOver = append(ending.LeftOver, p)
	}
}

// members returns the remaining processes of the tree without the leader: those in the leaf,
// and the known ones of before that still live. It adds the orphans with the run's mark or in
// the leader's group or session, and their descendants. With an error the list is incomplete.
func (c *Child) members(before []Process) ([]Process, error) {
	found := make(map[int]Process)
	err := enterAgain(found, before, enterAs)
	pids, leafErr := c.leaf.left()
	err = cmp.Or(err, leafErr)
	for _, pid := range pids {
		if pid != c.pid {
			err = cmp.Or(err, enter(found, pid))
		}
	}
	orphans, lookErr := c.host.orphans()
	err = cmp.Or(err, lookErr)
	for _, o := range orphans {
		switch {
		case o.group == c.pid || o.session == c.pid || o.run == c.spec.Run:
			err = cmp.Or(err, enterOrphan(found, o.pid))
		case o.unsettled && found[o.pid].PID == 0:
			err = cmp.Or(err, errUnsettled) // it may belong to this child
		}
	}
	return inOrder(found), err
}

// enter records a living process and its descendants.
func enter(found map[int]Process, pid int) error {
	if _, known := found[pid]; known {
		return nil
	}
	return enterLiving(found, pid, enterAs)
}

// enterLiving records a process with as, if it lives.
func enterLiving(found map[int]Process, pid int, as func(map[int]Process, int, stat) error) error {
	s, living, err := readLiving(pid)
	if !living {
		return err
	}
	return as(found, pid, s)
}

// enterAgain records the processes that still live. A dying process loses its marks before it
// closes its sockets, so known processes are kept without a mark.
func enterAgain(found map[int]Process, processes []Process, as func(map[int]Process, int, stat) error) error {
	var err error
	for _, p := range processes {
		s, living, statErr := readLiving(p.PID)
		if living && s.born == p.born {
			statErr = as(found, p.PID, s)
		}
		err = cmp.Or(err, statErr)
	}
	return err
}

// enterOrphan is enter for a process that could not be reaped and therefore lives, whatever its
// state is. A tracer may hold it.
func enterOrphan(found map[int]Process, pid int) error {
	if _, known := found[pid]; known {
		return nil
	}
	s, err := readStat(pid)
	if vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return enterAs(found, pid, s)
}

func enterAs(found map[int]Process, pid int, s stat) error {
	found[pid] = s.process(pid)
	children, err := childrenOf(pid)
	for _, below := range children {
		err = cmp.Or(err, enter(found, below))
	}
	return err
}

func inOrder(found map[int]Process) []Process {
	return slices.SortedFunc(maps.Values(found), func(a, b Process) int { return a.PID - b.PID })
}

func signalAll(processes []Process, sig unix.Signal) {
	for _, p := range processes {
		_ = signalProcess(p, sig)
	}
}

// pause waits until one of the processes is dead, or for patience. It always waits a moment: an unreapable zombie
// counts as dead, and without file descriptors no process can be watched.
func pause(processes []Process, patience time.Duration) {
	const shortest = 2 * time.Millisecond
	const watched = 64 // watching more would not help
	end := time.Now().Add(patience)
	var watch []unix.PollFd
	for _, p := range processes[:min(len(processes), watched)] {
		fd, err := unix.PidfdOpen(p.PID, 0)
		if err == unix.ESRCH {
			patience = shortest
		}
		if err == nil {
			defer unix.Close(fd)
			watch = append(watch, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	time.Sleep(min(patience, shortest))
	if patience > shortest {
		_, _ = unix.Poll(watch, int(max(0, time.Until(end)).Milliseconds())+1)
	}
}

// ClearEarlier ends the processes that an earlier host with the same home left behind, except
// this process and its ancestors. It kills the processes in leaves at once, because a leaf can
// only be killed as a whole. It then ends every process with the home's mark, with a lull
// before the kill. The holder of the home's lock must call it before the first Start. survivors
// are the processes that did not end. The temporary files of confined children are removed.
func (h *Host) ClearEarlier() (ended, survivors []Process) {
	e := earlier{home: h.home, spare: ancestors(), met: make(map[identity]Process)}
	inLeaves := e.clearLeaves(h.leafs)
	survivors = e.clearMarked()
	_ = RemoveAll(filepath.Join(h.home, temporaryDir))
	for _, p := range inLeaves {
		if !slices.ContainsFunc(survivors, p.same) {
			survivors = append(survivors, p)
		}
	}
	for _, p := range survivors {
		delete(e.met, p.identity())
	}
	ended = slices.SortedFunc(maps.Values(e.met), func(a, b Process) int { return a.PID - b.PID })
	return ended, survivors
}

// An earlier is the clearing of an earlier host's processes.
type earlier struct {
	home  string
	spare map[int]bool
	met   map[identity]Process
	mine  func(run string) bool // which runs are to be cleared; nil: all
	known []Process             // to be cleared, with their descendants
}

// meet adds a process, and reports whether it is new.
func (e *earlier) meet(p Process) bool {
	_, known := e.met[p.identity()]
	e.met[p.identity()] = p
	return !known
}

// clearLeaves kills the processes in the leaves and removes the leaves. It returns the
// processes that did not die.
func (e *earlier) clearLeaves(d *delegation) []Process {
	leaves := slices.DeleteFunc(d.leaves(), e.mustStay)
	deadline := time.Now().Add(unkillable)
	for {
		left, err := e.killLeaves(leaves)
		if len(left) == 0 && err == nil {
			// The kernel refuses for a moment after the last process died.
			leaves = slices.DeleteFunc(leaves, func(l *leaf) bool { return l.rmdir() != unix.EBUSY })
		}
		if len(leaves) == 0 || time.Now().After(deadline) {
			return left
		}
		pause(left, 20*time.Millisecond)
	}
}

func (e *earlier) killLeaves(leaves []*leaf) (left []Process, err error) {
	for _, l := range leaves {
		inside, leafErr := l.living()
		for _, p := range inside {
			e.meet(p)
		}
		left, err = append(left, inside...), cmp.Or(err, leafErr)
		l.kill()
	}
	return left, err
}

// mustStay reports whether a leaf holds this process or an ancestor, or cannot be read.
func (e *earlier) mustStay(l *leaf) bool {
	pids, err := l.members()
	return err != nil || slices.ContainsFunc(pids, func(pid int) bool { return e.spare[pid] })
}

// living lists the processes in a leaf.
func (l *leaf) living() ([]Process, error) {
	pids, err := l.members()
	found := make(map[int]Process)
	for _, pid := range pids {
		err = cmp.Or(err, enterLiving(found, pid, enterAlone))
	}
	return inOrder(found), err
}

// clearMarked ends the processes with the home's mark, and returns the survivors.
func (e *earlier) clearMarked() []Process {
	quiet := time.Now().Add(lull)
	deadline := time.Now().Add(unkillable)
	left := e.known
	for {
		var err error
		left, err = e.marked(left)
		for _, p := range left {
			if e.meet(p) {
				_ = signalProcess(p, unix.SIGTERM)
				_ = signalProcess(p, unix.SIGCONT)
			}
		}
		switch now := time.Now(); {
		case len(left) == 0 && err == nil, now.After(deadline):
			return left
		case now.After(quiet):
			signalAll(left, unix.SIGKILL)
		}
		pause(left, 20*time.Millisecond)
	}
}

// marked returns the living processes with the home's mark, and living processes of before. It ignores a process if its
// mark cannot be read for the moment: a busy machine always has one.
func (e *earlier) marked(before []Process) ([]Process, error) {
	found := make(map[int]Process)
	err := enterAgain(found, before, enterAlone)
	err = cmp.Or(err, enterAgain(found, e.known, enterAs))
	all, listErr := processes()
	err = cmp.Or(err, listErr)
	for _, pid := range all {
		if e.spare[pid] {
			continue
		}
		home, run, marksErr := marks(pid)
		if marksErr != nil && !errors.Is(marksErr, errUnsettled) {
			err = cmp.Or(err, marksErr)
		}
		if home != e.home || run == "" || e.mine != nil && !e.mine(run) {
			continue
		}
		err = cmp.Or(err, enterLiving(found, pid, enterAlone))
	}
	return inOrder(found), err
}

// enterAlone records a process without its descendants.
func enterAlone(found map[int]Process, pid int, s stat) error {
	found[pid] = s.process(pid)
	return nil
}

// ancestors returns this process and its ancestors. One of them may be a shell that an earlier
// host left behind.
func ancestors() map[int]bool {
	line := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !line[pid]; {
		line[pid] = true
		s, err := readStat(pid)
		if err != nil {
			break
		}
		pid = s.parent
	}
	return line
}
