package session

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"orchestrator/wire/object"
)

// Again returns a new task_assignment for the same task. The outcome of the last attempt is
// appended to its previous attempts. The rest of the payload is unchanged, digit for digit.
func (h Head) Again(original *Message, attempt int64, outcome, feedback string) (*Message, error) {
	if original.MessageType != TypeTaskAssignment {
		return nil, fmt.Errorf("saying %s again: it is no %s", original.MessageID, TypeTaskAssignment)
	}
	members, _, _ := object.Scan(original.Document, object.AnyDepth, nil)
	payload, ok := withAttempt(object.Once(members, "payload"), spellAttempt(attempt, outcome, feedback))
	if !ok {
		return nil, fmt.Errorf("saying %s again: it has no task with a context", original.MessageID)
	}
	m, err := Read(h.Say(TypeTaskAssignment, payload, nil).Document, object.AnyDepth)
	if err != nil {
		return nil, fmt.Errorf("saying %s again: %w", original.MessageID, err)
	}
	return m, nil
}

func spellAttempt(number int64, outcome, feedback string) []byte {
	b := strconv.AppendInt([]byte(`{"attempt_number":`), number, 10)
	b = object.AppendMember(b, "outcome", outcome)
	return append(object.AppendMember(b, "feedback", feedback), '}')
}

// withAttempt returns the payload of a task_assignment with one more attempt at the end.
func withAttempt(payload, attempt []byte) (more object.Raw, ok bool) {
	in, at := payload, 0
	for _, key := range [...]string{"task", "context"} {
		from, to, ok := object.Place(in, key)
		if !ok {
			return nil, false
		}
		in, at = in[from:to], at+from
	}
	from, to, there := object.Place(in, "previous_attempts")
	if !there {
		at += len(in) - 1 // before the closing brace of the context, which has other members
		return slices.Concat(payload[:at], []byte(`,"previous_attempts":[`), attempt, []byte{']'}, payload[at:]), true
	}
	if in[from] != '[' {
		return nil, false
	}
	at += to - 1
	if list := in[from+1 : to-1]; len(bytes.TrimSpace(list)) > 0 {
		attempt = slices.Concat([]byte{','}, attempt)
	}
	return slices.Concat(payload[:at], attempt, payload[at:]), true
}
