package stdio

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// Tests that kill the orchestrator repeatedly while agents submit, complete and ask. Everything
// that was confirmed before a kill still holds after it.

// A siege is a team whose orchestrator is killed repeatedly.
type siege struct {
	*stage.Team
	random   *rand.Rand
	round    int
	actors   map[string]*stage.Agent
	answered map[string]string // confirmed tasks, by name
	finished map[string]string // confirmed final statuses, by task id
	given    map[string]bool   // ids of tasks with a notice to start
	asked    []string          // ids of questions that were listed
	seen     int64             // the last event checked
}

const besieged = stage.QuickStop + stage.Unlimited + `
agent "boss0" {
  command = ["scripted", "boss0"]
}

agent "boss1" {
  command = ["scripted", "boss1"]
}

agent "asker" {
  command = ["scripted", "asker"]
}

agent "auto" {
  command = ["scripted", "auto"]
  capabilities {
    names                = ["auto"]
    max_concurrent_tasks = 5
  }
}

agent "requeue" {
  command = ["scripted", "requeue"]
  on_exit = "requeue"
  capabilities {
    names                = ["requeue"]
    max_concurrent_tasks = 5
  }
}

agent "stubborn" {
  command = ["sh", "-c", "trap '' TERM HUP; (trap '' TERM HUP; setsid sleep 1000) & while :; do sleep 1; done"]
}
`

var cast = []string{"boss0", "boss1", "asker", "auto", "requeue"}

// Rows: B-21, B-30, B-51, B-57, B-61, T-57.
func TestStdioOrchestratorKilled(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	k := &siege{
		Team: stage.NewTeam(t, besieged, cast...), random: rand.New(rand.NewPCG(seed, 0)),
		answered: make(map[string]string), finished: make(map[string]string), given: make(map[string]bool),
	}
	last := stage.Rounds(t, 4)
	for ; k.round < last; k.round++ {
		k.begin()
		k.check()
		k.fight()
		k.hear()
	}
	k.begin()
	k.check()
	k.askAgain()
	k.Stop()
	k.reopen()
	require.NotEmpty(t, k.answered)
	require.NotEmpty(t, k.finished)
	require.NotEmpty(t, k.asked)
}

// begin starts a new life of the orchestrator.
func (s *siege) begin() {
	s.T.Helper()
	s.actors = make(map[string]*stage.Agent)
	s.Up("--json")
	for _, name := range cast {
		s.actors[name] = s.NextRun(name)
	}
	s.WaitForEvents(1, events.AgentStarted, "stubborn")
}

// check compares the state with all confirmations.
func (s *siege) check() {
	s.T.Helper()
	s.seen = stage.RequireNoGapsAfter(s.T, s.Orchestrator, s.seen)
	var list struct{ Tasks []stage.Task }
	s.Operated(&list, "query-tasks", `{"limit":1000000}`)
	byName, byID := make(map[string]stage.Task), make(map[string]stage.Task)
	for _, task := range list.Tasks {
		_, twice := byName[task.Name]
		require.False(s.T, twice, "%s is there twice", task.Name)
		byName[task.Name], byID[task.ID] = task, task
	}
	for name, id := range s.answered {
		require.Equal(s.T, id, byName[name].ID, "%s is not there", name)
	}
	for id, status := range s.finished {
		require.Equal(s.T, status, byID[id].Status)
	}
	for id := range s.given {
		s.checkGiven(byID[id])
	}
	s.checkPayloads(list.Tasks)
	s.checkQuestions()
	live := 0
	for _, view := range s.Status().Agents {
		require.Equal(s.T, control.StateRunning, view.State)
		live++
	}
	stage.WaitFor(s.T, "end of what was left over", func() bool { return len(s.Processes()) == live+2 }) // two sleep
}

// checkGiven checks that a kill of the orchestrator fails no task of an agent and counts no
// attempt.
func (s *siege) checkGiven(task stage.Task) {
	s.T.Helper()
	require.NotEmpty(s.T, task.ID, "an agent works on a task that does not exist")
	require.NotEqual(s.T, "failed", task.Status, task.Error)
	require.LessOrEqual(s.T, task.Attempts, 1)
}

// checkPayloads compares the complete payloads of a few tasks.
func (s *siege) checkPayloads(tasks []stage.Task) {
	s.T.Helper()
	for range min(5, len(tasks)) {
		one := tasks[s.random.IntN(len(tasks))]
		var reply struct{ Task stage.Task }
		s.Operated(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, one.ID))
		require.JSONEq(s.T, stage.Payload(one.Name), string(reply.Task.Payload))
	}
}

func (s *siege) checkQuestions() {
	s.T.Helper()
	open, texts := make(map[string]bool), make(map[string]bool)
	for _, q := range s.Questions() {
		require.False(s.T, texts[q.Question], "somebody is asked twice: %s", q.Question)
		open[q.ID], texts[q.Question] = true, true
	}
	for _, id := range s.asked {
		require.True(s.T, open[id], "question %s is gone", id)
	}
}

// fight runs all agents, and kills the orchestrator in the middle.
func (s *siege) fight() {
	s.T.Helper()
	var group sync.WaitGroup
	for _, boss := range []string{"boss0", "boss1"} {
		group.Go(func() { s.submitAll(s.actors[boss]) })
	}
	var worked atomic.Int64
	for _, name := range []string{"auto", "requeue"} {
		group.Go(func() { work(s.actors[name], &worked) })
	}
	for n := range s.round + 1 {
		_, _ = io.WriteString(s.actors["asker"].Conn, stage.Question(n))
	}
	if s.random.IntN(3) > 0 { // otherwise the kill may come before the questions
		s.asked = nil
		for _, q := range s.WaitForQuestions(s.round + 1) {
			s.asked = append(s.asked, q.ID)
		}
	}
	goal := 1 + s.random.IntN(500)
	stage.WaitFor(s.T, "some talk", func() bool {
		return len(s.actors["boss0"].Lines())+len(s.actors["boss1"].Lines()) >= goal && worked.Load() > 0
	})
	<-time.After(time.Duration(s.random.IntN(5000)) * time.Microsecond)
	s.Signal(syscall.SIGKILL)
	<-s.Ended
	group.Wait()
}

// submitAll submits tasks until the connection ends.
func (s *siege) submitAll(a *stage.Agent) {
	for n := range 500 {
		name := fmt.Sprintf("%d-%s-%d", s.round, a.Name, n)
		capability := []string{"auto", "requeue"}[n%2]
		line := stage.Request(name, "submit-task", fmt.Sprintf(`{"type":"t","name":%q,"requiredCapabilities":[%q],"payload":%s}`, name, capability, stage.Payload(name)))
		if _, err := io.WriteString(a.Conn, line+"\n"); err != nil {
			return
		}
	}
}

// work completes every second task of an agent.
func work(a *stage.Agent, worked *atomic.Int64) {
	seen := 0
	for n := 0; ; {
		a.Mu.Lock()
		lines, changed, ended := a.Heard[seen:len(a.Heard):len(a.Heard)], a.Changed, a.Ended
		a.Mu.Unlock()
		for _, line := range lines {
			var m stage.Message
			var notice struct{ TaskID string }
			if json.Unmarshal([]byte(line), &m) != nil || m.Type != "notify:task-assigned" || json.Unmarshal(m.Payload, &notice) != nil {
				continue
			}
			if n++; n%4 == 0 {
				continue // this one stays running
			}
			_, _ = io.WriteString(a.Conn, stage.Request("done-"+notice.TaskID, "complete-task", fmt.Sprintf(`{"taskId":%q,"result":{"by":%q}}`, notice.TaskID, a.Name))+"\n")
			worked.Add(1)
		}
		seen += len(lines)
		if ended {
			return
		}
		<-changed
	}
}

// hear collects what all agents received in the last life.
func (s *siege) hear() {
	s.T.Helper()
	for _, a := range s.actors {
		stage.WaitFor(s.T, "end of "+a.Name, func() bool {
			a.Mu.Lock()
			defer a.Mu.Unlock()
			return a.Ended
		})
		for _, line := range a.Lines() {
			if json.Valid([]byte(line)) { // the last one may have been cut off
				s.heed(stage.Received(s.T, line))
			}
		}
	}
}

// heed records what one message confirms.
func (s *siege) heed(m stage.Message) {
	s.T.Helper()
	var id string
	_ = json.Unmarshal(m.CorrelationID, &id)
	var said struct {
		TaskID string
		Task   stage.Task
	}
	_ = json.Unmarshal(m.Payload, &said)
	switch {
	case m.Type == "notify:task-assigned":
		s.given[said.TaskID] = true
	case m.Error != nil:
		require.NotEqual(s.T, "INTERNAL_ERROR", m.Error.Code, m.Line)
	case strings.HasPrefix(id, "done-"):
		s.finished[said.Task.ID] = said.Task.Status
	case said.Task.ID != "":
		s.answered[id] = said.Task.ID
	}
}

// askAgain makes the last run of the asker repeat all questions of earlier runs. They are the
// same questions, and it gets the answers.
func (s *siege) askAgain() {
	s.T.Helper()
	a, open := s.actors["asker"], s.Questions()
	known := make(map[string]bool)
	for _, q := range open {
		known[q.Question] = true
	}
	for n := range s.round {
		if known[fmt.Sprintf("why %d?", n)] {
			a.Say(stage.Question(n))
		}
	}
	a.Settle()
	require.Equal(s.T, len(open), len(s.Questions()), "somebody is asked twice")
	for _, q := range open {
		s.Ask("inbox", "answer", q.ID, "because of "+q.Question)
		m := a.Answer("why-" + strings.TrimSuffix(strings.TrimPrefix(q.Question, "why "), "?"))
		require.Contains(s.T, string(m.Payload), "because of "+q.Question)
	}
	require.Empty(s.T, s.Questions())
}

// reopen reads the record from outside.
func (s *siege) reopen() {
	s.T.Helper()
	log, err := eventlog.Open(s.T.Context(), eventlog.Options{Path: filepath.Join(s.State(), "events.db"), ReadOnly: true})
	require.NoError(s.T, err)
	defer func() { require.NoError(s.T, log.Close()) }()
	var last int64
	for r, err := range log.Records(s.T.Context(), 0) {
		require.NoError(s.T, err)
		require.Equal(s.T, last+1, r.Seq)
		last = r.Seq
	}
	require.Equal(s.T, log.Last(), last)
}
