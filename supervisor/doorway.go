package supervisor

import (
	"slices"
	"strings"
)

// doorway lets a run in at the door that Options have, and adds to its
// environment how it gets there. shut is for when the run has ended, or has not
// begun. One that does not get a door does without: it has its pipe.
func (s *Supervisor) doorway(m *startRequest, env []string) (with []string, shut func()) {
	if s.options.Doorway == nil || m.joined != nil {
		return env, func() {}
	}
	ways, shut, err := s.options.Doorway(m.spec.Name, m.run)
	if err != nil {
		s.options.Log.Warn("an agent has no way to the door of its own", "agent", m.spec.Name, "error", err)
	}
	return append(without(env, ways), ways...), shut
}

// without is an environment without what is in another. Of a variable that is
// there twice some programs take the first, and some the last.
func without(env, other []string) []string {
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(other, func(o string) bool { return strings.HasPrefix(o, name+"=") })
	})
}
