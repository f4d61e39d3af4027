package dispatch

import (
	"orchestrator/handlers"
	"orchestrator/wire"
)

// An agent that waits asks the same again and again. While the state has not changed, it gets the answer of before.
// Only the decision is left out: limits, the audit and the order of the answers are as ever.

// keptAnswer returns the answer to a request that the State has answered before in its present version.
func keptAnswer(in *handlers.Input, version uint64) (answer handlers.Letter, ok bool) {
	r, ok := in.Message.(*wire.Request)
	if !ok || r.Repeat == nil || r.Repeat.Answer == nil || r.Repeat.Seen != version || in.Refusal != nil {
		return handlers.Letter{}, false
	}
	return handlers.Letter{To: in.From, Request: r.ID, Form: r.Form, Payload: r.Repeat.Answer}, true
}

// keepAnswer keeps the answer to a repeat if the state has not changed since the one before: a state that changes all
// the time costs no more than without repeats. It reports false if the decision may have changed the state.
func keepAnswer(in *handlers.Input, out *handlers.Outcome, version uint64) (unchanged bool) {
	r, ok := in.Message.(*wire.Request)
	if !ok || len(out.Records) > 0 || out.Fault != nil || !r.Declaration().IsStable() {
		return false
	}
	if r.Repeat == nil {
		return true
	}
	again := r.Repeat.Seen == version
	r.Repeat.Seen, r.Repeat.Answer = version, nil
	if !again || out.Refused != nil || in.Archived != nil || len(out.Letters) != 1 || out.Letters[0].Pages != nil {
		return true
	}
	if answer, err := wire.AppendPayload(nil, out.Letters[0].Payload); err == nil {
		r.Repeat.Answer = wire.Spelled(answer)
	}
	return true
}
