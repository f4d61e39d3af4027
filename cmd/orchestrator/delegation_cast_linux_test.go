package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// Delegation: work that agents and people hand on to agents, and what comes back, on
// the real program. Where a line matters letter for letter the agents are puppets.

// doer is a puppet that does some types of work, so many tasks at a time.
func doer(name string, room int, types ...string) string {
	list, _ := json.Marshal(append([]string{}, types...))
	return fmt.Sprintf(`
agent %[1]q {
  command = ["puppet", %[1]q]
  capabilities {
    names                = %[2]s
    max_concurrent_tasks = %[3]d
  }
%[4]s
}
`, name, list, room, soon)
}

// kitchen is a cast for most tests: boss asks, cook and help do.
func kitchen(room int) string {
	return crowded + doer("boss", 9) + doer("cook", room, "cook", "taste") + doer("help", room, "wash")
}

// aWord is a line about a task that was handed on, as a puppet hears it.
type aWord struct {
	ID            string            `json:"id"`
	Type          string            `json:"type"`
	Status        string            `json:"status"`
	Payload       json.RawMessage   `json:"payload"`
	Context       wire.TaskContext  `json:"context"`
	Routing       wire.TaskRouting  `json:"routing"`
	Observability wire.TaskTrace    `json:"observability"`
	Result        json.RawMessage   `json:"result"`
	Error         *wire.TaskFault   `json:"error"`
	Metadata      wire.TaskMetadata `json:"metadata"`
	Artifacts     []wire.Artifact   `json:"artifacts"`
	Message       string            `json:"message"`

	line string
}

// aRequest is the kind of a word that asks for work; the others are statuses, and the
// types of acts.
const aRequest = "request"

func (w *aWord) kind() string {
	switch {
	case w.Status != "":
		return w.Status
	case wire.IsTaskAct(w.Type):
		return w.Type
	}
	return aRequest
}

func readWord(t *testing.T, line string) aWord {
	t.Helper()
	w := aWord{line: line}
	require.NoError(t, json.Unmarshal([]byte(line), &w), "%.300s", line)
	return w
}

// words are those about a task so far, in order.
func (a *actor) words(id string) (found []aWord) {
	a.t.Helper()
	for _, m := range a.all() {
		if m.ID == id {
			found = append(found, readWord(a.t, m.line))
		}
	}
	return found
}

// kinds are those of the words about a task so far.
func (a *actor) kinds(id string) (found []string) {
	a.t.Helper()
	for _, w := range a.words(id) {
		found = append(found, w.kind())
	}
	return found
}

// hear waits for the nth word of a kind about a task.
func (a *actor) hear(n int, id, kind string) aWord {
	a.t.Helper()
	met := 0
	m := a.wait(fmt.Sprintf("%d. %s of %s", n, kind, id), func(m *message) bool {
		if m.ID != id {
			return false
		}
		if w := readWord(a.t, m.line); w.kind() == kind {
			met++
		}
		return met == n
	})
	return readWord(a.t, m.line)
}

// gets waits until a puppet is brought a task.
func (a *actor) gets(id string) aWord { a.t.Helper(); return a.hear(1, id, aRequest) }

// requesting spells a request for work, with more members perhaps.
func requesting(id, kind string, more ...string) string {
	return "{" + strings.Join(append([]string{fmt.Sprintf(`"id":%q,"type":%q,"payload":{}`, id, kind)}, more...), ",") + "}"
}

// of is the routing of a request for somebody.
func of(target string) string { return fmt.Sprintf(`"routing":{"target":%q}`, target) }

// asks says a request for work.
func (a *actor) asks(id, kind string, more ...string) {
	a.t.Helper()
	a.say(requesting(id, kind, more...) + "\n")
}

// acts says something about a task that the puppet has asked for.
func (a *actor) acts(id, act, payload string) {
	a.t.Helper()
	a.say(fmt.Sprintf(`{"id":%q,"type":%q,"payload":%s}`+"\n", id, act, payload))
}

// says says how a task stands that the puppet has, with more members perhaps.
func (a *actor) says(id, status string, more ...string) {
	a.t.Helper()
	a.say("{" + strings.Join(append([]string{fmt.Sprintf(`"id":%q,"status":%q`, id, status)}, more...), ",") + "}\n")
}

// failing are the members of a response that failed.
func failing(code string, recoverable bool) string {
	return fmt.Sprintf(`"error":{"code":%q,"message":"it is so","details":{"n":1.50},"recoverable":%v}`, code, recoverable)
}

// declined waits for the refusal of what was said about a task, which is no word about it.
func (a *actor) declined(id string) *refusal {
	a.t.Helper()
	m := a.answer(id)
	require.Equal(a.t, "response:error", m.Type, m.line)
	require.NotNil(a.t, m.Error, m.line)
	return m.Error
}

// plot is a theatre in which all puppets are on.
func plot(t *testing.T, hcl string, names ...string) (*theatre, []*actor) {
	t.Helper()
	h := troupeOf(t, hcl, names...)
	return h, h.cast(names...)
}

// shownTask is a task as the program shows it to programs.
func (s *stage) shownTask(id string) (task wire.Task) {
	s.t.Helper()
	var reply wire.TaskReply
	s.operated(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, id))
	return reply.Task
}

// waitForState waits until a task is in a state.
func (s *stage) waitForState(id string, state wire.TaskState) {
	s.t.Helper()
	waitForThat(s.t, fmt.Sprintf("task %s that is %s", id, state), func() bool { return s.taskState(id) == state })
}

// response is the latest response to a request, as the API gives it.
func (s *stage) response(id string) aWord {
	s.t.Helper()
	status, body := s.operate("get-task-response", fmt.Sprintf(`{"taskId":%q}`, id))
	require.Equal(s.t, 200, status, "%s", body)
	return readWord(s.t, string(body))
}
