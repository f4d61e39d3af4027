package wire

import (
	"orchestrator/wire/activity"
	"orchestrator/wire/object"
)

// AskPermission is the payload of ask-permission. The tool and its input identify a permission for a
// session, or for always.
type AskPermission struct {
	// The task that needs it; the task that you work on when it is missing.
	TaskID string `json:"taskId,omitzero"`
	// The tool, such as Bash.
	Tool string `json:"tool" schema:"nonblank"`
	// The action to permit, in one line.
	Title string `json:"title" schema:"nonblank"`
	// The input of the tool call.
	Input Raw `json:"input" schema:"type=object"`
	// The files and folders that it concerns.
	Paths []string `json:"paths,omitzero" schema:"each:nonblank"`
	// The possible answers.
	Choices []activity.PermissionChoice `json:"choices" schema:"minitems=1"`
	// Why it is needed.
	Reason string `json:"reason,omitzero"`
	// How long to wait, in milliseconds; a year when it is missing.
	Timeout int64 `json:"timeout,omitzero" schema:"ms=1"`
	// How long you wait yourself, in milliseconds. Without an answer by then, you get the id of the
	// question, and later the choice as mail.
	Wait int64 `json:"wait,omitzero" schema:"ms=1"`
}

// WithdrawQuestion is the payload of withdraw-question. The question is named by its id, or by the
// id of the request that asked it.
type WithdrawQuestion struct {
	// The id of the question.
	QuestionID string `json:"questionId,omitzero"`
	// The id of your request that asked it.
	RequestID string `json:"requestId,omitzero"`
}

var answerWithdrawn = &Answer{Name: "withdrawn", Of: activity.Withdrawn{}}

func (w *WithdrawQuestion) read(o *object.Reader) {
	if w.QuestionID == "" && w.RequestID == "" && o.Err() == nil {
		o.Refuse("questionId", "is missing, and so is requestId")
	}
}

// ReportProgress is the payload of report-progress.
type ReportProgress struct {
	// The id of the task.
	TaskID string `json:"taskId" schema:"nonblank"`
	// Your current activity.
	Message string `json:"message" schema:"nonblank"`
	// The kind of the message: tool for a tool call, words for text of the model, plan for a step of
	// a plan.
	Kind string `json:"kind,omitzero" schema:"enum=tool|words|plan"`
	// Your output so far: any value, up to 64 KiB. The task shows the last one until it is done.
	Output Raw `json:"output,omitzero" schema:"any,output"`
	// The progress, from 0 to 1. A missing value changes nothing.
	Progress *float64 `json:"progress,omitzero" schema:"min=0,max=1"`
}

// ReturnTask is the payload of return-task.
type ReturnTask struct {
	// The id of the task.
	TaskID string `json:"taskId" schema:"nonblank"`
	// Why you give the task back.
	Reason string `json:"reason" schema:"nonblank"`
	// When an agent may get the task again, in ISO 8601: for example, the end of a limit. A request
	// can still assign it before that time.
	After string `json:"after,omitzero" schema:"time"`
}

// activityOperations are the operations of agents on their current work.
var activityOperations = []Operation{
	request[Nothing](Operation{
		Name: "current-task", Answer: answerTask, Audience: ForAgents, OfTask: true,
		Summary:  "Show the task that you work on",
		About:    "If you have several, it is the one that started first; if none has started, the one that was assigned first.",
		Examples: []string{`{}`, ""},
	}),
	request[ReportProgress](Operation{
		Name: "report-progress", Answer: answerTask, Audience: ForAgents, Writes: true, OfTask: true,
		Summary:  "Report your activity on a task, with or without the progress",
		About:    "The same as event:progress, for programs that do not write lines.",
		Examples: []string{`{"taskId": "task-123", "message": "go test ./...", "kind": "tool"}`, `{"taskId": "task-123", "message": "half of the pages", "progress": 0.5, "output": {"pages":["index.html"]}}`},
	}),
	request[ReturnTask](Operation{
		Name: "return-task", Answer: answerTask, Audience: ForAgents, Writes: true, OfTask: true,
		Summary: "Give a task back to the queue",
		About:   "It does not count as an attempt.",
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
			"another agent, and when your run ends.",
		Examples: []string{
			`{"taskId": "task-123", "tool": "Bash", "title": "go get example.com/cursor", "input": {"command":"go get example.com/cursor"}, "paths": ["go.mod"], ` +
				`"choices": [{"id": "yes", "kind": "allow_once", "label": "Allow"}, {"id": "session", "kind": "allow_session"}, {"id": "no", "kind": "deny"}], "reason": "The page needs it.", "wait": 45000}`,
		},
	}),
	request[WithdrawQuestion](Operation{
		Name: "withdraw-question", Answer: answerWithdrawn, Audience: ForAgents, Writes: true,
		Rules: []string{
			`"anyOf": [{"required": ["questionId"], "properties": {"questionId": {"type": "string", "minLength": 1}}}, ` +
				`{"required": ["requestId"], "properties": {"requestId": {"type": "string", "minLength": 1}}}]`,
		},
		Summary:  "Withdraw a question of yours that no longer needs an answer",
		About:    "The request that asked the question gets an error.",
		Examples: []string{`{"questionId": "q5"}`, `{"requestId": "req-7"}`},
	}),
}
