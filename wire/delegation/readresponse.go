package delegation

import (
	"fmt"
	"slices"

	"orchestrator/wire/object"
)

// ReadResponse is ReadResponse for a document that has been split into members.
func ReadResponse(document object.Raw, members []object.Member, check Ambiguity) (*Response, *object.Error) {
	p := NewDecoder(members, "")
	r := &Response{Document: document, ID: readLabel(p, "id", object.Required), Status: p.OneOf("status", object.Required, Statuses)}
	if slices.ContainsFunc(members, func(m object.Member) bool { return string(m.Key) == "type" }) {
		p.Refuse("type", "must not be in a response: only a request has it")
	}
	r.Result = readResponseResult(p, r.Status)
	p.Inside("error", object.Optional, func(in *object.Decoder) { r.Fault = readFault(in) })
	p.Inside("metadata", object.Optional, func(in *object.Decoder) { r.Metadata = readTaskMetadata(in) })
	p.Objects("artifacts", object.Optional, func(in *object.Decoder) { r.Artifacts = append(r.Artifacts, readArtifact(in)) })
	checkLookalikes(p, "id", "status", "result", "error", "metadata", "artifacts")
	checkKeys(p, check)
	if err := object.ErrorOf(p.Issues.Problems); err != nil {
		return nil, err
	}
	checkStatus(p, r)
	r.Document = r.normalized(members)
	r.Notes = p.Issues.Notes
	return r, nil
}

// Succeeded is the result of a completed task if its response has none.
var Succeeded = object.Raw(`{"success":true}`)

// normalized returns the document with the members that its status needs, and without an error
// that its status does not allow. All readers then find the same. A document that needs no
// change is returned unchanged.
func (r *Response) normalized(members []object.Member) object.Raw {
	switch r.Status {
	case Failed:
		given := object.Once(members, "error")
		if !object.IsObject(given) {
			return setMember(r.Document, "error", r.Fault.append(nil))
		}
		return setWithin(r.Document, "error", r.Fault.lacking(given))
	case Completed:
		document := r.Document
		if object.Once(members, "result") == nil { // an explicit null is passed on unchanged
			document = setMember(document, "result", Succeeded)
		}
		return dropMember(document, "error")
	case InputRequired, Cancelled: // the question or the reason may be only in the error
		if object.Once(members, "error") == nil {
			return r.Document
		}
		document := r.Document
		if said, ok := object.Text(object.Once(members, "message")); r.Question != "" && (!ok || object.IsBlank(said)) {
			document = setMember(document, "message", object.Quote(r.Question))
		}
		return dropMember(document, "error")
	}
	return dropMember(r.Document, "error")
}

// lacking returns the members that the error of an agent lacks.
func (f *Fault) lacking(given []byte) (settings []setting) {
	if code, ok := object.Text(object.MemberOf(given, "code")); !ok || object.IsBlank(code) {
		settings = append(settings, setting{key: "code", value: object.Quote(f.Code)})
	}
	if message, ok := object.Text(object.MemberOf(given, "message")); !ok || object.IsBlank(message) {
		settings = append(settings, setting{key: "message", value: object.Quote(f.Message)})
	}
	if word := object.MemberOf(given, "recoverable"); word == nil || object.IsNull(word) {
		settings = append(settings, setting{key: "recoverable", value: []byte("false")})
	}
	return settings
}

func readResponseResult(p *object.Decoder, status string) object.Raw {
	if !p.Has("result", object.Optional) {
		return nil
	}
	if status != Completed && slices.Contains(Statuses, status) {
		p.Refuse("result", "must not be set with the status "+status+": only completed has it")
	}
	return p.Value("result")
}

// checkStatus adapts the members of a response to its status.
func checkStatus(p *object.Decoder, r *Response) {
	switch r.Status {
	case Failed:
		if r.Fault == nil {
			p.Note("error", "is missing, and the status is failed: it should give the reason")
		}
		r.Fault = orUnexplained(r.Fault)
	case Completed:
		if given := object.Once(p.Members, "result"); given == nil || object.IsNull(given) {
			p.Note("result", "is missing, and the status is completed: it defaults to "+string(Succeeded))
			r.Result = Succeeded
		}
		dropFault(p, r)
	case InputRequired:
		readAsk(p, r)
		r.Fault = nil
	case Cancelled: // its message is the reason
		if r.Fault != nil {
			p.Note("error", "does not fit the status cancelled, and is dropped")
		}
		if r.Question, _ = object.Text(object.Once(p.Members, "message")); object.IsBlank(r.Question) && r.Fault != nil {
			r.Question = r.Fault.Message
		}
	default:
		dropFault(p, r)
	}
}

// dropFault drops an error that does not go with the status of a response.
func dropFault(p *object.Decoder, r *Response) {
	if r.Fault != nil {
		p.Note("error", "does not fit the status "+r.Status+", and is dropped")
	}
	r.Fault = nil
}

func readTaskMetadata(p *object.Decoder) Metadata {
	checkLookalikes(p, "startedAt", "completedAt", "duration_ms", "agent", "retryCount")
	m := Metadata{
		StartedAt: p.Time("startedAt", object.Optional), CompletedAt: p.Time("completedAt", object.Optional),
		DurationMS: p.Count("duration_ms"), Agent: readLabel(p, "agent", object.Optional), RetryCount: p.Count("retryCount"),
	}
	from, begun := object.ParseTime(m.StartedAt)
	to, ended := object.ParseTime(m.CompletedAt)
	if begun && ended && to.Before(from) {
		p.Note("completedAt", "is before startedAt")
	}
	return m
}

func readArtifact(p *object.Decoder) Artifact {
	a := Artifact{Name: p.Name("name", object.Required), Type: p.Name("type", object.Required), Ref: p.Text("ref", object.Optional)}
	must := object.Required
	if a.Ref != "" {
		must = object.Optional
	}
	a.Content = p.Text("content", must)
	return a
}

// unasked is the question of a response that requires input and does not describe it.
const unasked = "The agent needs input to continue, and did not specify it"

// readAsk sets the question of a task that needs input.
func readAsk(p *object.Decoder, r *Response) {
	var said object.Reader
	input := object.Once(p.Members, "input")
	if input != nil && !object.IsNull(input) && said.Read(input, object.AnyDepth, p.Below("input")) != nil {
		p.Note("input", "is ignored: it is not an object with a question")
	}
	candidates := [...][]byte{object.Once(p.Members, "message"), object.Once(said.Members, "question")}
	for _, value := range candidates {
		if question, ok := object.Text(value); ok && !object.IsBlank(question) && r.Question == "" {
			r.Question = question
		}
	}
	if r.Question == "" && r.Fault != nil && r.Fault.Message != unexplained {
		r.Question = r.Fault.Message
	}
	if r.Question == "" {
		r.Question = unasked
		p.Note("message", fmt.Sprintf("is missing, and the status is %s: it should have the question", r.Status))
	}
	r.Options = readAskOptions(&said)
	if said.Err() != nil {
		p.Note("input", "has options that are ignored: "+said.Err().Message)
		r.Options = nil
	}
}

// readAskOptions reads the answers that a question allows: texts, or objects as in AskUser.
// Values must be distinct.
func readAskOptions(o *object.Reader) []Option {
	items, _ := o.Items("options")
	if len(items) == 0 || object.IsObject(items[0]) {
		return ReadOptions(o, "options")
	}
	words := o.Texts("options")
	if len(words) < len(items) {
		o.Refuse("options", "has a duplicate text")
	}
	var all []Option
	for _, word := range words {
		all = append(all, Option{Label: word, Value: word})
	}
	return all
}
