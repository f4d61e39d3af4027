package watch

import (
	"fmt"
	"slices"
	"strconv"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/activity"
)

// permissionKeys maps the keys that answer a permission to the kind of the choice.
var permissionKeys = map[string]string{
	"a": activity.AllowOnce, "s": activity.AllowSession, "A": activity.AllowAlways, "d": activity.Deny,
}

// permissionOf returns the question on the screen if it is a permission, or nil. In a narrow
// window, its choices must be visible.
func (m *model) permissionOf() *wire.Question {
	q := m.questions.picked()
	switch {
	case m.tab != tabInbox || m.paper != nil:
		return nil
	case m.choice != nil:
		q = &m.choice.question
	case m.single():
		return nil
	}
	if q == nil || q.Permission == nil {
		return nil
	}
	return q
}

// permissionKey handles a key that answers the permission on the screen.
func (m *model) permissionKey(name string) bool {
	kind, q := permissionKeys[name], m.permissionOf()
	if kind == "" || q == nil {
		return false
	}
	i := slices.IndexFunc(q.Permission.Choices, func(c activity.PermissionChoice) bool { return c.Kind == kind })
	if i < 0 {
		m.say(noteNews{text: "This permission has no such answer", bad: true})
		return true
	}
	m.choice = nil
	answer := wire.AnswerQuestion{QuestionID: q.ID, Answer: q.Permission.Choices[i].ID}
	if kind != activity.Deny {
		m.answer(answer)
		return true
	}
	m.line = &line{question: q.ID, prompt: "deny, with an optional reason: ", done: func(text string) {
		answer.Message = text
		m.answer(answer)
	}}
	return true
}

// optionKey returns the key that chooses an option of a question.
func optionKey(q *wire.Question, n int) string {
	if q.Permission != nil {
		for key, kind := range permissionKeys {
			i := slices.IndexFunc(q.Permission.Choices, func(c activity.PermissionChoice) bool { return c.Kind == kind })
			if i >= 0 && q.Permission.Choices[i].ID == q.Options[n].Value {
				return key
			}
		}
	}
	return strconv.Itoa(n + 1)
}

// permissionLines returns the requested action of a permission in at most a number of lines.
func permissionLines(p *activity.Permission, most int) []string {
	lines := term.PermissionLines(p)
	if over := len(lines) - most; over > 0 {
		lines = append(lines[:most-1:most-1], fmt.Sprintf("… %d more: inbox show", over+1))
	}
	if p.Reason != "" {
		lines = append(lines, "reason: "+oneLine(p.Reason))
	}
	return lines
}
