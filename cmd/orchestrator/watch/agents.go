package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// taskOf returns the task of an agent with the most progress, or nil if it has none.
func taskOf(v *control.AgentView) *control.TaskLabel {
	if len(v.Tasks) == 0 {
		return nil
	}
	begun := func(t control.TaskLabel) float64 {
		if t.State == wire.TaskAssigned {
			return -1
		}
		return t.Progress
	}
	first := slices.MaxFunc(v.Tasks, func(a, b control.TaskLabel) int { return cmp.Compare(begun(a), begun(b)) })
	return &first
}

// taskWords returns the task of an agent, its progress and the number of its other tasks.
func taskWords(v *control.AgentView) string {
	t := taskOf(v)
	if t == nil {
		return ""
	}
	words := term.ID(t.ID) + " " + oneLine(t.Name)
	if progress := term.Percent(t.Progress); progress != "" {
		words += " " + progress
	}
	if len(v.Tasks) > 1 {
		words += fmt.Sprintf(" +%d", len(v.Tasks)-1)
	}
	return words
}

// doing returns the task of an agent, or why it has none.
func doing(v *control.AgentView) string {
	words := []string{taskWords(v)}
	if v.State != control.StateRunning {
		words = append(words, oneLine(v.Reason))
	}
	if v.State == control.StateBackoff && v.NextStartMS > 0 {
		words = append(words, "starts in "+term.MS(v.NextStartMS))
	}
	words = slices.DeleteFunc(words, func(s string) bool { return s == "" })
	return strings.Join(words, "  ")
}

// headed is the minimum height of a pane with a row for the names of its columns.
const headed = 5

// agentRows returns the rows of the agents that fit into room rows.
func (m *model) agentRows(width, room int, header bool) []string {
	p := m.pen
	from, to := m.agents.window(room)
	name, state := 8, 7
	for _, v := range m.agents.seen[from:to] {
		name = max(name, min(20, p.width.StringWidth(oneLine(v.Name))))
		state = max(state, len(v.State))
	}
	spark := 8
	if width > 110 {
		spark = 20
	}
	figures := width >= 56
	rest := width - 1 - name - 1 - state - 1
	if figures {
		rest -= 8 + 1 + spark + 1 + 5 + 1
	}
	var rows []string
	if header {
		cells := []cell{{text: "AGENT", size: name}, {text: "STATE", size: state}, {text: "ACTIVITY", size: rest}}
		if figures {
			cells = append(cells, cell{text: "LINES/S", size: 8, right: true}, cell{text: "RECENTLY", size: spark}, cell{text: "RAM", size: 5, right: true})
		}
		rows = append(rows, p.ink(term.InkDim, p.row(false, width, cells...)))
	}
	for i, v := range m.agents.seen[from:to] {
		cells := []cell{
			{text: oneLine(v.Name), size: name},
			{text: wire.Visible(string(v.State)), size: state, ink: term.StateInk(v.State)},
			{text: doing(v), size: rest},
		}
		if figures {
			cells = append(cells, m.figures(v, spark)...)
		}
		rows = append(rows, p.row(from+i == m.agents.at, width, cells...))
	}
	return rows
}

// figures returns the cells with an agent's output rate and memory.
func (m *model) figures(v *control.AgentView, spark int) []cell {
	said, memory := "-", "-"
	pace := m.paces[v.Name]
	var past []float64
	if figure, known := pace.latest(); known {
		past = pace.past
		if said = fmt.Sprintf("%.1f", figure); figure >= 1000 {
			said = fmt.Sprintf("%.0f", figure)
		}
	}
	if v.RSSBytes > 0 {
		memory = term.Bytes(v.RSSBytes)
	}
	return []cell{{text: said, size: 8, right: true}, {text: bars(past, spark), size: spark}, {text: memory, size: 5, right: true}}
}

func (m *model) agentsPane(width, height int, focused bool) []string {
	room, header := height-2, height >= headed
	if header {
		room--
	}
	rows := m.agentRows(width-2, room, header)
	if len(m.agents.seen) == 0 {
		rows = []string{" No agent matches the filter."}
		if len(m.agents.all) == 0 {
			rows = []string{" No agents: the file has none."}
		}
	}
	return m.pen.draw(pane{title: "Agents" + m.agents.place(room), focused: focused}, width, height, rows)
}

// place returns the range of visible rows, or "" if all are visible.
func (r *roster[T]) place(room int) string {
	words := ""
	if len(r.seen) < len(r.all) {
		words = fmt.Sprintf(" %d of %d", len(r.seen), len(r.all))
	}
	if len(r.seen) > room && room > 0 {
		words += fmt.Sprintf("  %d-%d", r.top+1, min(len(r.seen), r.top+room))
		if len(r.seen) == len(r.all) {
			words += fmt.Sprintf(" of %d", len(r.all))
		}
	}
	return words
}

// agentDetail returns the pane of the selected agent: its figures and its last lines.
func (m *model) agentDetail(width, height int, focused bool) []string {
	p := m.pen
	v := m.agents.picked()
	if v == nil {
		return p.draw(pane{focused: focused}, width, height, nil)
	}
	pid := "no process"
	if v.PID != 0 {
		pid = fmt.Sprintf("pid %d", v.PID)
		if v.Host != "" {
			pid += " on " + oneLine(v.Host)
		}
		pid += "  up " + term.MS(v.UpMS)
	}
	lines := []string{
		fmt.Sprintf(" %s  restarts %d", pid, v.Restarts),
		fmt.Sprintf(" unread %s  mailbox %d  cpu %s", term.Bytes(v.Mailbox.Unread), v.Mailbox.Messages, term.MS(v.CPUMS)),
	}
	if v.LastExit != "" {
		lines = append(lines, " last "+oneLine(v.LastExit))
	}
	if words := doing(v); words != "" {
		lines = append(lines, " "+words)
	}
	room := max(0, height-2-len(lines))
	last := m.tail.lines
	if m.tail.agent != v.Name {
		last = nil
	}
	for _, l := range last[max(0, len(last)-room):] {
		lines = append(lines, " "+p.logWords(&l, m.now, 0))
	}
	return p.draw(pane{title: oneLine(v.Name), focused: focused}, width, height, lines)
}

func (m *model) drawAgents(width, height int) []string {
	switch {
	case m.single() && m.focus[tabAgents]%2 == 1:
		return m.agentDetail(width, height, true)
	case m.single():
		return m.agentsPane(width, height, true)
	}
	lower := max(6, height*2/5)
	m.place(0, 0, width, height-lower, 0, &m.agents.list)
	return append(m.agentsPane(width, height-lower, true), m.agentDetail(width, lower, false)...)
}
