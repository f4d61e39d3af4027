package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// A reviewed is a task of a session, with the session and its reviews.
type reviewed struct {
	session string
	task    wire.SessionTask
	reviews []session.ReviewView
}

// reviewsNews are the tasks of all sessions.
type reviewsNews struct{ tasks []reviewed }

// maxSessions is how many sessions are read.
const maxSessions = 20

// askReviews reads the tasks of the sessions. It skips a session that the orchestrator refuses to show, because the
// other inquiries can go on.
func (c *conversation) askReviews(ctx context.Context) error {
	list, err := answer[session.List](ctx, c.of, "list-sessions", struct{}{})
	if err != nil {
		return err
	}
	slices.SortStableFunc(list.Sessions, func(a, b session.Brief) int { return cmp.Compare(b.State, a.State) }) // open before closed
	var news reviewsNews
	for i := range list.Sessions[:min(maxSessions, len(list.Sessions))] {
		id := list.Sessions[i].ID
		v, err := answer[wire.SessionView](ctx, c.of, "get-session", wire.GetSession{SessionID: id, Limit: 1})
		if err != nil {
			if ctx.Err() == nil && refused(err) {
				continue
			}
			return err
		}
		for _, t := range v.Tasks {
			one := reviewed{session: id, task: t}
			for _, r := range v.Reviews {
				if r.TaskID == t.TaskID {
					one.reviews = append(one.reviews, r)
				}
			}
			news.tasks = append(news.tasks, one)
		}
	}
	c.tell(ctx, news)
	return nil
}

// refused reports whether an error is an answer of the orchestrator, and not a lost connection.
func refused(err error) bool {
	f, ok := errors.AsType[*cli.Failure](err)
	return ok && f.Exit != cli.ExitNotRunning
}

// openFindings returns how many findings are not fixed.
func (r *reviewed) openFindings() (n int) {
	for i := range r.task.Findings {
		if r.task.Findings[i].Fixed == 0 {
			n++
		}
	}
	return n
}

func (m *model) drawReviews(width, height int) []string {
	if m.single() && m.focus[tabReviews]%2 == 1 {
		return m.reviewDetail(width, height, true)
	}
	if m.single() {
		return m.reviewList(0, 0, width, height)
	}
	if width >= 110 {
		left := width / 2
		return beside(m.reviewList(0, 0, left, height), m.reviewDetail(rightOf(left, width), height, false))
	}
	lower := max(6, height/2)
	return append(m.reviewList(0, 0, width, height-lower), m.reviewDetail(width, lower, false)...)
}

// phaseInk returns the color of a phase.
func phaseInk(phase string) term.Ink {
	switch phase {
	case session.PhaseHuman, session.PhaseRedesign:
		return term.InkBad
	case session.PhaseRevise, session.PhaseReviewing:
		return term.InkWarn
	case session.PhaseOver, session.PhaseWorking:
		return term.InkGood
	}
	return ""
}

func (m *model) reviewList(x, y, width, height int) []string {
	p := m.pen
	m.place(x, y, width, height, 0, &m.reviews.list)
	from, to := m.reviews.window(height - 2)
	var rows []string
	for i, r := range m.reviews.seen[from:to] {
		round := fmt.Sprintf("%d/%d", r.task.Iteration, r.task.MaxIterations)
		findings := ""
		if n := r.openFindings(); n > 0 {
			findings = term.Count(n, "finding")
		}
		rows = append(rows, p.row(from+i == m.reviews.at, width-2,
			cell{text: oneLine(r.session), size: min(12, width/6)},
			cell{text: oneLine(r.task.Name), size: width - 2 - 1 - min(12, width/6) - 1 - 1 - 9 - 1 - 5 - 1 - 11},
			cell{text: oneLine(r.task.Phase), size: 9, ink: phaseInk(r.task.Phase)},
			cell{text: round, size: 5, right: true},
			cell{text: findings, size: 11, ink: term.InkWarn},
		))
	}
	if len(rows) == 0 {
		rows = []string{" No session has tasks. See orchestrator help session"}
		if len(m.reviews.all) > 0 {
			rows = []string{" No task matches the filter."}
		}
	}
	return p.draw(pane{title: "Sessions" + m.reviews.place(height-2), focused: m.focus[tabReviews] == 0}, width, height, rows)
}

func (m *model) reviewDetail(width, height int, focused bool) []string {
	p := m.pen
	r := m.reviews.picked()
	if r == nil {
		return p.draw(pane{title: "Findings", focused: focused}, width, height, nil)
	}
	var lines []string
	add := func(ink term.Ink, text string) {
		for _, part := range p.wrap(text, width-4) {
			lines = append(lines, " "+p.ink(ink, part))
		}
	}
	t := &r.task
	add(term.InkStrong, oneLine(t.Name))
	add("", strings.TrimSpace(fmt.Sprintf("%s  %s  by %s", term.ID(t.TaskID), oneLine(t.Phase), oneLine(t.Developer))))
	if t.Progress > 0 {
		lines = append(lines, " "+p.bar(t.Progress, min(20, width-12))+" "+term.Percent(t.Progress)+" "+oneLine(t.Step))
	}
	if t.Escalated != "" {
		add(term.InkBad, "Reviews ended without agreement: "+oneLine(t.Escalated))
	}
	for _, v := range r.reviews {
		verdict, ink := cmp.Or(v.Verdict, "open"), term.InkWarn
		if v.Verdict == session.VerdictApproved {
			ink = term.InkGood
		}
		lines = append(lines, fmt.Sprintf(" review %d by %s: ", v.Iteration, oneLine(v.Reviewer))+p.ink(ink, oneLine(verdict)))
	}
	for _, f := range t.Findings {
		mark, ink := "x", term.InkWarn
		if f.Fixed > 0 {
			mark, ink = "ok", term.InkDim
		}
		add(ink, fmt.Sprintf("%s %s %s %s", mark, oneLine(f.Severity), oneLine(f.File), oneLine(f.Text)))
	}
	return p.draw(pane{title: "Findings of " + oneLine(r.session), focused: focused}, width, height, lines)
}

func (m *model) reviewKey(name string) {
	r := m.reviews.picked()
	if m.reviews.move(name) || r == nil {
		return
	}
	switch name {
	case "enter":
		m.do(about(r.session, "session", "show")...)
	case "d":
		m.do(about(r.task.TaskID, "task", "diff")...)
	case "y":
		m.do(about(r.task.TaskID, "why")...)
	}
}
