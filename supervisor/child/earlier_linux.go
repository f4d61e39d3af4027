package child

import (
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// ClearEarlier ends what an earlier host with the same home left behind, but
// us and those we came from: what sits in its leaves at once, because a leaf
// is killed whole, then every process that bears its mark, with a lull. It is
// to be called before the first Start, by the holder of the lock on the home.
// What it could not end comes back as survivors.
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

// earlier is the clearing of an earlier life.
type earlier struct {
	home  string
	spare map[int]bool
	met   map[identity]Process
	mine  func(run string) bool // which runs are to be cleared; nil: all
	known []Process             // that are to be cleared, with all below them
}

// meet remembers a process, and reports whether it is a new one.
func (e *earlier) meet(p Process) bool {
	_, known := e.met[p.identity()]
	e.met[p.identity()] = p
	return !known
}

// clearLeaves ends what is in the leaves and takes them away. It returns what
// did not die.
func (e *earlier) clearLeaves(d *delegation) []Process {
	leaves := slices.DeleteFunc(d.leaves(), e.mustStay)
	deadline := time.Now().Add(unkillable)
	for {
		left, err := e.killLeaves(leaves)
		if len(left) == 0 && err == nil {
			// The kernel refuses for a moment after the last one died.
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

// mustStay says that a leaf holds us or one we came from.
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

// clearMarked ends what bears the home's mark, and returns what did not die.
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

// marked lists the living processes that bear the home's mark, and those that
// did when they were found before. A stranger that cannot be seen for a moment
// is no reason to wait: on a busy machine there is always one.
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

// enterAlone records a process, and nothing below it.
func enterAlone(found map[int]Process, pid int, s stat) error {
	found[pid] = s.process(pid)
	return nil
}

// ancestors are this process and all above it: a shell that an earlier life
// left behind may be the one that starts us.
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
