package handlers

import (
	"fmt"
	"slices"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// flush writes the letters of the items that this turn sends.
func (sd sessionDecision) flush() {
	for _, p := range sd.state.Sessions.Fresh {
		l := Letter{To: Actor{Kind: Agent, Name: p.To.AgentID, Run: p.Out}, Line: p.Line, Said: p.Seq, After: p.Before()}
		if p.Line == nil {
			l.Kept = p.Seq
		}
		sd.out.Letters = append(sd.out.Letters, l)
	}
	sd.state.Sessions.ResetChanged()
}

// This file handles session messages that their recipients do not read.

// handed handles the delivery of a session message: written, or lost.
func (sd sessionDecision) handed(m *wire.Delivered) {
	p := sd.state.Sessions.OutboxItem(m.Agent, m.Said)
	if p == nil || p.Out != m.Run || p.Taken {
		return // its task is over, or that run is
	}
	switch a := sd.state.Agents.ByID[m.Agent]; {
	case !m.Lost:
		sd.fact(state.AgentPrefix+m.Agent, p.Task, &state.SessionDelivered{Session: p.To.Of.Spec.ID, Agent: m.Agent, Message: m.Said})
	case a != nil && a.Runs(m.Run) && a.State == state.Up && !p.Repeat: // otherwise it waits for the next run
		sd.deliveryFailed(p)
	}
}

// deliveryFailed handles a failed delivery. It is retried a few times, and its sender is
// notified each time.
func (sd sessionDecision) deliveryFailed(p *state.OutboxItem) {
	if p.Retries == len(state.DeliveryRetries) {
		sd.abandonItem(p, p.Retries, "every attempt failed")
		return
	}
	sd.deferItem(p, p.Retries)
}

func (sd sessionDecision) deferItem(p *state.OutboxItem, retries int) {
	next := object.Timestamp(p.TurnOf(sd.at.Add(state.DeliveryRetries[retries])))
	sd.fact(state.AgentPrefix+p.From, p.Task, &state.SessionDeferred{
		Session: p.To.Of.Spec.ID, Agent: p.To.AgentID, Message: p.Seq, ID: p.Id, Retries: retries, Next: next,
	})
	sd.tellUndelivered(p, retries, next, "does not take its messages now: the delivery is tried again")
}

// noteUnread handles an item that a run has not read in time. The item stays in its place, and
// its sender is notified as of a retry. Time in which the run could not read does not count.
func (sd sessionDecision) noteUnread(p *state.OutboxItem, excused bool) {
	retries, patience := p.Retries, p.Patience()
	if !excused {
		if retries++; retries >= len(state.DeliveryRetries) {
			sd.abandonItem(p, len(state.DeliveryRetries), "it is running but does not read its messages")
			return
		}
		patience = state.DeliveryRetries[retries]
	}
	next := object.Timestamp(sd.at.Add(patience))
	sd.fact(state.AgentPrefix+p.From, p.Task, &state.SessionDeferred{
		Session: p.To.Of.Spec.ID, Agent: p.To.AgentID, Message: p.Seq, ID: p.Id, Retries: retries, Next: next, Unread: true,
	})
	if excused {
		return
	}
	sd.tellUndelivered(p, retries, next, "is running but does not read its messages: they wait")
}

// tellUndelivered notifies the sender of an item about its delivery.
func (sd sessionDecision) tellUndelivered(p *state.OutboxItem, retries int, next, why string) {
	a := sd.state.Agents.ByID[p.From]
	if p.By != "" || a == nil || a.Remote != nil || !a.Reachable() {
		return
	}
	text := p.To.AgentID + " " + why
	if next == "" {
		text = fmt.Sprintf("%s has not taken the message: %s", p.To.AgentID, why)
	}
	sd.out.Letters = append(sd.out.Letters, Letter{
		To: Actor{Kind: Agent, Name: a.ID, Run: a.Run}, Request: p.Id, Form: dialect.Session,
		Payload: &session.DeliveryError{
			OriginalMessageID: p.Id, ErrorType: session.DeliveryTimeout, RetryCount: retries, MaxRetries: session.DeliveryRetries, NextRetryAt: next,
		},
		Refusal: &wire.Error{Code: wire.CodeTimeout, Message: text, Details: map[string]any{"to_agent": p.To.AgentID}},
	})
}

// retryItems retries the items that are due.
func (sd sessionDecision) retryItems(excused bool) {
	for len(sd.state.Sessions.Posted) > 0 && !sd.state.Sessions.Posted[0].Next.After(sd.at) && !sd.state.Stopping {
		p := sd.state.Sessions.Posted[0]
		retries := p.Retries + 1
		switch a := sd.state.Agents.ByID[p.To.AgentID]; {
		case p.Out != "":
			sd.noteUnread(p, excused)
		case a != nil && a.Reachable() && retries <= len(state.DeliveryRetries):
			sd.fact(state.AgentPrefix+p.From, p.Task, &state.SessionDeferred{
				Session: p.To.Of.Spec.ID, Agent: p.To.AgentID, Message: p.Seq, ID: p.Id, Retries: retries, Again: true,
			})
		default:
			sd.missAll(p.To)
		}
	}
}

// missAll counts a failed attempt for all waiting items of a member that does not run. Otherwise
// the last item would be given up long after the first.
func (sd sessionDecision) missAll(m *state.Member) {
	for _, p := range slices.Clone(m.Outbox) {
		switch retries := p.Retries + 1; {
		case !p.Waits() || !slices.Contains(m.Outbox, p): // it went with one before it
		case retries >= len(state.DeliveryRetries):
			sd.abandonItem(p, len(state.DeliveryRetries), "it is not running")
		default:
			sd.deferItem(p, retries)
		}
	}
}

// abandonItem gives up an item, and the work or review that depends on it.
func (sd sessionDecision) abandonItem(p *state.OutboxItem, retries int, why string) {
	s := p.To.Of
	sd.fact(state.AgentPrefix+p.From, p.Task, &state.SessionUndelivered{
		Session: s.Spec.ID, Agent: p.To.AgentID, Message: p.Seq, ID: p.Id, Retries: retries, Why: why,
	})
	sd.tellUndelivered(p, retries, "", why)
	w := sd.state.Tasks.WorkOn(s, p.Task)
	switch {
	case w == nil:
	case p.Kind == session.TypeTaskAssignment && w.Phase == session.PhaseAssigned:
		sd.works().loseWork(w, &session.ExecutionError{
			ErrorType: session.ExecutionException, SuggestedAction: session.SuggestReassign,
			ErrorMessage: fmt.Sprintf("%s could not get the task: %s", p.To.AgentID, why),
		})
	case (p.Kind == session.TypeTaskCompletion || p.Kind == session.TypeReviewResult) && w.Stands():
		sd.reviews().askPerson(w, fmt.Sprintf("%s, who decides about it, was not notified: %s", p.To.AgentID, why))
	case p.Kind == session.TypeReviewRequest:
		sd.reviews().loseReview(w, fmt.Sprintf("%s could not get the review: %s", p.To.AgentID, why))
	}
}

// abandonItems gives up all items for an agent that is not restarted.
func (sd sessionDecision) abandonItems(name, why string) {
	for _, m := range sd.state.Sessions.Seats[name] {
		for _, p := range slices.Clone(m.Outbox) {
			if p.Waits() {
				sd.abandonItem(p, p.Retries, why)
			}
		}
	}
}
