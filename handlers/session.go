package handlers

import (
	"fmt"
	"slices"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

var sessionOperations = []Operation{
	bind("send-session-message", (*decision).sessions, sessionDecision.sendSessionMessage),
	bind("get-session", (*decision).sessions, sessionDecision.getSession),
	bind("list-sessions", (*decision).sessions, sessionDecision.listSessions),
	bind("create-session", (*decision).sessions, sessionDecision.createSession),
	bind("list-reviews", (*decision).sessions, sessionDecision.listReviews),
}

// syncSessions applies the configured sessions: it opens new ones, updates changed ones and closes
// missing ones. An aborted session stays closed until the next start: see reopenAborted.
func (sd sessionDecision) syncSessions(specs []session.Spec) {
	there := make(map[string]bool, len(specs))
	for _, spec := range specs {
		there[spec.ID] = true
		if s := sd.state.Sessions.ByID[spec.ID]; s == nil || s.Closed() && !s.Aborted || !s.Closed() && !s.Spec.Equal(&spec) || !s.File {
			sd.dismiss(s, &spec)
			sd.fact("", "", &state.SessionOpened{Spec: spec, File: true})
		}
	}
	for _, s := range slices.Clone(sd.state.Sessions.Order) {
		if s.File && !s.Closed() && !there[s.Spec.ID] {
			sd.closeSession(s, &state.SessionClosed{Reason: "it is no longer in the configuration"})
		}
	}
	sd.dropMembers()
}

// dropMembers ends the work of members that are no longer agents, and retries their undelivered
// messages.
func (sd sessionDecision) dropMembers() {
	for _, s := range sd.state.Sessions.Order {
		for _, m := range s.Members {
			if sd.state.Agents.ByID[m.AgentID] != nil {
				continue
			}
			for _, p := range slices.Clone(m.Outbox) {
				if p.Out != "" && slices.Contains(m.Outbox, p) {
					sd.deliveryFailed(p)
				}
			}
			for _, w := range slices.Clone(s.Works) {
				if w.Developer == m.AgentID && (w.Active() || w.Phase == session.PhaseHeld) {
					sd.dismissFrom(w, m.AgentID, m.AgentID+" is no longer part of the team")
				}
			}
		}
	}
}

// reopenAborted opens the sessions that were aborted before this orchestrator started.
func (sd sessionDecision) reopenAborted() {
	for _, s := range sd.state.Sessions.Order {
		if s.Closed() && s.Aborted {
			sd.fact("", "", &state.SessionOpened{Spec: s.Spec, File: s.File})
		}
	}
}

// dismiss ends the work of members that are not in the new spec.
func (sd sessionDecision) dismiss(s *state.SessionState, spec *session.Spec) {
	if s == nil || s.Closed() {
		return
	}
	for _, m := range s.Members {
		if slices.Contains(spec.Members, m.Member) {
			continue
		}
		why := fmt.Sprintf("%s is no longer one of the %ss of the session", m.AgentID, m.AgentType)
		for _, w := range slices.Clone(s.Works) {
			sd.dismissFrom(w, m.AgentID, why)
		}
	}
}

func (sd sessionDecision) dismissFrom(w *state.Work, name, why string) {
	switch {
	case w.Open != nil && w.Open.View.Reviewer == name:
		sd.reviews().breakReview(w, why)
	case w.Developer != name:
	case w.Phase == session.PhaseHeld: // its developer never received it
		sd.tasks().cancel(w.Task, why, end{})
		sd.links().abandon(w.Task, "")
	case w.Active():
		if w.Task.View.AssignedTo == name {
			sd.tasks().recall(w.Task, name, w.Task.Run, why)
		}
		sd.works().loseWork(w, &session.ExecutionError{ErrorType: session.ExecutionException, ErrorMessage: why, SuggestedAction: session.SuggestReassign})
	}
}

// closeSession closes a session and drops its works.
func (sd sessionDecision) closeSession(s *state.SessionState, f *state.SessionClosed) {
	for _, w := range slices.Backward(slices.Clone(s.Works)) { // dependents first
		sd.works().drop(w, "its session was ended: "+brief(f.Reason), "")
	}
	f.ID, f.Reason = s.Spec.ID, brief(f.Reason)
	sd.fact("", "", f)
}

func (sd sessionDecision) createSession(create *wire.CreateSession) (*wire.SessionView, *wire.Error) {
	spec := (*session.Spec)(create)
	if spec.Verify != nil && sd.from.Kind == Agent {
		return nil, state.Errorf(wire.CodeDenied, state.Details{"pointer": "/payload/verify"}, "only a person may name commands that run as the agent of a task")
	}
	if s := sd.state.Sessions.ByID[spec.ID]; s != nil && !s.Closed() {
		return nil, state.Errorf(wire.CodeConflict, state.Details{"session_id": spec.ID, "reason": "session_taken", "pointer": "/payload/session_id"},
			"session %q already exists", spec.ID)
	}
	sd.fact("", "", &state.SessionOpened{Spec: *spec})
	return sd.state.Agents.SessionView(sd.state.Sessions.ByID[spec.ID]), nil
}
