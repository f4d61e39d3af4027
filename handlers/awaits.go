package handlers

// HasPendingReply reports whether a run of an agent waits for an answer that comes later: to a
// question, or from a task that the agent has delegated. Delegations of earlier runs count, too,
// since the run receives their responses.
func (s *State) HasPendingReply(run string) bool {
	for _, a := range s.agents.order {
		if a.run == run && a.handsOn > 0 {
			return true
		}
	}
	for _, q := range s.questions.open {
		if q.request != nil && q.run == run {
			return true
		}
	}
	return false
}
