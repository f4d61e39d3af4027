package delegation

import (
	"orchestrator/wire/object"
)

// A Response reports the status of delegated work, intermediate or final.
type Response struct {
	ID        string     // of the task
	Status    string     // Response… below
	Result    object.Raw // of a completed task: any value, digit for digit; nil if there is none
	Fault     *Fault     // why it failed or was cancelled; never nil if it failed
	Metadata  Metadata
	Artifacts []Artifact
	Question  string   // the question if input is required; then never ""
	Options   []Option // the allowed answers; none: any text is allowed

	Document object.Raw // the whole response on one line; nil if the orchestrator made it
	Notes    []string   // warnings, each with its place
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
	StartedAt   string `json:"startedAt,omitzero"`
	CompletedAt string `json:"completedAt,omitzero"`
	DurationMS  *int64 `json:"duration_ms,omitzero"` // nil if not said
	Agent       string `json:"agent,omitzero"`       // who did it
	RetryCount  *int64 `json:"retryCount,omitzero"`  // number of retries; nil if unknown
}

// An Artifact is a product of a task. One that is stored elsewhere has a Ref, and its Content
// may be empty; this is an extension.
type Artifact struct {
	Name    string `json:"name"`
	Type    string `json:"type"` // a MIME type
	Content string `json:"content"`
	Ref     string `json:"ref,omitzero"`
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
	Label string `json:"label"`
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

// FillIn returns a task response whose metadata is completed from m. Existing members are kept.
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
