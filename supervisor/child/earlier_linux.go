package child

import (
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// ClearEarlier ends the processes that an earlier host with the same home left behind, except
// this process and its ancestors. It kills the processes in leaves at once, because a leaf can
// only be killed as a whole. It then ends every process with the home's mark, with a lull
// before the kill. The holder of the home's lock must call it before the first Start. survivors
// are the processes that did not end.
func (h *Host) ClearEarlier() (ended, survivors []Process) {
	e := earlier{home: h.home, spare: ancestors(), met: make(map[identity]Process)}
	inLeaves := e.clearLeaves(h.leafs)
	survivors = e.clearMarked()
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
		left, err = append(left, inside...), firstError(err, leafErr)
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
		s, living, statErr := readLiving(pid)
		if living {
			found[pid] = s.process(pid)
		}
		err = firstError(err, statErr)
	}
	return inOrder(found), err
}

// clearMarked ends the processes with the home's mark, and returns those that did not die.
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

// marked returns the living processes with the home's mark, and those of before that still
// live. It ignores a process whose mark cannot be read for the moment: on a busy machine there
// always is one.
func (e *earlier) marked(before []Process) ([]Process, error) {
	found := make(map[int]Process)
	err := enterAgain(found, before, enterAlone)
	err = firstError(err, enterAgain(found, e.known, enterAs))
	all, listErr := processes()
	err = firstError(err, listErr)
	for _, pid := range all {
		if e.spare[pid] {
			continue
		}
		home, run, marksErr := marks(pid)
		if marksErr != nil && !errors.Is(marksErr, errUnsettled) {
			err = firstError(err, marksErr)
		}
		if home != e.home || run == "" || e.mine != nil && !e.mine(run) {
			continue
		}
		s, living, statErr := readLiving(pid)
		if living {
			found[pid] = s.process(pid)
		}
		err = firstError(err, statErr)
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
