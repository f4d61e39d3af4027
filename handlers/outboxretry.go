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
func (t *decision) handed(m *wire.Delivered) {
	p := t.state.sessions.outboxItem(m.Agent, m.Said)
	if p == nil || p.out != m.Run || p.taken {
		return // its task is over, or that run is
	}
	switch a := t.state.agents.byID[m.Agent]; {
	case !m.Lost:
		t.fact(agentPrefix+m.Agent, p.task, &sessionDelivered{Session: p.to.of.spec.ID, Agent: m.Agent, Message: m.Said})
	case a != nil && a.runs(m.Run) && a.state == up && !p.repeat: // otherwise it waits for the next run
		t.deliveryFailed(p)
	}
}

// deliveryFailed handles a failed delivery. It is retried a few times, and its sender is
// notified each time.
func (t *decision) deliveryFailed(p *outboxItem) {
	if p.retries == len(deliveryRetries) {
		t.abandonItem(p, p.retries, "it was tried again and again")
		return
	}
	t.deferItem(p, p.retries)
}

func (t *decision) deferItem(p *outboxItem, retries int) {
	next := object.Timestamp(p.turnOf(t.at.Add(deliveryRetries[retries])))
	t.fact(agentPrefix+p.from, p.task, &sessionDeferred{
		Session: p.to.of.spec.ID, Agent: p.to.AgentID, Message: p.seq, ID: p.id, Retries: retries, Next: next,
	})
	t.tellUndelivered(p, retries, next, "does not take its messages now: it is tried again")
}

// noteUnread handles an item that a run has not read in time. The item stays in its place, and
// its sender is notified as of a retry. Time in which the run could not read does not count.
func (t *decision) noteUnread(p *outboxItem, excused bool) {
	retries, patience := p.retries, p.patience()
	if !excused {
		if retries++; retries >= len(deliveryRetries) {
			t.abandonItem(p, len(deliveryRetries), "it runs and does not read")
			return
		}
		patience = deliveryRetries[retries]
	}
	next := object.Timestamp(t.at.Add(patience))
	t.fact(agentPrefix+p.from, p.task, &sessionDeferred{
		Session: p.to.of.spec.ID, Agent: p.to.AgentID, Message: p.seq, ID: p.id, Retries: retries, Next: next, Unread: true,
	})
	if excused {
		return
	}
	t.tellUndelivered(p, retries, next, "runs and does not read its messages: they wait")
}

// tellUndelivered notifies the sender of an item about its delivery.
func (t *decision) tellUndelivered(p *outboxItem, retries int, next, why string) {
	a := t.state.agents.byID[p.from]
	if p.by != "" || a == nil || a.remote != nil || !a.reachable() {
		return
	}
	text := p.to.AgentID + " " + why
	if next == "" {
		text = fmt.Sprintf("%s has not taken the message: %s", p.to.AgentID, why)
	}
	t.out.Letters = append(t.out.Letters, Letter{
		To: Actor{Kind: Agent, Name: a.ID, Run: a.run}, Request: p.id, Form: wire.DialectSession,
		Payload: &session.DeliveryError{
			OriginalMessageID: p.id, ErrorType: session.DeliveryTimeout, RetryCount: retries, MaxRetries: session.DeliveryRetries, NextRetryAt: next,
		},
		Refusal: &wire.Error{Code: wire.CodeTimeout, Message: text, Details: map[string]any{"to_agent": p.to.AgentID}},
	})
}

// retryItems retries the items that are due.
func (t *decision) retryItems(excused bool) {
	for len(t.state.sessions.posted) > 0 && !t.state.sessions.posted[0].next.After(t.at) && !t.state.stopping {
		p := t.state.sessions.posted[0]
		retries := p.retries + 1
		switch a := t.state.agents.byID[p.to.AgentID]; {
		case p.out != "":
			t.noteUnread(p, excused)
		case a != nil && a.reachable() && retries <= len(deliveryRetries):
			t.fact(agentPrefix+p.from, p.task, &sessionDeferred{
				Session: p.to.of.spec.ID, Agent: p.to.AgentID, Message: p.seq, ID: p.id, Retries: retries, Again: true,
			})
		default:
			t.missAll(p.to)
		}
	}
}

// missAll counts a failed attempt for all waiting items of a member that does not run. Otherwise
// the last item would be given up long after the first.
func (t *decision) missAll(m *member) {
	for _, p := range slices.Clone(m.outbox) {
		switch retries := p.retries + 1; {
		case !p.waits() || !slices.Contains(m.outbox, p): // it went with one before it
		case retries >= len(deliveryRetries):
			t.abandonItem(p, len(deliveryRetries), "it does not run")
		default:
			t.deferItem(p, retries)
		}
	}
}

// abandonItem gives up an item, and the work or review that depends on it.
func (t *decision) abandonItem(p *outboxItem, retries int, why string) {
	s := p.to.of
	t.fact(agentPrefix+p.from, p.task, &sessionUndelivered{
		Session: s.spec.ID, Agent: p.to.AgentID, Message: p.seq, ID: p.id, Retries: retries, Why: why,
	})
	t.tellUndelivered(p, retries, "", why)
	w := t.state.tasks.workOn(s, p.task)
	switch {
	case w == nil:
	case p.kind == session.TypeTaskAssignment && w.phase == wire.PhaseAssigned:
		t.loseWork(w, &session.ExecutionError{
			ErrorType: session.ExecutionException, SuggestedAction: session.SuggestReassign,
			ErrorMessage: fmt.Sprintf("%s could not be given the task: %s", p.to.AgentID, why),
		})
	case (p.kind == session.TypeTaskCompletion || p.kind == session.TypeReviewResult) && w.stands():
		t.askPerson(w, fmt.Sprintf("%s, who should say how it goes on, has not heard: %s", p.to.AgentID, why))
	case p.kind == session.TypeReviewRequest:
		t.loseReview(w, fmt.Sprintf("%s could not be given the review: %s", p.to.AgentID, why))
	}
}

// abandonItems gives up all items for an agent that is not restarted.
func (t *decision) abandonItems(name, why string) {
	for _, m := range t.state.sessions.seats[name] {
		for _, p := range slices.Clone(m.outbox) {
			if p.waits() {
				t.abandonItem(p, p.retries, why)
			}
		}
	}
}
