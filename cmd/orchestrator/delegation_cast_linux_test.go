package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// Tests of delegation with the real program: work that agents and people delegate to agents, and
// its responses. Puppets play the agents where exact lines matter.

// doer returns the block of a puppet with some capabilities and room for that many tasks.
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

// kitchen returns the agents of most tests: boss delegates, and cook and help work.
func kitchen(room int) string {
	return crowded + doer("boss", 9) + doer("cook", room, "cook", "taste") + doer("help", room, "wash")
}

// aWord is a line about a delegated task, as a puppet receives it.
type aWord struct {
	ID            string                `json:"id"`
	Type          string                `json:"type"`
	Status        string                `json:"status"`
	Payload       json.RawMessage       `json:"payload"`
	Context       delegation.Context    `json:"context"`
	Routing       delegation.Routing    `json:"routing"`
	Observability delegation.Trace      `json:"observability"`
	Result        json.RawMessage       `json:"result"`
	Error         *delegation.Fault     `json:"error"`
	Metadata      delegation.Metadata   `json:"metadata"`
	Artifacts     []delegation.Artifact `json:"artifacts"`
	Message       string                `json:"message"`

	line string
}

// aRequest is the kind of a task request. Other kinds are statuses and types of acts.
const aRequest = "request"

func (w *aWord) kind() string {
	switch {
	case w.Status != "":
		return w.Status
	case delegation.IsAct(w.Type):
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

// words returns the lines about a task so far, in order.
func (a *actor) words(id string) (found []aWord) {
	a.t.Helper()
	for _, m := range a.all() {
		if m.ID == id {
			found = append(found, readWord(a.t, m.line))
		}
	}
	return found
}

// kinds returns the kinds of the lines about a task so far.
func (a *actor) kinds(id string) (found []string) {
	a.t.Helper()
	for _, w := range a.words(id) {
		found = append(found, w.kind())
	}
	return found
}

// hear waits for the nth line of a kind about a task.
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

// gets waits until a puppet gets a task.
func (a *actor) gets(id string) aWord { a.t.Helper(); return a.hear(1, id, aRequest) }

// requesting returns a task request, with further members in more.
func requesting(id, kind string, more ...string) string {
	return "{" + strings.Join(append([]string{fmt.Sprintf(`"id":%q,"type":%q,"payload":{}`, id, kind)}, more...), ",") + "}"
}

// of returns the routing to a target.
func of(target string) string { return fmt.Sprintf(`"routing":{"target":%q}`, target) }

// asks sends a task request.
func (a *actor) asks(id, kind string, more ...string) {
	a.t.Helper()
	a.say(requesting(id, kind, more...) + "\n")
}

// acts sends an act about a task that the puppet has delegated.
func (a *actor) acts(id, act, payload string) {
	a.t.Helper()
	a.say(fmt.Sprintf(`{"id":%q,"type":%q,"payload":%s}`+"\n", id, act, payload))
}

// says sends a response for a task of the puppet, with further members in more.
func (a *actor) says(id, status string, more ...string) {
	a.t.Helper()
	a.say("{" + strings.Join(append([]string{fmt.Sprintf(`"id":%q,"status":%q`, id, status)}, more...), ",") + "}\n")
}

// failing returns the members of a failed response.
func failing(code string, recoverable bool) string {
	return fmt.Sprintf(`"error":{"code":%q,"message":"it is so","details":{"n":1.50},"recoverable":%v}`, code, recoverable)
}

// declined waits for the refusal of a line about a task.
func (a *actor) declined(id string) *refusal {
	a.t.Helper()
	m := a.answer(id)
	require.Equal(a.t, "response:error", m.Type, m.line)
	require.NotNil(a.t, m.Error, m.line)
	return m.Error
}

// plot returns a theatre whose puppets have all started.
func plot(t *testing.T, hcl string, names ...string) (*theatre, []*actor) {
	t.Helper()
	h := troupeOf(t, hcl, names...)
	return h, h.cast(names...)
}

// shownTask returns a task as JSON output shows it.
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

// response returns the latest response to a task request, from the API.
func (s *stage) response(id string) aWord {
	s.t.Helper()
	status, body := s.operate("get-task-response", fmt.Sprintf(`{"taskId":%q}`, id))
	require.Equal(s.t, 200, status, "%s", body)
	return readWord(s.t, string(body))
}
