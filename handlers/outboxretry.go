package handlers

import (
	"fmt"
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// This file handles session messages that their recipients do not read.

// handed handles the delivery of a session message: written, or lost.
func (sd sessionDecision) handed(m *wire.Delivered) {
	p := sd.state.sessions.outboxItem(m.Agent, m.Said)
	if p == nil || p.out != m.Run || p.taken {
		return // its task is over, or that run is
	}
	switch a := sd.state.agents.byID[m.Agent]; {
	case !m.Lost:
		sd.fact(agentPrefix+m.Agent, p.task, &sessionDelivered{Session: p.to.of.spec.ID, Agent: m.Agent, Message: m.Said})
	case a != nil && a.runs(m.Run) && a.state == up && !p.repeat: // otherwise it waits for the next run
		sd.deliveryFailed(p)
	}
}

// deliveryFailed handles a failed delivery. It is retried a few times, and its sender is
// notified each time.
func (sd sessionDecision) deliveryFailed(p *outboxItem) {
	if p.retries == len(deliveryRetries) {
		sd.abandonItem(p, p.retries, "it was tried again and again")
		return
	}
	sd.deferItem(p, p.retries)
}

func (sd sessionDecision) deferItem(p *outboxItem, retries int) {
	next := object.Timestamp(p.turnOf(sd.at.Add(deliveryRetries[retries])))
	sd.fact(agentPrefix+p.from, p.task, &sessionDeferred{
		Session: p.to.of.spec.ID, Agent: p.to.AgentID, Message: p.seq, ID: p.id, Retries: retries, Next: next,
	})
	sd.tellUndelivered(p, retries, next, "does not take its messages now: it is tried again")
}

// noteUnread handles an item that a run has not read in time. The item stays in its place, and
// its sender is notified as of a retry. Time in which the run could not read does not count.
func (sd sessionDecision) noteUnread(p *outboxItem, excused bool) {
	retries, patience := p.retries, p.patience()
	if !excused {
		if retries++; retries >= len(deliveryRetries) {
			sd.abandonItem(p, len(deliveryRetries), "it runs and does not read")
			return
		}
		patience = deliveryRetries[retries]
	}
	next := object.Timestamp(sd.at.Add(patience))
	sd.fact(agentPrefix+p.from, p.task, &sessionDeferred{
		Session: p.to.of.spec.ID, Agent: p.to.AgentID, Message: p.seq, ID: p.id, Retries: retries, Next: next, Unread: true,
	})
	if excused {
		return
	}
	sd.tellUndelivered(p, retries, next, "runs and does not read its messages: they wait")
}

// tellUndelivered notifies the sender of an item about its delivery.
func (sd sessionDecision) tellUndelivered(p *outboxItem, retries int, next, why string) {
	a := sd.state.agents.byID[p.from]
	if p.by != "" || a == nil || a.remote != nil || !a.reachable() {
		return
	}
	text := p.to.AgentID + " " + why
	if next == "" {
		text = fmt.Sprintf("%s has not taken the message: %s", p.to.AgentID, why)
	}
	sd.out.Letters = append(sd.out.Letters, Letter{
		To: Actor{Kind: Agent, Name: a.ID, Run: a.run}, Request: p.id, Form: wire.DialectSession,
		Payload: &session.DeliveryError{
			OriginalMessageID: p.id, ErrorType: session.DeliveryTimeout, RetryCount: retries, MaxRetries: session.DeliveryRetries, NextRetryAt: next,
		},
		Refusal: &wire.Error{Code: wire.CodeTimeout, Message: text, Details: map[string]any{"to_agent": p.to.AgentID}},
	})
}

// retryItems retries the items that are due.
func (sd sessionDecision) retryItems(excused bool) {
	for len(sd.state.sessions.posted) > 0 && !sd.state.sessions.posted[0].next.After(sd.at) && !sd.state.stopping {
		p := sd.state.sessions.posted[0]
		retries := p.retries + 1
		switch a := sd.state.agents.byID[p.to.AgentID]; {
		case p.out != "":
			sd.noteUnread(p, excused)
		case a != nil && a.reachable() && retries <= len(deliveryRetries):
			sd.fact(agentPrefix+p.from, p.task, &sessionDeferred{
				Session: p.to.of.spec.ID, Agent: p.to.AgentID, Message: p.seq, ID: p.id, Retries: retries, Again: true,
			})
		default:
			sd.missAll(p.to)
		}
	}
}

// missAll counts a failed attempt for all waiting items of a member that does not run. Otherwise
// the last item would be given up long after the first.
func (sd sessionDecision) missAll(m *member) {
	for _, p := range slices.Clone(m.outbox) {
		switch retries := p.retries + 1; {
		case !p.waits() || !slices.Contains(m.outbox, p): // it went with one before it
		case retries >= len(deliveryRetries):
			sd.abandonItem(p, len(deliveryRetries), "it does not run")
		default:
			sd.deferItem(p, retries)
		}
	}
}

// abandonItem gives up an item, and the work or review that depends on it.
func (sd sessionDecision) abandonItem(p *outboxItem, retries int, why string) {
	s := p.to.of
	sd.fact(agentPrefix+p.from, p.task, &sessionUndelivered{
		Session: s.spec.ID, Agent: p.to.AgentID, Message: p.seq, ID: p.id, Retries: retries, Why: why,
	})
	sd.tellUndelivered(p, retries, "", why)
	w := sd.state.tasks.workOn(s, p.task)
	switch {
	case w == nil:
	case p.kind == session.TypeTaskAssignment && w.phase == wire.PhaseAssigned:
		sd.works().loseWork(w, &session.ExecutionError{
			ErrorType: session.ExecutionException, SuggestedAction: session.SuggestReassign,
			ErrorMessage: fmt.Sprintf("%s could not be given the task: %s", p.to.AgentID, why),
		})
	case (p.kind == session.TypeTaskCompletion || p.kind == session.TypeReviewResult) && w.stands():
		sd.reviews().askPerson(w, fmt.Sprintf("%s, who should say how it goes on, has not heard: %s", p.to.AgentID, why))
	case p.kind == session.TypeReviewRequest:
		sd.reviews().loseReview(w, fmt.Sprintf("%s could not be given the review: %s", p.to.AgentID, why))
	}
}

// abandonItems gives up all items for an agent that is not restarted.
func (sd sessionDecision) abandonItems(name, why string) {
	for _, m := range sd.state.sessions.seats[name] {
		for _, p := range slices.Clone(m.outbox) {
			if p.waits() {
				sd.abandonItem(p, p.retries, why)
			}
		}
	}
}
