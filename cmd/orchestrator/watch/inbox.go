package watch

import (
	"context"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// A choice is a question while the user chooses one of its options.
type choice struct {
	list
	question wire.Question
}

// timeLeft returns the time left for an answer, or "" without a deadline.
func timeLeft(q *wire.Question, now time.Time) string {
	until, err := time.Parse(time.RFC3339Nano, q.Deadline)
	if err != nil {
		return ""
	}
	return term.Duration(max(0, until.Sub(now)))
}

// answerFirst starts an answer to the selected question, or to the oldest one.
func (m *model) answerFirst() {
	if len(m.questions.all) == 0 {
		m.say(noteNews{text: "No open questions."})
		return
	}
	if m.tab != tabInbox {
		m.show(tabInbox)
		m.questions.pick(m.questions.all[0].ID)
	}
	m.answerPicked()
}

// answerPicked starts an answer to the selected question: a choice if the question has
// options, else a line.
func (m *model) answerPicked() {
	q := m.questions.picked()
	if q == nil || q.ID == m.answered { // an answered one is in the list until it is read again
		return
	}
	if len(q.Options) > 0 {
		m.choice = &choice{question: *q}
		m.choice.resize(len(q.Options))
		return
	}
	id := q.ID
	m.line = &line{question: id, prompt: "answer " + oneLine(q.Agent) + ": ", done: func(text string) {
		if text != "" {
			m.answer(wire.AnswerQuestion{QuestionID: id, Answer: text})
		}
	}}
}

// choiceKey handles a key during a choice.
func (m *model) choiceKey(name string) bool {
	c := m.choice
	switch {
	case name == "esc":
		m.choice = nil
	case name == "enter":
		m.choose(c.at)
	case len(name) == 1 && name[0] >= '1' && name[0] <= '9':
		if n := int(name[0] - '1'); n < len(c.question.Options) {
			m.choose(n)
		} else { // so that a following enter does not choose the marked option
			m.choice = nil
			m.say(noteNews{text: fmt.Sprintf("Option %s does not exist: choose 1 to %d. Enter shows the options", name, len(c.question.Options)), bad: true})
		}
	default:
		return c.move(name)
	}
	return true
}

func (m *model) choose(n int) {
	q := m.choice.question
	m.choice = nil
	m.answer(wire.AnswerQuestion{QuestionID: q.ID, Answer: q.Options[n].Value})
}

// choiceGone ends the choice of a question that is no longer open. It does not end a line:
// the rest of the input would be taken as keys.
func (m *model) choiceGone() {
	gone := func(id string) bool {
		return !slices.ContainsFunc(m.questions.all, func(q wire.Question) bool { return q.ID == id })
	}
	switch {
	case m.choice != nil && gone(m.choice.question.ID):
		m.choice = nil
		m.say(noteNews{text: "The question is no longer open."})
	case m.line != nil && m.line.question != "" && gone(m.line.question):
		m.say(noteNews{text: "The question is no longer open. Press esc to cancel the answer", bad: true})
	}
}

// answer sends an answer.
func (m *model) answer(answer wire.AnswerQuestion) {
	m.answered = answer.QuestionID
	m.feed.do(func(ctx context.Context) tea.Msg {
		within, end := context.WithTimeout(ctx, patience)
		defer end()
		said, err := m.of.Answer(within, answer)
		m.feed.note(aboutQuestions)
		if err != nil {
			return noteNews{text: "Not answered: " + firstLine(err), bad: true, unanswered: answer.QuestionID}
		}
		return noteNews{text: said}
	})
}

func (m *model) drawInbox(width, height int) []string {
	p := m.pen
	if len(m.questions.seen) == 0 {
		words := " No open questions."
		if len(m.questions.all) > 0 {
			words = " No question matches the filter."
		}
		return p.draw(pane{title: "Inbox", focused: true}, width, height, []string{words})
	}
	switch {
	case !m.single():
		left := width / 2
		m.place(0, 0, left, height, 0, &m.questions.list)
		return beside(m.questionList(left, height), m.questionDetail(rightOf(left, width), height, m.choice != nil))
	case m.choice != nil || m.line != nil || m.focus[tabInbox]%2 == 1:
		return m.questionDetail(width, height, true)
	}
	return m.questionList(width, height)
}

func (m *model) questionList(width, height int) []string {
	p := m.pen
	from, to := m.questions.window(height - 2)
	var rows []string
	for i, q := range m.questions.seen[from:to] {
		rows = append(rows, p.row(from+i == m.questions.at, width-2,
			cell{text: oneLine(q.ID), size: min(10, max(4, len(q.ID)))},
			cell{text: oneLine(q.Agent), size: min(14, max(8, len(q.Agent)))},
			cell{text: oneLine(q.Question), size: width},
		))
	}
	if len(rows) == 0 {
		rows = []string{" No open questions."}
	}
	return p.draw(pane{title: "Inbox" + m.questions.place(height-2), focused: m.choice == nil && m.tab == tabInbox}, width, height, rows)
}

func (m *model) questionDetail(width, height int, focused bool) []string {
	p := m.pen
	q := m.questions.picked()
	if m.choice != nil {
		q = &m.choice.question
	}
	if q == nil {
		return p.draw(pane{focused: focused}, width, height, nil)
	}
	var lines []string
	add := func(text string) {
		for _, part := range p.wrap(text, width-4) {
			lines = append(lines, " "+part)
		}
	}
	add(oneLine(q.Question))
	lines = append(lines, "")
	if q.Permission != nil {
		for _, text := range permissionLines(q.Permission, max(1, height-len(q.Options)-9)) {
			lines = append(lines, p.row(false, width-2, cell{text: text, size: width}))
		}
		lines = append(lines, "")
	}
	first := len(lines)
	for i := range q.Options {
		picked := m.choice != nil && m.choice.at == i
		lines = append(lines, p.row(picked, width-2, cell{text: fmt.Sprintf("%s  %s", optionKey(q, i), steady(term.OptionWord(&q.Options[i]))), size: width}))
	}
	if len(q.Options) == 0 {
		lines = append(lines, " Answer with any text: a")
	}
	lines = append(lines, "")
	if q.Task != "" {
		add("task " + term.ID(q.Task))
	}
	if left := timeLeft(q, m.now); left != "" {
		add(left + " left")
	}
	if len(q.Context) > 0 {
		add("context " + oneLine(string(q.Context)))
	}
	if over := len(lines) - (height - 2); over > 0 && m.choice != nil { // keep the options visible
		lines = lines[min(over, first+m.choice.at):]
	}
	return p.draw(pane{title: oneLine(q.ID) + "  " + oneLine(q.Agent), focused: focused}, width, height, lines)
}
