package state

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"orchestrator/handlers/graph"
	"orchestrator/handlers/history"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// KindOf returns the graph's kind for a type of dependency.
func KindOf(name string) graph.Kind {
	switch name {
	case hub.DependsInput:
		return graph.Input
	case hub.DependsSoft:
		return graph.Soft
	case hub.DependsRelated:
		return graph.Related
	}
	return graph.Blocks
}

// Gates reports whether a kind of dependency holds a task back.
func Gates(kind graph.Kind) bool { return kind == graph.Blocks || kind == graph.Input }

// link makes a task depend on another. A dependency that is already satisfied is resolved at
// once.
func (ts *tasks) link(t, on *Task, d hub.Dependency, at time.Time) graph.Edge {
	kind := KindOf(d.Type)
	e, _ := ts.Graph.Depend(t.Node, on.Node, kind, d.Contract)
	if d.Private {
		ts.Graph.Hide(e)
	}
	done := on.HandsOver()
	if kind == graph.Related || done || kind == graph.Soft && on.View.State.Final() {
		ts.Graph.Resolve(e, at.UnixMilli())
	}
	return e
}

// ShownLink returns a dependency as callers see it.
func (ts *tasks) ShownLink(e graph.Edge) wire.Link { return ts.need(e).Shown() }

func (v Need) Shown() wire.Link {
	l := wire.Link{ID: linkID(v.Number), On: v.On, Contract: v.Key, Resolved: v.Resolved}
	switch v.Kind {
	case graph.Blocks:
		l.Type = hub.DependsBlocks
	case graph.Input:
		l.Type = hub.DependsInput
	default:
		l.Type, l.Soft = hub.DependsRelated, v.Kind == graph.Soft
	}
	if v.Resolved {
		l.ResolvedAt = object.Timestamp(time.UnixMilli(v.At).UTC())
	}
	return l
}

func linkID(number int64) string { return "d" + strconv.FormatInt(number, 10) }

// showLinks adds the dependencies of a task to its view.
func (ts *tasks) showLinks(t *Task, v *wire.Task) { showLinks(ts.needs(t), v) }

func showLinks(of iter.Seq[Need], v *wire.Task) {
	var needs queue.Set
	for n := range of {
		l := n.Shown()
		if l.Type != hub.DependsRelated {
			needs.Add(l.On)
		}
		v.Links = append(v.Links, l)
	}
	v.Dependencies = needs.Texts
}

// ShowInputs adds the delivered inputs to the view of a task. Data that are only in the log are
// listed by inputPages.
func (ts *tasks) ShowInputs(t *Task, v *wire.Task) {
	for n := range ts.needs(t) {
		if n.Kind != graph.Input || !n.Resolved || n.Status == "" && n.given == nil {
			continue
		}
		in := wire.InputData{Key: n.Key, From: n.On, Status: n.Status}
		if n.given != nil {
			in.Data = n.given.data
		}
		v.ResolvedInputs = append(v.ResolvedInputs, in)
	}
}

// ShowResults adds the results of the dependencies of a task to its view, except private ones.
// It adds as many as fit, in the order of the dependencies. Results that are only in the log are
// listed by resultPages.
func (ts *tasks) ShowResults(t *Task, v *wire.Task) {
	at, room := 0, wire.MaxLinkResults
	for n := range ts.needs(t) {
		l := &v.Links[at]
		at++
		switch {
		case n.Private || n.State != wire.TaskDone || n.Length == 0:
		case n.Length > room:
			l.LeftOut = true
		default:
			l.Result, l.LeftOut = n.result, n.result == nil
			room -= n.Length
		}
	}
}

// ResultPages returns the results that a task shows and that are only in the log.
func (ts *tasks) ResultPages(t *Task, v *wire.Task) []history.Result {
	var pages []history.Result
	var up map[string]Need
	room := wire.MaxLinkResults
	for i := range v.Links {
		l := &v.Links[i]
		if l.Result == nil && !l.LeftOut {
			continue
		}
		if up == nil {
			up = ts.needsByTask(t)
		}
		n := up[l.On]
		if n.Length > room {
			continue
		}
		room -= n.Length
		if l.LeftOut {
			pages = append(pages, history.Result{Link: i, Ended: n.Ended})
		}
	}
	return pages
}

// needsByTask returns a dependency of a task on each other one.
func (ts *tasks) needsByTask(t *Task) map[string]Need {
	up := make(map[string]Need)
	for n := range ts.needs(t) {
		up[n.On] = n
	}
	return up
}

// A delivery is the part of a result under one contract. Data is nil if it is only in the log.
type delivery struct {
	key    string
	status string
	data   wire.Raw
	logged bool // the log has data
}

// deliveries returns the contracts of a structured result, or nil.
func deliveries(result wire.Raw) []delivery {
	if read := hub.ReadResult(result); read != nil && read.Structured {
		return delivered(read)
	}
	return nil
}

func delivered(result *hub.Result) []delivery {
	all := make([]delivery, 0, len(result.Contracts))
	for _, c := range result.Contracts {
		all = append(all, delivery{key: c.Key, status: c.Status, data: c.Data, logged: c.Data != nil})
	}
	slices.SortFunc(all, func(a, b delivery) int { return strings.Compare(a.key, b.key) })
	return all
}

// Delivery returns the delivery of a finished task under a contract, or nil. The search is
// binary, since there may be as many as fit into a line.
func (t *Task) Delivery(key string) *delivery {
	if t.Extra == nil {
		return nil
	}
	at, there := slices.BinarySearchFunc(t.Extra.delivered, key, func(d delivery, key string) int { return strings.Compare(d.key, key) })
	if !there {
		return nil
	}
	return &t.Extra.delivered[at]
}

// leaveDelivered drops the delivered data, which are in the log.
func (t *Task) leaveDelivered() {
	if t.Extra == nil {
		return
	}
	for i := range t.Extra.delivered {
		t.Extra.delivered[i].data = nil
	}
}

// InputPages returns the inputs of a task that have their data only in the log.
func (ts *tasks) InputPages(t *Task, v *wire.Task) []history.Input {
	if len(v.ResolvedInputs) == 0 {
		return nil
	}
	type place struct{ from, key string }
	shown := make(map[place]bool, len(v.ResolvedInputs))
	for i := range v.ResolvedInputs {
		shown[place{v.ResolvedInputs[i].From, v.ResolvedInputs[i].Key}] = true
	}
	var pages []history.Input
	for n := range ts.needs(t) {
		if shown[place{n.On, n.Key}] && n.Logged && (n.given == nil || n.given.data == nil) {
			pages = append(pages, history.Input{Key: n.Key, Ended: n.Ended})
		}
	}
	return pages
}

// DependencyAdded records that a task depends on another.
type DependencyAdded struct {
	ID         string         `json:"task"`
	Name       string         `json:"name"`
	Dependency hub.Dependency `json:"dependency"`
	Shown      bool           `json:"shown,omitzero"` // it was there, and private
	Request    *RequestKey    `json:"request,omitzero"`
}

func (*DependencyAdded) kind() string { return events.DependencyAdded }

func (d *DependencyAdded) apply(s *State, r *wire.Record) {
	t := s.Tasks.ByID[d.ID]
	if d.Shown {
		e, _ := s.Tasks.Graph.Find(t.Node, s.Tasks.ByID[d.Dependency.On].Node, KindOf(d.Dependency.Type), d.Dependency.Contract)
		s.Tasks.Graph.Show(e)
		s.rememberLink(r, d.Request, t, d.Dependency)
		return
	}
	s.relink(t, func() { s.Tasks.link(t, s.Tasks.ByID[d.Dependency.On], d.Dependency, r.At) })
	s.rememberLink(r, d.Request, t, d.Dependency)
}

// relink changes the dependencies of a task and updates the counts and the queue.
func (s *State) relink(t *Task, change func()) {
	s.Count(t, -1)
	change()
	s.Count(t, +1)
	if s.Tasks.Graph.Open(t.Node) > 0 {
		s.Tasks.unqueue(t)
	}
	s.Tasks.Enqueue(t)
}

func (s *State) rememberLink(r *wire.Record, mk *RequestKey, t *Task, d hub.Dependency) {
	if mk == nil {
		return
	}
	if e, there := s.Tasks.Graph.Find(t.Node, s.Tasks.ByID[d.On].Node, KindOf(d.Type), d.Contract); there {
		s.saveReply(AgentOf(r.From), mk, &wire.LinkReply{Dependency: s.Tasks.ShownLink(e)}, nil)
	}
}

// DependencyGone records that a task no longer depends on another.
type DependencyGone struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Number  int64       `json:"number"`
	On      string      `json:"on"`
	Request *RequestKey `json:"request,omitzero"`
}

func (*DependencyGone) kind() string { return events.DependencyRemoved }

func (d *DependencyGone) apply(s *State, r *wire.Record) {
	t := s.Tasks.ByID[d.ID]
	e, there := s.Tasks.Graph.Numbered(t.Node, d.Number)
	if !there {
		return
	}
	link, up := s.Tasks.ShownLink(e), s.Tasks.Nodes[s.Tasks.Graph.Edge(e).Up]
	s.relink(t, func() { s.Tasks.Graph.Remove(e) })
	s.Tasks.Leave(up)
	s.saveReply(AgentOf(r.From), d.Request, &wire.LinkReply{Dependency: link}, nil)
}

// DependencyResolved records that tasks no longer wait for a task that is done or has ended.
type DependencyResolved struct {
	ID      string     `json:"task"` // that they waited for
	Name    string     `json:"name"`
	Waiting []Resolved `json:"waiting"`
}

// A resolved names a waiting task and the number of its dependency.
type Resolved struct {
	ID     string `json:"task"`
	Number int64  `json:"number"`
}

func (*DependencyResolved) kind() string { return events.DependencyResolved }

func (d *DependencyResolved) apply(s *State, r *wire.Record) {
	for _, w := range d.Waiting {
		t := s.Tasks.ByID[w.ID]
		e, there := s.Tasks.Graph.Numbered(t.Node, w.Number)
		if !there {
			continue
		}
		s.Tasks.beforeChange(t)
		s.Count(t, -1)
		s.Tasks.Graph.Resolve(e, r.At.UnixMilli())
		s.Count(t, +1)
		s.Tasks.Enqueue(t)
	}
}

// TaskUnblocked records that a task has no unresolved dependency.
type TaskUnblocked struct {
	ID   string `json:"task"`
	Name string `json:"name"`
}

func (*TaskUnblocked) kind() string               { return events.TaskUnblocked }
func (*TaskUnblocked) apply(*State, *wire.Record) {}

// TaskAnnounced records that all consequences of the end of a task are decided.
type TaskAnnounced struct {
	ID        string         `json:"task"`
	Name      string         `json:"name"`
	State     wire.TaskState `json:"state"`
	Resolved  int            `json:"resolved,omitzero"`  // dependencies
	Unblocked int            `json:"unblocked,omitzero"` // tasks
}

func (*TaskAnnounced) kind() string               { return events.TaskAnnounced }
func (*TaskAnnounced) apply(*State, *wire.Record) {}

// ContractSeen records that a result has, or lacks, a contract that was promised or is needed.
type ContractSeen struct {
	What     string `json:"-"`
	ID       string `json:"task"`
	Name     string `json:"name"`
	Key      string `json:"contract_key"`
	Status   string `json:"status,omitzero"`
	Reason   string `json:"reason,omitzero"`
	NeededBy string `json:"needed_by,omitzero"` // a task that came to depend on it later
}

func (c *ContractSeen) kind() string             { return c.What }
func (*ContractSeen) apply(*State, *wire.Record) {}

// DocumentWarning records a warning about a document that was accepted.
type DocumentWarning struct {
	What    string `json:"-"`
	ID      string `json:"task,omitzero"`
	Name    string `json:"name,omitzero"`
	Agent   string `json:"agent,omitzero"`
	Pointer string `json:"pointer"`
	Text    string `json:"text"`
}

func (o *DocumentWarning) kind() string             { return o.What }
func (*DocumentWarning) apply(*State, *wire.Record) {}
