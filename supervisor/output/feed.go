package output

import (
	"slices"
	"sync"

	"orchestrator/handlers"
	"orchestrator/wire"
)

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
	event  wire.Event
}

// Event returns the fact as an event.
func (n *Notice) Event() *wire.Event {
	n.once.Do(func() { n.event = handlers.Tell(n.Record) })
	return &n.event
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
	happening := handlers.Happening(n.Record.Kind)
	agent := handlers.About(&n.Record)
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
