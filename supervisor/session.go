package supervisor

import (
	"slices"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// sayOperation is what an agent asks for that prints a message of a session.
const sayOperation = "send-session-message"

// saying reports whether an input is a message of a session, on whatever way.
func saying(in *handlers.Input) bool {
	r, ok := in.Message.(*wire.Request)
	if !ok {
		return false
	}
	_, ok = r.Body.(*wire.SaySession)
	return ok
}

// sessionOf is how an agent's environment tells of the session that it is in: of
// the first, if there are several. It is for the turns of Run.
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

// heed passes on what the supervisor has to do about facts. It comes after the
// letters: what an agent is told last, it is told before it is stopped. Facts of
// earlier lives do not come by here.
func (d *dispatcher) heed(records []wire.Record) {
	for i := range records {
		if records[i].Kind == wire.EventSessionClosed {
			d.closed(&records[i])
		}
	}
}

// sessionClosed stops those who are to end with their session. Some of them may
// run elsewhere.
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
			return // so are they
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
