package delegation

import (
	"orchestrator/wire/object"
)

// A Response reports the status of delegated work, intermediate or final.
type Response struct {
	// The id of the task.
	ID string `json:"id" schema:"label"`
	// The status of the task. With input_required the task continues after a task.update (see
	// task-act).
	Status string `json:"status" schema:"enum=delegation.Statuses"`
	// The result of a completed task: any value. It is refused with any other status.
	Result object.Raw `json:"result,omitzero"`
	// Why the task failed. A failed task should have an error. With any other status it is removed;
	// cancelled and input_required keep its message.
	Fault *Fault `json:"error,omitzero"` // never nil if the task failed
	// How the task was executed.
	Metadata Metadata `json:"metadata,omitzero"`
	// The products of the task.
	Artifacts []Artifact `json:"artifacts,omitzero"`
	// With input_required: the question, as text. When it is missing, the question of input is used,
	// or the message of the error. An extension of the published protocol.
	Question string `json:"message,omitzero" schema:"any"`
	// With input_required: an object with the question, as text, and the options. Options are texts,
	// or objects with a value and a label. Anything else is ignored. An extension of the published
	// protocol.
	Options []Option `json:"input,omitzero" schema:"any"`

	Document object.Raw `json:"-"` // the whole response on one line; nil if the orchestrator made it
	Notes    []string   `json:"-"` // warnings, each with its place
}

// The statuses of delegated work.
const (
	Pending       = "pending"     // it was received, and not begun
	InProgress    = "in_progress" // the agent works on it
	Completed     = "completed"
	Failed        = "failed"
	Cancelled     = "cancelled"
	InputRequired = "input_required" // it goes on with an ActUpdate
)

// Statuses lists all statuses of delegated work.
var Statuses = []string{
	Pending, InProgress, Completed, Failed, Cancelled, InputRequired,
}

// Metadata describes the execution of a task. The spelling of its keys is not uniform.
type Metadata struct {
	// When the work began: an ISO 8601 time.
	StartedAt string `json:"startedAt,omitzero" schema:"time"`
	// When the work ended: an ISO 8601 time.
	CompletedAt string `json:"completedAt,omitzero" schema:"time"`
	// The duration of the work, in milliseconds. This key is spelled differently from all other keys.
	DurationMS *int64 `json:"duration_ms,omitzero" schema:"whole=0"`
	// The agent that did the work.
	Agent string `json:"agent,omitzero" schema:"plain"`
	// The number of retries.
	RetryCount *int64 `json:"retryCount,omitzero" schema:"whole=0"`
}

// An Artifact is a product of a task. One that is stored elsewhere has a Ref, and its Content
// may be empty; this is an extension.
type Artifact struct {
	// The name of the artifact, such as a file name.
	Name string `json:"name" schema:"nonblank"`
	// The MIME type, such as text/markdown.
	Type string `json:"type" schema:"nonblank"`
	// The whole content, as text, even if it is JSON. It may be missing if there is a ref.
	Content string `json:"content" schema:"optional"`
	// The place of the content, if it is stored elsewhere. sha256: and 64 hexadecimal digits name content
	// that the orchestrator stores; an agent must not use them. An extension of the published
	// protocol.
	Ref string `json:"ref,omitzero"`
}

// AppendTaskResponse appends a response that the orchestrator made as one line. Members that do
// not fit the status are left out. A failed response without a fault gets one. The response of
// an agent is its Document.
func AppendResponse(b []byte, r *Response) []byte {
	b = object.AppendText(append(b, `{"id":`...), r.ID)
	b = object.AppendMember(b, "status", r.Status)
	switch r.Status {
	case Completed:
		b = object.AppendRaw(b, "result", r.Result)
	case Failed:
		b = orUnexplained(r.Fault).append(object.AppendKey(b, "error"))
	case Cancelled:
		b = object.AppendOptional(b, "message", r.Question)
	case InputRequired:
		b = r.appendQuestion(b)
	}
	b = appendBlock(b, "metadata", r.Metadata)
	if len(r.Artifacts) > 0 {
		b = appendBlock(b, "artifacts", r.Artifacts)
	}
	return append(b, '}', '\n')
}

// AppendUndone appends the failed response to work that was refused. The id is given as it was
// written.
func AppendUndone(b, id []byte, why *object.Error) []byte {
	b = append(append(b, `{"id":`...), id...)
	b = object.AppendMember(b, "status", Failed)
	return append(FaultOf(why).append(object.AppendKey(b, "error")), '}', '\n')
}

// appendQuestion appends a question in both forms that programs read.
func (r *Response) appendQuestion(b []byte) []byte {
	question := r.Question
	if object.IsBlank(question) {
		question = unasked
	}
	b = object.AppendMember(b, "message", question)
	if len(r.Options) == 0 {
		return b
	}
	return appendBlock(b, "input", struct {
		Question string   `json:"question"`
		Options  []Option `json:"options"`
	}{Question: question, Options: r.Options})
}

// An Option is one of the allowed answers to a question.
type Option struct {
	// The text that the person sees.
	Label string `json:"label"`
	// The answer that the agent gets.
	Value string `json:"value"`
}

// ReadOptions reads an optional list of options with distinct values.
func ReadOptions(o *object.Reader, key string) []Option {
	var all []Option
	taken := make(map[string]bool)
	o.Objects(key, func(item *object.Reader) {
		option := Option{Label: item.Text("label"), Value: item.NeedText("value")}
		if option.Label == "" {
			option.Label = option.Value
		}
		if taken[option.Value] {
			item.Refuse("value", "stands twice")
		}
		taken[option.Value] = true
		all = append(all, option)
	})
	return all
}

// FillIn completes the metadata of a task response from m and returns the response. Existing
// members are kept.
func (m Metadata) FillIn(response object.Raw) object.Raw {
	spelled, err := object.Encode(m)
	if err != nil { // strings and numbers can always be encoded
		return response
	}
	block := object.Raw("{}")
	if from, to, ok := object.Place(response, "metadata"); ok && object.IsObject(response[from:to]) {
		block = response[from:to]
	}
	var known object.Reader
	if known.Read(spelled, object.AnyDepth, "") != nil {
		return response
	}
	for _, member := range known.Members {
		if from, to, ok := object.Place(block, string(member.Key)); !ok || object.IsNull(block[from:to]) {
			block = setMember(block, string(member.Key), member.Value)
		}
	}
	return setMember(response, "metadata", block)
}
