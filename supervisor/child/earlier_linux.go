package child

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ClearEarlier ends what an earlier host with the same home left behind: every
// process that bears its mark, but us and those we came from. It is to be
// called before the first Start, by whoever holds the lock on the home. What
// it could not end comes back as survivors.
func (h *Host) ClearEarlier() (ended, survivors []Process) {
	spare := ancestors()
	deadline := time.Now().Add(unkillable)
	asked := time.Now().Add(lull)
	seen := make(map[Process]bool)
	for {
		var left []Process
		for pid := range processes() {
			if spare[pid] {
				continue
			}
			if home, run := marks(pid); home != h.home || run == "" {
				continue
			}
			s, err := readStat(pid)
			if err != nil || s.dead() {
				continue
			}
			p := Process{PID: pid, Program: s.program, born: s.born}
			left = append(left, p)
			if !seen[p] {
				seen[p] = true
				ended = append(ended, p)
				_ = signalProcess(p, unix.SIGTERM)
				_ = signalProcess(p, unix.SIGCONT)
			}
		}
		switch now := time.Now(); {
		case len(left) == 0, now.After(deadline):
			return ended, left
		case now.After(asked):
			signalAll(left, unix.SIGKILL)
		}
		awaitAny(left, 20*time.Millisecond)
	}
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
