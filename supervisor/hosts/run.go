package hosts

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/hosts/link"
	"orchestrator/wire/hostlink"
)

// An Order is a run that a host is to start.
type Order struct {
	Host         string
	Agent, Block string
	Run          string // its id
	NoStdin      bool
	Env          []string // the variables of this run
	Conversation string
	Listener     Listener
}

// A Listener is this hub's side of a run.
type Listener interface {
	child.Listener
	// Away is called when the host cannot be reached (true), and when it can again (false). It must not block.
	Away(yes bool)
	// Quiet returns the last mail that the run has received, whether the run waits for an answer, and whether it has
	// received all messages to it.
	Quiet() (mail int64, waits, ok bool)
	// Unsound returns why this hub cannot go on with a run of an earlier hub, or "" if it can. Everything about the
	// run is settled up to record seq, and the run may wait for an answer.
	Unsound(seq int64, waits bool) string
	// Found is called when the host of a run of an earlier hub has joined with the run. Mail is the last mail that the
	// run has received. The run goes on, or is killed if unfit has a reason for that. Found must not block.
	Found(mail int64, unfit string)
}

// A run is the run of an agent on a host, as a process. One goroutine reports to its child.Listener, in the order of
// the host's lines.
type run struct {
	hosts *Hosts
	host  *host
	order Order
	to    child.Listener // a Nobody if the run was abandoned

	// Hosts.mu guards these.
	link     *session // nil while its host cannot be reached
	lastLink *session // the present link, or the one before
	instance string   // of the host
	expected bool     // of an earlier hub, and not found yet
	muted    bool     // its output is dropped

	stream *link.Stream
	input  *link.Room
	usage  atomic.Pointer[hostlink.Usage]
	answer chan *hostlink.Line // started or failed
	unsaid int                 // the cost of handled output that is not yet reported to the host; used by deal
	lost   atomic.Bool         // it was given up

	mu      sync.Mutex
	queue   []*hostlink.Line
	waiting int           // the cost of the output in queue
	handled int64         // the number of the last line that was handled or is in queue
	calling bool          // lines that were in queue are being dealt with
	more    chan struct{} // holds a value if queue may have grown
	began   time.Time
	pid     int
	exited  bool
	over    bool
	fetches map[int64]chan<- *hostlink.Line // by number
	fetched int64                           // the number of the last one
}

// maxQueue is how many lines of a run may wait to be dealt with: pieces of output, and a few other lines.
const maxQueue = hostlink.OutputRoom/hostlink.PieceCost + 100

// errTooMuch reports that a host has sent more than there was room for.
var errTooMuch = errors.New("the host has sent more output than there was room for")

// Start starts a run on a host, which takes the configuration of the agent from its own file. If ctx ends before the
// host has answered, the run is killed as soon as it has started.
func (h *Hosts) Start(ctx context.Context, o Order) (*Process, error) {
	r := h.newRun(o)
	h.mu.Lock()
	host := h.hosts[o.Host]
	if host != nil {
		delete(host.chosen, o.Agent)
	}
	if host == nil || host.link == nil || host.draining() {
		h.mu.Unlock()
		return nil, &child.StartError{Reason: o.Host + " is no longer connected, or is being drained", Temporary: true, Err: fs.ErrClosed}
	}
	r.host, r.link, r.lastLink, r.instance = host, host.link, host.link, host.instance
	host.runs[o.Run] = r
	_ = r.stream.Resume(host.link.conn, 0) // a new stream has no lines to send again
	h.mu.Unlock()
	r.start()
	var l *hostlink.Line
	select {
	case l = <-r.answer:
	case <-ctx.Done():
		r.abandon()
		return nil, ctx.Err()
	}
	if l.Type != hostlink.Started {
		err := fs.ErrPermission
		switch {
		case l.Unknown:
			err = ErrUnknownAgent
			r.host.forgo(h, o.Agent)
		case l.Missing:
			err = fs.ErrNotExist
		}
		r.leave()
		return nil, &child.StartError{Reason: "on " + o.Host + ": " + l.Reason, Hint: l.Hint, Temporary: l.Temporary, Err: err}
	}
	r.began = time.Now()
	go r.deal()
	return &Process{r}, nil
}

// abandon kills a run that has not been started yet, and removes its listener.
func (r *run) abandon() {
	r.to = child.Nobody{}
	r.stream.Send(&hostlink.Line{Type: hostlink.Kill})
	go func() {
		if l := <-r.answer; l.Type == hostlink.Started {
			r.deal()
		} else {
			r.leave()
		}
	}()
}

func (h *Hosts) newRun(o Order) *run {
	return &run{
		hosts: h, order: o, to: o.Listener, stream: link.NewStream(o.Run), input: link.NewRoom(hostlink.InputRoom),
		answer: make(chan *hostlink.Line, 1), more: make(chan struct{}, 1),
	}
}

func (r *run) start() {
	o := &r.order
	r.stream.Send(&hostlink.Line{Type: hostlink.Start, Agent: o.Agent, Env: o.Env, Conversation: o.Conversation, Epoch: r.hosts.options.Epoch})
}

// Expect returns a run of an earlier hub that its host may still have. It is given up if the host has not joined
// with it when Options.Settled has come.
func (h *Hosts) Expect(o Order) *Process {
	r := h.newRun(o)
	r.expected, r.began = true, time.Now()
	h.mu.Lock()
	r.host = h.host(o.Host)
	r.host.runs[o.Run] = r
	h.mu.Unlock()
	r.start()
	go r.deal()
	time.AfterFunc(time.Until(h.options.Settled), func() { h.expire(r, nil) })
	return &Process{r}
}

// leave forgets a run that has ended.
func (r *run) leave() {
	r.hosts.mu.Lock()
	delete(r.host.runs, r.order.Run)
	r.hosts.mu.Unlock()
	r.hosts.options.Owner.HostsChanged()
}

// handle handles a line about the run.
func (r *run) handle(l *hostlink.Line) error {
	if fresh, err := r.stream.Receive(l); !fresh {
		return err
	}
	defer func() {
		r.mu.Lock()
		r.handled = l.M
		r.mu.Unlock()
	}()
	switch l.Type {
	case hostlink.Started, hostlink.Failed:
		r.mu.Lock()
		r.pid = l.PID // the answer of a run that was expected is not waited for
		r.mu.Unlock()
		select {
		case r.answer <- l:
		default:
			return fmt.Errorf("a second %s for one run", l.Type)
		}
	case hostlink.Taken:
		if l.Yes {
			r.input.Shut()
			return nil
		}
		r.input.Free(max(0, min(l.N, hostlink.InputRoom-r.input.Left()))) // it may confirm input of an earlier hub
		if r.input.Left() == hostlink.InputRoom {
			r.stirs()
		}
	case hostlink.Output, hostlink.Stopped, hostlink.Lost, hostlink.Exited, hostlink.Ended:
		return r.enqueue(l)
	case hostlink.File:
		r.mu.Lock()
		defer r.mu.Unlock()
		if to := r.fetches[l.Number]; to != nil {
			select {
			case to <- l:
			default:
				return errTooMuch
			}
		}
	}
	return nil
}

// fetchPatience is how long a host may take for a piece of a file. It is longer than a short loss of the link.
const fetchPatience = 15 * time.Second

// ReadFile returns the text of a file on the host, in the folder of the run.
func (p *Process) ReadFile(path string, most int64) (string, error) {
	text, err := p.run.ask(context.Background(), &hostlink.Line{Path: path}, most)
	return string(text), err
}

// maxReply is the size of the longest reply to Work.
const maxReply = 64 << 20

// Work sends the host a request about the agent of the run, and returns its reply. If ctx ends before, the host cancels
// the request. The error is a [hostlink.Failure] if the host has answered that it failed.
func (p *Process) Work(ctx context.Context, request []byte) ([]byte, error) {
	return p.run.ask(ctx, &hostlink.Line{Bytes: request}, maxReply)
}

// ask sends a fetch line, and returns the answer of the host. The error is a [hostlink.Failure] if the host has sent a
// failure.
func (r *run) ask(ctx context.Context, l *hostlink.Line, most int64) ([]byte, error) {
	pieces := make(chan *hostlink.Line, 2+most/hostlink.MaxPiece)
	r.mu.Lock()
	r.fetched++
	n := r.fetched
	if r.fetches == nil {
		r.fetches = make(map[int64]chan<- *hostlink.Line)
	}
	r.fetches[n] = pieces
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.fetches, n)
		r.mu.Unlock()
	}()
	l.Type, l.Number, l.N = hostlink.Fetch, n, int(most)
	r.stream.Send(l)
	giveUp := func() { r.stream.Send(&hostlink.Line{Type: hostlink.Fetch, Number: n}) }
	var text []byte
	for {
		select {
		case <-ctx.Done():
			giveUp()
			return nil, context.Cause(ctx)
		case l := <-pieces:
			text = append(text, l.Bytes...)
			switch {
			case l.Reason != "":
				return nil, hostlink.Failure(l.Reason)
			case int64(len(text)) > most:
				giveUp()
				return nil, hostlink.Failure(errTooMuch.Error())
			case l.Yes:
				return text, nil
			}
		case <-time.After(fetchPatience):
			giveUp()
			return nil, fmt.Errorf("its host %s does not answer", r.order.Host)
		}
	}
}

// enqueue adds a line to the queue of deal.
func (r *run) enqueue(l *hostlink.Line) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over, r.exited && l.Type == hostlink.Exited:
		return nil
	case l.Type == hostlink.Output:
		if r.waiting += len(l.Bytes) + hostlink.PieceCost; r.waiting > hostlink.OutputRoom+2*hostlink.MaxPiece {
			return errTooMuch
		}
	case l.Type == hostlink.Exited:
		r.exited = true
	case l.Type == hostlink.Ended && !r.exited:
		r.queue = append(r.queue, &hostlink.Line{Type: hostlink.Exited, Code: -1, Signal: int(syscall.SIGKILL)}) // the host has not said how
		fallthrough
	case l.Type == hostlink.Ended:
		r.exited, r.over = true, true
	}
	if len(r.queue) > maxQueue {
		return errTooMuch
	}
	r.queue = append(r.queue, l)
	select {
	case r.more <- struct{}{}:
	default:
	}
	return nil
}

// giveUp ends a run without its host, as if it had been killed.
func (r *run) giveUp() {
	r.lost.Store(true)
	select {
	case r.answer <- &hostlink.Line{Type: hostlink.Failed, Reason: "its link is gone", Temporary: true}:
	default: // it was started
	}
	_ = r.enqueue(&hostlink.Line{Type: hostlink.Exited, Code: -1, Signal: int(syscall.SIGKILL)})
	_ = r.enqueue(&hostlink.Line{Type: hostlink.Ended})
}

// deal calls the listener until the run has ended.
func (r *run) deal() {
	for range r.more {
		r.mu.Lock()
		lines := r.queue
		r.queue, r.calling = nil, true
		r.mu.Unlock()
		for _, l := range lines {
			if r.call(l) {
				r.leave()
				return
			}
		}
		r.mu.Lock()
		r.calling = false
		r.mu.Unlock()
		r.stirs()
	}
}

// stirs notes that more of the run may be settled.
func (r *run) stirs() {
	r.hosts.mu.Lock()
	s := r.link
	r.hosts.mu.Unlock()
	if s != nil {
		s.stirs(r)
	}
}

// call calls the listener for a line. It reports whether it was the last one.
func (r *run) call(l *hostlink.Line) (last bool) {
	switch l.Type {
	case hostlink.Output:
		stream := child.Stdout
		if l.Stderr {
			stream = child.Stderr
		}
		if !r.isMuted() {
			r.to.Output(stream, l.Bytes)
		}
		cost := len(l.Bytes) + hostlink.PieceCost
		r.mu.Lock()
		r.waiting -= cost
		r.mu.Unlock()
		if r.unsaid += cost; r.unsaid >= hostlink.HeardEvery {
			r.stream.Send(&hostlink.Line{Type: hostlink.Heard, N: r.unsaid})
			r.unsaid = 0
		}
	case hostlink.Stopped:
		r.to.Stopped(l.Yes)
	case hostlink.Lost:
		r.to.Lost(endingOf(l))
	case hostlink.Exited:
		r.to.Exited(child.Exit{At: time.Now(), Code: l.Code, Signal: syscall.Signal(l.Signal)})
	case hostlink.Ended:
		r.input.Shut()
		r.to.Ended(endingOf(l))
		return true
	}
	return false
}

// dealtAll returns the number of the last line that was dealt with, and whether no line waits.
func (r *run) dealtAll() (n int64, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.handled, len(r.queue) == 0 && !r.calling
}

func (r *run) isMuted() bool {
	r.hosts.mu.Lock()
	defer r.hosts.mu.Unlock()
	return r.muted
}

func endingOf(l *hostlink.Line) child.Ending {
	return child.Ending{LeftOver: processes(l.LeftOver), Survivors: processes(l.Survivors), Unverified: l.Unverified, HeldOpen: l.HeldOpen}
}

func processes(left []hostlink.Left) (all []child.Process) {
	for _, p := range left {
		all = append(all, child.Process{PID: p.PID, Program: p.Program})
	}
	return all
}

// A Process is a run on a host.
type Process struct{ run *run }

// Host returns the name of the host.
func (p *Process) Host() string { return p.run.order.Host }

// Lost reports whether the run was given up.
func (p *Process) Lost() bool { return p.run.lost.Load() }

// PID returns the id of the process on the host.
func (p *Process) PID() int {
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	return p.run.pid
}

// StartedAt returns when the hub learned that the run was started.
func (p *Process) StartedAt() time.Time { return p.run.began }

// Stdin returns the write end of the program's stdin, or nil if it has none.
func (p *Process) Stdin() child.Stdin {
	if p.run.order.NoStdin {
		return nil
	}
	return stdin{p.run}
}

// CloseStdin closes the program's stdin. It reports whether there is one.
func (p *Process) CloseStdin() bool {
	if p.run.order.NoStdin {
		return false
	}
	p.run.stream.Send(&hostlink.Line{Type: hostlink.Close})
	return true
}

// Signal sends a signal as child.Child does.
func (p *Process) Signal(sig syscall.Signal) {
	p.run.stream.Send(&hostlink.Line{Type: hostlink.Signal, Signal: int(sig)})
}

// Kill kills the whole tree of processes.
func (p *Process) Kill() { p.run.stream.Send(&hostlink.Line{Type: hostlink.Kill}) }

// Unread returns how many bytes of its input the program has not read.
func (p *Process) Unread() int64 {
	return int64(hostlink.InputRoom-p.run.input.Left()) + p.figures().Unread
}

// Usage returns the CPU time and memory of the run, as of the last beat.
func (p *Process) Usage() (cpuMS, rss int64) {
	u := p.figures()
	return u.CPUMS, u.RSS
}

func (p *Process) figures() hostlink.Usage {
	return *cmp.Or(p.run.usage.Load(), new(hostlink.Usage))
}

// stdin is the write end of the stdin of a run. As a pipe does, it takes as much as there is room for.
type stdin struct{ run *run }

func (s stdin) Write(text []byte) (written int, err error) {
	for len(text) > 0 {
		n, err := s.run.input.Take(1, min(len(text), hostlink.MaxPiece))
		if err != nil {
			return written, err
		}
		s.run.stream.Send(&hostlink.Line{Type: hostlink.Input, Bytes: bytes.Clone(text[:n])})
		text, written = text[n:], written+n
	}
	return written, nil
}

func (s stdin) SetWriteDeadline(at time.Time) error {
	s.run.input.SetDeadline(at)
	return nil
}
