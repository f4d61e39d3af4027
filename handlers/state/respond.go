package state

import (
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// Response returns the status of a task as a task response.
func (qs *questions) Response(t *Task, result wire.Raw) *delegation.Response {
	r := &delegation.Response{ID: t.View.ID, Status: t.View.State.Response(), Metadata: t.Metadata(), Result: result}
	switch r.Status {
	case delegation.Completed:
		if result == nil {
			r.Result = t.View.Result
		}
	case delegation.Failed:
		r.Fault = &delegation.Fault{Code: delegation.FaultInternal, Message: t.View.Error}
	case delegation.Cancelled:
		r.Question = t.View.Reason // the message of a response
	case delegation.InputRequired:
		if t.Extra == nil {
			break
		}
		if q := qs.ByID[t.Extra.Question]; q != nil {
			r.Question, r.Options = q.View.Question, q.View.Options
		}
	}
	return r
}

// Metadata returns the metadata of a task response.
func (t *Task) Metadata() delegation.Metadata {
	v := &t.View
	m := delegation.Metadata{StartedAt: v.StartedAt, CompletedAt: v.EndedAt, Agent: v.AssignedTo}
	if d := t.Delegation(); d != nil && v.State.Final() && (m.StartedAt == "" || m.StartedAt == m.CompletedAt) { // its agent has not reported its start
		m.StartedAt = d.Forwarded
	}
	from, begun := object.ParseTime(m.StartedAt)
	to, ended := object.ParseTime(m.CompletedAt)
	if begun && ended {
		took := max(0, to.Sub(from)).Milliseconds()
		m.DurationMS = &took
	}
	if v.Attempts > 0 {
		retries := int64(v.Attempts - 1)
		m.RetryCount = &retries
	}
	return m
}

// AnswerOf returns an answer with the status of a task.
func (qs *questions) AnswerOf(t *Task) *wire.TaskAnswer {
	return &wire.TaskAnswer{Document: OneLine(delegation.AppendResponse(nil, qs.Response(t, nil)))}
}

// Unbrought reports whether a task waits to be forwarded to its agent. Until then no response is
// accepted. A server fetches its tasks itself.
func (as *agents) Unbrought(t *Task) bool {
	d, a := t.Delegation(), as.ByID[t.View.AssignedTo]
	return d != nil && d.Waits() && a != nil && a.Remote == nil
}
