// Package runner is the host's side of agents on other machines: it starts the runs that a hub orders,
// and passes their input and output on. Package hosts is the hub's side.
package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/hosts/link"
	"orchestrator/wire"
	"orchestrator/wire/hostlink"
)

// A Process is a run on this machine.
type Process interface {
	PID() int
	Stdin() child.Stdin
	CloseStdin() bool
	Signal(syscall.Signal)
	Kill()
	Unread() int64
	Usage() (cpuMS, rss int64)
}

// Options describe this host.
type Options struct {
	Name     string
	Program  string // the version of the program
	Labels   map[string]string
	Capacity int
	Epoch    int64             // the highest one that this host has seen
	Seen     func(int64) error // stores it

	// Launch starts the run that a line orders. The spec has its id and its callbacks.
	Launch func(ctx context.Context, order *hostlink.Line, spec child.Spec) (Process, error)
	Log    hclog.Logger
}

// A RefusedError reports that the hub refuses the host.
type RefusedError struct{ Why *wire.Error }

func (e *RefusedError) Error() string { return "the hub refuses this host: " + e.Why.Message }

// A host is a link to a hub.
type host struct {
	Options
	conn *link.Conn

	mu        sync.Mutex
	runs      map[string]*run
	number    int64               // of the last beat
	sent      map[int64]time.Time // beats that are not confirmed
	confirmed time.Time           // when the last confirmed beat was sent
	draining  bool
	all       sync.WaitGroup // the runs
}

// Serve runs agents for the hub at the other end of a link. When drain is closed, it asks the hub to
// stop them, and returns nil when none is left. If ctx or the link ends, it kills them. In each case
// all runs have ended when it returns.
func Serve(ctx context.Context, conn *link.Conn, o Options, drain <-chan struct{}, welcome func(*hostlink.Line)) error {
	h := &host{Options: o, conn: conn, runs: make(map[string]*run), sent: make(map[int64]time.Time)}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	l, err := h.greet()
	if err != nil {
		return err
	}
	welcome(l)
	h.confirmed = time.Now()
	over := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { h.beats(over, drain) })
	err = h.listen(ctx)
	close(over)
	_ = conn.Close()
	others.Wait()
	h.killAll()
	h.all.Wait()
	if h.drained() {
		return nil
	}
	return err
}

// greet says hello and returns the welcome of the hub.
func (h *host) greet() (*hostlink.Line, error) {
	err := h.conn.Send(&hostlink.Line{
		Type: hostlink.Hello, Version: hostlink.Version, Program: h.Program, Labels: h.Labels, Capacity: h.Capacity, Epoch: h.Epoch,
	})
	if err != nil {
		return nil, err
	}
	l, err := h.conn.Read()
	switch {
	case err != nil:
		return nil, err
	case l.Type == hostlink.Refused && l.Error != nil:
		return nil, &RefusedError{Why: l.Error}
	case l.Type != hostlink.Welcome:
		return nil, fmt.Errorf("the hub has answered with %.20q", l.Type)
	case l.Epoch < h.Epoch:
		return nil, fmt.Errorf("the hub %s is of epoch %d, and this host has spoken to one of epoch %d", l.Hub, l.Epoch, h.Epoch)
	}
	return l, h.Seen(l.Epoch)
}

// beats sends beats until over is closed. It closes the link if none is confirmed any more.
func (h *host) beats(over <-chan struct{}, drain <-chan struct{}) {
	ticker := time.NewTicker(hostlink.BeatEvery)
	defer ticker.Stop()
	for {
		if h.beat() != nil {
			_ = h.conn.Close()
			return
		}
		select {
		case <-over:
			return
		case <-drain:
			drain = nil
			h.mu.Lock()
			h.draining = true
			h.mu.Unlock()
			_ = h.conn.Send(&hostlink.Line{Type: hostlink.Drain})
			h.leaveIfEmpty()
		case <-ticker.C:
		}
	}
}

var errUnconfirmed = errors.New("the hub does not confirm that this host is known to be alive")

func (h *host) beat() error {
	h.mu.Lock()
	now := time.Now()
	if now.Sub(h.confirmed) > hostlink.Silence {
		h.mu.Unlock()
		return errUnconfirmed
	}
	h.number++
	h.sent[h.number] = now
	l := &hostlink.Line{Type: hostlink.Beat, Number: h.number, Figures: make(map[string]hostlink.Usage, len(h.runs))}
	for id, r := range h.runs {
		if p := r.started(); p != nil {
			cpu, rss := p.Usage()
			l.Figures[id] = hostlink.Usage{CPUMS: cpu, RSS: rss, Unread: p.Unread()}
		}
	}
	h.mu.Unlock()
	return h.conn.Send(l)
}

// confirm notes that the hub has read a beat.
func (h *host) confirm(number int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, ok := h.sent[number]
	if !ok {
		return
	}
	h.confirmed = at
	for n := range h.sent {
		if n <= number {
			delete(h.sent, n)
		}
	}
}

// listen obeys the hub until the link ends.
func (h *host) listen(ctx context.Context) error {
	for {
		l, err := h.conn.Read()
		if err != nil {
			return err
		}
		switch l.Type {
		case hostlink.Beat:
			h.confirm(l.Number)
		case hostlink.Start:
			h.start(ctx, l)
		default:
			h.mu.Lock()
			r := h.runs[l.Run]
			h.mu.Unlock()
			if r != nil {
				r.obey(l)
			}
		}
	}
}

// start starts a run.
func (h *host) start(ctx context.Context, l *hostlink.Line) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.Run == "" || h.runs[l.Run] != nil {
		return
	}
	r := newRun(h, l.Run)
	h.runs[l.Run] = r
	h.all.Go(func() {
		p, err := h.Launch(ctx, l, r.spec())
		if err != nil {
			h.forget(r)
			_ = h.conn.Send(failure(l.Run, err))
			return
		}
		r.begin(p)
		<-r.ended
		h.forget(r)
		h.leaveIfEmpty()
	})
}

func (h *host) forget(r *run) {
	h.mu.Lock()
	delete(h.runs, r.id)
	h.mu.Unlock()
}

// failure returns the line for a run that could not be started.
func failure(run string, err error) *hostlink.Line {
	l := &hostlink.Line{Type: hostlink.Failed, Run: run, Reason: err.Error(), Missing: errors.Is(err, fs.ErrNotExist)}
	if refused, ok := errors.AsType[*child.StartError](err); ok {
		l.Hint, l.Temporary = refused.Hint, refused.Temporary
	}
	return l
}

// leaveIfEmpty closes the link of a drained host without runs.
func (h *host) leaveIfEmpty() {
	if h.drained() {
		_ = h.conn.Close()
	}
}

func (h *host) drained() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.draining && len(h.runs) == 0
}

// killAll kills all runs.
func (h *host) killAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.runs {
		r.kill()
	}
}
