package output

import (
	"slices"
	"sync"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// Feed is the list of those that are told what becomes true: the recent events, the outputs
// of the agents it is about, and those who follow all of them.
type Feed struct {
	Journal *recentEvents
	Heard   func(*Notice) // sees each

	mu      sync.Mutex
	Outputs map[string]*Agent
	all     []*Follower // those who follow all agents, also future ones
}

// Spoke notes that an agent has sent a message by another way than its stdout.
func (u *Feed) Spoke(agent string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if v := u.Outputs[agent]; v != nil {
		v.Spoke.Store(true)
	}
}

// Notice is a fact on its way to people. It is put into words by the first who
// wants to read them: most facts are not read, and the recorder
// has others waiting.
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

// Tell tells of facts, in their order.
func (u *Feed) Tell(records []wire.Record) {
	all := make([]Notice, len(records))
	told := make([]*Notice, len(records))
	for i := range records {
		all[i].Record = records[i]
		told[i] = &all[i]
	}
	u.Journal.add(told)
	for _, n := range told {
		u.say(n)
		u.Heard(n)
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

// Enter adds an agent's output, and has those who follow all follow it too.
func (u *Feed) Enter(v *Agent) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.Outputs[v.agent] = v
	for _, f := range u.all {
		v.Follow(f)
	}
}

// Leave ends what is kept of an agent.
func (u *Feed) Leave(v *Agent) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.Outputs[v.agent] == v {
		delete(u.Outputs, v.agent)
	}
}

// Join adds a follower of all agents.
func (u *Feed) Join(f *Follower) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(slices.Clone(u.all), f)
}

// Part removes a follower of all agents.
func (u *Feed) Part(f *Follower) {
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
