package dispatch

import (
	"orchestrator/handlers"
	"orchestrator/wire"
)

// An agent that waits asks the same again and again. While the state has not changed, it gets the answer of before.
// Only the decision is left out: limits, the audit and the order of the answers are as ever.

// kept returns the answer to a request that the State has answered before in its present version, or nil. d.mu must
// be held.
func (d *Dispatcher) kept(in *handlers.Input) *handlers.Letter {
	r, ok := in.Message.(*wire.Request)
	if !ok || r.Repeat == nil || r.Repeat.Answer == nil || r.Repeat.Seen != d.version || in.Refusal != nil {
		return nil
	}
	return &handlers.Letter{To: in.From, Request: r.ID, Form: r.Form, Payload: r.Repeat.Answer}
}

// remember notes whether a decision has changed the state. The answer to a repeat is kept when the state has not
// changed since the one before: a state that changes all the time costs no more than without repeats. d.mu must be
// held.
func (d *Dispatcher) remember(in *handlers.Input, out *handlers.Outcome) {
	r, ok := in.Message.(*wire.Request)
	if !ok || len(out.Records) > 0 || out.Fault != nil || !r.Declaration().IsStable() {
		d.version++
		return
	}
	if r.Repeat == nil {
		return
	}
	again := r.Repeat.Seen == d.version
	r.Repeat.Seen, r.Repeat.Answer = d.version, nil
	if !again || out.Refused != nil || in.Archived != nil || len(out.Letters) != 1 || out.Letters[0].Pages != nil {
		return
	}
	if answer, err := wire.AppendPayload(nil, out.Letters[0].Payload); err == nil {
		r.Repeat.Answer = wire.Spelled(answer)
	}
}

// one returns a letter as the letters of an outcome.
func (w *work) one(l handlers.Letter) []handlers.Letter {
	w.kept[0] = l
	return w.kept[:]
}
