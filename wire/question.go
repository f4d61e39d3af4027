package wire

import (
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// AskUser is the payload of ask-user.
type AskUser struct {
	// The question.
	Question string `json:"question" schema:"nonblank"`
	// How long to wait, in milliseconds, up to a year; 30000 when it is missing, as for every request.
	Timeout int64 `json:"timeout,omitzero" schema:"ms=1"`
	// How long you wait yourself, in milliseconds. Without an answer by then, you get the id of the
	// question, and later its answer as mail.
	Wait int64 `json:"wait,omitzero" schema:"ms=1"`
	// The answers that are allowed, each with its own value. Without options every text is allowed.
	Options []Option `json:"options,omitzero"`
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

// UserAnswer answers ask-user and ask-permission.
type UserAnswer struct {
	// The value of the option that the person chose, or the text that the person typed.
	Answer string `json:"answer"`
	// The id of a question without an answer yet. The answer comes as mail on message.direct.
	QuestionID string `json:"questionId,omitzero"`
	// The id of the choice, in the answer to ask-permission.
	Choice string `json:"choice,omitzero"`
	// The person's remark, in the answer to ask-permission.
	Message  string         `json:"message,omitzero"`
	Metadata AnswerMetadata `json:"metadata"`
}

// AnswerMetadata has the time of an answer.
type AnswerMetadata struct {
	// When the person answered; missing until then.
	AnsweredAt string `json:"answeredAt,omitzero" schema:"stamp"`
}

// A Question is an open question to a person.
type Question struct {
	// The id of the question.
	ID string `json:"id"`
	// The agent that asks.
	Agent string `json:"agent"`
	// The task that the agent works on.
	Task string `json:"task,omitzero"`
	// The question. It is untrusted: escape it before you show it.
	Question string `json:"question"`
	// The answers that are allowed; empty if any text is allowed.
	Options []Option `json:"options"`
	// Further facts about the question: an object, or any value after request-help.
	Context object.Raw `json:"context,omitzero"`
	// Whether the agent waits for the answer.
	Blocking bool `json:"blocking"`
	// When the question was asked.
	AskedAt string `json:"askedAt" schema:"stamp"`
	// When the question expires; the agent then learns that it has no answer.
	Deadline string `json:"deadline,omitzero" schema:"stamp"`
	// The requested permission, if the question comes from ask-permission.
	Permission *activity.Permission `json:"permission,omitzero"`
}

// QuestionList answers list-questions, oldest first.
type QuestionList struct {
	Questions []Question `json:"questions"`
}

// AnswerQuestion is the payload of answer-question.
type AnswerQuestion struct {
	// The id of the question.
	QuestionID string `json:"questionId" schema:"nonblank"`
	// A remark for the agent, such as the reason for a denial. Only for permissions.
	Message string `json:"message,omitzero"`
	// The answer: one of the values that the question allows, or any text if it has no options.
	Answer string `json:"answer"`
}

// QuestionReply answers answer-question. Told reports whether the answer was sent to the agent,
// which happens only if the agent still waits.
type QuestionReply struct {
	Question Question `json:"question"`
	// The answer of the person.
	Answer string `json:"answer"`
	// Whether the agent got the answer. It gets one only while it waits.
	Told bool `json:"told"`
}

// The answers.
var (
	answerQuestions = &Answer{Name: "questions", Of: QuestionList{}, About: ", oldest first"}
	answerAnswered  = &Answer{Name: "answered", Of: QuestionReply{}}
)

// questionOperations are the operations on questions to people.
var questionOperations = []Operation{
	request[Nothing](Operation{
		Name: "list-questions", Answer: answerQuestions, Audience: ForOperators,
		Summary:  "List the open questions",
		About:    "The oldest question comes first.",
		Examples: []string{`{}`, ""},
	}),
	request[AnswerQuestion](Operation{
		Name: "answer-question", Answer: answerAnswered, Audience: ForOperators, Writes: true,
		Summary:  "Answer a question",
		Examples: []string{`{"questionId": "q5", "answer": "postgres"}`},
	}),
}
