package handlers

import (
	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// An effect is what an accepted message changes, besides its delivery. consider chooses it and
// perform applies it, after the message is recorded.
type effect int

const (
	effectNone     effect = iota
	effectAssign          // makes a task; the message has its newWork
	effectRevise          // assigns an existing task again
	effectBegin           // begins the work
	effectProgress        // records progress of the work
	effectRetry           // tries a failed work again
	effectComplete        // completes the work
	effectReview          // begins a review of the work
	effectDecide          // ends a review of the work
	effectDrop            // ends the work, which is aborted
	effectClose           // closes the session
	effectStatus          // answers a query for a member that does not run
)

// perform applies the effect of a message.
func (sd sessionDecision) perform(x *messageContext) {
	switch x.effect {
	case effectNone:
	case effectAssign:
		sd.works().assignNew(x, x.Body.(*session.Assignment))
	case effectRevise:
		sd.works().assignWork(x, x.Body.(*session.Assignment))
	case effectBegin:
		sd.works().acknowledged(x)
	case effectProgress:
		sd.works().progressed(x, x.Body.(*session.Progress))
	case effectRetry:
		sd.works().beginAnew(x.work, x.Body.(*session.Completion).Error)
	case effectComplete:
		sd.works().completed(x, x.Body.(*session.Completion))
	case effectReview:
		sd.reviews().requested(x, x.Body.(*session.ReviewRequest))
	case effectDecide:
		sd.reviews().decided(x, x.Body.(*session.ReviewResult))
	case effectDrop:
		sd.aborted(x, x.Body.(*session.Abort))
	case effectClose:
		a := x.Body.(*session.Abort)
		sd.closeSession(x.of, &sessionClosed{Reason: a.Reason, By: x.from.AgentID, Stop: sd.leaving(x.of)})
	case effectStatus:
		sd.answerQuery(x, x.Body.(*session.StatusQuery))
	}
}

// aborted applies the abort of a task.
func (sd sessionDecision) aborted(x *messageContext, a *session.Abort) {
	w, quiet := x.work, x.to.AgentID // the message notifies its addressee
	if to := w.of.member(w.developer); to != nil && to != x.to && to != x.from && w.phase != wire.PhaseCompleted {
		sd.works().sayFor(w, x.from, to, func(h session.Head) *session.Message {
			return h.Abort(object.MemberOf(x.Document, "payload"), a)
		})
		quiet = w.developer
	}
	sd.works().drop(w, "Aborted: "+a.Reason, quiet)
}

// answerQuery answers a query for its addressee.
func (sd sessionDecision) answerQuery(x *messageContext, q *session.StatusQuery) {
	h := sd.head(x.of, x.to, x.from, x.chain)
	if h.ReplyTo = x.MessageID; h.CorrelationID == "" {
		h.CorrelationID = x.CorrelationID
	}
	m := h.StatusResponse(sd.standing(x.of, sd.state.agents.byID[x.to.AgentID], q.TaskID))
	sd.say(&messageContext{Message: m, of: x.of, from: x.to, to: x.from, chain: h.CorrelationID, task: x.task, notes: m.Notes}, nil)
}
