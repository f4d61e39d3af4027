package handlers

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

// kindOf returns the graph's kind for a type of dependency.
func kindOf(name string) graph.Kind {
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

// gates reports whether a kind of dependency holds a task back.
func gates(kind graph.Kind) bool { return kind == graph.Blocks || kind == graph.Input }

// link makes a task depend on another. A dependency that is already satisfied is resolved at
// once.
func (t *tasks) link(k, on *task, d hub.Dependency, at time.Time) graph.Edge {
	kind := kindOf(d.Type)
	e, _ := t.graph.Depend(k.node, on.node, kind, d.Contract)
	if d.Private {
		t.graph.Hide(e)
	}
	done := on.handsOver()
	if kind == graph.Related || done || kind == graph.Soft && on.view.State.Final() {
		t.graph.Resolve(e, at.UnixMilli())
	}
	return e
}

// shownLink returns a dependency as callers see it.
func (t *tasks) shownLink(e graph.Edge) wire.Link { return t.need(e).shown() }

func (v need) shown() wire.Link {
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
func (t *tasks) showLinks(k *task, v *wire.Task) { showLinks(t.needs(k), v) }

func showLinks(of iter.Seq[need], v *wire.Task) {
	var needs queue.Set
	for n := range of {
		l := n.shown()
		if l.Type != hub.DependsRelated {
			needs.Add(l.On)
		}
		v.Links = append(v.Links, l)
	}
	v.Dependencies = needs.Texts
}

// showInputs adds the delivered inputs to the view of a task. Data that are only in the log are
// listed by inputPages.
func (t *tasks) showInputs(k *task, v *wire.Task) {
	for n := range t.needs(k) {
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

// showResults adds the results of the dependencies of a task to its view, except private ones.
// It adds as many as fit, in the order of the dependencies. Results that are only in the log are
// listed by resultPages.
func (t *tasks) showResults(k *task, v *wire.Task) {
	at, room := 0, wire.MaxLinkResults
	for n := range t.needs(k) {
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

// resultPages returns the results that a task shows and that are only in the log.
func (t *tasks) resultPages(k *task, v *wire.Task) []history.Result {
	var pages []history.Result
	var up map[string]need
	room := wire.MaxLinkResults
	for i := range v.Links {
		l := &v.Links[i]
		if l.Result == nil && !l.LeftOut {
			continue
		}
		if up == nil {
			up = t.needsByTask(k)
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
func (t *tasks) needsByTask(k *task) map[string]need {
	up := make(map[string]need)
	for n := range t.needs(k) {
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

// delivery returns the delivery of a finished task under a contract, or nil. The search is
// binary, since there may be as many as fit into a line.
func (t *task) delivery(key string) *delivery {
	if t.more == nil {
		return nil
	}
	at, there := slices.BinarySearchFunc(t.more.delivered, key, func(d delivery, key string) int { return strings.Compare(d.key, key) })
	if !there {
		return nil
	}
	return &t.more.delivered[at]
}

// leaveDelivered drops the delivered data, which are in the log.
func (t *task) leaveDelivered() {
	if t.more == nil {
		return
	}
	for i := range t.more.delivered {
		t.more.delivered[i].data = nil
	}
}

// inputPages returns the inputs of a task whose data are only in the log.
func (t *tasks) inputPages(k *task, v *wire.Task) []history.Input {
	if len(v.ResolvedInputs) == 0 {
		return nil
	}
	type place struct{ from, key string }
	shown := make(map[place]bool, len(v.ResolvedInputs))
	for i := range v.ResolvedInputs {
		shown[place{v.ResolvedInputs[i].From, v.ResolvedInputs[i].Key}] = true
	}
	var pages []history.Input
	for n := range t.needs(k) {
		if shown[place{n.On, n.Key}] && n.Logged && (n.given == nil || n.given.data == nil) {
			pages = append(pages, history.Input{Key: n.Key, Ended: n.Ended})
		}
	}
	return pages
}

// dependencyAdded records that a task depends on another.
type dependencyAdded struct {
	ID         string         `json:"task"`
	Name       string         `json:"name"`
	Dependency hub.Dependency `json:"dependency"`
	Shown      bool           `json:"shown,omitzero"` // it was there, and private
	Request    *requestKey    `json:"request,omitzero"`
}

func (*dependencyAdded) kind() string { return events.DependencyAdded }

func (d *dependencyAdded) apply(s *core, r *wire.Record) {
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
func (s *core) relink(k *task, change func()) {
	s.count(k, -1)
	change()
	s.count(k, +1)
	if s.tasks.graph.Open(k.node) > 0 {
		s.tasks.unqueue(k)
	}
	s.tasks.enqueue(k)
}

func (s *core) rememberLink(r *wire.Record, mk *requestKey, k *task, d hub.Dependency) {
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

func (d *dependencyGone) apply(s *core, r *wire.Record) {
	k := s.tasks.byID[d.ID]
	e, there := s.tasks.graph.Numbered(k.node, d.Number)
	if !there {
		return
	}
	link, up := s.tasks.shownLink(e), s.tasks.nodes[s.tasks.graph.Edge(e).Up]
	s.relink(k, func() { s.tasks.graph.Remove(e) })
	s.tasks.leave(up)
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

func (d *dependencyResolved) apply(s *core, r *wire.Record) {
	for _, w := range d.Waiting {
		k := s.tasks.byID[w.ID]
		e, there := s.tasks.graph.Numbered(k.node, w.Number)
		if !there {
			continue
		}
		s.tasks.beforeChange(k)
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

func (*taskUnblocked) kind() string              { return events.TaskUnblocked }
func (*taskUnblocked) apply(*core, *wire.Record) {}

// taskAnnounced records that all consequences of the end of a task are decided.
type taskAnnounced struct {
	ID        string         `json:"task"`
	Name      string         `json:"name"`
	State     wire.TaskState `json:"state"`
	Resolved  int            `json:"resolved,omitzero"`  // dependencies
	Unblocked int            `json:"unblocked,omitzero"` // tasks
}

func (*taskAnnounced) kind() string              { return events.TaskAnnounced }
func (*taskAnnounced) apply(*core, *wire.Record) {}

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

func (c *contractSeen) kind() string            { return c.what }
func (*contractSeen) apply(*core, *wire.Record) {}

// oddity records a warning about a document that was accepted.
type oddity struct {
	what    string
	ID      string `json:"task,omitzero"`
	Name    string `json:"name,omitzero"`
	Agent   string `json:"agent,omitzero"`
	Pointer string `json:"pointer"`
	Text    string `json:"text"`
}

func (o *oddity) kind() string            { return o.what }
func (*oddity) apply(*core, *wire.Record) {}

// odd records a warning about a task.
func (td taskDecision) odd(k *task, o hub.Oddity) {
	td.fact("", k.view.ID, &oddity{what: o.Kind, ID: k.view.ID, Name: k.view.Name, Agent: agentOf(td.from.String()), Pointer: o.Pointer, Text: o.Text})
}
