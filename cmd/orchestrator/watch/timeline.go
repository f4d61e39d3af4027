package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// spanOf returns when a task was made, begun and ended. ended is now for an open task. begun is zero for a task that
// was never started.
func spanOf(t *wire.Task, now time.Time) (made, begun, ended time.Time) {
	made, _ = time.Parse(time.RFC3339Nano, t.CreatedAt)
	begun, _ = time.Parse(time.RFC3339Nano, t.StartedAt)
	ended, err := time.Parse(time.RFC3339Nano, t.EndedAt)
	if err != nil {
		ended = now
	}
	return made, begun, ended
}

// drawTimeline draws a row for each task: when it waited, and when it was worked on.
func (m *model) drawTimeline(width, height int) []string {
	p := m.pen
	rows := make([]*wire.Task, 0, len(m.tasks.seen))
	rows = append(rows, m.tasks.seen...)
	slices.SortStableFunc(rows, func(a, b *wire.Task) int { return strings.Compare(a.CreatedAt, b.CreatedAt) })
	m.timeline.resize(len(rows))
	from, to := m.timeline.window(height - 3)
	name := min(30, max(10, width/4))
	room := width - 2 - 1 - 2 - 1 - name - 1
	if len(rows) == 0 || room < 8 {
		words := " No tasks yet."
		if len(m.tasks.all) > 0 {
			words = " No task matches the filter, or the pane is too small."
		}
		return p.draw(pane{title: "Timeline", focused: true}, width, height, []string{words})
	}
	first, last := time.Time{}, time.Time{}
	for _, t := range rows[from:to] {
		made, _, ended := spanOf(t, m.now)
		if first.IsZero() || made.Before(first) {
			first = made
		}
		if ended.After(last) {
			last = ended
		}
	}
	length := max(time.Second, last.Sub(first))
	column := func(at time.Time) int {
		return max(0, min(room, int(float64(at.Sub(first))/float64(length)*float64(room))))
	}
	lines := []string{strings.Repeat(" ", 1+2+1+name+1) + p.ink(term.InkDim, p.axis(first, length, room))}
	for i, t := range rows[from:to] {
		made, begun, ended := spanOf(t, m.now)
		start, end := column(made), max(column(made)+1, column(ended))
		work := end
		if !begun.IsZero() {
			work = min(end-1, column(begun))
		}
		ink := term.TaskInk(t.State)
		bar := strings.Repeat(" ", start) + p.ink(inkWaiting, strings.Repeat("·", max(0, work-start))) +
			p.ink(ink, strings.Repeat("█", end-work)) + strings.Repeat(" ", max(0, room-end))
		head := p.row(from+i == m.timeline.at, 1+2+1+name+1,
			cell{text: term.Mark(t.State), size: 2, ink: ink}, cell{text: oneLine(t.Name), size: name})
		lines = append(lines, head+p.width.Truncate(bar, room, ""))
	}
	title := "Timeline" + m.tasks.place(len(rows)+1)
	if to-from < len(rows) {
		title += fmt.Sprintf("  %d-%d of %d", from+1, to, len(rows))
	}
	m.place(0, 1, width, height-1, 0, &m.timeline) // below the axis
	return p.draw(pane{title: title + "  · waiting  █ in progress", focused: true}, width, height, lines)
}

// axis returns a scale with a time about each 20 columns.
func (p pen) axis(first time.Time, length time.Duration, room int) string {
	marks := max(1, room/20)
	layout := time.TimeOnly
	if length > 48*time.Hour {
		layout = "Jan _2 15:04"
	}
	var b strings.Builder
	for i := range marks {
		at := first.Add(length * time.Duration(i) / time.Duration(marks)).Local().Format(layout)
		b.WriteString(p.fit("│"+at, room*(i+1)/marks-room*i/marks))
	}
	return b.String()
}

func (m *model) timelineKey(name string) {
	if m.timeline.move(name) || len(m.tasks.seen) == 0 {
		return
	}
	rows := slices.Clone(m.tasks.seen)
	slices.SortStableFunc(rows, func(a, b *wire.Task) int { return strings.Compare(a.CreatedAt, b.CreatedAt) })
	t := rows[min(m.timeline.at, len(rows)-1)]
	switch name {
	case "enter":
		m.do(about(t.ID, "task", "show")...)
	case "y":
		m.do(about(t.ID, "why")...)
	}
}
