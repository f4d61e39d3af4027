package stdio

import (
	"bytes"
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
)

// echo returns the log of a line that only the orchestrator sends.
func (r *Reader) echo(class dialect.Dialect) wire.Message {
	if class == dialect.Mail {
		return wire.Log{Why: "an echo of mail"}
	}
	kind, _ := object.Text(r.known.Type)
	return wire.Log{Why: kind + " can be sent only by the orchestrator"}
}

// unknown refuses an object with a type and an id, and takes any other for log.
func (r *Reader) unknown() wire.Message {
	k := &r.known
	kind, typed := object.Text(k.Type)
	switch {
	case typed && k.ID != nil:
		return &wire.Refused{ID: dialect.Correlatable(k.ID), Type: kind, Request: true, Err: wire.UnknownType(kind)}
	case k.Type != nil && k.ID != nil && k.Payload != nil:
		return &wire.Refused{ID: dialect.Correlatable(k.ID), Request: true, Err: notType(k.Type)}
	}
	return asLog("", nearlyTyped(k, kind, typed))
}

// notType returns the refusal of a message with a type that is not a string.
func notType(kind []byte) *wire.Error {
	return &wire.Error{
		Code: wire.CodeUnknownType, Message: fmt.Sprintf("type must be a string, not %.40s", kind), Details: map[string]any{"pointer": "/type"},
	}
}

// nearlyTyped returns why an object that is log was probably meant as a message.
func nearlyTyped(k *dialect.Keys, kind string, typed bool) string {
	switch {
	case k.Type == nil || !object.IsObject(k.Payload):
		return ""
	case !typed:
		return "its type is not a string, and it has no id"
	}
	if name := wire.MeantType(kind); name != "" {
		return "unknown message type " + string(object.Quote(kind)) + ": did you mean " + string(object.Quote(name)) + "?"
	}
	return ""
}

// isBatch reports whether a line is a list of calls. Many lines begin with a bracket, so only
// those with an object behind it are searched.
func isBatch(line []byte) bool {
	inner, found := bytes.CutPrefix(bytes.TrimLeft(line, " \t"), []byte("["))
	return found && bytes.HasPrefix(bytes.TrimLeft(inner, " \t"), []byte("{")) && bytes.Contains(inner, []byte(`"jsonrpc"`))
}

// nearly returns why a line that is not a JSON object was probably meant as a message, or "".
func nearly(line []byte) string {
	text := bytes.TrimLeft(line, " \t")
	if !bytes.HasPrefix(text, []byte("{")) {
		return ""
	}
	for _, begun := range []string{`"request:`, `"event:`, `'request:`, `'event:`} {
		if bytes.Contains(text[:min(len(text), 512)], []byte(begun)) {
			return "it is not a JSON object on one line: use a JSON library to write it"
		}
	}
	return ""
}

// asLog returns a Log. It does not allocate for lines that do not resemble a message.
func asLog(why, nearly string) wire.Message {
	if why == "" && nearly == "" {
		return wire.Log{}
	}
	return wire.Log{Why: why, Nearly: nearly}
}
