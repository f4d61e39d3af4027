package wire

import (
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// AskUser is the payload of ask-user.
type AskUser struct {
	Question string   `json:"question"`
	Options  []Option `json:"options,omitzero"` // none: any text is allowed
	Timeout  int64    `json:"timeout,omitzero"` // milliseconds; 0: as for every request
}

// An Option is one of the allowed answers to a question. Delegated work asks with the same.
type Option = delegation.Option

// Options returns an option for each value, with the value as its label.
func Options(values ...string) []Option {
	options := make([]Option, len(values))
	for i, value := range values {
		options[i] = Option{Label: value, Value: value}
	}
	return options
}

func (a *AskUser) fields(f *fields) {
	f.need(&a.Question, "question", "The question.")
	f.milliseconds(&a.Timeout, "timeout", "How long to wait, in milliseconds, up to a year; 30000 when it is missing, as for every request.", 1)
	if !f.describe("options", "The answers that are allowed, each with its own value. Without options every text is allowed.", schemaOptions, false) {
		a.Options = delegation.ReadOptions(f.in, "options")
	}
}

const schemaOptions = `"type": ["array", "null"], "items": {"type": "object", "properties": {` +
	`"label": {"type": ["string", "null"], "description": "The text that the person sees; the value when it is missing."}, ` +
	`"value": {"type": "string", "pattern": "[^ \\t\\n\\r\\f]", "description": "The answer that you get when the person chooses this option."}}, "required": ["value"]}`

// UserAnswer answers ask-user.
type UserAnswer struct {
	Answer   string         `json:"answer"`
	Metadata AnswerMetadata `json:"metadata"`
}

// AnswerMetadata says when a person answered.
type AnswerMetadata struct {
	AnsweredAt string `json:"answeredAt"`
}

// A Question is an open question to a person.
type Question struct {
	ID       string     `json:"id"`
	Agent    string     `json:"agent"`
	Task     string     `json:"task,omitzero"` // that waits for the answer
	Question string     `json:"question"`
	Options  []Option   `json:"options"`
	Context  object.Raw `json:"context,omitzero"`
	Blocking bool       `json:"blocking"` // the agent waits for the answer
	AskedAt  string     `json:"askedAt"`
	Deadline string     `json:"deadline,omitzero"` // when the agent is told that there was no answer
}

// QuestionList answers list-questions, oldest first.
type QuestionList struct {
	Questions []Question `json:"questions"`
}

// AnswerQuestion is the payload of answer-question.
type AnswerQuestion struct {
	QuestionID string `json:"questionId"`
	Answer     string `json:"answer"`
}

func (a *AnswerQuestion) fields(f *fields) {
	f.need(&a.QuestionID, "questionId", "The id of the question.")
	if f.describe("answer", "The answer: one of the values that the question allows, or any text if it has no options.", `"type": "string"`, true) {
		return
	}
	if a.Answer = f.in.Text("answer"); f.in.Find("answer") == nil {
		f.in.Refuse("answer", "is missing")
	}
}

// QuestionReply answers answer-question. Told reports whether the answer was sent to the agent,
// which happens only if the agent still waits.
type QuestionReply struct {
	Question Question `json:"question"`
	Answer   string   `json:"answer"`
	Told     bool     `json:"told"`
}

// questionOperations are the operations on questions to people.
var questionOperations = []Operation{
	request[Nothing](Operation{
		Name: "list-questions", Audience: ForOperators,
		Summary:  "List the open questions",
		About:    "The oldest question comes first.",
		Examples: []string{`{}`, ""},
	}),
	request[AnswerQuestion](Operation{
		Name: "answer-question", Audience: ForOperators, Writes: true,
		Summary:  "Answer a question",
		Examples: []string{`{"questionId": "q5", "answer": "postgres"}`},
	}),
}
