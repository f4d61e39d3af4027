package delegation

import (
	"bytes"
	"slices"

	"orchestrator/wire/object"
)

// A Forwarding holds the members that are replaced when a request is forwarded. Empty fields
// leave the request unchanged.
type Forwarding struct {
	Source, Target string
	Chain          []string // every agent that has had the task, the latest last
	TraceID        string
	SpanID         string

	// The following fill in members that the request lacks. Of Context only the conversation,
	// the parent and the user are used.
	Context Context
	Baggage object.Raw
}

// Forwarded returns the request in the form for its target, without a line end. It is the received
// document, digit for digit and with unknown members, except for the members in f. A request
// without a Document is encoded first.
func (r *Request) Forwarded(f Forwarding) object.Raw {
	document := r.Document
	if document == nil {
		document = r.spell()
	}
	var chain []byte
	if len(f.Chain) > 0 {
		chain = spellTexts(f.Chain)
	}
	document = setWithin(document, "context", []setting{
		{"conversationId", spellMissing(r.Context.ConversationID, f.Context.ConversationID)},
		{"parentTaskId", spellMissing(r.Context.ParentTaskID, f.Context.ParentTaskID)},
		{"user", spellMissing(r.Context.User, f.Context.User)},
	})
	document = setWithin(document, "routing", []setting{
		{"source", spellSome(f.Source)}, {"target", spellSome(f.Target)}, {"delegationChain", chain},
	})
	baggage := f.Baggage
	if r.Observability.Baggage != nil {
		baggage = nil
	}
	return setWithin(document, "observability", []setting{
		{"traceId", spellSome(f.TraceID)}, {"spanId", spellSome(f.SpanID)}, {"baggage", baggage},
	})
}

// spell returns the document of a request that the orchestrator made.
func (r *Request) spell() object.Raw {
	b := object.AppendText([]byte(`{"id":`), r.ID)
	b = object.AppendMember(b, "type", r.Type)
	payload := r.Payload
	if payload == nil {
		payload = object.Raw("{}")
	}
	b = object.AppendRaw(b, "payload", payload)
	b = appendBlock(b, "context", r.Context)
	b = appendBlock(b, "routing", r.Routing)
	trace := []byte{'{'}
	trace = object.AppendOptional(trace, "traceId", r.Observability.TraceID)
	trace = object.AppendOptional(trace, "spanId", r.Observability.SpanID)
	trace = object.AppendRaw(trace, "baggage", r.Observability.Baggage)
	if len(trace) > 1 {
		trace = append(slices.Delete(trace, 1, 2), '}') // without the comma before the first
		b = object.AppendRaw(b, "observability", trace)
	}
	return append(b, '}')
}

// appendBlock appends an object with optional members, unless it is empty.
func appendBlock(b []byte, key string, block any) []byte {
	spelled, err := object.Encode(block)
	if err != nil || string(spelled) == "{}" { // texts and numbers can be spelled
		return b
	}
	return object.AppendRaw(b, key, spelled)
}

// A setting is a new value for a member; nil leaves the member unchanged.
type setting struct {
	key   string
	value []byte
}

// setWithin sets members of an object that is a member of document. It adds the object if it is
// missing.
func setWithin(document object.Raw, key string, settings []setting) object.Raw {
	block, changed := object.Raw("{}"), false
	if from, to, ok := object.Place(document, key); ok && object.IsObject(document[from:to]) {
		block = document[from:to]
	}
	for _, s := range settings {
		if s.value != nil {
			block, changed = setMember(block, s.key, s.value), true
		}
	}
	if !changed {
		return document
	}
	return setMember(document, key, block)
}

// setMember returns a document with one member set and the rest unchanged.
func setMember(document object.Raw, key string, value []byte) object.Raw {
	if from, to, ok := object.Place(document, key); ok {
		return slices.Concat(document[:from], value, document[to:])
	}
	end := len(document) - 1 // before its brace
	added := object.AppendRaw(nil, key, value)
	if len(bytes.TrimSpace(document[1:end])) == 0 {
		added = added[1:] // it is the first member
	}
	return slices.Concat(document[:end], added, document[end:])
}

// dropMember returns a document without a member. The rest is unchanged.
func dropMember(document object.Raw, key string) object.Raw {
	members, _, ok := object.Scan(document, object.AnyDepth, nil)
	if !ok || object.Once(members, key) == nil {
		return document
	}
	b := []byte{'{'}
	for _, m := range members {
		if string(m.Key) == key {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, object.Quote(string(m.Key))...), ':'), m.Value...)
	}
	return append(b, '}')
}

func spellSome(text string) []byte {
	if text == "" {
		return nil
	}
	return object.Quote(text)
}

// spellMissing returns the JSON of otherwise if said is empty, or nil.
func spellMissing(said, otherwise string) []byte {
	if said != "" {
		return nil
	}
	return spellSome(otherwise)
}

func spellTexts(texts []string) []byte {
	list := object.AppendTexts(nil, "", texts)
	return list[len(`,"":`):]
}
