package supervisor

import (
	"slices"
	"sync"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// feed is the list of those that are told what becomes true: the recent events, the outputs
// of the agents it is about, and those who follow all of them.
type feed struct {
	journal *recentEvents
	heard   func(*notice) // sees each

	mu     sync.Mutex
	voices map[string]*agentOutput
	all    []*Follower // those who follow all agents, also future ones
}

// spoke notes that an agent has sent a message by another way than its stdout.
func (u *feed) spoke(agent string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if v := u.voices[agent]; v != nil {
		v.spoke.Store(true)
	}
}

// notice is a fact on its way to people. It is put into words by the first who
// wants to read them: most facts are not read, and the recorder
// has others waiting.
type notice struct {
	record wire.Record
	once   sync.Once
	event  wire.Event
}

// Event is the fact in words.
func (n *notice) Event() *wire.Event {
	n.once.Do(func() { n.event = handlers.Tell(n.record) })
	return &n.event
}

// tell tells of facts, in their order.
func (u *feed) tell(records []wire.Record) {
	all := make([]notice, len(records))
	told := make([]*notice, len(records))
	for i := range records {
		all[i].record = records[i]
		told[i] = &all[i]
	}
	u.journal.add(told)
	for _, n := range told {
		u.say(n)
		u.heard(n)
	}
}

// say puts news among what the agent says that they are about, or, if they are
// about none, among what those hear who follow all. What was decided is only
// heard, and does not push the agent's own words out of what is kept of them.
func (u *feed) say(n *notice) {
	happening := handlers.Happening(n.record.Kind)
	agent := handlers.About(&n.record)
	u.mu.Lock()
	v, all := u.voices[agent], u.all
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

// enter adds an agent's output, and has those who follow all follow it too.
func (u *feed) enter(v *agentOutput) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.voices[v.agent] = v
	for _, f := range u.all {
		v.follow(f)
	}
}

func (u *feed) leave(v *agentOutput) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.voices[v.agent] == v {
		delete(u.voices, v.agent)
	}
}

func (u *feed) join(f *Follower) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(slices.Clone(u.all), f)
}

func (u *feed) part(f *Follower) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = slices.DeleteFunc(slices.Clone(u.all), func(o *Follower) bool { return o == f })
}

// close ends all who follow all.
func (u *feed) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, f := range u.all {
		f.close()
	}
}
