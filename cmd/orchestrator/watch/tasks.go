package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// taskRows returns the rows of the tasks that fit into room rows.
func (m *model) taskRows(width, room int, header bool) []string {
	p := m.pen
	from, to := m.tasks.window(room)
	state, who, id := 4, 0, 8
	if width < narrow {
		id = 4 // enough for a few tasks
	}
	for _, t := range m.tasks.seen[from:to] {
		state = max(state, min(12, len(t.State)))
		who = max(who, min(24, width/3, p.width.StringWidth(whoWords(t, id))))
	}
	name, bar := width-1-2-1-id-1-1-state-1-who, 0
	if width >= 70 { // room for a bar of the progress
		bar = 10
		name -= bar + 1
	}
	var rows []string
	if header {
		rows = append(rows, p.ink(term.InkDim, p.row(false, width, cell{size: 2}, cell{text: "ID", size: id}, cell{text: "TITLE", size: name},
			cell{text: "STATE", size: state}, cell{text: "AGENT", size: who})))
	}
	for i, t := range m.tasks.seen[from:to] {
		picked := from+i == m.tasks.at
		cells := []cell{
			{text: term.Mark(t.State), size: 2, ink: term.TaskInk(t.State)},
			{text: shortID(t.ID, id), size: id},
			{text: oneLine(t.Name), size: name},
			{text: wire.Visible(string(t.State)), size: state, ink: term.TaskInk(t.State)},
			{text: whoWords(t, id), size: who},
		}
		if bar > 0 {
			done := ""
			if t.Progress > 0 && !t.State.Final() {
				plain := p
				plain.color = p.color && !term.Paint(picked)
				done = plain.bar(t.Progress, bar)
			}
			cells = append(cells, cell{text: done, size: bar})
		}
		rows = append(rows, p.row(picked, width, cells...))
	}
	return rows
}

// shortID returns the first characters of an id.
func shortID(id string, size int) string {
	short := []rune(term.ID(id))
	return steady(string(short[:min(size, len(short))]))
}

// whoWords returns the agent of a task and its progress, or the reason for its wait.
func whoWords(t *wire.Task, id int) string {
	if len(t.WaitsFor) > 0 && !t.State.Final() {
		words := "needs " + shortID(t.WaitsFor[0], id)
		if len(t.WaitsFor) > 1 {
			words += fmt.Sprintf(" +%d", len(t.WaitsFor)-1)
		}
		return words
	}
	if after := term.NotBefore(t, time.Now(), "15:04"); after != "" {
		return "after " + after
	}
	words := oneLine(t.AssignedTo)
	if progress := term.Percent(t.Progress); progress != "" && !t.State.Final() {
		words += " " + progress
	}
	return words
}

func (m *model) tasksPane(width, height int, focused bool) []string {
	room, header := height-2, height >= headed
	if header {
		room--
	}
	rows := m.taskRows(width-2, room, header)
	switch {
	case len(m.tasks.seen) > 0:
	case !m.heard:
		rows = []string{" …"}
	case len(m.tasks.all) == 0:
		rows = []string{" No tasks yet.", ` :task add "Say hello"`}
	default:
		rows = []string{" No task matches the filter."}
	}
	title := "Tasks" + m.tasks.place(room)
	if m.unlisted > 0 {
		title += fmt.Sprintf(", %d not shown", m.unlisted)
	}
	return m.pen.draw(pane{title: title, focused: focused}, width, height, rows)
}

// taskDetail returns the pane of a task, or an empty one for nil.
func (p pen) taskDetail(t *wire.Task, now time.Time, width, height int, focused bool) []string {
	if t == nil {
		return p.draw(pane{focused: focused}, width, height, nil)
	}
	at := func(stamp string) string { return oneLine(term.Clock(stamp, now, time.TimeOnly)) }
	var lines []string
	row := func(name, text string) {
		if text == "" {
			return
		}
		for i, part := range p.wrap(text, width-2-11) {
			if i > 0 {
				name = ""
			}
			lines = append(lines, " "+p.ink(term.InkDim, p.fit(name, 9))+" "+part)
		}
	}
	row("name", oneLine(t.Name))
	row("state", wire.Visible(string(t.State)))
	row("progress", strings.TrimSpace(term.Percent(t.Progress)+"  "+oneLine(t.Message)))
	row("agent", oneLine(t.AssignedTo))
	row("role", oneLine(t.RequiredRole))
	row("created", at(t.CreatedAt)+" by "+oneLine(strings.TrimPrefix(t.SubmittedBy, "agent:")))
	row("changed", task.ChangedBy(t))
	row("started", at(t.StartedAt))
	row("ended", at(t.EndedAt))
	if t.Attempts > 1 {
		row("attempts", fmt.Sprint(t.Attempts))
	}
	var needs []string
	for _, id := range t.WaitsFor {
		needs = append(needs, term.ID(id))
	}
	row("needs", strings.Join(needs, " "))
	row("error", oneLine(t.Error))
	row("reason", oneLine(t.Reason))
	return p.draw(pane{title: term.ID(t.ID), focused: focused}, width, height, lines)
}

func (m *model) drawTasks(width, height int) []string {
	detail := func(width, height int, focused bool) []string {
		return m.pen.taskDetail(m.tasks.picked(), m.now, width, height, focused)
	}
	switch {
	case m.single() && m.focus[tabTasks]%2 == 1:
		return detail(width, height, true)
	case m.single():
		return m.tasksPane(width, height, true)
	case width >= 110:
		left := width * 3 / 5
		m.place(0, 0, left, height, 0, &m.tasks.list)
		return beside(m.tasksPane(left, height, true), detail(rightOf(left, width), height, false))
	}
	lower := max(6, height/3)
	m.place(0, 0, width, height-lower, 0, &m.tasks.list)
	return append(m.tasksPane(width, height-lower, true), detail(width, lower, false)...)
}

// graphView holds the tree of tasks. Ended tasks are hidden unless all is set.
type graphView struct {
	rows roster[Row]
	all  bool
	left int
}

// drawGraph builds the tree of tasks, or of the known tasks for nil.
func (m *model) drawGraph(tasks []wire.Task) {
	if tasks == nil {
		tasks = m.tasks.all
	}
	rows, left := m.of.Tree(oldestFirst(tasks), m.graph.all)
	m.graph.left = left
	m.graph.rows.set(rows, m.filter[tabGraph])
}

func (m *model) graphKey(name string) {
	if m.graph.rows.move(name) {
		return
	}
	r := m.graph.rows.picked()
	switch {
	case name == "+" || name == "-":
		m.graph.all = !m.graph.all
		m.drawGraph(nil)
	case r == nil:
	case name == "enter":
		m.do(about(r.Task, "task", "show")...)
	case name == "y":
		m.do(about(r.Task, "why")...)
	}
}

// draw draws the tree. None is set if no task is known.
func (g *graphView) draw(p pen, none bool, width, height int) []string {
	r := &g.rows
	from, to := r.window(height - 2)
	var lines []string
	for i, one := range r.seen[from:to] {
		lines = append(lines, p.row(from+i == r.at, width-2, cell{text: visible(one.Text), size: width - 3, ink: term.TaskInk(one.State)}))
	}
	if len(lines) == 0 {
		lines = []string{" Every task has ended. + shows all."}
		if none {
			lines = []string{" No tasks yet.", ` :task add "Say hello"`}
		}
	}
	title := "Graph, open tasks"
	if g.all {
		title = "Graph, all tasks"
	}
	if g.left > 0 {
		title += fmt.Sprintf(", %d not shown", g.left)
	}
	return p.draw(pane{title: title + r.place(height-2), focused: true}, width, height, lines)
}

// oldestFirst returns tasks in the order of their creation.
func oldestFirst(tasks []wire.Task) []wire.Task {
	return slices.SortedStableFunc(slices.Values(tasks), func(a, b wire.Task) int { return strings.Compare(a.CreatedAt, b.CreatedAt) })
}
