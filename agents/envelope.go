package agents

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// envelope surrounds every message of an agent. It has no agentId, because the orchestrator
// knows the sender by its pipe.
type envelope struct {
	Type      string   `json:"type"`
	ID        string   `json:"id"`
	Timestamp string   `json:"timestamp"`
	Payload   wire.Raw `json:"payload"`
}

// maxLine is the orchestrator's default limit for the length of a line.
const maxLine = 16 << 20

var (
	errUnsaid   = errors.New("it cannot be said")
	errNoObject = errors.New("a payload must be an object")
	errTooLong  = fmt.Errorf("it takes more than %d MiB", maxLine>>20)
)

// spell encodes a message as a line and returns its id. It rejects what the orchestrator would
// take for log, because such a line is never answered.
func spell(kind string, payload any) (id string, line []byte, err error) {
	id = uuid.NewString()
	body, err := asObject(payload)
	if err == nil {
		line, err = object.Encode(envelope{Type: kind, ID: id, Timestamp: object.Timestamp(time.Now()), Payload: body})
	}
	if err == nil {
		err = readable(line)
	}
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", errUnsaid, err)
	}
	return id, append(line, '\n'), nil
}

// readable validates a line as the orchestrator will. Raw documents were copied into it
// unchecked.
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

// value encodes an optional value. It returns nil for nil and null.
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
