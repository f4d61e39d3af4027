package watch

import (
	"fmt"
	"slices"
	"strings"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

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
		m.do("task", "show", r.Task)
	case name == "y":
		m.do("why", r.Task)
	}
}

func (m *model) drawGraphTab(width, height int) []string {
	p := m.pen
	r := &m.graph.rows
	from, to := r.window(height - 2)
	var lines []string
	for i, one := range r.seen[from:to] {
		lines = append(lines, p.row(from+i == r.at, width-2, cell{text: visible(one.Text), size: width - 3, ink: term.TaskInk(one.State)}))
	}
	if len(lines) == 0 {
		lines = []string{" Every task has ended. + shows all."}
		if len(m.tasks.all) == 0 {
			lines = []string{" No tasks yet.", ` :task add "Say hello"`}
		}
	}
	title := "Graph, what has not ended"
	if m.graph.all {
		title = "Graph, all"
	}
	if m.graph.left > 0 {
		title += fmt.Sprintf(", %d not shown", m.graph.left)
	}
	return p.draw(pane{title: title + r.place(height-2), focused: true}, width, height, lines)
}

// oldestFirst returns tasks in the order of their creation.
func oldestFirst(tasks []wire.Task) []wire.Task {
	return slices.SortedStableFunc(slices.Values(tasks), func(a, b wire.Task) int { return strings.Compare(a.CreatedAt, b.CreatedAt) })
}
