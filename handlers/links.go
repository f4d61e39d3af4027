package handlers

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"orchestrator/handlers/graph"
	"orchestrator/handlers/history"
	"orchestrator/wire"
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
	done := on.view.State == wire.TaskDone
	if kind == graph.Related || done || kind == graph.Soft && on.view.State.Final() {
		t.graph.Resolve(e, at.UnixMilli())
	}
	return e
}

// shownLink returns a dependency as callers see it.
func (t *tasks) shownLink(e graph.Edge) wire.Link {
	v := t.graph.Edge(e)
	l := wire.Link{ID: linkID(v.Number), On: t.list[v.Up].view.ID, Contract: v.Key, Resolved: v.Resolved}
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
func (t *tasks) showLinks(k *task, v *wire.Task) {
	var needs orderedSet
	for e := range t.graph.Needs(k.node) {
		l := t.shownLink(e)
		if l.Type != hub.DependsRelated {
			needs.add(l.On)
		}
		v.Links = append(v.Links, l)
	}
	v.Dependencies = needs.texts
}

// showInputs adds the delivered inputs to the view of a task. Data that are only in the log are
// listed by inputPages.
func (t *tasks) showInputs(k *task, v *wire.Task) {
	for e := range t.graph.Needs(k.node) {
		edge := t.graph.Edge(e)
		up := t.list[edge.Up]
		if edge.Kind != graph.Input || !edge.Resolved {
			continue
		}
		if d := up.delivery(edge.Key); d != nil {
			v.ResolvedInputs = append(v.ResolvedInputs, wire.InputData{Key: d.key, From: up.view.ID, Status: d.status, Data: d.data})
		}
	}
}

// showResults adds the results of the dependencies of a task to its view, except private ones.
// It adds as many as fit, in the order of the dependencies. Results that are only in the log are
// listed by resultPages.
func (t *tasks) showResults(k *task, v *wire.Task) {
	at, room := 0, wire.MaxLinkResults
	for e := range t.graph.Needs(k.node) {
		edge, l := t.graph.Edge(e), &v.Links[at]
		up := t.list[edge.Up]
		at++
		switch {
		case edge.Private || up.view.State != wire.TaskDone || up.result == 0:
		case up.result > room:
			l.LeftOut = true
		default:
			l.Result, l.LeftOut = up.view.Result, up.view.Result == nil
			room -= up.result
		}
	}
}

// resultPages returns the results that a task shows and that are only in the log.
func (t *tasks) resultPages(v *wire.Task) []history.Result {
	var pages []history.Result
	room := wire.MaxLinkResults
	for i := range v.Links {
		l, up := &v.Links[i], t.byID[v.Links[i].On]
		if l.Result == nil && !l.LeftOut || up.result > room {
			continue
		}
		room -= up.result
		if l.LeftOut {
			pages = append(pages, history.Result{Link: i, Ended: up.ended})
		}
	}
	return pages
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
func (t *tasks) inputPages(v *wire.Task) []history.Input {
	var pages []history.Input
	for _, in := range v.ResolvedInputs {
		up := t.byID[in.From]
		if d := up.delivery(in.Key); d != nil && d.data == nil && d.logged {
			pages = append(pages, history.Input{Key: in.Key, Ended: up.ended})
		}
	}
	return pages
}
