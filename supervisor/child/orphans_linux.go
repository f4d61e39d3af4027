package child

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"os/signal"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// betweenReaps is the least time between two reaps of dead orphans. It limits the work that a shell causes by starting
	// a command in the background every few milliseconds.
	betweenReaps = 100 * time.Millisecond
	// betweenLooks is the least time between two looks. Of children that end together, many then share one. The first
	// child that ends does not wait.
	betweenLooks = 2 * time.Millisecond
	// slowTick is how often orphans are checked without a SIGCHLD.
	slowTick = 5 * time.Second
	// passes is the most often that one look reads the list of orphans.
	passes = 100
)

// errUnsettled reports that processes changed too fast to be listed.
var errUnsettled = errors.New("the tree does not come to rest")

// An orphan is a process that the kernel reparented to this one and that is not foreign.
type orphan struct {
	pid, group, session int
	run                 string // the run that its mark names
	unsettled           bool   // the mark cannot be read at the moment
}

// A look is one listing of all orphans, shared by all callers that requested it before it
// began.
type look struct {
	done    chan struct{}
	orphans []orphan
	err     error
}

// orphans returns the living orphans, as of the call or a moment later. Concurrent calls share
// looks, so a thousand children that end together cause only a few.
func (h *Host) orphans() ([]orphan, error) {
	h.lookMu.Lock()
	mine, first := h.nextLook, h.nextLook == nil
	if first {
		mine = &look{done: make(chan struct{})}
		h.nextLook = mine
	}
	h.lookMu.Unlock()
	if !first {
		<-mine.done
		return mine.orphans, mine.err
	}
	h.lookMu.Lock()
	wait := time.Until(h.lookedAt.Add(betweenLooks))
	h.lookMu.Unlock()
	time.Sleep(wait)
	h.census.Lock()
	defer h.census.Unlock()
	h.lookMu.Lock()
	h.nextLook = nil // later callers need a later look
	h.lookMu.Unlock()
	mine.orphans, mine.err = h.adopted()
	h.lookMu.Lock()
	h.lookedAt = time.Now()
	h.lookMu.Unlock()
	close(mine.done)
	return mine.orphans, mine.err
}

// adopted returns the living orphans and reaps the dead ones, including foreign ones. Only
// adopted and reapAll reap processes that Start did not start, and only while census is held.
// So no other child is reaped by mistake.
//
// After a reap it lists again, because the children of a reaped process may have become
// children of this one after the list was read. Only wait4 determines whether a process is
// dead: /proc also shows a zombie if other threads live on or a tracer holds it.
func (h *Host) adopted() ([]orphan, error) {
	if err := h.followForeign(); err != nil {
		return nil, err
	}
	for range passes {
		pids, err := childrenOf(os.Getpid())
		if err != nil {
			return nil, err
		}
		var living []orphan
		settled := true
		for _, pid := range h.notLeaders(pids) {
			if h.watchdog.is(pid) {
				settled = !h.reapDead(pid) && settled
				continue
			}
			o, foreign, err := h.identify(pid) // before wait4: a reaped process cannot be identified
			if h.reapDead(pid) {
				settled = false
				continue
			}
			if err != nil {
				return nil, err
			}
			if !foreign {
				living = append(living, o)
			}
		}
		if settled {
			return living, nil
		}
	}
	return nil, errUnsettled
}

// identify returns the marks of a child that Start did not start, and whether it is foreign.
func (h *Host) identify(pid int) (o orphan, foreign bool, err error) {
	o.pid = pid
	o.group, _ = unix.Getpgid(pid)
	o.session, _ = unix.Getsid(pid)
	home, run, err := marks(pid)
	o.run, o.unsettled = run, errors.Is(err, errUnsettled)
	if err != nil && !o.unsettled {
		return o, false, err
	}
	if home == h.home && run != "" {
		return o, false, nil
	}
	foreign, err = h.isForeign(o)
	return o, foreign, err
}

// reapDead reaps a child if it is dead, and reports whether it was.
func (h *Host) reapDead(pid int) bool {
	reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	if reaped != pid || err != nil {
		return false
	}
	delete(h.foreign, pid) // the pid may be reused
	if h.watchdog.is(pid) {
		h.watchdog.died()
	}
	return true
}

// tend reaps dead orphans while children live, and reports stopped leaders. NewHost starts it,
// and Close waits for its end.
func (h *Host) tend() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	defer signal.Stop(died)
	tick := time.NewTicker(slowTick)
	defer tick.Stop()
	var look <-chan time.Time
	var next time.Time
	if h.leafs == nil {
		ticker := time.NewTicker(traceEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-h.closing:
			return
		case <-died:
		case now := <-look:
			if now.Before(next) || !h.hasChildren() {
				continue
			}
			h.trace()
			next = time.Now().Add(traceShare * time.Since(now)) // a look at many children takes long
			continue
		case <-tick.C:
			if !h.hasChildren() {
				continue
			}
		}
		h.reapAll()
		h.tellStops()
		h.watchdog.again()
		select {
		case <-h.closing:
			return
		case <-time.After(betweenReaps):
		}
	}
}

// tellStops reports the leaders that were stopped by a signal, and the leaders that continue. It reaps no process,
// because it waits only for stops and continuations.
func (h *Host) tellStops() {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WSTOPPED|unix.WCONTINUED|unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		pid := pidOf(&info)
		if err != nil || pid == 0 {
			return
		}
		h.mu.Lock()
		c := h.leaders[pid]
		h.mu.Unlock()
		if c != nil {
			c.spec.Listener.Stopped(info.Code == cldStopped)
		}
	}
}

// reapAll reaps every dead orphan. It ignores errors, because the next call tries again.
func (h *Host) reapAll() {
	h.census.Lock()
	defer h.census.Unlock()
	_ = h.followForeign()
	pids, _ := childrenOf(os.Getpid())
	for _, pid := range h.notLeaders(pids) {
		h.reapDead(pid)
	}
}

// clearStrays ends the remaining orphans of unknown origin, once no child is left.
func (h *Host) clearStrays() []Process {
	var ended []Process
	deadline := time.Now().Add(unkillable)
	for time.Now().Before(deadline) {
		found := make(map[int]Process)
		orphans, err := h.orphans()
		for _, o := range orphans {
			err = cmp.Or(err, enterOrphan(found, o.pid))
		}
		left := inOrder(found)
		if err == nil && len(left) == 0 {
			break
		}
		for _, p := range left {
			if !slices.ContainsFunc(ended, p.same) {
				ended = append(ended, p)
			}
		}
		signalAll(left, unix.SIGKILL)
		pause(left, 20*time.Millisecond)
	}
	return ended
}

// traceEvery is how often the trees of children are listed without a cgroup. A process that clears its environment,
// leaves its session and loses its parent is known only if it was listed before.
const traceEvery = 250 * time.Millisecond

// traceShare is the least ratio of the time between two looks to the time that a look takes.
const traceShare = 20

// trace records the descendants of each child, for the end of the child and for the origin of its
// orphans. It reports them and all orphans to the watchdog. If a tree cannot be read, its earlier record is kept.
func (h *Host) trace() {
	h.census.RLock()
	defer h.census.RUnlock()
	h.mu.Lock()
	children := slices.Collect(maps.Values(h.leaders))
	h.mu.Unlock()
	all := make(map[identity]bool)
	for _, c := range children {
		found := make(map[int]Process)
		err := enterAgain(found, c.traced(), enterAs)
		err = cmp.Or(err, enter(found, c.pid))
		if err != nil {
			for _, p := range c.traced() {
				found[p.PID] = p
			}
		}
		for _, p := range found {
			all[p.identity()] = true
		}
		delete(found, c.pid)
		c.setTraced(inOrder(found))
	}
	for p := range h.adoptedNow() {
		all[p] = true
	}
	h.watchdog.sees(all)
}

// adoptedNow returns the present orphans of this process and their descendants. It reaps none.
func (h *Host) adoptedNow() map[identity]bool {
	pids, _ := childrenOf(os.Getpid())
	found := make(map[int]Process)
	for _, pid := range h.notLeaders(pids) {
		s, living, err := readLiving(pid)
		if err != nil || !living || h.watchdog.is(pid) || h.foreign[pid].same(s.process(pid)) {
			continue
		}
		if o, foreign, err := h.identify(pid); err == nil && !foreign && o.pid == pid {
			_ = enterAs(found, pid, s)
		}
	}
	all := make(map[identity]bool)
	for _, p := range found {
		all[p.identity()] = true
	}
	return all
}

func (c *Child) setTraced(found []Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.below = found
}

// Some descendants of this process are foreign. A program may start a sidecar and then become
// the orchestrator by exec, which leaves it with a child that it did not start. That child and
// its descendants are not signalled, unless they have the mark of this home.

// meetForeign records the descendants of this process before the first Start. It repeats this
// until it finds no new process, because a process that loses its parent between the reading of
// two lists is in neither.
func (h *Host) meetForeign() error {
	h.foreign = make(map[int]Process)
	for range passes {
		found := make(map[int]Process)
		children, err := childrenOf(os.Getpid())
		for _, pid := range children {
			if !h.reapDead(pid) {
				err = cmp.Or(err, enter(found, pid))
			}
		}
		if err != nil {
			return err
		}
		settled := true
		for pid, p := range found {
			settled = settled && h.foreign[pid].same(p)
			h.foreign[pid] = p
		}
		if settled {
			return nil
		}
	}
	return errUnsettled
}

// followForeign records the new descendants of foreign processes, before they become orphans of unknown origin.
// h.census must be held.
func (h *Host) followForeign() error {
	if len(h.foreign) == 0 {
		return nil
	}
	found := make(map[int]Process)
	for pid, known := range h.foreign {
		if _, again := found[pid]; again {
			continue
		}
		s, err := readStat(pid)
		if vanished(err) || err == nil && s.born != known.born {
			continue
		}
		if err == nil {
			err = enterAs(found, pid, s)
		}
		if err != nil {
			return err // keeps the earlier result
		}
	}
	h.foreign = found
	return nil
}

// isForeign reports whether an unmarked orphan is foreign: it is known, or it is in the group of a known one or of this
// process. Children have their own groups, so their processes are not in one of these by themselves.
func (h *Host) isForeign(o orphan) (bool, error) {
	if known, ok := h.foreign[o.pid]; ok {
		s, err := readStat(o.pid)
		if err != nil && !vanished(err) {
			return false, err
		}
		if s.born == known.born {
			return true, nil
		}
	}
	if o.group == unix.Getpgrp() {
		return true, nil
	}
	for _, known := range h.foreign {
		if known.group == o.group {
			return true, nil
		}
	}
	return false, nil
}

// locateOrphan completes the origin of a process that descends from an orphan. A known foreign
// process is not below a child. h.census must be held.
func (h *Host) locateOrphan(o *Origin, orphan int) {
	s, err := readStat(orphan)
	if known, ok := h.foreign[orphan]; ok && err == nil && known.born == s.born {
		return
	}
	o.Below, o.Orphan = true, true
	if err == nil {
		o.Run = h.runOfOrphan(s.process(orphan), s.session)
	}
	if home, run, err := marks(o.PID); err == nil && home == h.home && run != o.Run {
		o.Claim = run
	}
}

// runOfOrphan returns the run that an orphan belongs to, or "" if it is not known. A process cannot join a session, and
// without rights on its hierarchy no cgroup either. It can join a group and choose its environment, so these are no
// proof.
func (h *Host) runOfOrphan(orphan Process, session int) string {
	leaf := h.leafs.runOf(orphan.PID)
	for _, t := range h.trees() {
		switch {
		case h.leafs != nil && t.run == leaf,
			h.leafs == nil && (session == t.leader || slices.ContainsFunc(t.below, orphan.same)):
			return t.run
		}
	}
	return ""
}
