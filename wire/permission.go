package wire

import (
	"orchestrator/wire/activity"
)

// AskPermission is the payload of ask-permission. Input is what the tool would be called with;
// with the tool it identifies what is allowed for a session, or always.
type AskPermission struct {
	TaskID  string                      `json:"taskId,omitzero"`
	Tool    string                      `json:"tool"`
	Title   string                      `json:"title"`
	Input   Raw                         `json:"input"`
	Paths   []string                    `json:"paths,omitzero"`
	Choices []activity.PermissionChoice `json:"choices"`
	Reason  string                      `json:"reason,omitzero"`
	Timeout int64                       `json:"timeout,omitzero"` // milliseconds; 0: a year
	Wait    int64                       `json:"wait,omitzero"`    // milliseconds; 0: as long as the timeout
}

const schemaChoices = `"type": "array", "minItems": 1, "items": {"type": "object", "properties": {` +
	`"id": {` + schemaWords + `, "description": "The answer that you get when the person chooses this."}, ` +
	`"kind": {"enum": ["allow_once", "allow_session", "allow_always", "deny"], "description": "What it means."}, ` +
	`"label": {"type": ["string", "null"], "description": "The text that the person sees."}}, "required": ["id", "kind"]}`

func (a *AskPermission) fields(f *fields) {
	f.text(&a.TaskID, "taskId", "The task that needs it; the task that you work on when it is missing.")
	f.need(&a.Tool, "tool", "The tool, such as Bash.")
	f.need(&a.Title, "title", "What is to be done, in one line.")
	if !f.describe("input", "What the tool is to be called with.", `"type": "object"`, true) {
		if a.Input = f.in.Document("input"); a.Input == nil && f.in.Err() == nil {
			f.in.Refuse("input", "is missing")
		}
	}
	f.texts(&a.Paths, "paths", "The files and folders that it concerns.")
	if !f.describe("choices", "The possible answers.", schemaChoices, true) {
		a.Choices = activity.ChoicesIn(f.in)
	}
	f.text(&a.Reason, "reason", "Why it is needed.")
	f.milliseconds(&a.Timeout, "timeout", "How long to wait, in milliseconds; a year when it is missing.", 1)
	f.milliseconds(&a.Wait, "wait", "How long you wait yourself, in milliseconds. If there is no answer by then, you get the id of the question, and later the choice as mail.", 1)
}

// WithdrawQuestion is the payload of withdraw-question. The question is named by its id, or by the
// id of the request that asked it.
type WithdrawQuestion struct {
	QuestionID string `json:"questionId,omitzero"`
	RequestID  string `json:"requestId,omitzero"`
}

var answerWithdrawn = &Answer{Name: "withdrawn", Of: activity.Withdrawn{}}

func (w *WithdrawQuestion) fields(f *fields) {
	f.text(&w.QuestionID, "questionId", "The id of the question.")
	f.text(&w.RequestID, "requestId", "The id of your request that asked it.")
	f.rule(`"anyOf": [{"required": ["questionId"], "properties": {"questionId": {"type": "string", "minLength": 1}}}, ` +
		`{"required": ["requestId"], "properties": {"requestId": {"type": "string", "minLength": 1}}}]`)
	if f.in != nil && w.QuestionID == "" && w.RequestID == "" && f.in.Err() == nil {
		f.in.Refuse("questionId", "is missing, and so is requestId")
	}
}

// ReportProgress is the payload of report-progress.
type ReportProgress struct {
	TaskID   string   `json:"taskId"`
	Progress *float64 `json:"progress,omitzero"` // from 0 to 1; nil leaves it as it is
	Message  string   `json:"message"`
	Kind     string   `json:"kind,omitzero"`
	Output   Raw      `json:"output,omitzero"` // the partial result; nil leaves it as it is
}

func (r *ReportProgress) fields(f *fields) {
	f.need(&r.TaskID, "taskId", theTask)
	f.need(&r.Message, "message", "What you do now.")
	f.oneOf(&r.Kind, "kind", "What the message is: tool for a tool call, words for what the model says, plan for a step of a plan.", "tool", "words", "plan")
	if !f.describe("output", "What you have so far: any value, up to 64 KiB. The task shows the last one until it is done.", "", false) {
		r.Output = activity.ReadOutput(f.in)
	}
	if f.describe("progress", "How much is done, from 0 to 1. When it is missing, it stays as it is.", `"type": ["number", "null"], "minimum": 0, "maximum": 1`, false) {
		return
	}
	value, raw := f.in.Number("progress")
	switch {
	case raw == nil:
	case value < 0 || value > 1:
		f.in.Refuse("progress", "must be from 0 to 1")
	default:
		r.Progress = &value
	}
}

// ReturnTask is the payload of return-task.
type ReturnTask struct {
	TaskID string `json:"taskId"`
	Reason string `json:"reason"`
	After  string `json:"after,omitzero"` // it is not given out before; "": at once
}

func (r *ReturnTask) fields(f *fields) {
	f.need(&r.TaskID, "taskId", theTask)
	f.need(&r.Reason, "reason", "Why you do not go on with it.")
	f.when(&r.After, "after", "The time, in ISO 8601, before which no agent is to get it, such as the end of a limit. It can still be assigned by a request.")
}

// activityOperations are the operations of agents about what they do at the moment.
var activityOperations = []Operation{
	request[Nothing](Operation{
		Name: "current-task", Answer: answerTask, Audience: ForAgents, OfTask: true,
		Summary:  "Show the task that you work on",
		About:    "If you have several, it is the one that started first; if none has started, the one that was assigned first.",
		Examples: []string{`{}`, ""},
	}),
	request[ReportProgress](Operation{
		Name: "report-progress", Answer: answerTask, Audience: ForAgents, Writes: true, OfTask: true,
		Summary:  "Report what you do for a task, with or without how much of it is done",
		About:    "It is event:progress as a request, for programs that do not write lines.",
		Examples: []string{`{"taskId": "task-123", "message": "go test ./...", "kind": "tool"}`, `{"taskId": "task-123", "message": "half of the pages", "progress": 0.5, "output": {"pages":["index.html"]}}`},
	}),
	request[ReturnTask](Operation{
		Name: "return-task", Answer: answerTask, Audience: ForAgents, Writes: true, OfTask: true,
		Summary: "Give a task back, so that it waits for an agent again",
		About:   "No attempt is counted.",
		Examples: []string{
			`{"taskId": "task-123", "reason": "The usage limit is reached."}`,
			`{"taskId": "task-123", "reason": "The registry is down for maintenance.", "after": "2026-11-20T17:00:00Z"}`,
		},
	}),
	request[AskPermission](Operation{
		Name: "ask-permission", Answer: answerAnswer, Audience: ForAgents, Writes: true,
		Summary: "Ask a person whether a tool may be used, and wait for the answer",
		About: "The answer has the id of the choice. A choice of the kind allow_session or allow_always is remembered: " +
			"the same tool with the same input is then answered at once. The question is withdrawn when its task ends, is given back or goes to " +
			"another agent, and when you do not run any more.",
		Examples: []string{
			`{"taskId": "task-123", "tool": "Bash", "title": "go get example.com/cursor", "input": {"command":"go get example.com/cursor"}, "paths": ["go.mod"], ` +
				`"choices": [{"id": "yes", "kind": "allow_once", "label": "Allow"}, {"id": "session", "kind": "allow_session"}, {"id": "no", "kind": "deny"}], "reason": "The page needs it.", "wait": 45000}`,
		},
	}),
	request[WithdrawQuestion](Operation{
		Name: "withdraw-question", Answer: answerWithdrawn, Audience: ForAgents, Writes: true,
		Summary:  "Withdraw a question of yours that needs no answer any more",
		About:    "The request that asked it is answered with an error.",
		Examples: []string{`{"questionId": "q5"}`, `{"requestId": "req-7"}`},
	}),
}
