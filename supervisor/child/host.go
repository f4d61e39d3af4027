package child

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// Options configure a Host.
type Options struct {
	// Home is an absolute path that marks every process of this host. A later host with the
	// same Home finds by it the processes that this one left behind.
	Home string
	// UserDir returns a folder that other users can enter and only this one can change. It is for the $TMPDIR of children
	// of other users. nil: the Host has no such children.
	UserDir func() (string, error)
	Hidden  []string // folders that are hidden from confined children, besides Home
	// NoCgroup disables the use of a delegated cgroup; groups and marks are used instead.
	NoCgroup bool
	// Watchdog starts a process that ends the remaining children if this process is killed.
	Watchdog bool
	// Upgraded is the Handover of the host of the program before this one; nil if this program was started in the usual
	// way.
	Upgraded *Handover
}

// A Host starts children and owns their shared parts: the threads that fork, the list of leaders and the cgroup. A
// process must have one Host at a time and start children only through it. Any other new descendant counts as an
// orphan. Descendants from before NewHost are not touched.
type Host struct {
	home    string
	userDir func() (string, error)
	hidden  []string
	leafs   *delegation // nil if no cgroup is delegated

	watchdog *watchdog // nil unless requested
	exits    *exitWatch

	forks   chan fork
	passage *passage      // to the thread that serves forks
	room    chan struct{} // limits the number of children being started
	group   sync.WaitGroup

	// census is held for reading while a child is started, and for writing while orphans are
	// counted and reaped. Otherwise a leader that is not in leaders yet could be taken for an
	// orphan.
	census sync.RWMutex

	// foreign holds the foreign descendants by pid. census guards it.
	foreign map[int]Process

	hosts hostMemory

	closing chan struct{} // closed by Close

	lookMu   sync.Mutex
	nextLook *look     // the next look, which has not begun; nil if not requested
	lookedAt time.Time // the end of the latest look

	mu        sync.Mutex
	leaders   map[int]*Child // by pid, until reaped
	unclaimed map[int]Handed // handed children that Adopt was not called for yet, by pid
	closed    bool
}

// fork is a request to the spawner.
type fork struct {
	path string
	argv []string
	attr *syscall.ProcAttr
	exec bool  // become the program instead of starting a child
	keep []int // only take these files for exec, or close those that were taken if it is empty; nil: another request
	done chan<- forked
}

type forked struct {
	pid int
	err error
}

// making is the number of children that may be started at the same time. Each holds both ends of its pipes during its
// start, so thousands of them would use up the file descriptors.
const making = 4

// NewHost returns a Host and makes this process the parent of all orphans of its children.
func NewHost(o Options) (*Host, error) {
	if !filepath.IsAbs(o.Home) {
		return nil, fmt.Errorf("home %q is not an absolute path", o.Home)
	}
	closeInherited()
	if err := adoptOrphans(); err != nil {
		return nil, fmt.Errorf("becoming the parent of orphans: %w", err)
	}
	if err := conceal(); err != nil {
		return nil, fmt.Errorf("closing this process to others of its user: %w", err)
	}
	h := &Host{
		home:    o.Home,
		userDir: o.UserDir,
		hidden:  o.Hidden,
		forks:   make(chan fork),
		room:    make(chan struct{}, making),
		closing: make(chan struct{}),
		leaders: make(map[int]*Child),
	}
	var err error
	if h.exits, err = newExitWatch(); err != nil {
		return nil, err
	}
	if o.Upgraded != nil {
		h.inherit(o.Upgraded)
	} else if err := h.meetForeign(); err != nil {
		return nil, fmt.Errorf("looking at what this process has below it already: %w", err)
	}
	if !o.NoCgroup {
		h.leafs = findDelegation(o.Home)
	}
	if o.Watchdog {
		if h.watchdog, err = startWatchdog(o.Home, h.leafs, o.Upgraded); err != nil {
			return nil, fmt.Errorf("starting the watchdog: %w", err)
		}
	}
	o.Upgraded.dismissWatchdog()
	entered := make(chan *passage)
	h.group.Go(func() { h.spawn(entered) })
	h.passage = <-entered
	h.passage.settle()
	h.group.Go(h.tend)
	h.group.Go(h.exits.run)
	return h, nil
}

// spawn serves fork requests on one thread, the main thread if it is lent. The thread must outlive the children,
// because the kernel sends the parent-death signal when the forking thread ends, not the process. The same thread must
// execute another program at an upgrade, because that ends all other threads. A second thread would start a thousand
// children a third faster, and could not keep its own at an upgrade.
func (h *Host) spawn(entered chan<- *passage) {
	served := make(chan struct{})
	serve := func(p *passage) {
		defer close(served)
		entered <- p
		for f := range h.forks {
			var done forked
			switch {
			case f.exec:
				done.err = p.exec(&f)
			case f.keep != nil:
				done.err = p.keep(f.keep)
			default:
				done.pid, done.err = p.fork(&f)
			}
			f.done <- done
		}
	}
	if !mainLent.Load() { // tests and other programs do without upgrades
		runtime.LockOSThread() // the thread ends with this goroutine
		p := newPassage()
		defer p.close()
		serve(p)
		return
	}
	mainThread <- serve
	<-served
}

var (
	mainLent   atomic.Bool                 // LendMainThread was called
	mainThread = make(chan func(*passage)) // passes functions to the main thread
)

// LendMainThread calls work on another thread, and lends the main thread to the hosts that work
// creates. It does not return: work ends the program. The main goroutine must call it, and must
// have stayed on the main thread.
func LendMainThread(work func()) {
	mainLent.Store(true)
	go work()
	var p *passage
	for serve := range mainThread {
		if p == nil {
			p = newPassage()
		}
		serve(p)
	}
}

// Close ends the remaining orphans of unknown origin, but no foreign process, and returns them. Ended must have been
// called for all children before.
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
	h.exits.close()
	h.group.Wait()
	h.watchdog.dismiss()
	return met
}

// EndAt lets the watchdog end all children at a time of SinceBoot, also if this process hangs. A later call
// replaces the time. The watchdog may be half a second late.
func (h *Host) EndAt(limit time.Duration) { h.watchdog.endAt(limit) }

// hasChildren reports whether a child is not reaped yet.
func (h *Host) hasChildren() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.leaders)+len(h.unclaimed) > 0
}

// notLeaders returns pids without the unreaped children of this host.
func (h *Host) notLeaders(pids []int) []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(pids, func(pid int) bool {
		_, leader := h.leaders[pid]
		_, unclaimed := h.unclaimed[pid]
		return leader || unclaimed
	})
}

// start forks on a spawner. It adds the child to the leaders before the child can be taken for
// an orphan.
func (h *Host) start(c *Child, path string, argv []string, attr *syscall.ProcAttr) error {
	h.census.RLock()
	defer h.census.RUnlock()
	f := h.ask(fork{path: path, argv: argv, attr: attr})
	if f.err != nil {
		return f.err
	}
	c.pid = f.pid
	h.mu.Lock()
	h.leaders[f.pid] = c
	h.mu.Unlock()
	return nil
}

// ask returns the result of a request to the spawner.
func (h *Host) ask(f fork) forked {
	done := make(chan forked, 1)
	f.done = done
	if err := h.passage.ask(f, h.forks); err != nil {
		return forked{err: err}
	}
	return <-done
}

// null opens the stdin of children that get none.
func null() (int, error) {
	return syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
}

// maxAnswer is the most output of a command that Run keeps, in bytes.
const maxAnswer = 1 << 20

// Run runs a command and returns its stdout. It is for short commands. Their tree is ended like the tree of any child,
// and killed when ctx is done. Their stderr is discarded, because programs that know secrets print them there, too.
func (h *Host) Run(ctx context.Context, command []string, dir string, env []string) ([]byte, error) {
	a := &answer{ended: make(chan struct{})}
	c, err := h.Start(Spec{
		Command:  command,
		Dir:      dir,
		Env:      env,
		Run:      uuid.NewString(),
		NoStdin:  true,
		Listener: a,
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-a.ended:
	case <-ctx.Done():
		c.Kill()
		<-a.ended
		return nil, context.Cause(ctx)
	}
	switch {
	case a.exit.Signal != 0 || a.exit.Code != 0:
		return nil, fmt.Errorf("it ended with %s", a.exit)
	case a.tooLong:
		return nil, fmt.Errorf("it printed more than %d bytes", maxAnswer)
	}
	return a.stdout.Bytes(), nil
}

// An answer is the stdout and the exit of a command.
type answer struct {
	Nobody
	stdout  bytes.Buffer
	tooLong bool
	exit    Exit
	ended   chan struct{} // closed when the rest no longer changes
}

func (a *answer) Output(stream Stream, chunk []byte) {
	if stream != Stdout {
		return
	}
	a.tooLong = a.tooLong || a.stdout.Len()+len(chunk) > maxAnswer
	if !a.tooLong {
		a.stdout.Write(chunk)
	}
}

func (a *answer) Exited(exit Exit) { a.exit = exit }
func (a *answer) Ended(Ending)     { close(a.ended) }

// closeInherited keeps children from files that the program that started this one has left open, such as a file that
// only root can read. Files that another version of this program has handed over are used here, and are not for
// children either.
func closeInherited() {
	open, _ := os.ReadDir("/dev/fd")
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
