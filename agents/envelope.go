package agents

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// envelope is what stands around everything that an agent says. The orchestrator
// knows who speaks, so there is no agentId in it.
type envelope struct {
	Type      string   `json:"type"`
	ID        string   `json:"id"`
	Timestamp string   `json:"timestamp"`
	Payload   wire.Raw `json:"payload"`
}

// maxLine is the longest line that an orchestrator takes unless it is told
// otherwise.
const maxLine = 16 << 20

var (
	errUnsaid   = errors.New("it cannot be said")
	errNoObject = errors.New("a payload must be an object")
	errTooLong  = fmt.Errorf("it takes more than %d MiB", maxLine>>20)
)

// spell makes a whole line of a message, and returns its id. It refuses what the
// orchestrator would take for log, because that is never answered.
func spell(kind string, payload any) (id string, line []byte, err error) {
	id = uuid.NewString()
	body, err := asObject(payload)
	if err == nil {
		line, err = object.Encode(envelope{Type: kind, ID: id, Timestamp: wire.Timestamp(time.Now()), Payload: body})
	}
	if err == nil {
		err = readable(line)
	}
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", errUnsaid, err)
	}
	return id, append(line, '\n'), nil
}

// readable looks at a line as the orchestrator will: what is raw in it has only
// been copied so far.
func readable(line []byte) error {
	var o object.Reader
	if wrong := o.Read(line, depth, ""); wrong != nil {
		return wrong
	}
	if len(line) > maxLine {
		return errTooLong
	}
	return nil
}

// asObject spells a payload; none is an empty one.
func asObject(payload any) (wire.Raw, error) {
	if payload == nil {
		return wire.Raw("{}"), nil
	}
	body, err := value(payload)
	if err != nil {
		return nil, err
	}
	if body == nil || body[0] != '{' {
		return nil, errNoObject
	}
	return body, nil
}

// value spells what may be left out: nil when there is nothing to say.
func value(v any) (wire.Raw, error) {
	if v == nil {
		return nil, nil
	}
	text, err := object.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("spelling %T: %w", v, err)
	}
	if string(text) == "null" {
		return nil, nil
	}
	return text, nil
}
