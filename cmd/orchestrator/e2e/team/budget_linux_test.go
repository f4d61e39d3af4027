package team

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// A purse is a team with an agent coder that has a budget.
type purse struct {
	*stage.Team
	coder *stage.Agent
	used  int
}

func newPurse(t *testing.T, budget, more string) *purse {
	p := &purse{Team: stage.NewTeam(t, stage.QuickStop+`
agent "coder" {
  command = ["scripted", "coder"]
  budget {
    `+budget+`
  }
}
`+more, "coder")}
	p.Up("--json")
	p.coder = p.Team.NextRun("coder")
	return p
}

// begin adds a task, and waits until the agent has its notice.
func (p *purse) begin(name string) string {
	p.T.Helper()
	id := strings.TrimSpace(p.Ask("task", "add", name, "--role", "worker", "-q"))
	p.coder.Assigned(id)
	return id
}

// use has the agent report tokens for a task.
func (p *purse) use(task string, tokens int, more string) {
	p.T.Helper()
	p.used++
	p.coder.Say(fmt.Sprintf(`{"type":"event:usage","id":"u%d","timestamp":"2026-11-21T14:00:00Z","payload":{"taskId":%q,"turn":%d,"input":%d,"output":0%s}}`+"\n", p.used, task, p.used, tokens, more))
}

// A task with a spent budget waits for a person. The person lets it continue with the same amount again, and then ends
// it. An agent that asks in the same words gets no more.
func TestBudgetAsks(t *testing.T) {
	t.Parallel()
	p := newPurse(t, `tokens = 100`, "")
	id := p.begin("first")
	p.coder.Granted(nil, "start-task", `{"taskId":"`+id+`"}`)
	p.use(id, 79, "")
	p.use(id, 2, "")
	told := p.WaitForEvents(1, events.AgentBudget, "coder")
	require.Contains(t, told[0].Text, "81% of its budget: 81 of 100 tokens, per task")
	p.use(id, 30, "")
	asked := p.WaitForQuestions(1)[0]
	require.Equal(t, "May it continue, with the same amount again? The budget is used up: 111 of 100 tokens, per task.", asked.Question)
	require.Equal(t, wire.TaskNeedsHuman, p.TaskState(id))
	p.coder.Wait("recall", func(m *stage.Message) bool { return m.Type == "notify:task-cancelled" })
	p.Ask("inbox", "answer", asked.ID, "go on")
	p.coder.Wait("answer", func(m *stage.Message) bool { return m.Type == "notify:task-updated" })
	require.Equal(t, wire.TaskRunning, p.TaskState(id))
	p.use(id, 60, "") // 171 of 200
	p.WaitForEvents(3, events.AgentBudget, "coder")
	require.Equal(t, wire.TaskRunning, p.TaskState(id))
	p.use(id, 60, "")
	asked = p.WaitForQuestions(1)[0]
	require.Contains(t, asked.Question, "231 of 200 tokens")
	p.Ask("inbox", "answer", asked.ID, "stop")
	stage.WaitFor(t, "failure", func() bool { return p.TaskState(id) == wire.TaskFailed })
	require.Contains(t, p.Ask("task", "show", id), "budget")

	next := p.begin("second") // has its own budget
	p.use(next, 50, "")
	p.coder.Granted(nil, "request-help", `{"taskId":"`+next+`","question":"`+asked.Question+`"}`)
	p.Ask("inbox", "answer", p.WaitForQuestions(1)[0].ID, "go on")
	p.use(next, 60, "") // 110 of 100
	asked = p.WaitForQuestions(1)[0]
	require.Contains(t, asked.Question, "110 of 100 tokens")

	p.Signal(syscall.SIGKILL) // the usage is in the record, so it is asked again
	<-p.Ended
	p.Up("--json")
	p.coder = p.Team.NextRun("coder")
	p.coder.Assigned(next)
	p.use(next, 1, "")
	asked = p.WaitForQuestions(1)[0]
	require.Contains(t, asked.Question, "111 of 100 tokens")
	p.Ask("inbox", "answer", asked.ID, "go on")
	p.use(next, 50, "") // 161 of 200
	stage.WaitFor(t, "announcement", func() bool { return strings.Contains(p.Ask("events"), "161 of 200 tokens") })
	require.Equal(t, wire.TaskRunning, p.TaskState(next))
	p.Stop()
	p.Up("--json")
	p.coder = p.Team.NextRun("coder")
	p.coder.Assigned(next)
	p.use(next, 50, "")
	require.Contains(t, p.WaitForQuestions(1)[0].Question, "211 of 200 tokens", "what a person has allowed is in the record, too")
	p.Ask("inbox", "answer", p.WaitForQuestions(1)[0].ID, "go on")
	p.coder.Granted(nil, "complete-task", `{"taskId":"`+next+`","result":"done"}`)
	p.Stop()
}

// An agent with a spent budget gets no more tasks, and its task fails with reached = "stop". Its program reports no
// money, so the price of the model counts.
func TestBudgetStops(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "cost = 1\n    per = \"agent\"\n    reached = \"stop\"", "prices {\n  model \"big\" {\n    input  = 2\n    output = 10\n  }\n}\n")
	id := p.begin("first")
	p.use(id, 600_000, `,"model":"big"`)
	stage.WaitFor(t, "failure", func() bool { return p.TaskState(id) == wire.TaskFailed })
	require.Contains(t, p.Ask("task", "show", id), "1.20 of 1.00 USD, per agent")
	p.coder.Wait("recall", func(m *stage.Message) bool { return m.Type == "notify:task-cancelled" })
	stage.WaitFor(t, "limit", func() bool { return strings.Contains(p.Ask("why", "coder"), "the budget is used up") })
	next := strings.TrimSpace(p.Ask("task", "add", "second", "--role", "worker", "-q"))
	require.Equal(t, wire.TaskPending, p.TaskState(next))
	require.Contains(t, p.Ask("cost"), "1.20 USD")
	var bill struct{ Costs []struct{ Name string } }
	require.NoError(t, json.Unmarshal([]byte(p.Ask("cost", "--by", "model", "--json")), &bill))
	require.Equal(t, "big", bill.Costs[0].Name)
	p.Stop()
	require.Contains(t, p.Ask("cost", "--by", "task"), "first", "the record is enough")
}

// TestBudgetAsksAboutAgent checks that a person is asked about an agent if its task ends as its budget is spent. The
// question survives a kill.
func TestBudgetAsksAboutAgent(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "tokens = 100\n    per = \"agent\"", "")
	id := p.begin("first")
	p.coder.Granted(nil, "start-task", `{"taskId":"`+id+`"}`)
	p.use(id, 110, "")
	p.WaitForQuestions(1)
	p.coder.Granted(nil, "complete-task", `{"taskId":"`+id+`"}`)
	about := func(q wire.Question) bool { return q.Task == "" }
	stage.WaitFor(t, "question about the agent", func() bool { return slices.ContainsFunc(p.WaitForQuestions(1), about) })
	asked := p.WaitForQuestions(1)[0]
	require.Equal(t, "May it continue, with the same amount again? The budget is used up: 110 of 100 tokens, per agent.", asked.Question)
	next := strings.TrimSpace(p.Ask("task", "add", "second", "--role", "worker", "-q"))
	require.Contains(t, p.Ask("why", "coder"), "orchestrator inbox answer "+asked.ID)

	p.Signal(syscall.SIGKILL)
	<-p.Ended
	p.Up("--json")
	p.coder = p.Team.NextRun("coder")
	require.Equal(t, wire.TaskPending, p.TaskState(next))
	require.Equal(t, "Answered coder: go on.", strings.TrimSpace(p.Ask("inbox", "answer", asked.ID, "go on")))
	p.coder.Assigned(next)
	p.Stop()
}

// A task that takes too long waits for a person.
func TestBudgetOfTime(t *testing.T) {
	t.Parallel()
	p := newPurse(t, `time = "1s"`, "")
	id := p.begin("first")
	asked := p.WaitForQuestions(1)[0]
	require.Contains(t, asked.Question, "of 1s, per task")
	require.Equal(t, wire.TaskNeedsHuman, p.TaskState(id))
	p.Stop()
}
