package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// said is a message of a session, with the parts of its log entry that are shown.
type said struct {
	id, kind  string
	from, to  string
	by        string // sender on behalf of from; "" if from itself
	chain     string // correlation ID
	task      string // ID of its task
	at        string
	lines     []string // text
	refused   string   // why it was rejected; "" if it was accepted
	complaint []string // lapses that were accepted, or all errors
	replyTo   string
	payload   wire.Raw
}

// A sessionLog holds the messages of a session by correlation.
type sessionLog struct {
	view    *wire.SessionView
	said    []said
	threads []*thread // in the order of the first message of each
}

// A thread holds the messages with one correlation: its tasks, and its messages in tree
// order with their depths.
type thread struct {
	key   string
	tasks []*wire.SessionTask
	said  []int
	deep  []int
}

// deepestReply is the maximum indentation of replies.
const deepestReply = 6

func readLog(seen *sessionSeen) (*sessionLog, error) {
	log := &sessionLog{view: &seen.SessionView, said: make([]said, len(seen.Messages))}
	for i, raw := range seen.Messages {
		var err error
		if log.said[i], err = readSaid(raw); err != nil {
			return nil, err
		}
	}
	log.gather()
	for _, th := range log.threads {
		log.order(th)
	}
	return log, nil
}

// gather sorts messages and tasks into threads. A message belongs to the thread of its task, even
// if it names another one. A message without a thread belongs to the thread of the message it
// replies to.
func (l *sessionLog) gather() {
	chainOf := make(map[string]string) // of tasks, and of messages
	for i := range l.view.Tasks {
		t := &l.view.Tasks[i]
		chainOf["task "+t.TaskID] = cmp.Or(t.CorrelationID, "task "+t.TaskID)
	}
	found := make(map[string]*thread)
	of := func(key string) *thread {
		if found[key] == nil {
			found[key] = &thread{key: key}
			l.threads = append(l.threads, found[key])
		}
		return found[key]
	}
	for i := range l.said {
		s := &l.said[i]
		s.chain = cmp.Or(chainOf["task "+s.task], s.chain, chainOf["message "+s.replyTo])
		chainOf["message "+s.id] = s.chain
		th := of(s.chain)
		th.said = append(th.said, i)
	}
	for i := range l.view.Tasks {
		t := &l.view.Tasks[i]
		key := chainOf["task "+t.TaskID]
		if found[key] != nil || t.Phase != session.PhaseOver && !t.State.Final() {
			th := of(key)
			th.tasks = append(th.tasks, t)
		}
	}
}

// order arranges the messages of a thread as a tree. A reply follows an earlier message
// that it answers.
func (l *sessionLog) order(th *thread) {
	at := make(map[string]int, len(th.said))
	below := make(map[int][]int)
	var roots []int
	for _, i := range th.said {
		if parent, ok := at[l.said[i].replyTo]; ok && l.said[i].replyTo != "" {
			below[parent] = append(below[parent], i)
		} else {
			roots = append(roots, i)
		}
		if l.said[i].id != "" && l.said[i].refused == "" {
			at[l.said[i].id] = i
		}
	}
	th.said = th.said[:0:0]
	type step struct{ message, deep int }
	var open []step
	push := func(messages []int, deep int) {
		for i := len(messages) - 1; i >= 0; i-- {
			open = append(open, step{messages[i], deep})
		}
	}
	push(roots, 0)
	for len(open) > 0 {
		next := open[len(open)-1]
		open = open[:len(open)-1]
		th.said, th.deep = append(th.said, next.message), append(th.deep, next.deep)
		push(below[next.message], min(next.deep+1, deepestReply))
	}
}

// draw returns the log for a screen of the given width, or without a limit for 0.
func (l *sessionLog) draw(p term.Paint, now time.Time, wide int) string {
	var rows [][]term.Cell
	ends := make([]int, len(l.threads))
	for i, th := range l.threads {
		for n, m := range th.said {
			rows = append(rows, l.said[m].rows(th.deep[n], len(th.tasks) > 1, p, now)...)
		}
		ends[i] = len(rows)
	}
	narrow(rows, wide)
	lines := strings.SplitAfter(term.Table(rows), "\n")
	var b strings.Builder
	done := 0
	for i, th := range l.threads {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(th.head(p))
		if len(th.said) == 0 {
			b.WriteString("  none of its messages are shown here\n")
		}
		b.WriteString(strings.Join(lines[done:ends[i]], "") + th.foot(p))
		done = ends[i]
	}
	return b.String()
}

// narrow cuts the text of messages to the width that the other columns leave.
func narrow(rows [][]term.Cell, wide int) {
	if wide == 0 {
		return
	}
	before := 0
	for col := range 3 {
		widest := 0
		for _, row := range rows {
			widest = max(widest, term.Width(row[col].Text))
		}
		before += widest + 2
	}
	for _, row := range rows {
		last := &row[len(row)-1]
		last.Text = term.Clip(last.Text, max(wide-before, 30))
	}
}

func (th *thread) head(p term.Paint) string {
	head := ""
	for _, t := range th.tasks {
		head += taskHead(t, p)
	}
	switch {
	case head == "" && th.key == "":
		return p.Dim("of no chain") + "\n"
	case th.key == "" || strings.HasPrefix(th.key, "task "):
		return head
	}
	return head + p.Dim("chain "+term.OneLine(th.key)) + "\n"
}

// foot returns the lines below a thread. Findings in a task that was revised under another
// ID are shown with that one.
func (th *thread) foot(p term.Paint) string {
	foot := ""
	for _, t := range th.tasks {
		shown := *t
		if slices.ContainsFunc(th.tasks, func(o *wire.SessionTask) bool { return o.Revises == t.TaskID }) {
			shown.Findings = nil
		}
		foot += taskFoot(&shown, p)
	}
	return foot
}

// maxWrong is how many lines of errors of a message are shown.
const maxWrong = 5

// rows returns the rows of a message: time, members, type and text. Further lines of text
// follow below.
func (s *said) rows(deep int, several bool, p term.Paint, now time.Time) [][]term.Cell {
	indent := ""
	if deep > 0 {
		indent = strings.Repeat("   ", deep-1) + "└─ "
	}
	lines := s.lines
	kind := term.Cell{Text: cmp.Or(term.OneLine(s.kind), "?")}
	if s.refused != "" {
		kind.Ink = p.Bad
		lines = s.wrong()
	}
	if several && s.task != "" && len(lines) > 0 {
		lines = append([]string{sessionID(s.task) + ": " + lines[0]}, lines[1:]...)
	}
	first := ""
	if len(lines) > 0 {
		first, lines = lines[0], lines[1:]
	}
	if s.by != "" {
		first = strings.TrimSpace(first + "  (sent by " + s.by + ")")
	}
	rows := [][]term.Cell{{
		{Text: "  " + term.Clock(s.at, now, time.TimeOnly), Ink: p.Dim},
		term.Text(indent + cmp.Or(term.OneLine(s.from), "?") + " -> " + cmp.Or(term.OneLine(s.to), "?")), kind, term.Text(first),
	}}
	for _, line := range lines {
		rows = append(rows, []term.Cell{term.Text(""), term.Text(""), term.Text(""), term.Text(line)})
	}
	return rows
}

// wrong returns why a message was rejected, and its first errors. If the first error is the
// reason, they become one line with the place.
func (s *said) wrong() []string {
	lines := []string{"refused: " + term.OneLine(s.refused)}
	for i, c := range s.complaint {
		c = cli.InMessage(c)
		switch {
		case i == 0 && (c == s.refused || strings.HasSuffix(c, ": "+s.refused)):
			lines[0] = "refused: " + term.OneLine(c)
		default:
			lines = append(lines, term.OneLine(c))
		}
	}
	if more := len(lines) - maxWrong; more > 1 {
		lines = append(lines[:maxWrong], fmt.Sprintf("and %d more: --json", more))
	}
	return lines
}
