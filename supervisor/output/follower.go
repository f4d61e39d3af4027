package output

import (
	"context"
	"slices"
	"sync"
	"time"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

const (
	// backlog is the number of bytes that may wait for a follower, for each agent.
	backlog = 256 << 10
	// patience is how long an agent waits for a blocking follower that takes no lines.
	patience = time.Second
)

// A Follower receives the lines of some agents. Each agent has its own backlog, taken in turn, so that one agent with
// much output does not hide other agents. An event comes after all lines and events that were there before it, of any
// agent.
//
// An agent with a full backlog waits for a blocking follower. If the follower takes no lines for a second, lines are
// dropped. Other followers lose lines at once. Dropped lines are counted, and the next line reports their number.
type Follower struct {
	waits      bool                   // agents wait for it when a backlog is full
	EventsOnly bool                   // receives only events, no lines of agents
	KeepOpen   bool                   // stay open when no agent is left, because new ones may come
	skips      func(kind string) bool // reports the kinds of events to leave out; nil: none

	mu     sync.Mutex
	queues map[string]*queue
	ready  []*queue // the owner of each page that waits, oldest first
	wake   chan struct{}
	moved  chan struct{} // closed when a page was taken
	stuck  bool
	closed bool
	idle   bool // Next waits
	voices int  // number of outputs that it follows
}

// A queue is the backlog of one agent.
type queue struct {
	agent  string
	pages  []page // oldest first; one, unless events had to wait for other agents
	spare  page   // a buffer for the next page
	text   int    // bytes of text on all pages
	weight int    // memory that all pages use
	missed int64
}

// A Line is a line that a follower receives.
type Line struct {
	At     time.Time
	Agent  string
	Stream string
	Text   []byte // valid until the next call of Next
	Missed int64
	Event  *wire.Event // the event, for a line of the orchestrator
}

// Document returns the line in its JSON form.
func (l Line) Document() control.LogLine {
	line := control.LogLine{At: Stamp(l.At), Agent: l.Agent, Stream: l.Stream, Missed: l.Missed}
	if l.Event != nil {
		line.Kind, line.Trouble = l.Event.Kind, l.Event.Trouble()
	}
	return withEntry(line, l.Text)
}

// withEntry adds the text to a line. For an event:log it adds the fields of the entry.
func withEntry(line control.LogLine, text []byte) control.LogLine {
	line.Text = string(text)
	if line.Stream == control.StreamErr || line.Stream == control.StreamOwn {
		return line
	}
	if entry, ok := activity.LogOf(text); ok {
		line.Level, line.Text, line.Context = entry.Level, entry.Message, entry.Context
	}
	return line
}

// NewFollower returns a follower. If waits is true, agents wait for it.
func NewFollower(waits bool) *Follower {
	return &Follower{
		waits:  waits,
		queues: make(map[string]*queue),
		wake:   make(chan struct{}, 1),
		moved:  make(chan struct{}),
	}
}

// push adds a page. It waits for room if the follower is blocking.
func (f *Follower) push(agent string, p *page) {
	if f.EventsOnly {
		return
	}
	for {
		f.mu.Lock()
		q := f.queue(agent)
		if f.closed || q.text < backlog {
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

// await waits up to patience for the follower to take a page.
func (f *Follower) await(moved chan struct{}) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-moved:
	case <-timer.C:
		f.mu.Lock()
		f.stuck = f.moved == moved // otherwise it has just taken a page
		f.mu.Unlock()
	}
}

// pushNow adds a page without waiting, even beyond the backlog. The orchestrator writes little,
// so its lines are dropped only at eight times the backlog.
func (f *Follower) pushNow(agent string, p *page) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queue(agent)
	if q.weight >= 8*backlog {
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

// put adds lines to the last page of a queue. An event starts a page if lines of other agents wait
// behind the last page.
func (f *Follower) put(q *queue, p *page) {
	if f.closed {
		return
	}
	for i := range p.lines {
		m := p.lines[i]
		m.missed, q.missed = q.missed, 0
		if len(q.pages) == 0 || m.news != nil && f.ready[len(f.ready)-1] != q {
			q.pages = append(q.pages, q.spare)
			q.spare = page{}
			f.ready = append(f.ready, q)
		}
		last := &q.pages[len(q.pages)-1]
		before := last.weight()
		last.add(m, p.line(i))
		q.text += m.end - m.start
		q.weight += last.weight() - before
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Skip leaves out the events of some kinds before they are formatted. It must be called before
// Run.
func (f *Follower) Skip(kind func(string) bool) { f.skips = kind }

// Next waits for lines of one agent and calls see for each. It returns false when the follower
// is closed and empty, or when ctx is done.
func (f *Follower) Next(ctx context.Context, spare *Backlog, see func(Line)) bool {
	for {
		if agent, ok := f.take(&spare.page); ok {
			for i := range spare.page.lines {
				m := &spare.page.lines[i]
				if m.news == nil || m.missed > 0 || f.skips == nil || !f.skips(m.news.Record.Kind) {
					see(spare.page.heard(i, agent))
				}
			}
			return true
		}
		if f.setIdle(true) {
			return false
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return false
		}
		f.setIdle(false)
	}
}

func (f *Follower) setIdle(idle bool) (closed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.idle = idle
	return f.closed
}

// IsDrained reports whether Next waits, and all lines so far were taken.
func (f *Follower) IsDrained() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.idle && len(f.ready) == 0
}

// heard returns line i of a page as a follower receives it.
func (p *page) heard(i int, agent string) Line {
	m := &p.lines[i]
	l := Line{At: m.at, Agent: agent, Stream: m.stream, Text: p.line(i), Missed: m.missed}
	if m.news != nil {
		l.Event = m.news.Event()
		l.Text = []byte(l.Event.Text)
	}
	return l
}

// A Backlog is a buffer that the caller reuses for calls of Next.
type Backlog struct{ page page }

// take exchanges the next page for an empty one.
func (f *Follower) take(spare *page) (agent string, ok bool) {
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
	spare.clear()
	q.spare, *spare = *spare, q.pages[0]
	q.pages[0] = page{}
	if len(q.pages) == 1 {
		q.pages = q.pages[:0] // keeps the array
	} else {
		q.pages = q.pages[1:]
	}
	q.text -= len(spare.text)
	q.weight -= spare.weight()
	f.stuck = false
	close(f.moved)
	f.moved = make(chan struct{})
	return q.agent, true
}

// joined and parted count the outputs that the follower follows. Without any, it closes, unless
// KeepOpen is set.
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

// Close closes the follower. Its backlog can still be taken.
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

// Feed passes events to the recent events, to the outputs of agents and to followers of all
// agents.
type Feed struct {
	Recent   *RecentEvents
	onNotice func(*Notice) // called for each notice

	mu      sync.Mutex
	outputs map[string]*Agent
	all     []*Follower // followers of all agents, including future ones
}

// NewFeed returns a Feed that calls notice for each notice.
func NewFeed(recent *RecentEvents, notice func(*Notice)) *Feed {
	return &Feed{Recent: recent, onNotice: notice, outputs: make(map[string]*Agent)}
}

// NoteMessage records that an agent has sent a message other than by its stdout.
func (u *Feed) NoteMessage(agent string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if v := u.outputs[agent]; v != nil {
		v.spoke.Store(true)
	}
}

// A Notice is a fact to be shown. Event formats it at the first call, because most facts are
// never read and the recorder must not be delayed.
type Notice struct {
	Record wire.Record
	once   sync.Once
	event  *wire.Event // most are never asked for, and an Event is larger than a Record
}

// Event returns the fact as an event.
func (n *Notice) Event() *wire.Event {
	n.once.Do(func() {
		e := state.Tell(n.Record)
		n.event = &e
	})
	return n.event
}

// Publish passes on facts in order.
func (u *Feed) Publish(records []wire.Record) {
	all := make([]Notice, len(records))
	told := make([]*Notice, len(records))
	for i := range records {
		all[i].Record = records[i]
		told[i] = &all[i]
	}
	u.Recent.add(told)
	for _, n := range told {
		u.say(n)
		u.onNotice(n)
	}
}

// say adds a notice to the output of its agent. A notice without an agent goes to the followers
// of all agents. Decisions go only to followers, so that they do not displace the agent's own
// lines in the tail.
func (u *Feed) say(n *Notice) {
	happening := state.Happening(n.Record.Kind) || n.Record.Kind == events.TaskTrouble // its own words
	agent := state.About(&n.Record)
	u.mu.Lock()
	v, all := u.outputs[agent], u.all
	u.mu.Unlock()
	switch {
	case v == nil && len(all) > 0:
		p := sentence(n, happening)
		for _, f := range all {
			f.pushNow(agent, p)
		}
	case v == nil:
	case happening:
		v.say(n)
	default:
		v.mention(n)
	}
}

// AddAgent adds an agent's output, and connects the followers of all agents to it.
func (u *Feed) AddAgent(v *Agent) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.outputs[v.agent] = v
	for _, f := range u.all {
		v.Follow(f)
	}
}

// RemoveAgent removes an agent's output.
func (u *Feed) RemoveAgent(v *Agent) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.outputs[v.agent] == v {
		delete(u.outputs, v.agent)
	}
}

// AddFollower adds a follower of all agents.
func (u *Feed) AddFollower(f *Follower) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(slices.Clone(u.all), f)
}

// RemoveFollower removes a follower of all agents.
func (u *Feed) RemoveFollower(f *Follower) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = slices.DeleteFunc(slices.Clone(u.all), func(o *Follower) bool { return o == f })
}

// Close closes the followers of all agents.
func (u *Feed) Close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, f := range u.all {
		f.Close()
	}
}
