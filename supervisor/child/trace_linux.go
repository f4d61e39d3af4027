package child

import (
	"os"
	"time"
)

// traceEvery is how often the trees of children are listed if there is no cgroup. A process
// that clears its environment, leaves its session and loses its parent is known only if it was
// listed before.
const traceEvery = 250 * time.Millisecond

// traceShare is the least ratio of the time between two looks to the time that a look takes.
const traceShare = 20

// trace records the descendants of each child, for the end of the child. It reports them and
// all orphans to the watchdog. If a tree cannot be read, its earlier record is kept.
func (h *Host) trace() {
	h.census.RLock()
	defer h.census.RUnlock()
	h.mu.Lock()
	children := make([]*Child, 0, len(h.leaders))
	for _, c := range h.leaders {
		children = append(children, c)
	}
	h.mu.Unlock()
	all := make(map[identity]bool)
	for _, c := range children {
		found := make(map[int]Process)
		err := enterAgain(found, c.traced(), enterAs)
		err = firstError(err, enter(found, c.pid))
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

// traced returns the descendants of the leader that the latest trace recorded.
func (c *Child) traced() []Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.below
}

func (c *Child) setTraced(found []Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.below = found
}
