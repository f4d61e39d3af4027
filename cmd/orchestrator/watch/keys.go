package watch

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// key handles a key. While a line is typed, the line gets all keys but Ctrl-Z.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+z" {
		if !shellBehind() {
			m.say(noteNews{text: "No shell to return to. q quits", bad: true})
			return nil
		}
		return tea.Suspend
	}
	if m.line != nil {
		typing := m.line
		if typing.key(k) && m.line == typing {
			m.line = nil
		}
		return nil
	}
	switch name {
	case "q", "ctrl+c":
		return tea.Quit
	}
	switch {
	case m.width < smallestWidth || m.height < smallestHeight: // a screen this small is empty
	case m.help:
		m.help = false
	case m.permissionKey(name):
	case m.choice != nil && m.choiceKey(name):
	case m.paper != nil && m.paperKey(name):
	case m.globalKey(name):
	default:
		m.tabKey(name)
	}
	return nil
}

// globalKey handles the keys that work on every screen.
func (m *model) globalKey(name string) bool {
	switch name {
	case "?":
		m.help = true
	case ":":
		m.command("")
	case "/":
		m.look()
	case "esc":
		m.back()
	case "tab":
		m.focus[m.tab] = (m.focus[m.tab] + 1) % m.panes()
	case "shift+tab":
		m.focus[m.tab] = (m.focus[m.tab] + m.panes() - 1) % m.panes()
	case "1", "2", "3", "4", "5", "6", "7", "8", "9":
		m.show(int(name[0] - '1'))
	case "right":
		m.show((m.tab + 1) % tabCount)
	case "left":
		m.show((m.tab + tabCount - 1) % tabCount)
	case "a":
		m.answerFirst()
	case "m":
		if m.free = !m.free; m.free {
			m.say(noteNews{text: "The mouse selects text. m: select rows again"})
		} else {
			m.say(noteNews{text: "The mouse selects rows, and the wheel scrolls"})
		}
	default:
		return false
	}
	return true
}

// back closes the topmost open part: a text, a command, a filter or a note.
func (m *model) back() {
	switch {
	case m.paper != nil:
		m.paper = nil
	case m.busy != "":
		m.giveUp()
	case *m.filtered() != "":
		*m.filtered() = ""
		m.refilter()
	case m.note.text != "":
		m.note = noteNews{}
	case m.tab != tabOverview:
		m.show(tabOverview)
	}
}

// show selects a tab, and starts to follow its data.
func (m *model) show(tab int) {
	m.tab, m.paper, m.choice = tab, nil, nil
	switch {
	case tab == tabBus && m.bus.end == nil:
		m.bus.end = m.feed.mail()
		m.askTopics()
	case tab == tabGraph:
		m.drawGraph(nil)
	}
	m.refilter()
}

// panes returns how many panes of the tab can have the focus.
func (m *model) panes() int {
	switch m.tab {
	case tabOverview:
		if m.single() {
			return 3
		}
		return 2
	case tabTasks, tabAgents, tabInbox, tabReviews:
		if m.single() {
			return 2
		}
	case tabBus:
		return 2
	}
	return 1
}

// tabKey handles a key on the current tab.
func (m *model) tabKey(name string) {
	switch m.tab {
	case tabOverview:
		if m.focus[tabOverview] == 1 {
			m.taskKey(name)
		} else {
			m.agentKey(name)
		}
	case tabTasks:
		m.taskKey(name)
	case tabAgents:
		m.agentKey(name)
	case tabGraph:
		m.graphKey(name)
	case tabInbox:
		if name == "enter" {
			m.answerPicked()
		}
		m.questions.move(name)
	case tabBus:
		m.busKey(name)
	case tabLog:
		m.log.key(name, m.filter[tabLog])
	case tabReviews:
		m.reviewKey(name)
	case tabTimeline:
		m.timelineKey(name)
	}
}

func (m *model) agentKey(name string) {
	v := m.agents.picked()
	if m.agents.move(name) || v == nil {
		return
	}
	switch name {
	case "enter":
		m.do(about(v.Name, "agent", "show")...)
	case "y":
		m.do(about(v.Name, "why")...)
	case "l":
		m.filter[tabLog] = "@" + v.Name
		m.show(tabLog)
	case "r":
		m.command("agent restart " + quoted(v.Name))
	case "s":
		m.command("agent stop " + quoted(v.Name))
	}
}

func (m *model) taskKey(name string) {
	t := m.tasks.picked()
	if m.tasks.move(name) || t == nil {
		return
	}
	switch name {
	case "enter":
		m.do(about(t.ID, "task", "show")...)
	case "d":
		m.do(about(t.ID, "task", "diff")...)
	case "r":
		m.retry(t)
	case "y":
		m.do(about(t.ID, "why")...)
	}
}

// retry starts the command that puts a failed or cancelled task back.
func (m *model) retry(t *wire.Task) {
	if t.State != wire.TaskFailed && t.State != wire.TaskCancelled {
		m.say(noteNews{text: "Only a failed or cancelled task can be retried", bad: true})
		return
	}
	m.command("task retry " + quoted(term.ID(t.ID)))
}

// look starts the input of a filter. The filter applies with each character.
func (m *model) look() {
	filter := m.filtered()
	before := *filter
	set := func(text string) {
		*filter = text
		m.refilter()
	}
	m.line = &line{
		prompt: "/", text: []rune(before), at: len([]rune(before)),
		typed: set, done: set, left: func() { set(before) },
	}
}

// command starts the input of a command line.
func (m *model) command(text string) {
	m.line = &line{
		prompt: ":", text: []rune(text), at: len([]rune(text)), past: m.past,
		done: func(text string) {
			words, err := wordsOf(text)
			switch {
			case err != nil:
				m.say(noteNews{text: "Not done: " + err.Error(), bad: true})
			case len(words) == 1 && (words[0] == "q" || words[0] == "quit"):
				m.say(noteNews{text: `Press q without ":" to quit. The agents keep running`})
			case len(words) > 0:
				m.past = append(slices.DeleteFunc(m.past, func(s string) bool { return s == text }), text)
				m.do(words...)
			}
		},
	}
}

// about returns a command about an id. Agents choose ids, which may look like flags.
func about(id string, words ...string) []string {
	if strings.HasPrefix(id, "-") {
		words = append(words, "--")
	}
	return append(words, id)
}

// do runs a command. It cancels the previous one if that is still running.
func (m *model) do(words ...string) {
	if m.giveUp != nil {
		m.giveUp()
	}
	m.run++
	number, columns := m.run, max(40, m.width-4)
	m.busy = commandTitle(strings.Join(words, " "))
	m.giveUp = m.feed.do(func(ctx context.Context) tea.Msg {
		text, exit := m.of.Run(ctx, words, columns)
		return outputMsg{number: number, words: words, text: text, exit: exit}
	})
}

// quoted quotes a word for a command line.
func quoted(word string) string {
	if strings.ContainsAny(word, " \t'\"\\") {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// helpLines lists the keys, in the words of the command line where possible.
var helpLines = []string{
	"1-9, ← →     switch tabs",
	"tab          switch panes",
	"↑ ↓ k j      move; pgup, pgdown, home, end",
	"enter        open: task show, agent show",
	"esc          back",
	"/            filter rows by text; in the log, @NAME filters by agent",
	":            any command: task add \"Say hello\"",
	"a            answer with a number or a text",
	"a  s  A  d   a permission: allow, for this session, always; deny",
	"l            the log of an agent",
	"r  s         agent restart, agent stop; enter confirms",
	"r            task retry, for a failed or cancelled task; enter confirms",
	"y            why",
	"d            the changes of a task: task diff",
	"+            graph: all or open tasks",
	"f  w         log: freeze and follow, wrap",
	"m            mouse: select and open rows, or select text",
	"ctrl+z       to the shell; fg returns",
	"q, ctrl+c    quit; the agents keep running",
	"",
	". pending  > running  v verifying  r in_review  ? needs_human  p planning, plan_review",
	"ok done  x failed  - cancelled",
}

func (p *pen) drawHelp(width, height int) []string {
	var lines []string
	for _, text := range helpLines {
		lines = append(lines, " "+text)
	}
	return p.draw(pane{title: "Keys", focused: true}, width, height, lines)
}
