package handlers

import (
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/dialect"
)

// mark returns the requestKey for the facts of this turn. It returns nil for callers other than
// agents, which do not repeat requests, and for dialects without unique ids.
func (d *decision) mark() *state.RequestKey {
	if d.request == nil || d.from.Kind != Agent || d.request.Form != dialect.Native {
		return nil
	}
	return &state.RequestKey{ID: d.request.ID, Run: d.from.Run, Timestamp: d.request.Timestamp, Sum: d.request.Sum}
}

// repeated answers a request whose id was used before, and reports whether it did. The same
// request gets the first answer; another request is refused. Each run of an agent has its own
// ids. But if a run repeats a whole message of the previous run, that run ended before it got
// the answer.
//
// A request that was refused had no effect, and is handled again.
func (d *decision) repeated(r *wire.Request) bool {
	a := d.state.Agents.ByID[d.from.Name]
	if d.from.Kind != Agent || a == nil || r.Form != dialect.Native {
		return false
	}
	kept := a.Memories.Find(r.ID)
	switch {
	case kept == nil:
		return false
	case kept.Run == d.from.Run && kept.Sum != r.Sum:
		d.refuse(state.Errorf(wire.CodeInvalid, state.Details{"pointer": "/id", "reason": wire.ReasonReused},
			"this id was used for another request: use a new id for each"))
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
