package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire/control"
)

// logView holds the output of all agents. It follows new lines, or stands still and keeps
// the lines from when it stopped.
type logView struct {
	lines  ring[control.LogLine]
	still  ring[control.LogLine]
	follow bool
	at     int // number of the last visible line
	wrap   bool
	room   int
	name   int    // width of the names
	of     string // agent; "" for all
	end    func() // nil until output is followed
	denied string // why this person may not read it
}

// seen returns the lines that can be shown.
func (l *logView) seen() *ring[control.LogLine] {
	if l.follow {
		return &l.lines
	}
	return &l.still
}

// turn starts or stops following.
func (l *logView) turn(follow bool) {
	if l.follow && !follow {
		l.still = l.lines
	}
	if l.follow = follow; follow {
		l.still, l.at = ring[control.LogLine]{}, l.lines.end()-1
	}
}

// lastLines is how many past lines the log of one agent begins with.
const lastLines = 1000

// followLog follows the output of all agents, or of the agent in the filter. In the output
// of all agents, the lines of a quiet agent are soon lost.
func (m *model) followLog() {
	l := &m.log
	of, last := "", max(1, min(200, 2*kept/max(1, len(m.status.Agents))))
	if name, ok := strings.CutPrefix(m.filter[tabLog], "@"); ok && m.paces[name] != nil {
		of, last = name, lastLines
	}
	if l.end != nil {
		if of == l.of {
			return
		}
		l.end()
		l.lines = ring[control.LogLine]{}
		l.turn(true)
	}
	l.of, l.end = of, m.feed.logs(of, last, false)
}

// tailView holds the last lines of the selected agent.
type tailView struct {
	agent string
	lines []control.LogLine
	since time.Time
	end   func()
}

// tailKept is how many lines a tailView keeps.
const tailKept = 60

// tailSettles is the minimum time of following one agent. It avoids a request for each agent while
// the user scrolls through the list.
const tailSettles = 300 * time.Millisecond

// followTail follows the output of the selected agent.
func (m *model) followTail() {
	if m.tab == tabOverview && m.log.end == nil && m.width > 0 {
		m.followLog() // the overview shows it
	}
	v := m.agents.picked()
	if v == nil || m.tab != tabOverview && m.tab != tabAgents || m.tail.agent == v.Name || m.width == 0 {
		return
	}
	if time.Since(m.tail.since) < tailSettles {
		return // retried with the next news
	}
	if m.tail.end != nil {
		m.tail.end()
	}
	m.tail = tailView{agent: v.Name, since: time.Now(), end: m.feed.logs(v.Name, tailKept, true)}
}

func (m *model) hearLog(news logNews) {
	news.lines = slices.DeleteFunc(news.lines, func(l control.LogLine) bool { return term.Redundant(&l) })
	if news.tail {
		if news.agent != m.tail.agent {
			return
		}
		if news.fresh {
			m.tail.lines = nil
		}
		lines := append(m.tail.lines, news.lines...)
		m.tail.lines = append(lines[:0:0], lines[max(0, len(lines)-tailKept):]...)
		return
	}
	if news.agent != m.log.of {
		return // another log is followed now
	}
	m.log.denied = news.denied
	m.log.lines.add(news.lines, news.fresh)
	for i := range news.lines {
		m.log.name = max(m.log.name, min(20, m.pen.width.StringWidth(oneLine(news.lines[i].Agent))))
	}
	if m.log.follow {
		m.log.at = m.log.lines.end() - 1
	}
}

// key handles a key. The filter decides which lines are visible.
func (l *logView) key(name, filter string) {
	keep := lineFilter(filter)
	page := max(1, l.room-1)
	switch name {
	case "f":
		l.turn(!l.follow)
	case "w":
		l.wrap = !l.wrap
	case "up", "k":
		l.step(keep, -1)
	case "down", "j":
		l.step(keep, 1)
	case "pgup", "ctrl+b":
		l.step(keep, -page)
	case "pgdown", "ctrl+f":
		l.step(keep, page)
	case "home", "g":
		l.step(keep, -kept*2)
	case "end", "G":
		l.turn(true)
	}
}

// step moves by a number of visible lines. A step back stops following, and reaching the
// end follows again.
func (l *logView) step(keep func(*control.LogLine) bool, by int) {
	direction := 1
	if by < 0 {
		direction, by = -1, -by
		l.turn(false)
	}
	lines := l.seen()
	first := lines.first + l.shownAbove(keep)
	for at := l.at + direction; by > 0 && at >= first && at < lines.end(); at += direction {
		if keep(lines.at(at)) {
			l.at = at
			by--
		}
	}
	if direction > 0 && by > 0 {
		l.turn(true)
	}
}

// shownAbove returns the index of the last line of the first full page.
func (l *logView) shownAbove(keep func(*control.LogLine) bool) int {
	need, lines := l.room, l.seen()
	for i := range lines.all {
		if keep(&lines.all[i]) {
			need--
		}
		if need <= 0 {
			return i
		}
	}
	return 0
}

// lineFilter returns the function that applies a filter. @NAME selects the lines of an agent.
func lineFilter(filter string) func(*control.LogLine) bool {
	if name, ok := strings.CutPrefix(filter, "@"); ok {
		return func(l *control.LogLine) bool { return l.Agent == name }
	}
	filter = strings.ToLower(filter)
	return func(l *control.LogLine) bool {
		return filter == "" || strings.Contains(strings.ToLower(l.Agent), filter) || strings.Contains(strings.ToLower(l.Text), filter)
	}
}

func (l *logView) draw(p pen, now time.Time, filter string, width, height int, focused bool) []string {
	l.room = height - 2
	keep := lineFilter(filter)
	var rows []string // last one first
	lines := l.seen()
	for at := min(l.at, lines.end()-1); at >= lines.first && len(rows) < l.room; at-- {
		one := lines.at(at)
		if !keep(one) {
			continue
		}
		text := p.logWords(one, now, l.name)
		parts := []string{text}
		if l.wrap {
			parts = p.wrap(text, width-3)
		}
		for i := len(parts) - 1; i >= 0 && len(rows) < l.room; i-- {
			rows = append(rows, " "+parts[i])
		}
	}
	slices.Reverse(rows)
	if len(rows) == 0 {
		rows = []string{" " + oneLine(cmp.Or(l.denied, "No lines."))}
	}
	title := "Log"
	if !l.follow {
		title += fmt.Sprintf(", frozen, %d more", l.lines.end()-1-l.at)
	}
	return p.draw(pane{title: title, focused: focused}, width, height, rows)
}

// logWords returns a line of output as a row. The agent's name is padded to the width name,
// and omitted if that is 0.
func (p pen) logWords(l *control.LogLine, now time.Time, name int) string {
	mark, ink := "|", term.InkDim
	switch l.Stream {
	case control.StreamErr:
		mark, ink = ":", term.InkWarn
	case control.StreamOwn:
		mark = term.OwnMark(l)
		if l.Trouble {
			ink = term.InkBad
		}
	}
	text := visible(l.Text)
	switch l.Level {
	case "warn":
		text = p.ink(term.InkWarn, "warn:") + " " + text
	case "error":
		text = p.ink(term.InkBad, "error:") + " " + text
	}
	if len(l.Context) > 0 {
		text += " " + p.ink(term.InkDim, visible(string(l.Context)))
	}
	if l.Missed > 0 {
		text = p.ink(term.InkWarn, fmt.Sprintf("(%s missed)", term.Count(int(l.Missed), "line"))) + " " + text
	}
	whose := ""
	if name > 0 {
		whose = p.fit(oneLine(l.Agent), name) + " "
	}
	return p.ink(term.InkDim, oneLine(term.Clock(l.At, now, time.TimeOnly))) + " " + whose + p.ink(ink, mark) + " " + text
}
