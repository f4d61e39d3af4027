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
	// betweenReaps is the least time between two reaps of dead orphans. It limits the work that
	// a shell causes by starting something in the background every few milliseconds.
	betweenReaps = 100 * time.Millisecond
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
	h.census.Lock()
	defer h.census.Unlock()
	h.lookMu.Lock()
	h.nextLook = nil // later callers need a later look
	h.lookMu.Unlock()
	mine.orphans, mine.err = h.adopted()
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

// tellStops reports the leaders that were stopped by a signal, and those that continue. It
// reaps no process, because it waits only for stops and continuations.
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
