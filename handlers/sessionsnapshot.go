package handlers

import (
	"time"

	"orchestrator/handlers/review"
	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// A snapshotSession is a session in a snapshot.
type snapshotSession struct {
	Spec     wire.SessionSpec `json:"spec"`
	File     bool             `json:"file,omitzero"`
	ClosedAt int64            `json:"closed_at,omitzero"`
	Aborted  bool             `json:"aborted,omitzero"`
	Reason   string           `json:"reason,omitzero"`
	Messages int64            `json:"messages,omitzero"`
	Refused  int64            `json:"refused,omitzero"`
	Last     int64            `json:"last,omitzero"`
	Numbers  []int64          `json:"numbers"` // of its members, in order
	Works    []snapshotWork   `json:"works"`
	Reviews  []snapshotReview `json:"reviews"`
	Parcels  []snapshotParcel `json:"parcels"` // of each member in order, one member after the other
}

type snapshotWork struct {
	Task      string                  `json:"task"`
	Number    int64                   `json:"number"`
	Architect string                  `json:"architect"`
	Developer string                  `json:"developer"`
	Phase     string                  `json:"phase"`
	Chain     string                  `json:"chain"`
	Message   string                  `json:"message"`
	Document  wire.Raw                `json:"document,omitzero"`
	Scope     []string                `json:"scope"`
	Tested    bool                    `json:"testing_required,omitzero"`
	Tries     int                     `json:"tries"`
	Loop      review.Loop             `json:"loop"`
	Revises   string                  `json:"revises,omitzero"`
	Result    wire.Raw                `json:"result,omitzero"`
	Open      string                  `json:"open,omitzero"`
	Escalated string                  `json:"escalated,omitzero"`
	Question  string                  `json:"question,omitzero"`
	Trouble   *session.ExecutionError `json:"trouble,omitzero"`
	Limit     int64                   `json:"limit_ms,omitzero"`
	Wished    string                  `json:"wished,omitzero"`
	Expired   bool                    `json:"expired,omitzero"`
	Begun     string                  `json:"begun,omitzero"`
	Heard     string                  `json:"heard,omitzero"`
	Overdue   bool                    `json:"overdue,omitzero"`
}

type snapshotReview struct {
	View   wire.ReviewView `json:"view"`
	Named  string          `json:"named"`
	Wanted []string        `json:"wanted,omitzero"`
}

type snapshotParcel struct {
	Seq     int64    `json:"seq"`
	To      string   `json:"to"`
	From    string   `json:"from"`
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Task    string   `json:"task,omitzero"`
	By      string   `json:"by,omitzero"`
	Line    wire.Raw `json:"line,omitzero"`
	Held    bool     `json:"held,omitzero"`
	Out     string   `json:"out,omitzero"`
	Taken   bool     `json:"taken,omitzero"`
	Repeat  bool     `json:"repeat,omitzero"`
	Given   string   `json:"given,omitzero"`
	Retries int      `json:"retries,omitzero"`
	Next    string   `json:"next,omitzero"`
}

func (s *sessionState) snapshot() snapshotSession {
	kept := snapshotSession{
		Spec: s.spec, File: s.file, ClosedAt: s.closedAt, Aborted: s.aborted, Reason: s.reason, Messages: s.messages, Refused: s.refused, Last: s.last,
	}
	for _, m := range s.members {
		kept.Numbers = append(kept.Numbers, m.number)
		for _, p := range m.outbox {
			kept.Parcels = append(kept.Parcels, p.snapshot())
		}
	}
	for _, w := range s.works {
		kept.Works = append(kept.Works, w.snapshot())
	}
	for _, v := range s.reviews {
		kept.Reviews = append(kept.Reviews, snapshotReview{View: v.view, Named: v.named, Wanted: v.wanted})
	}
	return kept
}

func (oi *outboxItem) snapshot() snapshotParcel {
	kept := snapshotParcel{
		Seq: oi.seq, To: oi.to.AgentID, From: oi.from, ID: oi.id, Kind: oi.kind, Task: oi.task, By: oi.by, Line: oi.line, Held: oi.held, Out: oi.out,
		Taken: oi.taken, Repeat: oi.repeat, Retries: oi.retries,
	}
	if oi.taken {
		kept.Given = object.Timestamp(oi.given)
	}
	if oi.timed() {
		kept.Next = object.Timestamp(oi.next)
	}
	return kept
}

func (w *work) snapshot() snapshotWork {
	kept := snapshotWork{
		Task: w.task.view.ID, Number: w.number, Architect: w.architect, Developer: w.developer, Phase: w.phase, Chain: w.chain, Message: w.message,
		Document: w.document, Scope: w.scope, Tested: w.tested, Tries: w.tries, Loop: w.loop, Result: w.result, Escalated: w.escalated, Question: w.question,
		Trouble: w.trouble, Limit: w.limit.Milliseconds(), Wished: w.wished, Expired: w.expired, Begun: stamped(w.begun), Heard: stamped(w.heard), Overdue: w.overdue,
	}
	if w.revises != nil {
		kept.Revises = w.revises.task.view.ID
	}
	if w.open != nil {
		kept.Open = w.open.view.ReviewID
	}
	return kept
}

// stamped formats a time, or returns "" for the zero time.
func stamped(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return object.Timestamp(at)
}

// restoreSession restores a session. Tasks and agents must have been restored before.
func (r *restoring) restoreSession(kept *snapshotSession) {
	x := &sessionState{
		spec: kept.Spec, file: kept.File, closedAt: kept.ClosedAt, aborted: kept.Aborted, reason: kept.Reason, messages: kept.Messages,
		refused: kept.Refused, last: kept.Last, byReview: make(map[string]*reviewOf),
	}
	r.broken = r.broken || r.sessions.byID[x.spec.ID] != nil || len(kept.Numbers) != len(x.spec.Members)
	if r.broken {
		return
	}
	r.sessions.put(x)
	r.sessions.seatIn(x)
	for i, m := range x.members {
		m.number = kept.Numbers[i]
	}
	for i := range kept.Works {
		r.restoreWork(x, &kept.Works[i])
	}
	for i := range kept.Reviews {
		r.restoreReview(x, &kept.Reviews[i])
	}
	for i, k := range kept.Works {
		if v := x.byReview[k.Open]; v != nil {
			x.works[i].open = v
		}
	}
	for i := range kept.Parcels {
		r.restoreParcel(x, &kept.Parcels[i])
	}
}

func (r *restoring) restoreWork(x *sessionState, kept *snapshotWork) {
	w := &work{
		of: x, task: r.task(kept.Task), number: kept.Number, architect: kept.Architect, developer: kept.Developer, phase: kept.Phase,
		chain: kept.Chain, message: kept.Message, document: kept.Document, scope: kept.Scope, tested: kept.Tested, tries: kept.Tries, loop: kept.Loop,
		result: kept.Result, escalated: kept.Escalated, question: kept.Question, trouble: kept.Trouble,
		limit: time.Duration(kept.Limit) * time.Millisecond, overdue: kept.Overdue, wished: kept.Wished, expired: kept.Expired,
	}
	w.begun, _ = object.ParseTime(kept.Begun)
	w.heard, _ = object.ParseTime(kept.Heard)
	if kept.Revises != "" {
		if w.revises = r.task(kept.Revises).work(); w.revises == nil {
			r.broken = true
			return
		}
		w.revises.revision = w
	}
	w.task.needsMore().work = w
	x.works = append(x.works, w)
	x.track(w)
	r.watchWork(w)
}

func (r *restoring) restoreReview(x *sessionState, kept *snapshotReview) {
	w := r.task(kept.View.TaskID).work()
	r.broken = r.broken || w == nil
	v := &reviewOf{named: kept.Named, wanted: kept.Wanted, view: kept.View, work: w}
	x.reviews = append(x.reviews, v)
	x.byReview[v.view.ReviewID] = v
}

func (r *restoring) restoreParcel(x *sessionState, kept *snapshotParcel) {
	p := &outboxItem{
		seq: kept.Seq, to: x.member(kept.To), from: kept.From, id: kept.ID, kind: kept.Kind, task: kept.Task, by: kept.By, line: kept.Line,
		held: kept.Held, out: kept.Out, taken: kept.Taken, repeat: kept.Repeat, retries: kept.Retries,
	}
	if p.to == nil {
		r.broken = true
		return
	}
	p.to.outbox = append(p.to.outbox, p)
	if p.taken {
		p.given, _ = object.ParseTime(kept.Given)
	}
	if p.timed() {
		p.next, _ = object.ParseTime(kept.Next)
		r.sessions.posted.Add(p)
	}
}
