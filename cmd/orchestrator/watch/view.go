package watch

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// View implements tea.Model.
func (m *model) View() tea.View {
	lines, cursor := m.screen()
	view := tea.NewView(strings.Join(lines, "\n"))
	view.AltScreen = true
	view.Cursor = cursor
	if !m.free {
		view.MouseMode = tea.MouseModeCellMotion
	}
	return view
}

// screen returns every line of the screen, each at full width.
func (m *model) screen() (lines []string, cursor *tea.Cursor) {
	if m.width == 0 || m.height == 0 {
		return nil, nil
	}
	if m.width < smallestWidth || m.height < smallestHeight {
		lines = blank(m.pen, m.width, m.height)
		lines[0] = m.pen.fit(fmt.Sprintf("%dx%d is too small: use %dx%d or more. q quits", m.width, m.height, smallestWidth, smallestHeight), m.width)
		return lines, nil
	}
	m.areas = m.areas[:0]
	lines = append(lines, m.header(), m.tabs())
	lines = append(lines, m.faded(m.body)...)
	lines = append(lines, m.strip())
	last := m.keys()
	if m.line != nil {
		text, at := m.line.show(m.pen, m.width)
		last, cursor = text, tea.NewCursor(min(at, m.width-1), m.height-1)
	}
	return append(lines, last), cursor
}

// faded draws the body, dim while it is outdated because the orchestrator does not answer.
func (m *model) faded(draw func(width, height int) []string) []string {
	height := m.height - 4
	if m.lost.IsZero() {
		return draw(m.width, height)
	}
	before := m.pen
	m.pen.color = false
	lines := draw(m.width, height)
	m.pen = before
	for i := range lines {
		lines[i] = m.pen.ink(term.InkDim, lines[i])
	}
	return lines
}

// body returns the lines between the tabs and the strip.
func (m *model) body(width, height int) []string {
	switch {
	case m.help:
		return m.pen.drawHelp(width, height)
	case m.paper != nil:
		return m.paper.draw(m.pen, width, height)
	}
	switch m.tab {
	case tabTasks:
		return m.drawTasks(width, height)
	case tabAgents:
		return m.drawAgents(width, height)
	case tabGraph:
		m.place(0, 0, width, height, 0, &m.graph.rows.list)
		return m.graph.draw(m.pen, len(m.tasks.all) == 0, width, height)
	case tabInbox:
		return m.drawInbox(width, height)
	case tabBus:
		return m.drawBus(width, height)
	case tabLog:
		return m.log.draw(m.pen, m.now, m.filter[tabLog], width, height, true)
	case tabReviews:
		return m.drawReviews(width, height)
	case tabTimeline:
		return m.drawTimeline(width, height)
	}
	return m.drawOverview(width, height)
}

// header returns the name of the orchestrator, its state, and the counts of its tasks.
func (m *model) header() string {
	p := m.pen
	left := " orchestrator  " + oneLine(m.status.Name)
	doing, ink := "up "+term.MS(m.status.UpMS+max(0, m.now.Sub(m.tried).Milliseconds())), term.Ink("")
	switch {
	case !m.lost.IsZero():
		doing, ink = "reconnecting… "+term.Duration(max(0, m.now.Sub(m.lost))), term.InkBad
	case m.status.NoQuorum != "":
		doing, ink = "no quorum: changes are not saved", term.InkBad
	case m.status.State != "running":
		doing, ink = wire.Visible(m.status.State), term.InkWarn
	}
	left = p.width.Truncate(left, max(12, m.width-p.width.StringWidth(doing)-3), "…")
	room := m.width - p.width.StringWidth(left) - 2 - p.width.StringWidth(doing)
	if room < 0 {
		return p.fit(left+"  "+doing, m.width)
	}
	tally, wide := p.tally(m.status.Tasks, room-2)
	gap := max(0, room-wide)
	if all, over := totals(m.status.Tasks); all > 0 && gap > 40 {
		const size = 20
		words := fmt.Sprintf(" %d of %d", over, all)
		gap -= size + len(words) + 2
		tally = p.bar(float64(over)/float64(all), size) + p.ink(term.InkDim, words) + "  " + tally
	}
	return p.ink(inkAccent, left) + "  " + p.ink(ink, doing) + strings.Repeat(" ", gap) + tally
}

// totals returns the number of tasks, and the number of ended ones.
func totals(tasks control.TaskCounts) (all, over int) {
	for _, c := range counted(tasks) {
		all += c.n
		if c.state.Final() {
			over += c.n
		}
	}
	return all, over
}

// tally returns the counts of tasks by state that fit into room, the most urgent first.
func (p pen) tally(tasks control.TaskCounts, room int) (text string, wide int) {
	for _, c := range counted(tasks) {
		words := fmt.Sprintf("%d %s", c.n, c.state)
		if size := len(words) + 2; c.n > 0 && wide+size <= room {
			text += "  " + p.ink(term.TaskInk(c.state), words)
			wide += size
		}
	}
	return text, wide
}

func (m *model) tabNames() [tabCount]string {
	names := [tabCount]string{"Overview", "Tasks", "Agents", "Graph", "Inbox", "Bus", "Log", "Reviews", "Time"}
	if n := max(len(m.questions.all), m.status.Questions); n > 0 {
		names[tabInbox] = fmt.Sprintf("Inbox(%d)", n)
	}
	return names
}

// tabs returns the row of tabs. On a narrow screen only the selected tab has its name.
func (m *model) tabs() string {
	names := m.tabNames()
	wide := 0
	for _, name := range names {
		wide += len(name) + 3
	}
	short := wide > m.width
	var b strings.Builder
	used := 0
	for i, name := range names {
		if short && i != m.tab {
			name = ""
		}
		mark := " "
		if i == m.tab {
			mark = ">"
		}
		text := fmt.Sprintf("%s%d %s", mark, i+1, name)
		if short && name == "" {
			text = fmt.Sprintf(" %d", i+1)
		}
		if used+len(text) > m.width {
			continue // no room for all tabs
		}
		at := used
		m.areas = append(m.areas, area{x: at, y: 1, width: len(text), height: 1, click: func(int) { m.show(i) }})
		used += len(text)
		switch {
		case i == m.tab:
			text = m.pen.ink(inkTab, text)
		case i == tabInbox && len(m.questions.all) > 0:
			text = m.pen.ink(term.InkWarn, text)
		}
		b.WriteString(text)
	}
	return b.String() + strings.Repeat(" ", max(0, m.width-used))
}

// strip returns the line above the keys: the last action, or a question for a person.
func (m *model) strip() string {
	p := m.pen
	switch {
	case m.busy != "":
		return p.ink(term.InkDim, p.fit(" "+m.busy+" …   esc cancels", m.width))
	case !m.lost.IsZero() && m.why != "":
		return p.ink(term.InkBad, p.fit(" "+m.why, m.width))
	case m.note.text != "":
		ink := term.InkStrong
		if m.note.bad {
			ink = term.InkBad
		}
		return p.ink(ink, p.fit(" "+oneLine(m.note.text), m.width))
	case *m.filtered() != "":
		return p.ink(term.InkStrong, p.fit(" / "+oneLine(*m.filtered())+"   esc shows all again", m.width))
	case m.tab == tabInbox:
		return p.fit("", m.width)
	}
	return m.oldest()
}

// oldest returns the oldest question and how to answer it.
func (m *model) oldest() string {
	p := m.pen
	if len(m.questions.all) == 0 {
		if n := m.status.Tasks.PlanReview; n > 0 {
			return p.ink(term.InkWarn, p.fit(fmt.Sprintf(" ? %s to approve  :task approve-plan ID", term.Count(n, "plan")), m.width))
		}
		return p.fit("", m.width)
	}
	q := &m.questions.all[0]
	rest := "  a answers"
	if left := timeLeft(q, m.now); left != "" {
		rest += "   " + left + " left"
	}
	asks := " ? " + oneLine(q.Agent) + " asks: " + oneLine(q.Question)
	if words := steady(term.OptionWords(q.Options)); words != "" {
		asks += "  " + words
	}
	return p.ink(term.InkWarn, p.fit(asks, m.width-p.width.StringWidth(rest)-1)+rest+" ")
}

// keys returns the keys for the current screen.
func (m *model) keys() string {
	words := "enter open  / filter  : command  tab pane"
	switch {
	case m.help:
		words = "esc back"
	case m.paper != nil:
		words = "esc back  ↑↓ move"
	case m.permissionOf() != nil:
		words = "a allow  s this session  A always  d deny  : command"
	case m.choice != nil:
		words = "1-9 answer  ↑↓ choose  enter answer  esc back"
	case m.tab == tabOverview && m.focus[tabOverview] == 0, m.tab == tabAgents:
		words = "enter open  l logs  r restart  s stop  y why  / filter  : command  tab pane"
	case m.tab == tabOverview, m.tab == tabTasks:
		words = "enter open  r retry  d diff  y why  / filter  : command  tab pane"
	case m.tab == tabGraph:
		words = "enter open  + all or open  y why  / filter  : command"
	case m.tab == tabInbox:
		words = "a answer  enter answer  / filter  : command"
	case m.tab == tabBus:
		words = "enter open  f freeze  / filter  : command  tab pane"
	case m.tab == tabReviews:
		words = "enter open  d diff  y why  / filter  : command  ↑↓ move"
	case m.tab == tabTimeline:
		words = "enter open  y why  / filter  : command  ↑↓ move"
	case m.tab == tabLog:
		words = "f freeze  w wrap  / filter  ↑↓ move  : command"
		if !m.log.follow {
			words = "f follow  w wrap  / filter  ↑↓ move  : command"
		}
	}
	const more = "? help  q quit "
	if m.width-len(more) > m.pen.width.StringWidth(words)+2 {
		words = m.pen.fit(words, m.width-len(more)-1) + more
	}
	return m.pen.ink(term.InkDim, m.pen.fit(" "+words, m.width))
}

func (m *model) drawOverview(width, height int) []string {
	focus := m.focus[tabOverview]
	if m.single() {
		switch focus {
		case 1:
			return m.tasksPane(width, height, true)
		case 2:
			return m.agentDetail(width, height, true)
		}
		return m.agentsPane(width, height, true)
	}
	below := 0 // rows of the log
	if height >= 18 {
		below = max(5, height*3/10)
	}
	height -= below
	upper := min(max(4, len(m.agents.seen)+3), max(4, height/2))
	lower := height - upper
	left := width * 4 / 7
	top := []string(nil)
	if width >= 160 { // room for the questions, too
		top = beside(m.agentsPane(width*3/5, upper, focus != 1), m.questionList(rightOf(width*3/5, width), upper))
		m.place(0, 0, width*3/5, upper, 0, &m.agents.list)
	} else {
		top = m.agentsPane(width, upper, focus != 1)
		m.place(0, 0, width, upper, 0, &m.agents.list)
	}
	m.place(0, upper, left, lower, 1, &m.tasks.list)
	lines := append(top, beside(m.tasksPane(left, lower, focus == 1), m.agentDetail(rightOf(left, width), lower, false))...)
	if below > 0 {
		lines = append(lines, m.log.draw(m.pen, m.now, m.filter[tabLog], width, below, false)...)
	}
	return lines
}

// onOutput shows the output of a command: one line that fits as a note, anything longer as
// a paper.
func (m *model) onOutput(news outputMsg) {
	if news.number != m.run {
		return // a later command has begun
	}
	m.busy = ""
	text := strings.Trim(news.text, "\n")
	words := commandTitle(strings.Join(news.words, " "))
	switch {
	case text == "" && news.exit == 0:
		m.say(noteNews{text: words + ": done"})
	case text == "":
		m.say(noteNews{text: fmt.Sprintf("%s: exit %d", words, news.exit), bad: true})
	case !strings.Contains(text, "\n") && m.pen.width.StringWidth(oneLine(text)) < m.width:
		m.say(noteNews{text: text, bad: news.exit != 0})
	default:
		title := words
		if news.exit != 0 {
			title += fmt.Sprintf("  exit %d", news.exit)
		}
		m.unroll(title, text)
		m.paper.diff = len(news.words) > 1 && news.words[0] == "task" && news.words[1] == "diff"
	}
}

// unroll shows a text over the panes.
func (m *model) unroll(title, text string) {
	m.paper = &paper{title: oneLine(title)}
	for one := range strings.SplitSeq(text, "\n") {
		m.paper.text = append(m.paper.text, visible(strings.TrimRight(one, "\r")))
	}
}

func (m *model) paperKey(name string) bool {
	p := m.paper
	page := max(1, p.room-1)
	switch name {
	case "enter":
		m.paper = nil
	case "up", "k":
		p.top--
	case "down", "j":
		p.top++
	case "pgup", "ctrl+b":
		p.top -= page
	case "pgdown", "ctrl+f", "space":
		p.top += page
	case "home", "g":
		p.top = 0
	case "end", "G":
		p.top = len(p.lines)
	default:
		return false
	}
	return true
}
