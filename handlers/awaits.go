package handlers

// HasPendingReply reports whether a run of an agent waits for the answer to something that
// it asked. Questions to people and tasks that its agent has handed on are all that
// is not answered in its own turn; of the latter those of earlier runs count too, for
// it gets their responses.
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
