package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/hosts/link"
	"orchestrator/wire/hostlink"
)

// A run is a run of an agent on this host.
type run struct {
	id     string
	agent  string
	since  int64 // the number of the last beat before it
	stream *link.Stream
	output *link.Room
	ended  chan struct{} // closed when it is over

	mu       sync.Mutex
	process  Process // nil before it has started
	killed   bool    // it is to be killed when it has started
	disowned bool    // no hub knows it
	input    [][]byte
	midLine  bool // the input so far ends within a line
	answered answered
	settled  hostlink.Going
	closing  bool                         // stdin is to be closed after the input
	more     chan struct{}                // holds a value if there may be more input
	works    map[int64]context.CancelFunc // work for hubs, by number
}

func newRun(id string, since int64) *run {
	return &run{id: id, since: since, stream: link.NewStream(id), output: link.NewRoom(hostlink.OutputRoom), ended: make(chan struct{}), more: make(chan struct{}, 1)}
}

// Exited implements child.Listener.
func (r *run) Exited(exit child.Exit) {
	r.stream.SendRetained(&hostlink.Line{Type: hostlink.Exited, Code: exit.Code, Signal: int(exit.Signal)})
}

// Stopped implements child.Listener.
func (r *run) Stopped(yes bool) { r.send(&hostlink.Line{Type: hostlink.Stopped, Yes: yes}) }

// Lost implements child.Listener.
func (r *run) Lost(e child.Ending) {
	r.send(&hostlink.Line{Type: hostlink.Lost, LeftOver: left(e.LeftOver), Survivors: left(e.Survivors), Unverified: e.Unverified})
}

// Ended implements child.Listener.
func (r *run) Ended(e child.Ending) {
	r.stream.SendRetained(&hostlink.Line{
		Type: hostlink.Ended, LeftOver: left(e.LeftOver), Survivors: left(e.Survivors), Unverified: e.Unverified, HeldOpen: e.HeldOpen,
	})
	close(r.ended)
}

func left(processes []child.Process) (all []hostlink.Left) {
	for _, p := range processes {
		all = append(all, hostlink.Left{PID: p.PID, Program: p.Program})
	}
	return all
}

func (r *run) send(l *hostlink.Line) { r.stream.Send(l) }

// Output sends output to the hub. It waits while the hub has no room.
func (r *run) Output(stream child.Stream, text []byte) {
	for len(text) > 0 {
		n, err := r.output.Take(hostlink.PieceCost+1, hostlink.PieceCost+min(len(text), hostlink.MaxPiece))
		if err != nil {
			return // no hub knows the run
		}
		n -= hostlink.PieceCost
		l := &hostlink.Line{Type: hostlink.Output, Stderr: stream == child.Stderr, Bytes: bytes.Clone(text[:n])}
		if text = text[n:]; l.Stderr {
			r.send(l)
		} else {
			r.stream.SendRetained(l)
		}
	}
}

// begin tells the hub that the run has started, and begins to write input.
func (r *run) begin(p Process) {
	r.mu.Lock()
	r.process = p
	killed := r.killed
	r.mu.Unlock()
	if killed {
		p.Kill()
	}
	r.send(&hostlink.Line{Type: hostlink.Started, PID: p.PID()})
	go r.feed(p)
}

// tellStarted tells another hub that the run was started.
func (r *run) tellStarted() {
	r.mu.Lock()
	p := r.process
	r.mu.Unlock()
	if p != nil { // else begin tells it
		r.send(&hostlink.Line{Type: hostlink.Started, PID: p.PID()})
	}
}

// ErrUnknownAgent reports that the file of this host does not have an agent.
var ErrUnknownAgent = errors.New("the file of the host does not have the agent")

// fail tells the hub that the run could not be started.
func (r *run) fail(err error) {
	l := &hostlink.Line{Type: hostlink.Failed, Reason: err.Error(), Missing: errors.Is(err, fs.ErrNotExist), Unknown: errors.Is(err, ErrUnknownAgent)}
	if refused, ok := errors.AsType[*child.StartError](err); ok {
		l.Hint, l.Temporary = refused.Hint, refused.Temporary
	}
	r.send(l)
	close(r.ended)
}

// going returns the state that a hub needs to go on with the run.
func (r *run) going() hostlink.Going {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.settled
	g.Got = r.stream.Got()
	g.Unfit = g.Seq == 0 || r.midLine || r.killed || r.closing || r.answered.crowded || !r.stream.Fit()
	return g
}

// settle notes the settled lines.
func (r *run) settle(g hostlink.Going) error {
	r.mu.Lock()
	r.settled = g
	r.answered.settle(g.Got)
	r.mu.Unlock()
	return r.stream.Settle(g.Got)
}

// restart lets another hub go on with the run, and reports whether it can.
func (r *run) restart() bool {
	r.mu.Lock()
	for _, giveUp := range r.works { // requests of the earlier hub
		giveUp()
	}
	r.works = nil
	took, fit := r.stream.Restart(r.answered.has)
	r.answered = answered{}
	r.mu.Unlock()
	r.output.Set(hostlink.OutputRoom - took)
	return fit
}

// isOver reports whether the run has ended or was not started.
func (r *run) isOver() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// isAlone reports whether the run is disowned: no hub knows it.
func (r *run) isAlone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.disowned
}

// usage returns the figures of the run for a beat.
func (r *run) usage() hostlink.Usage {
	r.mu.Lock()
	p := r.process
	r.mu.Unlock()
	u := hostlink.Usage{Got: r.stream.Got()}
	if p != nil && !r.isOver() {
		u.CPUMS, u.RSS = p.Usage()
		u.Unread = p.Unread()
	}
	return u
}

// obey handles a line of the hub about the run.
func (r *run) obey(l *hostlink.Line) {
	r.mu.Lock()
	p := r.process
	switch l.Type {
	case hostlink.Input:
		r.input = append(r.input, l.Bytes)
		r.midLine = !bytes.HasSuffix(l.Bytes, []byte("\n"))
		r.answered.hear(l.Bytes, r.stream.Last())
	case hostlink.Close:
		r.closing = true
	}
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
	switch {
	case l.Type == hostlink.Heard:
		r.output.Free(l.N)
	case l.Type == hostlink.Kill:
		r.kill()
	case l.Type == hostlink.Signal && p != nil:
		p.Signal(syscall.Signal(l.Signal))
	}
}

// fetch returns a function that answers a hub's request. For a cancelled request it stops the work and returns a no-op.
func (r *run) fetch(agents Agents, l *hostlink.Line) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.process
	switch {
	case l.Bytes != nil:
		ctx, cancel := context.WithCancel(context.Background())
		if r.works == nil {
			r.works = make(map[int64]context.CancelFunc)
		}
		r.works[l.Number] = cancel
		return func() {
			reply, err := r.work(ctx, cancel, agents, l)
			if r.worked(l.Number) && !errors.Is(err, context.Canceled) { // the hub hears that the run has ended
				r.sendFile(l, string(reply), err)
			}
		}
	case l.Bytes == nil && l.Path == "":
		if giveUp := r.works[l.Number]; giveUp != nil {
			giveUp()
			delete(r.works, l.Number)
		}
		return func() {}
	case p != nil && l.Path != "":
		return func() {
			text, err := p.ReadFile(l.Path, int64(l.N))
			r.sendFile(l, text, err)
		}
	}
	return func() { r.sendFile(l, "", fs.ErrNotExist) }
}

// worked notes the end of a request, and reports whether the hub still waits for it.
func (r *run) worked(number int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, waits := r.works[number]
	delete(r.works, number)
	return waits
}

// work answers a request for the agent, until the run ends or the hub cancels the request. It sends the hub signs of
// life until then.
func (r *run) work(ctx context.Context, cancel context.CancelFunc, agents Agents, l *hostlink.Line) ([]byte, error) {
	defer cancel()
	go func() {
		ticker := time.NewTicker(hostlink.BeatEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.ended:
				cancel()
				return
			case <-ticker.C:
				r.send(&hostlink.Line{Type: hostlink.File, Number: l.Number})
			}
		}
	}()
	reply, err := agents.Work(ctx, r.agent, l.Bytes)
	if len(reply) > l.N {
		return nil, fmt.Errorf("the reply has %d bytes, and the limit is %d", len(reply), l.N)
	}
	return reply, err
}

// sendFile sends a text to the hub, or the error.
func (r *run) sendFile(l *hostlink.Line, text string, err error) {
	if err != nil {
		r.send(&hostlink.Line{Type: hostlink.File, Number: l.Number, Reason: err.Error(), Yes: true})
		return
	}
	for first := true; first || text != ""; first = false {
		n := min(len(text), hostlink.MaxPiece)
		r.send(&hostlink.Line{Type: hostlink.File, Number: l.Number, Bytes: []byte(text[:n]), Yes: n == len(text)})
		text = text[n:]
	}
}

// disown kills the run, because no hub knows it, and drops its output. It reports whether the run was alive and not
// disowned before.
func (r *run) disown() bool {
	r.mu.Lock()
	before := r.disowned
	r.disowned = true
	r.mu.Unlock()
	r.output.Shut()
	r.kill()
	return !before && !r.isOver()
}

// kill kills the run, also if it has not started yet.
func (r *run) kill() {
	r.mu.Lock()
	r.killed = true
	p := r.process
	r.mu.Unlock()
	if p != nil {
		p.Kill()
	}
}

// feed writes input to the program until the run has ended.
func (r *run) feed(p Process) {
	broken := p.Stdin() == nil
	for {
		select {
		case <-r.ended:
			return
		case <-r.more:
		}
		r.mu.Lock()
		pieces, end := r.input, r.closing
		r.input = nil
		r.mu.Unlock()
		for _, piece := range pieces {
			if broken {
				break
			}
			if _, err := p.Stdin().Write(piece); err != nil {
				broken = true
				r.send(&hostlink.Line{Type: hostlink.Taken, Yes: true})
				break
			}
			r.send(&hostlink.Line{Type: hostlink.Taken, N: len(piece)})
		}
		if end && !broken {
			p.CloseStdin()
			broken = true
		}
	}
}
