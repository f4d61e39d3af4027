package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// An event is recorded with the id of the agent whose pipe it came on. It is never answered,
// valid or not.
//
// Rows: B-15, B-18, B-63, B-64, B-66, B-67.
func TestWordsEventsAreRecorded(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+holder("auto"), "boss", "holder")
	all := h.cast("boss", "holder")
	boss, held := all[0], all[1]
	task := boss.submit(toHold)
	held.assigned(task.ID)
	for _, line := range []string{
		telling("1", "progress", fmt.Sprintf(`{"taskId":%q,"progress":0.75,"message":"Compiles, now the manual"}`, task.ID)),
		telling("2", "error", fmt.Sprintf(`{"taskId":%q,"error":"it can live with that","recoverable":true}`, task.ID)),
		telling("3", "error", `{"error":"of no task","stack":"here\nthere"}`),
		telling("4", "question", `{"question":"fine?"}`),
	} {
		held.say(line + "\n")
	}
	held.quiet()
	require.Equal(t, 0.75, boss.task(task.ID).Progress)
	require.Equal(t, "Compiles, now the manual", boss.task(task.ID).Message)
	require.Equal(t, "running", boss.task(task.ID).Status)
	for kind, says := range map[string]string{
		events.TaskProgress: "75%  Compiles", events.TaskTrouble: "it can live with that", events.QuestionAsked: "fine?",
	} {
		found := h.waitForEvents(1, kind, "holder")[0]
		require.Contains(t, found.Text, says)
		require.Equal(t, "holder", found.Agent)
	}
	require.Len(t, h.waitForEvents(2, events.TaskTrouble, "holder"), 2)
	require.Contains(t, string(h.events(events.TaskTrouble, "holder")[1].Payload), `here\nthere`)
	held.say(telling("5", "progress", fmt.Sprintf(`{"taskId":%q,"progress":1}`, task.ID)) + "\n")
	held.quiet()
	require.Equal(t, "running", boss.task(task.ID).Status, "all of it is not the end of it")
	require.Len(t, held.all(), 3, "the notice and the answers to two questions")
	h.stop()
}

// An event:log is written to the log with its level and context.
//
// Rows: B-65.
func TestWordsLogEvent(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	entry := telling("l", "log", `{"level":"warn","message":"Warmed the cache","context":{"table":"users","rows":1000}}`)
	a.say(entry + "\n" + telling("m", "log", `{"level":"loud","message":"of a level of its own"}`) + "\n")
	waitForThat(t, "entries in the log", func() bool { return len(h.logged("a", ".out")) == 2 })
	require.Equal(t, entry, h.logged("a", ".out")[0], "the file has it word for word")
	a.quiet()
	require.Len(t, a.all(), 1)
	shown := h.ask("logs", "a", "--json")
	require.Contains(t, shown, "Warmed the cache")
	require.Contains(t, shown, "warn")
	require.Contains(t, shown, "1000")
	h.stop()
}

// An invalid event, or one that the agent may not send, changes nothing and gets no answer.
// People see that it was refused.
//
// Rows: B-63, B-64, B-68, B-78.
func TestWordsEventsThatAreIgnored(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss", "other")+holder("auto"), "boss", "other", "holder")
	all := h.cast("boss", "other", "holder")
	boss, other, held := all[0], all[1], all[2]
	task := boss.submit(toHold)
	held.assigned(task.ID)
	boss.await(task.ID, "running")
	progress := fmt.Sprintf(`{"taskId":%q,"progress":0.5}`, task.ID)
	fatal := fmt.Sprintf(`{"taskId":%q,"error":"mine now","recoverable":false}`, task.ID)
	for i, line := range []string{
		telling("1", "progress", progress), telling("2", "error", fatal),
		telling("3", "progress", `{"taskId":"task-nope","progress":0.5}`),
		telling("4", "progress", fmt.Sprintf(`{"taskId":%q,"progress":1.5}`, task.ID)),
		telling("5", "progress", `{"progress":"half"}`), telling("6", "nope", `{}`),
		`{"type":"event:question","timestamp":"` + noon + `","payload":{"question":"without an id?"}}`,
		strings.Replace(telling("8", "question", `{"question":"somebody else's?"}`), `"id"`, `"agentId":"holder","id"`, 1),
	} {
		other.say(line + "\n")
		other.quiet()
		require.Len(t, other.all(), i+1, line)
	}
	boss.say(telling("9", "error", fatal) + "\n" + telling("10", "progress", progress) + "\n")
	boss.quiet()
	require.Equal(t, "running", boss.task(task.ID).Status, "only its agent may tell of it")
	require.Zero(t, boss.task(task.ID).Progress)
	require.Empty(t, h.questions())
	require.Contains(t, h.waitForEvents(1, events.AgentRefused, "other")[0].Text, "event:progress")
	h.stop()
	require.Empty(t, h.events(events.TaskProgress, ""))
}

// audited returns the lines of the audit of requests.
func (s *stage) audited() (lines []map[string]any) {
	s.t.Helper()
	names, err := filepath.Glob(filepath.Join(s.state(), "audit", "*.jsonl"))
	require.NoError(s.t, err)
	slices.Sort(names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(s.t, err)
		for line := range strings.Lines(string(text)) {
			var entry map[string]any
			require.NoError(s.t, json.Unmarshal([]byte(line), &entry), "%q", line)
			lines = append(lines, entry)
		}
	}
	return lines
}

// Every request is a line in the audit: agent, operation, id and outcome. So are refused
// requests and ignored events.
//
// Rows: B-78, B-81.
func TestWordsAudit(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	a.say(asking("yes", "query-agents", `{}`) + "\n")
	a.say(asking("no", "get-task", `{"taskId":"task-nope"}`) + "\n")
	a.say(asking("bad", "submit-task", `{}`) + "\n")
	a.say(asking("none", "nope", `{}`) + "\n")
	a.say(strings.Replace(asking("mask", "query-agents", `{}`), `"id"`, `"agentId":"b","id"`, 1) + "\n")
	a.say(`{"type":"request:query-agents","id":7,"timestamp":"` + noon + `"}` + "\n")
	a.say(strings.Replace(telling("event", "question", `{"question":"x"}`), `"id"`, `"agentId":"b","id"`, 1) + "\n")
	a.say("a plain line\n" + telling("fine", "question", `{"question":"x"}`) + "\n")
	a.say(asking("wait", "ask-user", `{"question":"y?"}`) + "\n")
	a.say(asking("yes", "submit-task", `{"type":"t","name":"n"}`) + "\n")
	a.answer("yes")
	a.quiet()
	h.operated(nil, "list-questions", `{}`)
	h.operate("answer-question", `{"questionId":"q99","answer":"x"}`)
	h.stop()
	type entry struct{ actor, kind, id, outcome any }
	var got []entry
	for _, line := range h.audited() {
		require.NotEmpty(t, line["at"])
		if line["actor"] == "operator" {
			line["id"] = "?"
		}
		got = append(got, entry{line["actor"], line["type"], line["id"], line["outcome"]})
	}
	require.ElementsMatch(t, []entry{
		{"agent:a", "request:query-agents", "yes", "granted"},
		{"agent:a", "request:get-task", "no", "not_found"},
		{"agent:a", "request:submit-task", "bad", "invalid"},
		{"agent:a", "request:nope", "none", "unknown_type"},
		{"agent:a", "request:query-agents", "mask", "denied"},
		{"agent:a", "request:query-agents", 7.0, "invalid"},
		{"agent:a", "event:question", "event", "denied"},
		{"agent:a", "request:ask-user", "wait", "granted"},
		{"agent:a", "request:submit-task", "yes", "granted"},
		{"agent:a", "request:query-agents", "req-a-1", "granted"},
		{"operator", "request:list-questions", "?", "granted"},
		{"operator", "request:answer-question", "?", "not_found"},
	}, got)
}

// The log has the text of ignored error events, and the idempotency keys of refused mail.
// Operations of operators are refused as such.
func TestWordsIgnoredAndRefused(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a", "b", "c"), "a", "b", "c")
	actors := h.cast("a", "b", "c")
	actors[0].say(telling("e", "error", `{"taskId":"none","error":"the tap is broken","recoverable":false}`) + "\n")
	refused := h.waitForEvents(1, events.AgentRefused, "a")[0].Text
	require.Contains(t, refused, "event:error")
	require.Contains(t, refused, "it says: the tap is broken")

	actors[1].say(`{"from_actor":"HO:x","to_actor":"GO","topic":"message.direct","payload":7,"idempotency_key":"key-7"}` + "\n")
	require.Contains(t, h.waitForEvents(1, events.AgentRefused, "b")[0].Text, `with the idempotency_key "key-7"`)

	for n, o := range wire.ControlOperations {
		id := fmt.Sprint("op", n)
		actors[2].say(asking(id, o.Name, "{}") + "\n")
		require.Equal(t, "UNAUTHORIZED", actors[2].answer(id).Error.Code, o.Name)
	}
	h.stop()
}
