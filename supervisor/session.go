package supervisor

import (
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// sessionOf returns the environment variables that describe an agent's session, or the first of
// several. It must be called from Run.
func (s *Supervisor) sessionOf(agent string) []string {
	for i := range s.sessions {
		for _, m := range s.sessions[i].Members {
			if m.AgentID == agent {
				return []string{"ORC_SESSION=" + s.sessions[i].ID, "ORC_SESSION_TYPE=" + m.AgentType}
			}
		}
	}
	return nil
}

// sessionClosed stops the agents that are to end with their session. Some of them may run
// elsewhere.
func (s *Supervisor) sessionClosed(r *wire.Record) {
	var over struct {
		Reason string   `json:"reason"`
		Stop   []string `json:"stop"`
	}
	if err := object.DecodeOwn(r.Payload, &over); err != nil {
		s.options.Log.Error("it cannot be read which agents end with a session", "seq", r.Seq, "error", err)
		return
	}
	if len(over.Stop) == 0 {
		return
	}
	s.post(func() {
		if s.stopping != nil {
			return // all agents are being stopped
		}
		var agents []*agent
		for _, name := range over.Stop {
			if a := s.agents[name]; a != nil && !a.removed && !slices.Contains(agents, a) {
				agents = append(agents, a)
			}
		}
		s.halts(agents, "its session was aborted: "+over.Reason)
	})
}
