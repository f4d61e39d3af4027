package wire

import (
	"fmt"
	"slices"
)

// ReadTaskResponse reads what became of a task, in the way of ReadTaskRequest. A
// result goes with the status completed alone. A task that failed without an error,
// or with half of one, is not kept from failing: what is missing is filled in, with
// a note.
//
// Where input is required, the question is the first of these that says something:
// the member message, the question in the object input, and the message of the
// error. The answers that are allowed stand in the options of input: texts, or
// objects with a value and a label, no value twice. None of this is in the published
// protocol, which is silent about it, so whatever is otherwise there is noted and passed
// over.
func ReadTaskResponse(line []byte, depth int) (*TaskResponse, *Error) {
	document, members, err := openLine(line, depth)
	if err != nil {
		return nil, err
	}
	return readTaskResponse(document, members)
}

// readTaskResponse is ReadTaskResponse for a document that has been taken apart.
func readTaskResponse(document Raw, members []member) (*TaskResponse, *Error) {
	p := delegated(members, "")
	r := &TaskResponse{Document: document, ID: p.label("id", needed), Status: p.word("status", needed, ResponseStatuses)}
	if slices.ContainsFunc(members, func(m member) bool { return string(m.key) == "type" }) {
		p.wrong("type", "must not stand in a response: it makes it a request")
	}
	r.Result = p.result(r.Status)
	p.inside("error", optional, func(in *decoder) { r.Fault = in.fault() })
	p.inside("metadata", optional, func(in *decoder) { r.Metadata = in.taskMetadata() })
	p.each("artifacts", optional, func(in *decoder) { r.Artifacts = append(r.Artifacts, in.artifact()) })
	p.lookalikes("id", "status", "result", "error", "metadata", "artifacts")
	p.unmistakable()
	if err := refusing(p.all.problems); err != nil {
		return nil, err
	}
	p.statusFits(r)
	r.Document = r.normalized(members)
	r.Notes = p.all.notes
	return r, nil
}

// Succeeded is the result of a completed task whose response has none.
var Succeeded = Raw(`{"success":true}`)

// normalized returns the document with the members that its status needs, and without an
// error that its status does not allow, so that all readers find the same. A document that
// needs no change is returned byte for byte.
func (r *TaskResponse) normalized(members []member) Raw {
	switch r.Status {
	case ResponseFailed:
		given := once(members, "error")
		if !isObject(given) {
			return setMember(r.Document, "error", r.Fault.append(nil))
		}
		return setWithin(r.Document, "error", r.Fault.lacking(given))
	case ResponseCompleted:
		document := r.Document
		if once(members, "result") == nil { // a null that was said stays: it is passed on word for word
			document = setMember(document, "result", Succeeded)
		}
		return dropMember(document, "error")
	case ResponseInputRequired, ResponseCancelled: // what is asked, or why, may be in the error only
		if once(members, "error") == nil {
			return r.Document
		}
		document := r.Document
		if said, ok := text(once(members, "message")); r.Question != "" && (!ok || blank(said)) {
			document = setMember(document, "message", Quote(r.Question))
		}
		return dropMember(document, "error")
	}
	return dropMember(r.Document, "error")
}

// lacking are the members that the error of an agent leaves out.
func (f *TaskFault) lacking(given []byte) (settings []setting) {
	if code, ok := text(MemberOf(given, "code")); !ok || blank(code) {
		settings = append(settings, setting{key: "code", value: Quote(f.Code)})
	}
	if message, ok := text(MemberOf(given, "message")); !ok || blank(message) {
		settings = append(settings, setting{key: "message", value: Quote(f.Message)})
	}
	if word := MemberOf(given, "recoverable"); word == nil || isNull(word) {
		settings = append(settings, setting{key: "recoverable", value: []byte("false")})
	}
	return settings
}

func (p *decoder) result(status string) Raw {
	if !p.has("result", optional) {
		return nil
	}
	if status != ResponseCompleted && slices.Contains(ResponseStatuses, status) {
		p.wrong("result", "must not stand beside the status "+status+": it goes with completed alone")
	}
	return p.Value("result")
}

// statusFits makes what was said about a task fit its status.
func (p *decoder) statusFits(r *TaskResponse) {
	switch r.Status {
	case ResponseFailed:
		if r.Fault == nil {
			p.odd("error", "is missing, and the status is failed: it should say why")
		}
		r.Fault = orUnexplained(r.Fault)
	case ResponseCompleted:
		if given := once(p.members, "result"); given == nil || isNull(given) {
			p.odd("result", "is missing, and the status is completed: it is taken for "+string(Succeeded))
			r.Result = Succeeded
		}
		p.dropsFault(r)
	case ResponseInputRequired:
		p.ask(r)
		r.Fault = nil
	case ResponseCancelled: // its message is the reason
		if r.Fault != nil {
			p.odd("error", "stands beside the status cancelled, and is dropped")
		}
		if r.Question, _ = text(once(p.members, "message")); blank(r.Question) && r.Fault != nil {
			r.Question = r.Fault.Message
		}
	default:
		p.dropsFault(r)
	}
}

// dropsFault drops an error that does not go with the status of a response.
func (p *decoder) dropsFault(r *TaskResponse) {
	if r.Fault != nil {
		p.odd("error", "stands beside the status "+r.Status+", and is dropped")
	}
	r.Fault = nil
}

func (p *decoder) taskMetadata() TaskMetadata {
	p.lookalikes("startedAt", "completedAt", "duration_ms", "agent", "retryCount")
	m := TaskMetadata{
		StartedAt: p.moment("startedAt", optional), CompletedAt: p.moment("completedAt", optional),
		DurationMS: p.count("duration_ms"), Agent: p.label("agent", optional), RetryCount: p.count("retryCount"),
	}
	from, begun := ParseTime(m.StartedAt)
	to, ended := ParseTime(m.CompletedAt)
	if begun && ended && to.Before(from) {
		p.odd("completedAt", "is before startedAt")
	}
	return m
}

func (p *decoder) artifact() Artifact {
	a := Artifact{Name: p.name("name", needed), Type: p.name("type", needed), Ref: p.text("ref", optional)}
	must := needed
	if a.Ref != "" {
		must = optional
	}
	a.Content = p.text("content", must)
	return a
}

// unasked is what is asked where the input is not described.
const unasked = "The agent needs input to go on, and does not say which"

// ask finds the question of a task that needs input.
func (p *decoder) ask(r *TaskResponse) {
	var said Object
	input := once(p.members, "input")
	if input != nil && !isNull(input) && said.ReadObject(input, scannedBefore, p.below("input")) != nil {
		p.odd("input", "is passed over: it is no object with a question")
	}
	candidates := [...][]byte{once(p.members, "message"), once(said.members, "question")}
	for _, value := range candidates {
		if question, ok := text(value); ok && !blank(question) && r.Question == "" {
			r.Question = question
		}
	}
	if r.Question == "" && r.Fault != nil && r.Fault.Message != unexplained {
		r.Question = r.Fault.Message
	}
	if r.Question == "" {
		r.Question = unasked
		p.odd("message", fmt.Sprintf("is missing, and the status is %s: it should say what is asked", r.Status))
	}
	r.Options = said.options()
	if said.Err() != nil {
		p.odd("input", "has options that are passed over: "+said.Err().Message)
		r.Options = nil
	}
}

// options are the answers that a question allows: texts, or as in AskUser. In both a
// value stands once, otherwise it is unknown what was meant.
func (o *Object) options() []Option {
	items, _ := o.list("options")
	if len(items) == 0 || isObject(items[0]) {
		return o.readOptions("options")
	}
	words := o.Texts("options")
	if len(words) < len(items) {
		o.Refuse("options", "has a text that stands twice")
	}
	var all []Option
	for _, word := range words {
		all = append(all, Option{Label: word, Value: word})
	}
	return all
}
