package watch

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/session"
)

// at returns the place of a text on the screen.
func at(t *testing.T, m *model, text string) (x, y int) {
	t.Helper()
	lines, _ := m.screen()
	for y, line := range lines {
		if before, _, ok := strings.Cut(line, text); ok {
			return m.pen.width.StringWidth(before), y
		}
	}
	require.Fail(t, "not on the screen", "%s\n%s", text, strings.Join(lines, "\n"))
	return 0, 0
}

func click(t *testing.T, m *model, text string) {
	t.Helper()
	x, y := at(t, m, text)
	m.Update(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
}

// A click selects the item below it, at each size: tabs, agents, tasks, questions and reviews. The wheel moves the list
// below it.
func TestMouse(t *testing.T) {
	t.Parallel()
	for _, size := range []tea.WindowSizeMsg{{Width: 80, Height: 24}, {Width: 120, Height: 40}, {Width: 200, Height: 60}} {
		m := full(false)
		m.Update(size)
		click(t, m, "coder-2")
		require.Equal(t, "coder-2", m.agents.picked().Name)
		click(t, m, "2 Tasks")
		require.Equal(t, tabTasks, m.tab)
		words := strings.Fields(m.tasks.seen[3].Name)
		third := words[0] + " " + words[1] + " "
		click(t, m, third)
		require.Equal(t, 3, m.tasks.at)
		x, y := at(t, m, third)
		before := m.tasks.at
		m.Update(tea.MouseWheelMsg{X: x, Y: y, Button: tea.MouseWheelDown})
		require.Equal(t, before+3, m.tasks.at)
		m.Update(tea.MouseWheelMsg{X: x, Y: y, Button: tea.MouseWheelUp})
		require.Equal(t, before, m.tasks.at)
		m.Update(tea.MouseWheelMsg{X: x, Y: y, Button: tea.MouseWheelRight})
		require.Equal(t, before, m.tasks.at)
		click(t, m, "5 Inbox")
		click(t, m, "why why")
		require.Equal(t, "q2", m.questions.picked().ID)
		m.Update(tea.MouseClickMsg{X: -1, Y: 9999, Button: tea.MouseLeft})
		require.Equal(t, tabInbox, m.tab)
		click(t, m, "9 Time")
		require.Equal(t, tabTimeline, m.tab)
	}
	m := full(false)
	require.Equal(t, tea.MouseModeCellMotion, m.View().MouseMode)
	press(m, "m")
	require.Equal(t, tea.MouseModeNone, m.View().MouseMode, "the terminal selects text")
}

// The tab of reviews shows the tasks of sessions, and the findings of the selected one.
func TestReviews(t *testing.T) {
	t.Parallel()
	m := full(false)
	press(m, "8")
	require.Contains(t, screenOf(m), "No session has tasks")
	m.hear(reviewsNews{tasks: []reviewed{{
		session: "site", reviews: []session.ReviewView{{Iteration: 1, Reviewer: "judge", Verdict: "changes_requested"}, {Iteration: 2, Reviewer: "judge"}},
		task: wire.SessionTask{
			TaskID: "91c0aa42-0000-4000-8000-000000000002", Name: "Paint " + nasty, Phase: session.PhaseReviewing, Iteration: 2, MaxIterations: 3, Progress: 0.5,
			Findings: []session.FindingView{{Severity: "major", File: "a.go", Text: "It leaks " + nasty}, {Severity: "minor", File: "b.go", Text: "A word", Fixed: 2}},
		},
	}}})
	lines := strings.Join(requireWhole(t, m, "reviews"), "\n")
	for _, want := range []string{"site", "Paint", "reviewing", "2/3", "1 finding", "review 1 by judge: changes_requested", "review 2 by judge: open", "x major a.go It leaks", "ok minor b.go A word", "##########"} {
		require.Contains(t, lines, want)
	}
}

// The timeline shows when a task waited and when it was worked on.
func TestTimeline(t *testing.T) {
	t.Parallel()
	m := still(false)
	status, _ := team(1, 0)
	m.hear(status)
	m.hear(tasksNews{tasks: []wire.Task{
		{ID: "b", Name: "second", State: wire.TaskDone, CreatedAt: "2026-11-21T14:00:00.000Z", StartedAt: "2026-11-21T14:00:50.000Z", EndedAt: "2026-11-21T14:01:40.000Z"},
		{ID: "a", Name: "first", State: wire.TaskFailed, CreatedAt: "2026-11-21T14:00:00.000Z", StartedAt: "2026-11-21T14:00:00.000Z", EndedAt: "2026-11-21T14:00:50.000Z"},
	}})
	press(m, "9")
	screen := screenOf(m)
	require.Regexp(t, `second +·{26}█{27}`, screen)
	require.Regexp(t, `first +█{26,27} `, screen)
}

// watch --bell rings once for a new question.
func TestBell(t *testing.T) {
	t.Parallel()
	m := still(false)
	asked := questionsNews{questions: []wire.Question{{ID: "q1"}}}
	m.hear(asked)
	require.False(t, m.ring, "without --bell")
	m = still(false)
	m.bell = true
	m.hear(asked)
	require.True(t, m.ring)
	m.hear(asked)
	require.False(t, m.ring)
}
