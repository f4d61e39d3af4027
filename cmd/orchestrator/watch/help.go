package watch

// helpLines lists the keys, in the words of the command line where possible.
var helpLines = []string{
	"1-7, ← →     another tab",
	"tab          another pane",
	"↑ ↓ k j      move; pgup, pgdown, home, end",
	"enter        open: task show, agent show",
	"esc          back",
	"/            only rows with some text in them; @NAME in the log: of an agent",
	":            any command: task add \"Say hello\"",
	"a            answer: a number, or a line",
	"l            the agent's log",
	"r  s         agent restart, agent stop: enter does it",
	"y            why",
	"+            graph: all, or what has not ended",
	"f  w         log: freeze and follow, wrap",
	"ctrl+z       to the shell; fg comes back",
	"q, ctrl+c    quit: the agents go on",
	"",
	". pending  > running  r in_review  ? needs_human  p planning, plan_review",
	"ok done  x failed  - cancelled",
}

func (m *model) drawHelp(width, height int) []string {
	var lines []string
	for _, text := range helpLines {
		lines = append(lines, " "+text)
	}
	return m.pen.draw(pane{title: "Keys", focused: true}, width, height, lines)
}
