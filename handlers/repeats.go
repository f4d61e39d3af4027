package handlers

import (
	"orchestrator/handlers/replies"
	"orchestrator/wire"
)

// A requestKey identifies the request that caused a fact.
type requestKey = replies.Key

// mark returns the requestKey for the facts of this turn. It returns nil for callers other than
// agents, which do not repeat requests, and for dialects without unique ids.
func (d *decision) mark() *requestKey {
	if d.request == nil || d.from.Kind != Agent || d.request.Form != wire.DialectNative {
		return nil
	}
	return &requestKey{ID: d.request.ID, Run: d.from.Run, Timestamp: d.request.Timestamp, Sum: d.request.Sum}
}

// saveReply stores the answer to the request that caused a fact.
func (s *core) saveReply(name string, mk *requestKey, answer any, err *wire.Error) {
	a := s.agents.byID[name]
	if mk == nil || a == nil {
		return
	}
	kept := a.memories.Find(mk.ID)
	if kept == nil || kept.Key != *mk {
		kept = a.memories.Keep(*mk)
	}
	kept.Answer, kept.Err, kept.Seq = answer, err, s.seq
}

// settle stores the answer to a request that has waited. If a later run has used its id again,
// it does nothing.
func (s *core) settle(name string, mk *requestKey, answer any, err *wire.Error) {
	a := s.agents.byID[name]
	if mk == nil || a == nil {
		return
	}
	if kept := a.memories.Find(mk.ID); kept == nil || kept.Key == *mk {
		s.saveReply(name, mk, answer, err)
	}
}

// repeated answers a request whose id was used before, and reports whether it did. The same
// request gets the first answer; another request is refused. Each run of an agent has its own
// ids. But if a run repeats a whole message of the previous run, that run ended before it got
// the answer.
//
// A request that was refused had no effect, and is handled again.
func (d *decision) repeated(r *wire.Request) bool {
	a := d.state.agents.byID[d.from.Name]
	if d.from.Kind != Agent || a == nil || r.Form != wire.DialectNative {
		return false
	}
	kept := a.memories.Find(r.ID)
	switch {
	case kept == nil:
		return false
	case kept.Run == d.from.Run && kept.Sum != r.Sum:
		d.refuse(errorf(wire.CodeInvalid, details{"pointer": "/id", "reason": wire.ReasonReused},
			"this id was used for another request: take a new one for each"))
	case kept.Run != d.from.Run && (kept.Sum != r.Sum || kept.Timestamp != r.Timestamp):
		return false
	case kept.Err != nil:
		d.refuse(kept.Err)
	case kept.Answer != nil:
		d.until = kept.Seq
		d.answer(kept.Answer)
	case kept.Run != d.from.Run: // a question that is still open: askUser resumes it
		return false
	default:
		d.wait() // the answer to the first one answers this one too
	}
	return true
}
