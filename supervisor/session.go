package supervisor

import (
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// sessionSpecs are the sessions of the configuration, in order.
type sessionSpecs []wire.SessionSpec

// environment returns the environment variables that describe an agent's session, or the first of
// several.
func (s sessionSpecs) environment(agent string) []string {
	for i := range s {
		for _, m := range s[i].Members {
			if m.AgentID == agent {
				return []string{"ORC_SESSION=" + s[i].ID, "ORC_SESSION_TYPE=" + m.AgentType}
			}
		}
	}
	return nil
}

// sessionClosed stops the agents that are to end with their session. Some of them may run
// elsewhere.
func (l *lifecycle) sessionClosed(r *wire.Record) {
	var over struct {
		Reason string   `json:"reason"`
		Stop   []string `json:"stop"`
	}
	if err := object.DecodeOwn(r.Payload, &over); err != nil {
		l.options.Log.Error("it cannot be read which agents end with a session", "seq", r.Seq, "error", err)
		return
	}
	if len(over.Stop) == 0 {
		return
	}
	l.post(func() {
		if l.stopping != nil {
			return // all agents are being stopped
		}
		var agents []*agent
		for _, name := range over.Stop {
			if a := l.agents[name]; a != nil && !a.removed && !slices.Contains(agents, a) {
				agents = append(agents, a)
			}
		}
		l.halts(agents, "its session was aborted: "+over.Reason)
	})
}

// hasArchitect reports whether an agent is the architect of a session of the configuration.
func (s sessionSpecs) hasArchitect(agent string) bool {
	for i := range s {
		for _, m := range s[i].Members {
			if m.AgentID == agent && m.AgentType == session.AgentArchitect {
				return true
			}
		}
	}
	return false
}
