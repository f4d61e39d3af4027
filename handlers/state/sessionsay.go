package state

import (
	"slices"
	"strings"

	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// Addressed returns the member that a message is for: the agent of that name, else the replica that
// instance_id names, by its whole name or its number. The name is then the name of the block. Any
// other instance_id is a label.
func (s *SessionState) Addressed(to session.Agent) *Member {
	if m := s.Member(to.AgentID); m != nil || to.InstanceID == "" {
		return m
	}
	number := strings.TrimPrefix(to.InstanceID, to.AgentID+"-")
	if strings.Trim(number, "0123456789") != "" {
		return nil
	}
	return s.Member(to.AgentID + "-" + number)
}

// HasEnded reports whether an instance names an ended run of an agent.
func (as *agents) HasEnded(agent, instance string) bool {
	a := as.ByID[agent]
	return a != nil && instance != "" && (instance != a.Run || a.Ended) && slices.Contains(a.Past, instance)
}

// BelongsTo returns the session among open that a message belongs to: by the task or the review
// in its payload, or by the message that it answers. It returns nil if that does not identify
// one.
func (ts *tasks) BelongsTo(m *session.Message, open []*SessionState) *SessionState {
	payload := object.MemberOf(m.Document, "payload")
	for _, key := range []string{"task_id", "target_id", "related_task_id"} {
		id, _ := object.TextOf(payload, key)
		if t := ts.ByID[id]; t != nil && t.Work() != nil && slices.Contains(open, t.Work().Of) {
			return t.Work().Of
		}
		if i := slices.IndexFunc(open, func(s *SessionState) bool { return s.Spec.ID == id }); i >= 0 {
			return open[i]
		}
	}
	review, _ := object.TextOf(payload, "review_id")
	var found []*SessionState
	for _, s := range open {
		answers := func(w *Work) bool {
			return w.Message != "" && w.Message == m.ReplyTo || w.Chain != "" && w.Chain == m.CorrelationID
		}
		if s.ByReview[review] != nil || slices.ContainsFunc(s.Open, answers) {
			found = append(found, s)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return nil
}
