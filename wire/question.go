package wire

// AskUser is the payload of ask-user.
type AskUser struct {
	Question string   `json:"question"`
	Options  []Option `json:"options,omitzero"` // none: any text will do
	Timeout  int64    `json:"timeout,omitzero"` // milliseconds; 0: as for every request
}

// Option is one of the answers that a question allows.
type Option struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// Options returns an option for each value, with the value as its label.
func Options(values ...string) []Option {
	options := make([]Option, len(values))
	for i, value := range values {
		options[i] = Option{Label: value, Value: value}
	}
	return options
}

// readAskUser reads an AskUser.
func readAskUser(o *Object) *AskUser {
	return &AskUser{Question: o.NeedText("question"), Timeout: o.milliseconds("timeout", 1), Options: o.readOptions("options")}
}

// readOptions is an optional list of options, no two with the same value.
func (o *Object) readOptions(key string) []Option {
	var all []Option
	taken := make(map[string]bool)
	o.Objects(key, func(item *Object) {
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

// UserAnswer answers ask-user.
type UserAnswer struct {
	Answer   string         `json:"answer"`
	Metadata AnswerMetadata `json:"metadata"`
}

// AnswerMetadata says when a person answered.
type AnswerMetadata struct {
	AnsweredAt string `json:"answeredAt"`
}

// Question is a question that waits for a person.
type Question struct {
	ID       string   `json:"id"`
	Agent    string   `json:"agent"`
	Task     string   `json:"task,omitzero"` // that waits for the answer
	Question string   `json:"question"`
	Options  []Option `json:"options"`
	Context  Raw      `json:"context,omitzero"`
	Blocking bool     `json:"blocking"` // the agent waits for the answer
	AskedAt  string   `json:"askedAt"`
	Deadline string   `json:"deadline,omitzero"` // then the agent is told that there was no answer
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

// readAnswerQuestion reads an AnswerQuestion.
func readAnswerQuestion(o *Object) *AnswerQuestion {
	a := &AnswerQuestion{QuestionID: o.NeedText("questionId"), Answer: o.Text("answer")}
	if o.find("answer") == nil {
		o.Refuse("answer", "is missing")
	}
	return a
}

// QuestionReply answers answer-question. Told reports whether the agent heard the
// answer; it does when it still waits.
type QuestionReply struct {
	Question Question `json:"question"`
	Answer   string   `json:"answer"`
	Told     bool     `json:"told"`
}
