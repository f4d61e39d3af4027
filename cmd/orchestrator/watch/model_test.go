package watch

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
)

// A fake is an Orchestrator with the functions that a test sets.
type fake struct {
	Orchestrator
	ask    func(ctx context.Context, operation string, request any) ([]byte, error)
	follow func(ctx context.Context, list string, query url.Values) iter.Seq2[[]byte, error]
}

func (f fake) Ask(ctx context.Context, operation string, request any) ([]byte, error) {
	return f.ask(ctx, operation, request)
}

func (f fake) Follow(ctx context.Context, list string, query url.Values) iter.Seq2[[]byte, error] {
	return f.follow(ctx, list, query)
}

func (fake) Tree(tasks []wire.Task, all bool) ([]Row, int) {
	var rows []Row
	for i := range tasks {
		if all || !tasks[i].State.Final() {
			rows = append(rows, Row{Task: tasks[i].ID, State: tasks[i].State, Text: "└─ " + visible(tasks[i].Name)})
		}
	}
	return rows, 3
}

// still returns a model whose feed starts no goroutines.
func still(color bool) *model {
	f := newFeed(fake{})
	f.begun = func(func(context.Context)) {}
	m := newModel(fake{}, f, nil, color)
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	return m
}

const nasty = "写手\x1b[2J\u202e\x00 👩‍👩‍👧 e\u0301\ttab\nline \x1b]0;t\x07 ｆｕｌｌ 🇨🇭"

func team(agents, tasks int) (statusNews, tasksNews) {
	status := control.Status{Name: "shop" + nasty, State: "running", StartedAt: "2026-11-21T14:00:00.000Z", UpMS: 720_000}
	for i := range agents {
		v := control.AgentView{Name: fmt.Sprintf("coder-%d", i), State: control.StateRunning, PID: 41000 + i, RSSBytes: 32 << 20, Reason: nasty}
		if i%3 == 1 {
			v.State, v.NextStartMS = control.StateBackoff, 3000
		}
		if i%4 == 0 {
			v.Tasks = []control.TaskLabel{{ID: "91c0aa42-0000-4000-8000-000000000002", Name: nasty, State: wire.TaskRunning, Progress: 0.64}}
		}
		status.Agents = append(status.Agents, v)
	}
	list := tasksNews{left: 7}
	for i := range tasks {
		state := wire.TaskStates[i%len(wire.TaskStates)]
		list.tasks = append(list.tasks, wire.Task{
			ID: fmt.Sprintf("%08x-0000-4000-8000-000000000000", i), Name: fmt.Sprintf("task %d %s", i, nasty), State: state,
			CreatedAt: fmt.Sprintf("2026-11-21T14:%02d:00.000Z", i%60), AssignedTo: "coder-1", Error: nasty,
		})
	}
	status.Tasks = control.TaskCounts{Running: tasks, PlanReview: 2, Failed: 3}
	return statusNews{status: status}, list
}

// full returns a model with data for every view.
func full(color bool) *model {
	m := still(color)
	status, tasks := team(9, 40)
	m.hear(status)
	m.hear(tasks)
	m.hear(questionsNews{questions: []wire.Question{
		{ID: "q1", Agent: "coder-0", Question: "Which " + nasty + "?", Options: []wire.Option{{Label: nasty, Value: "a"}, {Label: "b", Value: "b"}}, Context: wire.Raw(`{"long":"` + strings.Repeat("x", 300) + `"}`)},
		{ID: "q2", Agent: nasty, Question: strings.Repeat("why ", 100)},
	}})
	m.hear(topicsNews{topics: []mail.TopicView{{Topic: "message.direct"}}})
	m.hear(mailNews{fresh: true, mail: []mail.Message{{Seq: 1, From: "PO:shop", To: "GO", Topic: "message.direct", Payload: wire.Raw(`{"text":"` + nasty + `"}`)}}})
	var lines []control.LogLine
	for i := range 50 {
		lines = append(lines, control.LogLine{At: "2026-11-21T14:00:00.000Z", Agent: fmt.Sprintf("coder-%d", i%2), Stream: control.StreamOut, Text: fmt.Sprintf("line %d %s", i, nasty), Level: "warn", Missed: int64(i % 2)})
	}
	m.hear(logNews{lines: lines, fresh: true})
	m.tail = tailView{agent: "coder-0", lines: lines}
	return m
}

// requireWhole checks that every row of the screen has the full width, and contains no control
// sequence except colors.
func requireWhole(t *testing.T, m *model, what string) []string {
	t.Helper()
	lines, _ := m.screen()
	require.Len(t, lines, m.height, what)
	for i, line := range lines {
		require.Equal(t, m.width, m.pen.width.StringWidth(line), "%s, row %d: %q", what, i, line)
		bare := ansi.Strip(line)
		for _, r := range bare {
			require.False(t, r < ' ' || r == 0x7f || r == 0x202e, "%s, row %d: %q", what, i, line)
		}
		if !m.pen.color {
			require.Equal(t, bare, line, what)
		}
	}
	return lines
}

// Every view is complete at every screen size.
func TestEverySize(t *testing.T) {
	t.Parallel()
	for _, color := range []bool{true, false} {
		for _, width := range []int{1, 29, 30, 45, 59, 60, 80, 110, 200} {
			for _, height := range []int{1, 8, 9, 16, 24, 70} {
				m := full(color)
				m.Update(tea.WindowSizeMsg{Width: width, Height: height})
				for tab := range tabCount {
					m.show(tab)
					for range 3 {
						requireWhole(t, m, fmt.Sprintf("%dx%d tab %d", width, height, tab+1))
						m.focus[m.tab] = (m.focus[m.tab] + 1) % m.panes()
					}
				}
				m.log.wrap = true
				requireWhole(t, m, "wrapped")
				m.show(tabInbox)
				m.answerFirst()
				requireWhole(t, m, "choice")
				m.choice = nil
				m.unroll(nasty, nasty+"\n"+strings.Repeat("long ", 100))
				requireWhole(t, m, "paper")
				m.paper, m.help = nil, true
				m.say(noteNews{text: nasty})
				requireWhole(t, m, "help")
				m.hear(lostNews{why: fmt.Errorf("gone %s", nasty)})
				m.command(strings.Repeat("写", 300))
				requireWhole(t, m, "lost")
			}
		}
	}
}

func screenOf(m *model) string {
	lines, _ := m.screen()
	return strings.Join(lines, "\n")
}

func press(m *model, keys ...string) {
	for _, key := range keys {
		switch key {
		case "enter":
			m.key(tea.KeyPressMsg{Code: tea.KeyEnter})
		case "esc":
			m.key(tea.KeyPressMsg{Code: tea.KeyEscape})
		case "tab":
			m.key(tea.KeyPressMsg{Code: tea.KeyTab})
		case "up":
			m.key(tea.KeyPressMsg{Code: tea.KeyUp})
		case "end":
			m.key(tea.KeyPressMsg{Code: tea.KeyEnd})
		default:
			for _, r := range key {
				m.key(tea.KeyPressMsg{Code: r, Text: string(r)})
			}
		}
	}
}

// The selection stays on its row when rows are inserted before it.
func TestPickedStays(t *testing.T) {
	t.Parallel()
	m := full(false)
	press(m, "jjj")
	require.Equal(t, "coder-3", m.agents.picked().Name)
	status, _ := team(9, 0)
	status.status.Agents = append([]control.AgentView{{Name: "another"}}, status.status.Agents...)
	m.hear(status)
	require.Equal(t, "coder-3", m.agents.picked().Name)
	status.status.Agents = status.status.Agents[:2]
	m.hear(status)
	require.Equal(t, "coder-0", m.agents.picked().Name, "the last that there is")
}

// A filter shows the rows that contain its text, only in its tab. Escape shows all rows again.
func TestFilter(t *testing.T) {
	t.Parallel()
	m := full(false)
	press(m, "2", "/TASK 17 ")
	require.Contains(t, screenOf(m), "Tasks 1 of 40")
	require.Contains(t, screenOf(m), "task 17")
	require.NotContains(t, screenOf(m), "task 18")
	press(m, "enter", "1")
	require.Contains(t, screenOf(m), "Tasks 1 of 40")
	require.Contains(t, screenOf(m), "Agents  1-4 of 9 ", "agents have a filter of their own")
	press(m, "2", "esc")
	require.Contains(t, screenOf(m), "Tasks  5-15 of 40", "and the one that was picked is still seen")
	require.Contains(t, screenOf(m), "task 17")
	require.Contains(t, screenOf(m), "7 not shown")
	press(m, "/zzz")
	require.Contains(t, screenOf(m), "No task matches the filter.")
	press(m, "esc")
	require.Empty(t, m.filter[tabTasks])
}

// Tasks that wait for people come first, and ended ones last.
func TestOrderOfTasks(t *testing.T) {
	t.Parallel()
	m := full(false)
	before := 0
	for _, one := range m.tasks.seen {
		require.GreaterOrEqual(t, urgency(one.State), before)
		before = urgency(one.State)
	}
	require.Equal(t, 3, before)
}

// The log is bounded. Scrolling back freezes it, and scrolling to its end follows it again.
func TestLog(t *testing.T) {
	t.Parallel()
	m := full(false)
	press(m, "7")
	require.Contains(t, screenOf(m), "line 49")
	press(m, "k")
	require.NotContains(t, screenOf(m), "line 49")
	require.Contains(t, screenOf(m), "frozen, 1 more")
	m.hear(logNews{lines: []control.LogLine{{Text: "late"}}})
	require.NotContains(t, screenOf(m), "late")
	press(m, "j", "j", "j")
	require.Contains(t, screenOf(m), "late")
	require.True(t, m.log.follow)
	press(m, "g")
	for range 30 {
		m.hear(logNews{lines: make([]control.LogLine, 1000)})
	}
	require.Contains(t, screenOf(m), "line 0 ", "what was there when it stood still")
	require.Contains(t, screenOf(m), "line 17 ", "the page is full")
	press(m, "G", "/coder-1", "enter")
	require.NotContains(t, screenOf(m), "coder-0")
	require.LessOrEqual(t, len(m.log.lines.all), kept+kept/4)
	require.Equal(t, 30_051, m.log.lines.end())
	m.hear(logNews{lines: []control.LogLine{{Agent: "coder-1", Text: "new life"}}, fresh: true})
	require.Contains(t, screenOf(m), "new life")
	require.Len(t, m.log.lines.all, 1)
}

// Ended tasks are hidden until they are requested.
func TestGraphFolds(t *testing.T) {
	t.Parallel()
	m := full(false)
	press(m, "4")
	require.Contains(t, screenOf(m), "task 0 ")
	require.NotContains(t, screenOf(m), "task 8 ", "it is done")
	require.Contains(t, screenOf(m), "3 not shown")
	press(m, "+")
	require.Contains(t, screenOf(m), "task 8 ")
}

// The pace of an agent is computed from its line count.
func TestPace(t *testing.T) {
	t.Parallel()
	var p pace
	at := time.Unix(1000, 0)
	for i, lines := range []int64{100, 110, 110, 150, 5} {
		p.heard(lines, at.Add(time.Duration(i)*2*time.Second))
	}
	require.Equal(t, []float64{5, 0, 20, 0}, p.past, "an agent that counts anew has said nothing")
	require.Equal(t, "  ▁▃▇█", bars([]float64{0, 2, 7, 8}, 6))
	require.Equal(t, "▁▁", bars([]float64{9, 0, 0}, 2)[0:6])
}

func TestLine(t *testing.T) {
	t.Parallel()
	m := full(false)
	press(m, ":", "task add x")
	require.Contains(t, screenOf(m), ":task add x")
	m.Update(tea.PasteMsg{Content: "a\nb\x1b[2J"})
	require.Contains(t, screenOf(m), ":task add xa b[2J")
	press(m, "esc")
	require.Nil(t, m.line)
	for text, want := range map[string][]string{
		`task add "Say hello"  --x`: {"task", "add", "Say hello", "--x"},
		`a 'b "c' d\ e "" `:         {"a", `b "c`, "d e", ""},
	} {
		words, err := wordsOf(text)
		require.NoError(t, err)
		require.Equal(t, want, words)
	}
	for _, text := range []string{`a "b`, `a \`, `'`} {
		_, err := wordsOf(text)
		require.ErrorIs(t, err, errQuote, text)
	}
	words, err := wordsOf(quoted(`it's "a" \ b`))
	require.NoError(t, err)
	require.Equal(t, []string{`it's "a" \ b`}, words)
}

// BenchmarkLargeTeam: drawing time does not depend on the size of the team, because only visible
// rows are drawn.
func BenchmarkLargeTeam(b *testing.B) {
	m := still(true)
	status, tasks := team(1000, 10_000)
	b.Run("hear", func(b *testing.B) {
		for b.Loop() {
			m.hear(status)
			m.hear(tasksNews{tasks: append([]wire.Task(nil), tasks.tasks...)})
		}
	})
	b.Run("draw", func(b *testing.B) {
		for b.Loop() {
			m.screen()
		}
	})
}

// If the question ends while an answer is typed, a message reports that. The input line stays,
// since further keys would be commands.
func TestQuestionGoesWhileTyping(t *testing.T) {
	m := still(false)
	m.hear(questionsNews{questions: []wire.Question{{ID: "q1", Agent: "coder", Question: "What?"}, {ID: "q2", Agent: "coder", Question: "Which?"}}})
	press(m, "a", "so")
	m.hear(questionsNews{questions: []wire.Question{{ID: "q2", Agent: "coder", Question: "Which?"}}})
	require.Contains(t, screenOf(m), "The question is no longer open.")
	press(m, " q")
	require.Contains(t, screenOf(m), "answer coder: so q")
}

// A sentence that does not fit can still be read.
func TestLongSentence(t *testing.T) {
	m := still(false)
	m.hear(outputMsg{words: []string{"down"}, exit: 4, text: "Error: " + strings.Repeat("no ", 30) + "end\n"})
	require.Contains(t, screenOf(m), "end")
	require.Contains(t, screenOf(m), "down exit 4")
	press(m, "esc")
	m.hear(outputMsg{words: []string{"down"}, exit: 4, text: "Error: no\n"})
	require.Contains(t, screenOf(m), " Error: no ")
	require.NotContains(t, screenOf(m), "exit 4")
}

// The log of one agent has only its lines, however much other agents print.
func TestLogOfOne(t *testing.T) {
	m := still(false)
	status, _ := team(3, 0)
	m.hear(status)
	m.show(tabLog)
	m.hear(logNews{fresh: true, lines: []control.LogLine{{Agent: "coder-1", Text: "of all"}}})
	require.Contains(t, screenOf(m), "of all")
	press(m, "/@coder-0")
	m.hear(logNews{agent: "coder-0", fresh: true, lines: []control.LogLine{{Agent: "coder-0", Text: "long ago"}}})
	m.hear(logNews{lines: make([]control.LogLine, 3*kept)})
	require.Contains(t, screenOf(m), "long ago")
	press(m, "esc")
	require.NotContains(t, screenOf(m), "long ago")
	m.hear(logNews{fresh: true, lines: []control.LogLine{{Agent: "coder-1", Text: "of all"}}})
	require.Contains(t, screenOf(m), "of all")
}

// Recalling earlier lines keeps the line that was begun.
func TestDraft(t *testing.T) {
	l := line{past: []string{"ps"}}
	l.insert("task")
	l.recall(1)
	require.Equal(t, "ps", string(l.text))
	l.recall(0)
	require.Equal(t, "task", string(l.text))
}

// A key that is not an answer selects none, and enter after it sends nothing.
func TestNoSuchAnswer(t *testing.T) {
	t.Parallel()
	m := full(false)
	m.show(tabInbox)
	m.answerFirst()
	require.NotNil(t, m.choice)
	press(m, "9")
	require.Nil(t, m.choice)
	require.Contains(t, screenOf(m), "Option 9 does not exist: choose 1 to 2")
	press(m, "enter")
	require.NotNil(t, m.choice, "enter shows the answers again")
}

// Lines of the orchestrator about an agent are marked by whether they are trouble, and shown
// once.
func TestOwnLines(t *testing.T) {
	t.Parallel()
	m := full(false)
	own := func(kind, text string, trouble bool) control.LogLine {
		return control.LogLine{At: "2026-11-21T14:00:00.000Z", Agent: "coder-0", Stream: control.StreamOwn, Text: text, Kind: kind, Trouble: trouble}
	}
	m.hear(logNews{fresh: true, lines: []control.LogLine{
		own(events.AgentStarted, "pid 7", false), own(events.AgentExited, "exit 3 after 1s", true), own(events.AgentEnded, "ended here", false),
		own(events.SessionDelivered, "has message 95", false),
	}})
	m.show(tabLog)
	require.Contains(t, screenOf(m), ". pid 7")
	require.Contains(t, screenOf(m), "! exit 3 after 1s")
	require.NotContains(t, screenOf(m), "ended here")
	require.NotContains(t, screenOf(m), "has message 95")
}

// A number answers at once, and enter after it neither asks again nor hides that.
func TestAnswerThenEnter(t *testing.T) {
	t.Parallel()
	m := full(false)
	m.show(tabInbox)
	m.answerFirst()
	require.NotNil(t, m.choice)
	id := m.choice.question.ID
	press(m, "2")
	press(m, "enter")
	require.Nil(t, m.choice, "it is answered")
	m.hear(noteNews{text: "Answered coder-0: night."})
	m.hear(questionsNews{})
	require.Contains(t, screenOf(m), "Answered coder-0: night.")

	m.hear(noteNews{text: "Not answered: no", bad: true, unanswered: id})
	require.Empty(t, m.answered, "it can be answered again")
}

// r retries the selected task if it has failed, by a command that enter confirms.
func TestRetryKey(t *testing.T) {
	t.Parallel()
	m := still(false)
	status, _ := team(1, 0)
	m.hear(status)
	m.hear(tasksNews{tasks: []wire.Task{{ID: "91c0", Name: "Page", State: wire.TaskRunning}}})
	m.show(tabTasks)
	press(m, "r")
	require.Nil(t, m.line)
	require.Contains(t, screenOf(m), "Only a failed or cancelled task can be retried")
	m.hear(tasksNews{tasks: []wire.Task{{ID: "91c0", Name: "Page", State: wire.TaskFailed}}})
	press(m, "r")
	require.NotNil(t, m.line)
	require.Equal(t, "task retry 91c0", string(m.line.text))
}

// Panes side by side have a gap, and the head of the rate names its unit.
func TestPanesHaveAGap(t *testing.T) {
	t.Parallel()
	m := full(false)
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}} {
		m.width, m.height = size[0], size[1]
		for tab := range tabCount {
			m.show(tab)
			require.NotRegexp(t, `[╮│╯][╭│╰]|\+\+`, screenOf(m), "%v, tab %d", size, tab+1)
		}
	}
	m.show(tabAgents)
	require.Contains(t, screenOf(m), "LINES/S")
	require.NotContains(t, screenOf(m), "0.0/s")
}

// The bus shows names and texts, and records of the orchestrator only below its topic.
func TestBusForPeople(t *testing.T) {
	t.Parallel()
	const run = "606c3411-85a5-4d1b-9c4f-3e0c2b9c7f11"
	m := still(false)
	m.hear(topicsNews{names: mail.Names{"PO:shop": "shop"}})
	m.hear(mailNews{fresh: true, mail: []mail.Message{
		{Seq: 1, From: "GO", To: "GO", Topic: mail.TopicAgentSpawned, Payload: wire.Raw(`{"agent":"coder","actor":"W:` + run + `"}`)},
		{Seq: 2, From: "PO:shop", To: "W:" + run, Topic: mail.TopicDirect, Payload: wire.Raw(`{"text":"hello"}`)},
	}})
	rows := strings.Join(m.bus.mailPane(m.pen, m.now, true, 100, 10), "\n")
	require.Contains(t, rows, "shop -> coder")
	require.Contains(t, rows, "message.direct hello")
	require.NotContains(t, rows, "agent.spawned")
	at := slices.IndexFunc(m.bus.topics, func(t topic) bool { return t.name == mail.TopicAgentSpawned })
	m.bus.pick.at = at + 1
	m.bus.choose("")
	require.Contains(t, strings.Join(m.bus.mailPane(m.pen, m.now, true, 100, 10), "\n"), "GO -> GO")
	m.bus.pick.at = 0
	m.bus.choose("coder")
	require.Len(t, m.bus.seen, 1)
}
