package handlers

// Awaits says whether a run of an agent waits for the answer to something that
// it asked. Questions to people are all that is not answered in its own turn.
func (s *State) Awaits(run string) bool {
	for _, q := range s.asked {
		if q.request != nil && q.run == run {
			return true
		}
	}
	return false
}
