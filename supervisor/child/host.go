package child

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
)

// Options of a Host.
type Options struct {
	// Home marks everything that this host starts, so that a later host with
	// the same home finds what this one left. An absolute path.
	Home string
	// NoCgroup keeps to groups and marks even where a cgroup is delegated.
	NoCgroup bool
	// Watchdog starts a process that ends what is left of the children if this process is
	// killed.
	Watchdog bool
}

// Host makes children and owns what they share: the threads that fork, the
// list of leaders, the cgroup. A process has one Host at a time and makes no
// child without it: whatever comes to be below the process is taken for an
// orphan. What was below it before NewHost is left alone.
type Host struct {
	home  string
	leafs *delegation // nil where no cgroup is delegated

	watchdog *watchdog // nil: none was asked for

	forks chan fork
	room  chan struct{} // a place for each child that may be in the making
	group sync.WaitGroup

	// census is held for reading while a child is made and for writing while
	// orphans are counted and reaped: a leader that is not entered yet
	// must not be taken for an orphan.
	census sync.RWMutex

	// foreign is what is below us and not ours, by pid. The census guards it.
	foreign map[int]Process

	closing chan struct{} // closed by Close

	lookMu   sync.Mutex
	nextLook *look // has not begun; nil: none is waited for

	mu      sync.Mutex
	leaders map[int]*Child // by pid, until reaped
	closed  bool
}

// fork is a request to a spawner.
type fork struct {
	path string
	argv []string
	attr *syscall.ProcAttr
	done chan<- forked
}

type forked struct {
	pid int
	err error
}

// spawners is how many threads fork. A second one gains a third on two cores;
// more only wait for each other in the kernel.
const spawners = 2

// making is how many children may be in the making at once. Each holds both
// ends of its pipes meanwhile, and ten thousand that wait for a spawner would
// use up the descriptors that a thousand running ones need.
const making = 2 * spawners

// NewHost makes this process the parent of all that its children leave behind.
func NewHost(o Options) (*Host, error) {
	if !filepath.IsAbs(o.Home) {
		return nil, fmt.Errorf("home %q is not an absolute path", o.Home)
	}
	if err := adoptOrphans(); err != nil {
		return nil, fmt.Errorf("becoming the parent of orphans: %w", err)
	}
	h := &Host{
		home:    o.Home,
		forks:   make(chan fork),
		room:    make(chan struct{}, making),
		closing: make(chan struct{}),
		leaders: make(map[int]*Child),
	}
	if err := h.meetForeign(); err != nil {
		return nil, fmt.Errorf("looking at what this process has below it already: %w", err)
	}
	if !o.NoCgroup {
		h.leafs = findDelegation(o.Home)
	}
	if o.Watchdog {
		var err error
		if h.watchdog, err = startWatchdog(o.Home, h.leafs); err != nil {
			return nil, fmt.Errorf("starting the watchdog: %w", err)
		}
	}
	for range spawners {
		h.group.Go(h.spawn)
	}
	h.group.Go(h.tend)
	return h, nil
}

// spawn forks for ever on one thread. The thread must not end before the
// children do: the kernel sends the parent-death signal when the thread that
// forked ends, not the process.
func (h *Host) spawn() {
	runtime.LockOSThread()
	for f := range h.forks {
		pid, _, err := syscall.StartProcess(f.path, f.argv, f.attr)
		f.done <- forked{pid, err}
	}
}

// Close ends every process that is still below this one, no child's and not
// foreign: what could not be told apart before. It returns those it met. All
// children must have Ended.
func (h *Host) Close() []Process {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	h.mu.Unlock()
	met := h.clearStrays()
	close(h.forks)
	close(h.closing)
	h.group.Wait()
	h.watchdog.dismiss()
	return met
}

// hasChildren reports whether a child is not reaped yet.
func (h *Host) hasChildren() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.leaders) > 0
}

// notLeaders leaves out the children of this host that are not reaped yet.
func (h *Host) notLeaders(pids []int) []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(pids, func(pid int) bool {
		_, leader := h.leaders[pid]
		return leader
	})
}

// start forks on a spawner and enters the child among the leaders before
// it can be mistaken for an orphan.
func (h *Host) start(c *Child, path string, argv []string, attr *syscall.ProcAttr) error {
	done := make(chan forked, 1)
	h.census.RLock()
	defer h.census.RUnlock()
	h.forks <- fork{path: path, argv: argv, attr: attr, done: done}
	f := <-done
	if f.err != nil {
		return f.err
	}
	c.pid = f.pid
	h.mu.Lock()
	h.leaders[f.pid] = c
	h.mu.Unlock()
	return nil
}

// null is the stdin of children that get none.
func null() (int, error) {
	return syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
}
