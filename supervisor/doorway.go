package supervisor

import (
	"slices"
	"strings"
)

// doorway opens the agent's own way to the HTTP interface, and adds the variables for it to
// env. The caller calls shut when the run has ended or could not begin. If Options.Doorway
// fails, the run starts anyway, because it has its pipe.
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

// without returns env without the variables that are also in other. If a variable is there
// twice, some programs take the first value and some the last.
func without(env, other []string) []string {
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(other, func(o string) bool { return strings.HasPrefix(o, name+"=") })
	})
}
