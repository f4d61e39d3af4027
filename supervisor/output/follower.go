package output

import (
	"context"
	"sync"
	"time"

	"orchestrator/wire"
)

const (
	// backlog bounds what waits for a follower, for each agent.
	backlog = 256 << 10
	// patience is how long an agent waits for a follower that it may wait for
	// and that takes nothing at all.
	patience = time.Second
)

// Follower hears some agents as they speak. Each agent has a backlog of its
// own, taken in turn, so that one that floods does not hide the others.
//
// A follower that waits is waited for: an agent whose backlog is full stands
// still until it moves, and only when it has not moved for a second are lines
// left out. One that does not wait loses lines at once. What is left out is
// counted, and told in the next line that is not.
type Follower struct {
	waits      bool                   // agents wait for it
	EventsOnly bool                   // to agents: it hears the orchestrator alone
	KeepOpen   bool                   // also when all that it follows are gone: others may come
	skips      func(kind string) bool // what of the orchestrator it leaves out; nil: nothing

	mu     sync.Mutex
	queues map[string]*queue
	ready  []*queue // those with something in them, oldest first
	wake   chan struct{}
	moved  chan struct{} // closed when something was taken
	stuck  bool
	closed bool
	voices int // that it follows
}

// queue is the backlog of one agent.
type queue struct {
	agent  string
	page   Page
	missed int64
	listed bool
}

// Line is what a follower hears.
type Line struct {
	At     time.Time
	Agent  string
	Stream string
	Text   []byte // valid until the next call of Next
	Missed int64
	Event  *wire.Event // when the orchestrator speaks
}

// Document is the line for programs.
func (l Line) Document() wire.LogLine {
	line := wire.LogLine{At: Stamp(l.At), Agent: l.Agent, Stream: l.Stream, Missed: l.Missed}
	if l.Event != nil {
		line.Kind, line.Trouble = l.Event.Kind, l.Event.Trouble()
	}
	return withEntry(line, l.Text)
}

// withEntry puts the text into a line: what it says, when it is an event:log.
func withEntry(line wire.LogLine, text []byte) wire.LogLine {
	line.Text = string(text)
	if line.Stream == wire.StreamErr || line.Stream == wire.StreamOwn {
		return line
	}
	if entry, ok := wire.LogOf(text); ok {
		line.Level, line.Text, line.Context = entry.Level, entry.Message, entry.Context
	}
	return line
}

// NewFollower makes a follower.
func NewFollower(waits bool) *Follower {
	return &Follower{
		waits:  waits,
		queues: make(map[string]*queue),
		wake:   make(chan struct{}, 1),
		moved:  make(chan struct{}),
	}
}

// push adds a page, waiting for room if this follower is waited for.
func (f *Follower) push(agent string, p *Page) {
	if f.EventsOnly {
		return
	}
	for {
		f.mu.Lock()
		q := f.queue(agent)
		if f.closed || len(q.page.text) < backlog {
			f.put(q, p)
			f.mu.Unlock()
			return
		}
		if !f.waits || f.stuck {
			q.missed += int64(len(p.lines))
			f.mu.Unlock()
			return
		}
		moved := f.moved
		f.mu.Unlock()
		f.await(moved)
	}
}

// await gives the follower a moment to take something.
func (f *Follower) await(moved chan struct{}) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-moved:
	case <-timer.C:
		f.mu.Lock()
		f.stuck = f.moved == moved // else it has taken something just now
		f.mu.Unlock()
	}
}

// PushNow adds a page without waiting, also past the backlog: what the
// orchestrator says is little and is not left out before several times of it.
func (f *Follower) PushNow(agent string, p *Page) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queue(agent)
	if q.page.weight() >= 8*backlog {
		q.missed += int64(len(p.lines))
		return
	}
	f.put(q, p)
}

func (f *Follower) queue(agent string) *queue {
	q := f.queues[agent]
	if q == nil {
		q = &queue{agent: agent}
		f.queues[agent] = q
	}
	return q
}

func (f *Follower) put(q *queue, p *Page) {
	if f.closed {
		return
	}
	for i := range p.lines {
		m := p.lines[i]
		m.missed, q.missed = q.missed, 0
		q.page.Add(m, p.line(i))
	}
	if !q.listed && len(q.page.lines) > 0 {
		q.listed = true
		f.ready = append(f.ready, q)
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Skip leaves out what the orchestrator says of some kinds before it is put into words. It
// is to be called before Run.
func (f *Follower) Skip(kind func(string) bool) { f.skips = kind }

// Next waits for lines of one agent and calls see for each. It returns false
// when the follower was closed and has nothing left, or ctx is over.
func (f *Follower) Next(ctx context.Context, spare *Backlog, see func(Line)) bool {
	for {
		if agent, ok := f.take(&spare.page); ok {
			for i := range spare.page.lines {
				m := &spare.page.lines[i]
				if m.News == nil || m.missed > 0 || f.skips == nil || !f.skips(m.News.Record.Kind) {
					see(spare.page.heard(i, agent))
				}
			}
			return true
		}
		f.mu.Lock()
		closed := f.closed
		f.mu.Unlock()
		if closed {
			return false
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return false
		}
	}
}

// heard is the i-th line of a page as a follower hears it.
func (p *Page) heard(i int, agent string) Line {
	m := &p.lines[i]
	l := Line{At: m.At, Agent: agent, Stream: m.Stream, Text: p.line(i), Missed: m.missed}
	if m.News != nil {
		l.Event = m.News.Event()
		l.Text = []byte(l.Event.Text)
	}
	return l
}

// Backlog is a buffer that the caller of Next keeps for it.
type Backlog struct{ page Page }

// take swaps the backlog whose turn it is for an empty page.
func (f *Follower) take(spare *Page) (agent string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ready) == 0 {
		return "", false
	}
	q := f.ready[0]
	f.ready = f.ready[1:]
	if len(f.ready) == 0 {
		f.ready = nil
	}
	q.listed = false
	spare.clear()
	*spare, q.page = q.page, *spare
	f.stuck = false
	close(f.moved)
	f.moved = make(chan struct{})
	return q.agent, true
}

// joined and parted count the outputs that it follows; without any, one that
// does not stay has nothing more to come.
func (f *Follower) joined() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.voices++
}

func (f *Follower) parted() {
	f.mu.Lock()
	f.voices--
	last := f.voices == 0 && !f.KeepOpen
	f.mu.Unlock()
	if last {
		f.Close()
	}
}

// Close ends the follower: what it has is still taken, nothing is added.
func (f *Follower) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	close(f.moved)
	f.moved = make(chan struct{})
	select {
	case f.wake <- struct{}{}:
	default:
	}
}
