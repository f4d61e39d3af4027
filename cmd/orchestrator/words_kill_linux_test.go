package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// Tests that kill the orchestrator repeatedly while agents submit, complete and ask. Everything
// that was confirmed before a kill still holds after it.

// rounds returns the number of rounds; ORC_TEST_ROUNDS overrides it.
func rounds(t *testing.T, otherwise int) int {
	t.Helper()
	text := os.Getenv("ORC_TEST_ROUNDS")
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// A siege is a theatre whose orchestrator is killed repeatedly.
type siege struct {
	*theatre
	random   *rand.Rand
	round    int
	actors   map[string]*actor
	answered map[string]string // confirmed tasks, by name
	finished map[string]string // confirmed final statuses, by task id
	given    map[string]bool   // ids of tasks that agents were told to start
	asked    []string          // ids of questions that were listed
	seen     int64             // the last event checked
}

const besieged = quick + crowded + `
agent "boss0" {
  command = ["puppet", "boss0"]
}

agent "boss1" {
  command = ["puppet", "boss1"]
}

agent "asker" {
  command = ["puppet", "asker"]
}

agent "auto" {
  command = ["puppet", "auto"]
  capabilities {
    names                = ["auto"]
    max_concurrent_tasks = 5
  }
}

agent "requeue" {
  command = ["puppet", "requeue"]
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
func TestWordsKilled(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	k := &siege{
		theatre: troupe(t, besieged, cast...), random: rand.New(rand.NewPCG(seed, 0)),
		answered: make(map[string]string), finished: make(map[string]string), given: make(map[string]bool),
	}
	last := rounds(t, 4)
	for ; k.round < last; k.round++ {
		k.begin()
		k.check()
		k.fight()
		k.hear()
	}
	k.begin()
	k.check()
	k.askAgain()
	k.stop()
	k.reopen()
	require.NotEmpty(t, k.answered)
	require.NotEmpty(t, k.finished)
	require.NotEmpty(t, k.asked)
}

// begin starts a new life of the orchestrator.
func (s *siege) begin() {
	s.t.Helper()
	s.actors = make(map[string]*actor)
	s.up("--json")
	for _, name := range cast {
		s.actors[name] = s.enter(name)
	}
	s.waitForEvents(1, events.AgentStarted, "stubborn")
}

// check compares the state with all confirmations.
func (s *siege) check() {
	s.t.Helper()
	s.seen = requireNoHolesAfter(s.t, s.stage, s.seen)
	var list struct{ Tasks []aTask }
	s.operated(&list, "query-tasks", `{"limit":1000000}`)
	byName, byID := make(map[string]aTask), make(map[string]aTask)
	for _, task := range list.Tasks {
		_, twice := byName[task.Name]
		require.False(s.t, twice, "%s is there twice", task.Name)
		byName[task.Name], byID[task.ID] = task, task
	}
	for name, id := range s.answered {
		require.Equal(s.t, id, byName[name].ID, "%s is not there", name)
	}
	for id, status := range s.finished {
		require.Equal(s.t, status, byID[id].Status)
	}
	for id := range s.given {
		s.checkGiven(byID[id])
	}
	s.checkPayloads(list.Tasks)
	s.checkQuestions()
	live := 0
	for _, view := range s.status().Agents {
		require.Equal(s.t, control.StateRunning, view.State)
		live++
	}
	waitForThat(s.t, "end of what was left over", func() bool { return len(s.processes()) == live+2 }) // two sleep
}

// checkGiven checks that a kill of the orchestrator fails no task of an agent and counts no
// attempt.
func (s *siege) checkGiven(task aTask) {
	s.t.Helper()
	require.NotEmpty(s.t, task.ID, "an agent works on a task that does not exist")
	require.NotEqual(s.t, "failed", task.Status, task.Error)
	require.LessOrEqual(s.t, task.Attempts, 1)
}

// checkPayloads compares the complete payloads of a few tasks.
func (s *siege) checkPayloads(tasks []aTask) {
	s.t.Helper()
	for range min(5, len(tasks)) {
		one := tasks[s.random.IntN(len(tasks))]
		var reply struct{ Task aTask }
		s.operated(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, one.ID))
		require.JSONEq(s.t, payloadOf(one.Name), string(reply.Task.Payload))
	}
}

func payloadOf(name string) string {
	return fmt.Sprintf(`{"key":%q,"n":12345678901234567890,"filler":%q}`, name, strings.Repeat("<&>", 50))
}

func (s *siege) checkQuestions() {
	s.t.Helper()
	open, texts := make(map[string]bool), make(map[string]bool)
	for _, q := range s.questions() {
		require.False(s.t, texts[q.Question], "somebody is asked twice: %s", q.Question)
		open[q.ID], texts[q.Question] = true, true
	}
	for _, id := range s.asked {
		require.True(s.t, open[id], "question %s is gone", id)
	}
}

// question returns the n-th question of the asker, the same in each of its runs.
func question(n int) string {
	return asking(fmt.Sprint("why-", n), "ask-user", fmt.Sprintf(`{"question":"why %d?","timeout":3600000}`, n)) + "\n"
}

// fight runs all agents, and kills the orchestrator in the middle.
func (s *siege) fight() {
	s.t.Helper()
	var group sync.WaitGroup
	for _, boss := range []string{"boss0", "boss1"} {
		group.Go(func() { s.submitAll(s.actors[boss]) })
	}
	var worked atomic.Int64
	for _, name := range []string{"auto", "requeue"} {
		group.Go(func() { work(s.actors[name], &worked) })
	}
	for n := range s.round + 1 {
		_, _ = io.WriteString(s.actors["asker"].conn, question(n))
	}
	if s.random.IntN(3) > 0 { // otherwise the kill may come before the questions
		s.asked = nil
		for _, q := range s.waitForQuestions(s.round + 1) {
			s.asked = append(s.asked, q.ID)
		}
	}
	goal := 1 + s.random.IntN(500)
	waitForThat(s.t, "some talk", func() bool {
		return len(s.actors["boss0"].heardSoFar())+len(s.actors["boss1"].heardSoFar()) >= goal && worked.Load() > 0
	})
	<-time.After(time.Duration(s.random.IntN(5000)) * time.Microsecond)
	s.signal(syscall.SIGKILL)
	<-s.ended
	group.Wait()
}

// submitAll submits tasks until the connection ends.
func (s *siege) submitAll(a *actor) {
	for n := range 500 {
		name := fmt.Sprintf("%d-%s-%d", s.round, a.name, n)
		capability := []string{"auto", "requeue"}[n%2]
		line := asking(name, "submit-task", fmt.Sprintf(`{"type":"t","name":%q,"requiredCapabilities":[%q],"payload":%s}`, name, capability, payloadOf(name)))
		if _, err := io.WriteString(a.conn, line+"\n"); err != nil {
			return
		}
	}
}

// work completes every second task of an agent.
func work(a *actor, worked *atomic.Int64) {
	seen := 0
	for n := 0; ; {
		a.mu.Lock()
		lines, changed, ended := a.heard[seen:len(a.heard):len(a.heard)], a.changed, a.ended
		a.mu.Unlock()
		for _, line := range lines {
			var m message
			var notice struct{ TaskID string }
			if json.Unmarshal([]byte(line), &m) != nil || m.Type != "notify:task-assigned" || json.Unmarshal(m.Payload, &notice) != nil {
				continue
			}
			if n++; n%4 == 0 {
				continue // this one stays running
			}
			_, _ = io.WriteString(a.conn, asking("done-"+notice.TaskID, "complete-task", fmt.Sprintf(`{"taskId":%q,"result":{"by":%q}}`, notice.TaskID, a.name))+"\n")
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
	s.t.Helper()
	for _, a := range s.actors {
		waitForThat(s.t, "end of "+a.name, func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.ended
		})
		for _, line := range a.heardSoFar() {
			if json.Valid([]byte(line)) { // the last one may have been cut off
				s.heed(heardAs(s.t, line))
			}
		}
	}
}

// heed records what one message confirms.
func (s *siege) heed(m message) {
	s.t.Helper()
	var id string
	_ = json.Unmarshal(m.CorrelationID, &id)
	var said struct {
		TaskID string
		Task   aTask
	}
	_ = json.Unmarshal(m.Payload, &said)
	switch {
	case m.Type == "notify:task-assigned":
		s.given[said.TaskID] = true
	case m.Error != nil:
		require.NotEqual(s.t, "INTERNAL_ERROR", m.Error.Code, m.line)
	case strings.HasPrefix(id, "done-"):
		s.finished[said.Task.ID] = said.Task.Status
	case said.Task.ID != "":
		s.answered[id] = said.Task.ID
	}
}

// askAgain makes the last run of the asker repeat all questions of earlier runs. They are the
// same questions, and it gets the answers.
func (s *siege) askAgain() {
	s.t.Helper()
	a, open := s.actors["asker"], s.questions()
	known := make(map[string]bool)
	for _, q := range open {
		known[q.Question] = true
	}
	for n := range s.round {
		if known[fmt.Sprintf("why %d?", n)] {
			a.say(question(n))
		}
	}
	a.quiet()
	require.Equal(s.t, len(open), len(s.questions()), "somebody is asked twice")
	for _, q := range open {
		s.ask("inbox", "answer", q.ID, "because of "+q.Question)
		m := a.answer("why-" + strings.TrimSuffix(strings.TrimPrefix(q.Question, "why "), "?"))
		require.Contains(s.t, string(m.Payload), "because of "+q.Question)
	}
	require.Empty(s.t, s.questions())
}

// reopen reads the record from outside.
func (s *siege) reopen() {
	s.t.Helper()
	log, err := eventlog.Open(s.t.Context(), eventlog.Options{Path: filepath.Join(s.state(), "events.db"), ReadOnly: true})
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, log.Close()) }()
	var last int64
	for r, err := range log.Records(s.t.Context(), 0) {
		require.NoError(s.t, err)
		require.Equal(s.t, last+1, r.Seq)
		last = r.Seq
	}
	require.Equal(s.t, log.Last(), last)
}
