package supervisor

import (
	"math"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// lookUp looks into the record for what has to be known before it is decided: of
// messages with a key, whether their sender has sent one with it before. The
// State knows the latest by itself; the two together know all, and the State says
// when this look is too old for that.
func (d *dispatcher) lookUp(inputs []handlers.Input) {
	for i := range inputs {
		in := &inputs[i]
		if !keyed(in) {
			continue
		}
		var l *wire.Lookup
		var from, key string
		d.look(func(s *handlers.State) { l, from, key = s.IdempotencyKey(in) })
		if l != nil {
			in.Refusal = d.sentBefore(l, from, key)
		}
	}
}

// keyed reports whether an input is a message with a key. One of a session has its
// id, if it can be read.
func keyed(in *handlers.Input) bool {
	r, ok := in.Message.(*wire.Request)
	if !ok {
		return false
	}
	switch m := r.Body.(type) {
	case *wire.SendMessage:
		return m.Key != ""
	case *wire.SaySession:
		return m.Message != nil
	}
	return false
}

// sentBefore looks for what was sent with the same key.
func (d *dispatcher) sentBefore(l *wire.Lookup, from, key string) *wire.Error {
	*l = wire.Lookup{Sender: from, Looked: math.MaxInt64}
	if d.record == nil {
		return nil
	}
	l.Looked = d.last.Load() // before the look: what is recorded meanwhile may be seen or not
	for r, err := range d.Find(wire.Search{From: from, Key: key}) {
		if err != nil {
			return d.unreadable(err)
		}
		l.Before, l.Sum = r.Seq, handlers.SumOf(&r)
	}
	return nil
}
