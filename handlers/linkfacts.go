package handlers

import (
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// dependencyAdded records that a task depends on another.
type dependencyAdded struct {
	ID         string         `json:"task"`
	Name       string         `json:"name"`
	Dependency hub.Dependency `json:"dependency"`
	Shown      bool           `json:"shown,omitzero"` // it was there, and private
	Request    *requestKey    `json:"request,omitzero"`
}

func (*dependencyAdded) kind() string { return events.DependencyAdded }

func (d *dependencyAdded) apply(s *State, r *wire.Record) {
	k := s.tasks.byID[d.ID]
	if d.Shown {
		e, _ := s.tasks.graph.Find(k.node, s.tasks.byID[d.Dependency.On].node, kindOf(d.Dependency.Type), d.Dependency.Contract)
		s.tasks.graph.Show(e)
		s.rememberLink(r, d.Request, k, d.Dependency)
		return
	}
	s.relink(k, func() { s.tasks.link(k, s.tasks.byID[d.Dependency.On], d.Dependency, r.At) })
	s.rememberLink(r, d.Request, k, d.Dependency)
}

// relink changes the dependencies of a task and updates the counts and the queue.
func (s *State) relink(k *task, change func()) {
	s.count(k, -1)
	change()
	s.count(k, +1)
	if s.tasks.graph.Open(k.node) > 0 {
		s.tasks.unqueue(k)
	}
	s.tasks.enqueue(k)
}

func (s *State) rememberLink(r *wire.Record, mk *requestKey, k *task, d hub.Dependency) {
	if mk == nil {
		return
	}
	if e, there := s.tasks.graph.Find(k.node, s.tasks.byID[d.On].node, kindOf(d.Type), d.Contract); there {
		s.saveReply(agentOf(r.From), mk, &wire.LinkReply{Dependency: s.tasks.shownLink(e)}, nil)
	}
}

// dependencyGone records that a task no longer depends on another.
type dependencyGone struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Number  int64       `json:"number"`
	On      string      `json:"on"`
	Request *requestKey `json:"request,omitzero"`
}

func (*dependencyGone) kind() string { return events.DependencyRemoved }

func (d *dependencyGone) apply(s *State, r *wire.Record) {
	k := s.tasks.byID[d.ID]
	e, there := s.tasks.graph.Numbered(k.node, d.Number)
	if !there {
		return
	}
	link := s.tasks.shownLink(e)
	s.relink(k, func() { s.tasks.graph.Remove(e) })
	s.saveReply(agentOf(r.From), d.Request, &wire.LinkReply{Dependency: link}, nil)
}

// dependencyResolved records that tasks no longer wait for a task that is done or has ended.
type dependencyResolved struct {
	ID      string     `json:"task"` // that they waited for
	Name    string     `json:"name"`
	Waiting []resolved `json:"waiting"`
}

// A resolved names a waiting task and the number of its dependency.
type resolved struct {
	ID     string `json:"task"`
	Number int64  `json:"number"`
}

func (*dependencyResolved) kind() string { return events.DependencyResolved }

func (d *dependencyResolved) apply(s *State, r *wire.Record) {
	for _, w := range d.Waiting {
		k := s.tasks.byID[w.ID]
		e, there := s.tasks.graph.Numbered(k.node, w.Number)
		if !there {
			continue
		}
		s.count(k, -1)
		s.tasks.graph.Resolve(e, r.At.UnixMilli())
		s.count(k, +1)
		s.tasks.enqueue(k)
	}
}

// taskUnblocked records that a task has no unresolved dependency.
type taskUnblocked struct {
	ID   string `json:"task"`
	Name string `json:"name"`
}

func (*taskUnblocked) kind() string               { return events.TaskUnblocked }
func (*taskUnblocked) apply(*State, *wire.Record) {}

// taskAnnounced records that all consequences of the end of a task are decided.
type taskAnnounced struct {
	ID        string         `json:"task"`
	Name      string         `json:"name"`
	State     wire.TaskState `json:"state"`
	Resolved  int            `json:"resolved,omitzero"`  // dependencies
	Unblocked int            `json:"unblocked,omitzero"` // tasks
}

func (*taskAnnounced) kind() string               { return events.TaskAnnounced }
func (*taskAnnounced) apply(*State, *wire.Record) {}

// contractSeen records that a result has, or lacks, a contract that was promised or is needed.
type contractSeen struct {
	what     string
	ID       string `json:"task"`
	Name     string `json:"name"`
	Key      string `json:"contract_key"`
	Status   string `json:"status,omitzero"`
	Reason   string `json:"reason,omitzero"`
	NeededBy string `json:"needed_by,omitzero"` // a task that came to depend on it later
}

func (c *contractSeen) kind() string             { return c.what }
func (*contractSeen) apply(*State, *wire.Record) {}

// oddity records a warning about a document that was accepted.
type oddity struct {
	what    string
	ID      string `json:"task,omitzero"`
	Name    string `json:"name,omitzero"`
	Agent   string `json:"agent,omitzero"`
	Pointer string `json:"pointer"`
	Text    string `json:"text"`
}

func (o *oddity) kind() string             { return o.what }
func (*oddity) apply(*State, *wire.Record) {}

// odd records a warning about a task.
func (td taskDecision) odd(k *task, o hub.Oddity) {
	td.fact("", k.view.ID, &oddity{what: o.Kind, ID: k.view.ID, Name: k.view.Name, Agent: agentOf(td.from.String()), Pointer: o.Pointer, Text: o.Text})
}
