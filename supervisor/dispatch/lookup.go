package dispatch

import (
	"math"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// lookUp reads from the record what the decision about an input needs: whether the sender of a
// message with a key has used that key before. The State knows the latest messages itself, and
// rejects a look-up that is too old.
func (d *Dispatcher) lookUp(inputs []handlers.Input) {
	for i := range inputs {
		in := &inputs[i]
		if !keyed(in) {
			continue
		}
		var l *wire.Lookup
		var from, key string
		d.Look(func(s *handlers.State) { l, from, key = s.IdempotencyKey(in) })
		if l != nil {
			in.Refusal = d.sentBefore(l, from, key)
		}
	}
}

// keyed reports whether an input is a message with a key. For a session message the key is its
// id, if that can be read.
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

// sentBefore looks for an earlier message of the same sender with the same key.
func (d *Dispatcher) sentBefore(l *wire.Lookup, from, key string) *wire.Error {
	*l = wire.Lookup{Sender: from, Looked: math.MaxInt64}
	if d.record == nil {
		return nil
	}
	l.Looked = d.last.Load() // before the search, which may miss later records
	for r, err := range d.Find(wire.Search{From: from, Key: key}) {
		if err != nil {
			return d.unreadable(err)
		}
		l.Before, l.Sum = r.Seq, handlers.SumOf(&r)
	}
	return nil
}
