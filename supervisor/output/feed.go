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
	OnNotice func(*Notice) // sees each

	mu      sync.Mutex
	Outputs map[string]*Agent
	all     []*Follower // those who follow all agents, also future ones
}

// NoteMessage notes that an agent has sent a message by another way than its stdout.
func (u *Feed) NoteMessage(agent string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if v := u.Outputs[agent]; v != nil {
		v.Spoke.Store(true)
	}
}

// Notice is a fact for people. Event puts it into words at its first call: most facts are not
// read, and the recorder has others waiting.
type Notice struct {
	Record wire.Record
	once   sync.Once
	event  wire.Event
}

// Event is the fact in words.
func (n *Notice) Event() *wire.Event {
	n.once.Do(func() { n.event = handlers.Tell(n.Record) })
	return &n.event
}

// Publish tells of facts, in their order.
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
		u.OnNotice(n)
	}
}

// say puts news among what the agent says that they are about, or, if they are
// about none, among what those hear who follow all. What was decided is only
// heard, and does not push the agent's own words out of what is kept of them.
func (u *Feed) say(n *Notice) {
	happening := handlers.Happening(n.Record.Kind)
	agent := handlers.About(&n.Record)
	u.mu.Lock()
	v, all := u.Outputs[agent], u.all
	u.mu.Unlock()
	switch {
	case v == nil && len(all) > 0:
		p := sentence(n, happening)
		for _, f := range all {
			f.PushNow(agent, p)
		}
	case v == nil:
	case happening:
		v.say(n)
	default:
		v.mention(n)
	}
}

// AddAgent adds an agent's output, and has those who follow all follow it too.
func (u *Feed) AddAgent(v *Agent) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.Outputs[v.agent] = v
	for _, f := range u.all {
		v.Follow(f)
	}
}

// RemoveAgent ends what is kept of an agent.
func (u *Feed) RemoveAgent(v *Agent) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.Outputs[v.agent] == v {
		delete(u.Outputs, v.agent)
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

// Close ends all who follow all.
func (u *Feed) Close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, f := range u.all {
		f.Close()
	}
}
