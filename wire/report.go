package wire

import (
	"bytes"

	"orchestrator/wire/activity"
	"orchestrator/wire/object"
)

// ReportTaskResponse is the name of an AgentEvent that is a bare task response. Its Body is a
// *TaskResponse.
const ReportTaskResponse = "task-response"

// Progress is the payload of event:progress.
type Progress struct {
	// The id of the task.
	TaskID string `json:"taskId" schema:"nonblank"`
	// The progress, from 0 to 1.
	Progress float64 `json:"progress" schema:"min=0,max=1"`
	// What you are doing, in a sentence.
	Message string `json:"message,omitzero"`
}

// LogEntry is the payload of event:log.
type LogEntry struct {
	// The level: info, warn or error. Any other level counts as info.
	Level string `json:"level" schema:"nonblank,example=info|warn|error"`
	// The text of the message.
	Message string `json:"message"`
	// Additional data.
	Context Raw `json:"context,omitzero" schema:"type=object"`
}

// LogOf reads a line of output that is an event:log. It reports false for any other line.
func LogOf(line []byte) (*LogEntry, bool) {
	if len(line) == 0 || line[0] != '{' || !bytes.Contains(line, []byte("event:log")) {
		return nil, false
	}
	const depth = 1000 // it was let in before
	var o, payload object.Reader
	if o.Read(line, depth, "") != nil || o.Text("type") != "event:log" {
		return nil, false
	}
	if payload.Read(o.Find("payload"), depth, "/payload") != nil {
		return nil, false
	}
	entry := readLog(&payload)
	if payload.Err() != nil {
		return nil, false
	}
	switch entry.Level {
	case "info", "warn", "error":
	default:
		entry.Level = "info"
	}
	return entry, true
}

func readLog(o *object.Reader) *LogEntry {
	return &LogEntry{Level: o.NeedText("level"), Message: needWords(o, "message"), Context: o.Document("context")}
}

// CheckLog returns the error that Report returns for an event:log. It does not decode the
// payload, because the line is kept as it is.
func (p *Payloads) CheckLog(payload []byte) *Error {
	o, err := p.open(payload)
	if err != nil {
		return err
	}
	for _, key := range [...]string{"level", "message"} {
		switch value := o.Find(key); {
		case value == nil:
			o.Refuse(key, "is missing")
		case value[0] != '"':
			o.Refuse(key, "must be a string")
		case key == "level" && object.IsBlank(string(object.Unquote(value))):
			o.Refuse(key, "must not be empty")
		}
	}
	if context := o.Find("context"); context != nil && !object.IsObject(context) {
		o.Refuse("context", "must be an object")
	}
	return o.Err()
}

// Trouble is the payload of event:error.
type Trouble struct {
	// The id of the task in which the error occurred.
	TaskID string `json:"taskId,omitzero"`
	// The error.
	Error string `json:"error" schema:"nonblank"`
	// The stack trace.
	Stack string `json:"stack,omitzero"`
	// Whether you can continue; true when it is missing.
	Recoverable bool `json:"recoverable" schema:"optional"`
}

// OpenQuestion is the payload of event:question.
type OpenQuestion struct {
	// The question.
	Question string `json:"question" schema:"nonblank"`
	// What belongs to the question.
	Context Raw `json:"context,omitzero" schema:"type=object"`
}

// ReadReport is Payloads.Report for a single event.
func ReadReport(name string, payload []byte, depth int) (any, *Error) {
	return (&Payloads{Depth: depth}).Report(name, payload)
}

// Report reads the payload of an event, given its name without its prefix.
func (p *Payloads) Report(name string, payload []byte) (any, *Error) {
	o, err := p.open(payload)
	if err != nil {
		return nil, err
	}
	var body any
	switch name {
	case "progress":
		body = readProgress(&o)
	case "log":
		body = readLog(&o)
	case "error":
		recoverable, there := o.Bool("recoverable")
		body = &Trouble{
			TaskID: o.Text("taskId"), Error: o.NeedText("error"), Stack: o.Text("stack"),
			Recoverable: recoverable || !there,
		}
	case "question":
		body = &OpenQuestion{Question: o.NeedText("question"), Context: o.Document("context")}
	default:
		if body = activity.Read(name, &o); body == nil {
			return nil, unknownType("event:" + name)
		}
	}
	return body, o.Err()
}

func readProgress(o *object.Reader) *Progress {
	p := &Progress{TaskID: o.NeedText("taskId"), Message: o.Text("message")}
	value, raw := o.Number("progress")
	switch {
	case raw == nil:
		o.Refuse("progress", "is missing")
	case value < 0 || value > 1:
		o.Refuse("progress", "must be from 0 to 1")
	}
	p.Progress = value
	return p
}

// needWords reads a required string that may be empty.
func needWords(o *object.Reader, key string) string {
	if o.Find(key) == nil {
		o.Refuse(key, "is missing")
	}
	return o.Text(key)
}
