package activity

import (
	"bytes"
	"fmt"

	"orchestrator/wire/object"
)

// Progress is the payload of event:progress.
type Progress struct {
	// The id of the task.
	TaskID string `json:"taskId" schema:"nonblank"`
	// The progress, from 0 to 1.
	Progress float64 `json:"progress" schema:"min=0,max=1"`
	// Your current activity, in a sentence.
	Message string `json:"message,omitzero"`
	// Your output so far: any value, up to 64 KiB. The task shows the last one until it is done.
	Output object.Raw `json:"output,omitzero"`
}

// MaxOutput is the maximum size of a partial result, in bytes.
const MaxOutput = 64 << 10

// ReadOutput reads a partial result.
func ReadOutput(o *object.Reader) object.Raw {
	output := o.Value("output")
	if len(output) > MaxOutput {
		o.Refuse("output", fmt.Sprintf("must be at most %d bytes, not %d", MaxOutput, len(output)))
		return nil
	}
	return output
}

func readProgress(o *object.Reader) *Progress {
	p := &Progress{TaskID: o.NeedText("taskId"), Message: o.Text("message"), Output: ReadOutput(o)}
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

// LogEntry is the payload of event:log.
type LogEntry struct {
	// The level: info, warn or error. Any other level counts as info.
	Level string `json:"level" schema:"nonblank,example=info|warn|error"`
	// The text of the message.
	Message string `json:"message"`
	// Additional data.
	Context object.Raw `json:"context,omitzero" schema:"type=object"`
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

// needWords reads a required string that may be empty.
func needWords(o *object.Reader, key string) string {
	if o.Find(key) == nil {
		o.Refuse(key, "is missing")
	}
	return o.Text(key)
}

// Trouble is the payload of event:error.
type Trouble struct {
	// The id of the task that the error belongs to.
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
	// Further facts about the question.
	Context object.Raw `json:"context,omitzero" schema:"type=object"`
}

// readTrouble reads an event:error. It counts as recoverable if it does not say.
func readTrouble(o *object.Reader) *Trouble {
	recoverable, there := o.Bool("recoverable")
	return &Trouble{TaskID: o.Text("taskId"), Error: o.NeedText("error"), Stack: o.Text("stack"), Recoverable: recoverable || !there}
}
