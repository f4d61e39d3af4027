package child

import (
	"os"
	"time"
)

// traceEvery is how often the trees of children are looked at where no cgroup holds
// them. What clears its environment, leaves its session and loses its parent is known
// only if a look has seen it before.
const traceEvery = 250 * time.Millisecond

// traceShare is how much longer than a look takes nothing is looked at.
const traceShare = 20

// trace remembers what each child has made so far, for the child's own end, and tells the
// watchdog of that and of all orphans. What could not be seen stays as it was known.
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

// adoptedNow are the orphans that this process has now, with what is below them. Dead ones
// and foreign ones are not reaped here: that is for adopted.
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

// traced is what the latest look has seen below the leader.
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
