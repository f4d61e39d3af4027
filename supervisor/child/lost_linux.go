package child

import (
	"cmp"
	"time"

	"golang.org/x/sys/unix"
)

// EndLost ends the orphans of the run that were started between two times of SinceBoot, and their descendants. It is
// for processes that a program has begun and lost, such as a command in a separate group after the program has killed
// its shell. The leader and its living descendants are not touched, nor are processes that were started before or
// after. The lost processes get SIGTERM, and SIGKILL after a lull. Listener.Lost is called if one was found. EndLost has no
// effect once the leader is dead, because then the whole tree is ended.
func (c *Child) EndLost(since, until time.Duration) {
	var ending Ending
	began := time.Now()
	var left []Process
	for over := false; !over && !c.isDead(); {
		var err error
		left, err = c.lost(left, since, until)
		asked := len(ending.LeftOver)
		c.note(&ending, left)
		for _, p := range ending.LeftOver[asked:] {
			_ = signalProcess(p, unix.SIGTERM)
			_ = signalProcess(p, unix.SIGCONT)
		}
		switch took := time.Since(began); {
		case err == nil && len(left) == 0:
			over = true
		case took < lull:
			pause(left, 20*time.Millisecond)
		case took < lull+unkillable:
			signalAll(left, unix.SIGKILL)
			pause(left, 20*time.Millisecond)
		default:
			ending.Survivors, ending.Unverified, over = left, err != nil, true
		}
	}
	if len(ending.LeftOver) > 0 || ending.Unverified {
		c.spec.Listener.Lost(ending)
	}
}

func (c *Child) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead || c.gone
}

// lost returns the living processes of before, and the orphans of the run that were started between two times of
// SinceBoot, all with their descendants. With an error the list is incomplete. It ignores an orphan if its run cannot
// be read for the moment: a busy machine always has one.
func (c *Child) lost(before []Process, since, until time.Duration) ([]Process, error) {
	found := make(map[int]Process)
	err := enterAgain(found, before, enterAs)
	orphans, lookErr := c.host.orphans()
	err = cmp.Or(err, lookErr)
	for _, o := range orphans {
		s, statErr := readStat(o.pid)
		switch {
		case vanished(statErr):
		case statErr != nil:
			err = cmp.Or(err, statErr)
		case s.born < ticks(since), s.born > ticks(until), found[o.pid].PID != 0:
		case c.host.loser(o, s.process(o.pid)) == c.spec.Run:
			err = cmp.Or(err, enterAs(found, o.pid, s))
		}
	}
	return inOrder(found), err
}

// loser returns the run that an orphan belongs to: the run that it was seen below, or else the run of the leader of its
// group, or else the run that its mark names.
func (h *Host) loser(o orphan, p Process) string {
	if run := h.runOfOrphan(p, o.session); run != "" {
		return run
	}
	for _, t := range h.trees() {
		if t.leader == o.group {
			return t.run
		}
	}
	return o.run
}

// ticks returns a time of SinceBoot in the unit of stat.born.
func ticks(t time.Duration) uint64 { return uint64(t * ticksPerSecond / time.Second) }
