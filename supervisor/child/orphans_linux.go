package child

import (
	"errors"
	"os"
	"os/signal"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// betweenReaps is how often dead orphans are reaped at most. A shell that
	// starts something in the background every few milliseconds would keep us
	// busy otherwise.
	betweenReaps = 100 * time.Millisecond
	// slowTick is when orphans are looked at without news of a death.
	slowTick = 5 * time.Second
	// passes is how often one look reads the list of orphans at most.
	passes = 100
)

// errUnsettled says that what was looked at changed too fast to be seen.
var errUnsettled = errors.New("the tree does not come to rest")

// orphan is a process that the kernel gave us and that is not foreign.
type orphan struct {
	pid, group, session int
	run                 string // its mark
	unsettled           bool   // whether it has one cannot be seen just now
}

// look is one look at all orphans, shared by all who asked before it began.
type look struct {
	done    chan struct{}
	orphans []orphan
	err     error
}

// orphans lists those that live, as of now or a moment later. A thousand
// children that end together share a few looks.
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
	h.census.Lock()
	defer h.census.Unlock()
	h.lookMu.Lock()
	h.nextLook = nil // a caller from here on wants to see what is after this
	h.lookMu.Unlock()
	mine.orphans, mine.err = h.adopted()
	close(mine.done)
	return mine.orphans, mine.err
}

// adopted lists the living orphans and reaps the dead ones, foreign ones too.
// Only here and by reapAll is a process reaped that Start did not make, and
// only while census is held, so no child of another is ever reaped.
//
// It looks again whenever it reaped one: what that one left behind may have
// become ours after the list was read. Only wait4 decides who is dead: /proc
// shows a zombie also where other threads live on, or a tracer holds it.
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
			o, foreign, err := h.identify(pid) // before wait4: the dead tell nothing
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

// identify says whose a child of ours is that no Start made.
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

// reapDead reaps a child of ours if it is dead, and reports whether it was.
func (h *Host) reapDead(pid int) bool {
	reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	if reaped != pid || err != nil {
		return false
	}
	delete(h.foreign, pid) // the number means nothing now
	if h.watchdog.is(pid) {
		h.watchdog.died()
	}
	return true
}

// tend reaps dead orphans while children live: nothing else would before the
// next child ends. NewHost starts it, Close ends it and waits.
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
			next = time.Now().Add(traceShare * time.Since(now)) // many children take long to look at
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

// tellStops tells of leaders that were stopped by a signal, and of those that go on. It
// reaps none: only stops and continuations are asked for.
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
		if c != nil && c.spec.Stopped != nil {
			c.spec.Stopped(info.Code == cldStopped)
		}
	}
}

// reapAll reaps every dead orphan. What it could not see it sees next time.
func (h *Host) reapAll() {
	h.census.Lock()
	defer h.census.Unlock()
	_ = h.followForeign()
	pids, _ := childrenOf(os.Getpid())
	for _, pid := range h.notLeaders(pids) {
		h.reapDead(pid)
	}
}

// clearStrays ends every orphan that is left when no child is: those that
// could not be told whose they are.
func (h *Host) clearStrays() []Process {
	var ended []Process
	deadline := time.Now().Add(unkillable)
	for time.Now().Before(deadline) {
		found := make(map[int]Process)
		orphans, err := h.orphans()
		for _, o := range orphans {
			err = firstError(err, enterOrphan(found, o.pid))
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
