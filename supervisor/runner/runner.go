// Package runner is the host's side of agents on other machines: it starts the runs that a hub orders,
// and passes their input and output on. Package hosts is the hub's side.
package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
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
	ReadFile(path string, most int64) (string, error)
}

// Options describe this host.
type Options struct {
	Program string // the version of the program
	Memory
	Labels   map[string]string
	Capacity int
	Clock    func() time.Duration // the time that EndAt means, which goes on while the machine is suspended
	EndAt    func(time.Duration)  // kills all runs at that time, also if this program hangs; it replaces the time before
	Agents   Agents
	Log      hclog.Logger
}

// Agents are the agents of the host's own configuration.
type Agents interface {
	// Launch starts the run that a line orders. The spec has its id and its listener.
	Launch(ctx context.Context, order *hostlink.Line, spec child.Spec) (Process, error)
	// Renew is called with the start line of another hub for a run that goes on.
	Renew(order *hostlink.Line)
	// Work answers a request of a hub for an agent.
	Work(ctx context.Context, agent string, request []byte) ([]byte, error)
}

// A RefusedError reports that the hub refuses the host.
type RefusedError struct{ Why *wire.Error }

func (e *RefusedError) Error() string { return "the hub refuses this host: " + e.Why.Message }

// A Host runs agents for hubs, through one link after the other. The runs outlive a link until no hub has
// confirmed for a while that it knows of them.
type Host struct {
	Options
	ctx context.Context // of the launches

	mu        sync.Mutex
	conn      *link.Conn // nil without a link
	runs      map[string]*run
	number    int64                   // of the last beat
	sent      map[int64]time.Duration // beats that are not confirmed
	confirmed time.Duration           // when the last confirmed beat was sent
	grace     time.Duration
	hub       string // the instance of the last hub
	draining  bool
	all       sync.WaitGroup // the runs, and watch
	closed    chan struct{}
}

// New returns a host without a link. Close must be called at its end.
func New(ctx context.Context, o Options) *Host {
	h := &Host{Options: o, ctx: ctx, runs: make(map[string]*run), grace: hostlink.Grace, closed: make(chan struct{})}
	h.all.Go(h.watch)
	return h
}

// Close kills all runs, and waits until they have ended.
func (h *Host) Close() {
	close(h.closed)
	h.killAll()
	h.all.Wait()
}

// watch kills the runs when no hub has confirmed a beat for the grace.
func (h *Host) watch() {
	ticker := time.NewTicker(hostlink.BeatEvery / 4)
	defer ticker.Stop()
	for {
		select {
		case <-h.closed:
			return
		case <-ticker.C:
		}
		h.mu.Lock()
		alone, grace := h.Clock()-h.confirmed > h.grace, h.grace
		h.mu.Unlock()
		if !alone {
			continue
		}
		if n := h.killAll(); n > 0 {
			h.Log.Warn("no hub has been in contact for a while, so the agents are killed", "grace", grace, "agents", n)
		}
	}
}

// Serve runs agents for the hub at the other end of a link. When drain is closed, it asks the hub to
// stop them, and returns nil when none is left. The runs go on after the end of the link.
func (h *Host) Serve(ctx context.Context, conn *link.Conn, drain <-chan struct{}, welcome func(*hostlink.Line)) error {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	l, said, err := h.greet(conn)
	if err != nil {
		return err
	}
	if l.Instance != h.hub {
		for _, r := range h.present() {
			if g, ok := said[r.id]; !r.restart() && ok && !g.Unfit {
				return fmt.Errorf("run %s has printed too much since the hello for another hub to continue with it", r.id)
			}
		}
		h.hub = l.Instance
	}
	welcome(l)
	over := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { h.beats(over, drain) })
	runs := h.present() // runs of earlier links
	others.Go(func() { h.resume(conn, l, runs) })
	err = h.listen(conn)
	close(over)
	_ = conn.Close()
	others.Wait()
	h.pause(conn)
	if h.drained() {
		return nil
	}
	return err
}

// greet sends the hello. It returns the welcome of the hub, and the runs in the hello.
func (h *Host) greet(conn *link.Conn) (welcome *hostlink.Line, said map[string]hostlink.Going, err error) {
	hello := &hostlink.Line{
		Type: hostlink.Hello, Version: hostlink.Version, Program: h.Program, Instance: h.Instance, Hub: h.hub, Labels: h.Labels, Capacity: h.Capacity,
		Epochs: h.Epochs, Runs: make(map[string]hostlink.Going),
	}
	h.mu.Lock()
	for id, r := range h.runs {
		hello.Runs[id] = r.going()
	}
	h.mu.Unlock()
	if err := conn.Send(hello); err != nil {
		return nil, nil, err
	}
	asked := h.Clock()
	l, err := conn.Read()
	switch {
	case err != nil:
		return nil, nil, err
	case l.Type == hostlink.Refused && l.Error != nil:
		return nil, nil, &RefusedError{Why: l.Error}
	case l.Type != hostlink.Welcome:
		return nil, nil, fmt.Errorf("the hub has answered with %.20q", l.Type)
	case l.Epoch < h.Epochs[l.Team]:
		return nil, nil, fmt.Errorf("the hub %s is of epoch %d, and this host has spoken to one of epoch %d. If the log is a new one of the same name, remove %s", l.Hub, l.Epoch, h.Epochs[l.Team], h.path)
	}
	h.mu.Lock()
	h.conn, h.sent = conn, make(map[int64]time.Duration)
	if l.Grace > 0 {
		h.grace = l.Grace
	}
	h.confirmedAt(asked)
	h.mu.Unlock()
	if l.Team == "" || l.Epoch == h.Epochs[l.Team] {
		return l, hello.Runs, nil
	}
	return l, hello.Runs, h.note(l.Team, l.Epoch)
}

// confirmedAt notes when the last beat that a hub has confirmed was sent. h.mu must be held.
func (h *Host) confirmedAt(sent time.Duration) {
	h.confirmed = sent
	h.EndAt(sent + h.grace + hungAfter)
}

// hungAfter is how long this program may take to kill the runs itself.
const hungAfter = time.Second

// resume kills the runs that the hub does not know, and goes on with the rest. Lines are read at the same time, because
// the hub does the same.
func (h *Host) resume(conn *link.Conn, welcome *hostlink.Line, runs []*run) {
	runs = slices.DeleteFunc(runs, func(r *run) bool {
		_, known := welcome.Runs[r.id]
		if !known {
			r.disown()
		}
		return !known
	})
	for _, r := range runs {
		if err := r.stream.Resume(conn, welcome.Runs[r.id].Got); err != nil {
			h.Log.Error("the hub has lost part of its record", "error", err)
			_ = conn.Close()
		}
	}
}

// pause lets the runs wait for the next link.
func (h *Host) pause(conn *link.Conn) {
	h.mu.Lock()
	h.conn = nil
	h.mu.Unlock()
	for _, r := range h.present() {
		r.stream.Pause(conn)
	}
}

// present returns the runs that the hub may not have heard all of.
func (h *Host) present() []*run {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.runs))
}

// beats sends beats until over is closed. It closes the link when the hub has confirmed none for a while.
func (h *Host) beats(over <-chan struct{}, drain <-chan struct{}) {
	ticker := time.NewTicker(hostlink.BeatEvery)
	defer ticker.Stop()
	for {
		if !h.beat() {
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

// beat sends a beat. It returns false if that fails, or if the hub has confirmed none for hostlink.Silence.
func (h *Host) beat() bool {
	h.mu.Lock()
	now := h.Clock()
	if now-h.confirmed > hostlink.Silence {
		h.mu.Unlock()
		return false
	}
	h.number++
	h.sent[h.number] = now
	l := &hostlink.Line{Type: hostlink.Beat, Number: h.number, Figures: make(map[string]hostlink.Usage, len(h.runs))}
	for id, r := range h.runs {
		l.Figures[id] = r.usage()
	}
	h.mu.Unlock()
	return h.conn.Send(l) == nil
}

// confirm notes that the hub has read a beat, and which lines of the runs it has.
func (h *Host) confirm(l *hostlink.Line) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, ok := h.sent[l.Number]
	if !ok {
		return nil
	}
	h.confirmedAt(at)
	for n := range h.sent {
		if n <= l.Number {
			delete(h.sent, n)
		}
	}
	for id, r := range h.runs {
		g, known := l.Runs[id]
		if !known && r.isOver() && r.since < l.Number {
			delete(h.runs, id) // the hub has done with it
			continue
		}
		if err := r.stream.Confirm(g.Got); known && err != nil {
			return err
		}
	}
	return nil
}

// settle notes the settled lines of the runs.
func (h *Host) settle(l *hostlink.Line) error {
	for _, r := range h.present() {
		if g, ok := l.Runs[r.id]; ok {
			if err := r.settle(g); err != nil {
				return err
			}
		}
	}
	return nil
}

// listen obeys the hub until the link ends.
func (h *Host) listen(conn *link.Conn) error {
	for {
		l, err := conn.Read()
		if err != nil {
			return err
		}
		switch l.Type {
		case hostlink.Beat:
			if err = h.confirm(l); err == nil && h.drained() {
				return nil
			}
		case hostlink.Settled:
			err = h.settle(l)
		default:
			err = h.obey(conn, l)
		}
		if err != nil {
			return err
		}
	}
}

// obey handles a line of the hub about a run.
func (h *Host) obey(conn *link.Conn, l *hostlink.Line) error {
	h.mu.Lock()
	r := h.runs[l.Run]
	isNew := r == nil
	if isNew && l.Type == hostlink.Start && l.Run != "" {
		r = newRun(l.Run, h.number)
		r.agent = l.Agent
		h.runs[l.Run] = r
		_ = r.stream.Resume(conn, 0) // before it has lines to send
		h.all.Go(func() { h.launch(r, l) })
	}
	h.mu.Unlock()
	if r == nil {
		return nil // it has ended
	}
	fresh, err := r.stream.Receive(l)
	switch {
	case !fresh:
	case l.Type == hostlink.Start && !isNew:
		h.Agents.Renew(l)
		h.all.Go(r.tellStarted) // lines are read at the same time, because the hub does the same
	case l.Type == hostlink.Fetch:
		h.all.Go(r.fetch(h.Agents, l))
	default:
		r.obey(l)
	}
	return err
}

// launch starts a run, and waits for its end.
func (h *Host) launch(r *run, order *hostlink.Line) {
	p, err := h.Agents.Launch(h.ctx, order, child.Spec{Run: r.id, Listener: r})
	if err != nil {
		r.fail(err)
	} else {
		r.begin(p)
		<-r.ended
	}
	h.leaveIfEmpty()
}

// Idle reports whether all runs have ended.
func (h *Host) Idle() bool {
	return !slices.ContainsFunc(h.present(), func(r *run) bool { return !r.isOver() })
}

// Done reports whether a host that is drained may leave: all runs have ended, and the hub has heard of it or has given
// them up.
func (h *Host) Done() bool {
	for _, r := range h.present() {
		if !r.isOver() || !r.isAlone() {
			return false
		}
	}
	return true
}

// leaveIfEmpty closes the link of a drained host without runs.
func (h *Host) leaveIfEmpty() {
	h.mu.Lock()
	conn := h.conn
	h.mu.Unlock()
	if conn != nil && h.drained() {
		_ = conn.Close()
	}
}

// drained reports whether the host may leave: the hub has heard all of every run.
func (h *Host) drained() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.draining && len(h.runs) == 0
}

// killAll kills all runs. It returns how many were not being killed already.
func (h *Host) killAll() (n int) {
	for _, r := range h.present() {
		if r.disown() {
			n++
		}
	}
	return n
}
