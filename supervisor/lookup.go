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
		var m *wire.SendMessage
		var from string
		d.look(func(s *handlers.State) { m, from = s.Keyed(in) })
		if m != nil {
			in.Refusal = d.sentBefore(m, from)
		}
	}
}

// keyed says whether an input is a message with a key.
func keyed(in *handlers.Input) bool {
	r, ok := in.Message.(*wire.Request)
	if !ok {
		return false
	}
	m, ok := r.Body.(*wire.SendMessage)
	return ok && m.Key != ""
}

// sentBefore looks for the message that was sent with the same key.
func (d *dispatcher) sentBefore(m *wire.SendMessage, from string) *wire.Error {
	m.Before, m.Sender = 0, from
	if m.Looked = math.MaxInt64; d.record == nil {
		return nil
	}
	m.Looked = d.last.Load() // before the look: what is recorded meanwhile may be seen or not
	for r, err := range d.Find(wire.Search{From: from, Key: m.Key}) {
		if err != nil {
			return d.unreadable(err)
		}
		m.Before = r.Seq
	}
	return nil
}
