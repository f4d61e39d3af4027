package supervisor

import (
	"slices"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// sayOperation is the operation of a session message that an agent prints.
const sayOperation = "send-session-message"

// saying reports whether an input is a session message, over any transport.
func saying(in *handlers.Input) bool {
	r, ok := in.Message.(*wire.Request)
	if !ok {
		return false
	}
	_, ok = r.Body.(*wire.SaySession)
	return ok
}

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

// heed reports closed sessions to the supervisor. It runs after the letters are delivered, so
// an agent gets its last message before it is stopped. Restored facts are not reported.
func (d *dispatcher) heed(records []wire.Record) {
	for i := range records {
		if records[i].Kind == events.SessionClosed {
			d.closed(&records[i])
		}
	}
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
