package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
)

// deafUntil returns an agent that prints NAME.says and does not read until a file named go
// exists. It writes its input to NAME.ear.
func deafUntil(name string) string {
	return fmt.Sprintf(`
agent %[1]q {
  command = ["sh", "-c", "cat %[1]s.says; while [ ! -e go ]; do sleep 0.05; done; exec cat >%[1]s.ear"]
  capabilities {
    names                = ["listen"]
    max_concurrent_tasks = 1000
  }
  health {
    write_timeout = "200ms"
  }
  limits {
    mailbox = 4
  }
}
`, name)
}

// ear returns the lines that the agent deaf has read.
func (s *stage) ear() (found []aWord) {
	text, _ := os.ReadFile(s.path("deaf.ear"))
	for line := range strings.Lines(string(text)) {
		if line, whole := strings.CutSuffix(line, "\n"); whole && strings.HasPrefix(line, `{"id":"t-`) {
			found = append(found, readWord(s.t, line))
		}
	}
	return found
}

// An agent that stops reading gets each task once, and the acts on it, when it reads again. It
// never gets a task that was cancelled meanwhile. No other agent waits.
//
// Rows: D-11, D-17, D-36, D-38, T-04.
func TestDelegationToTheDeaf(t *testing.T) {
	t.Parallel()
	const many = 40
	h := troupeOf(t, kitchen(99)+deafUntil("deaf"), "boss", "cook", "help")
	h.write("deaf.says", "")
	all := h.cast("boss", "cook", "help")
	boss, cook := all[0], all[1]
	large := fmt.Sprintf(`"large":%q`, strings.Repeat("long ", 2000))
	for n := range many {
		boss.asks(fmt.Sprintf("t-%02d", n), "listen", large)
		boss.asks(fmt.Sprintf("c-%02d", n), "cook")
	}
	for n := range many {
		cook.gets(fmt.Sprintf("c-%02d", n))
	}
	h.waitForEvents(1, events.TaskReturned, "deaf")
	h.waitForEvents(1, events.AgentStalled, "deaf")
	boss.acts("t-00", delegation.ActUpdate, `{"input":1}`)
	boss.acts(fmt.Sprintf("t-%02d", many-1), delegation.ActCancel, `{}`) // the agent has not got this one
	boss.hear(1, fmt.Sprintf("t-%02d", many-1), delegation.Cancelled)

	h.write("go", "")
	waitForThat(t, "everything", func() bool { return len(h.ear()) >= many })
	boss.quiet()
	var requests, acts []string
	for _, w := range h.ear() {
		if w.kind() == aRequest {
			requests = append(requests, w.ID)
		} else {
			acts = append(acts, w.ID+" "+w.kind())
		}
	}
	var want []string
	for n := range many - 1 {
		want = append(want, fmt.Sprintf("t-%02d", n))
	}
	require.ElementsMatch(t, want, requests)
	require.Equal(t, []string{"t-00 task.update"}, acts)
	h.stop()
}

// A source that stops reading gets the latest response to each task when it reads again.
//
// Rows: D-10, D-17, D-36, T-04.
func TestDelegationByTheDeaf(t *testing.T) {
	t.Parallel()
	const many = 40
	h := troupeOf(t, kitchen(99)+deafUntil("deaf"), "boss", "cook", "help")
	var said strings.Builder
	for n := range many {
		fmt.Fprintln(&said, requesting(fmt.Sprintf("t-%02d", n), "cook"))
	}
	h.write("deaf.says", said.String())
	all := h.cast("boss", "cook", "help")
	boss, cook := all[0], all[1]
	large := fmt.Sprintf(`"message":%q`, strings.Repeat("long ", 2000))
	for n := range many {
		id := fmt.Sprintf("t-%02d", n)
		cook.gets(id)
		cook.says(id, "in_progress", large)
	}
	h.waitForEvents(1, events.TaskUnanswered, "")
	for n := range many {
		cook.says(fmt.Sprintf("t-%02d", n), "completed", fmt.Sprintf(`"result":%d`, n))
	}
	cook.quiet()
	boss.asks("t-boss", "cook")
	cook.gets("t-boss")
	cook.says("t-boss", "completed")
	boss.hear(1, "t-boss", delegation.Completed)

	h.write("go", "")
	ends := make(map[string]string)
	waitForThat(t, "the end of everything", func() bool {
		for _, w := range h.ear() {
			if w.kind() == delegation.Completed {
				ends[w.ID] = string(w.Result)
			}
		}
		return len(ends) == many
	})
	for n := range many {
		require.Equal(t, fmt.Sprint(n), ends[fmt.Sprintf("t-%02d", n)])
	}
	waitForThat(t, "receipts", func() bool {
		answered := make(map[string]bool)
		for _, e := range h.events(events.TaskAnswered, "") {
			answered[e.Task] = true
		}
		return len(answered) == many+1
	})
	over := make(map[string]bool)
	for _, w := range h.ear() {
		require.False(t, over[w.ID], "%s says more when it is over", w.ID)
		over[w.ID] = w.kind() == delegation.Completed
	}
	h.stop()
}

// requireNothingHeeded requires that all output of an agent is log lines with these prefixes,
// and that none was taken for a message.
func (s *stage) requireNothingHeeded(agent string, starts ...string) {
	s.t.Helper()
	lines := s.waitForLines(len(starts), agent)
	require.Len(s.t, lines, len(starts))
	for n, start := range starts {
		require.True(s.t, strings.HasPrefix(lines[n], start), "%s is none of %s", lines[n], start)
	}
	require.Empty(s.t, s.events(events.AgentRefused, agent))
}

// An agent that echoes its input does not change its tasks, and gets no answer to an echo.
//
// Rows: D-18, D-37, T-02, T-32.
func TestDelegationToAnEcho(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9)+`
agent "cat" {
  command = ["cat"]
  capabilities {
    names                = ["echo"]
    max_concurrent_tasks = 9
  }
}
`, "boss", "cook", "help")
	boss := all[0]
	boss.asks("t-1", "echo", of("cat"), `"context":{"user":"ann"}`, `"observability":{"traceId":"x"}`)
	h.waitForLines(1, "cat")
	boss.acts("t-1", delegation.ActStatus, `{}`)
	h.waitForLines(2, "cat")
	require.Equal(t, "cat", boss.hear(1, "t-1", delegation.Pending).Metadata.Agent, "it says nothing, and so it is said for it")
	boss.acts("t-1", delegation.ActUpdate, `{"input":["more"]}`)
	h.waitForLines(3, "cat")
	require.Equal(t, wire.TaskAssigned, h.taskState("t-1"))
	boss.acts("t-1", delegation.ActCancel, `{"reason":"enough"}`)
	boss.hear(1, "t-1", delegation.Cancelled)
	h.waitForLines(4, "cat")
	boss.asks("t-2", "echo") // after any effect of the echoes
	h.waitForLines(5, "cat")
	h.operated(nil, "cancel-task", `{"taskId":"t-2"}`)
	h.requireNothingHeeded("cat", `{"id":"t-1","type":"echo",`, `{"id":"t-1","type":"task.status",`, `{"id":"t-1","type":"task.update",`,
		`{"id":"t-1","type":"task.cancel",`, `{"id":"t-2","type":"echo",`, `{"id":"t-2","type":"task.cancel",`)
	require.Equal(t, []string{delegation.Pending, delegation.Cancelled}, boss.kinds("t-1"))
	require.Empty(t, boss.answers("t-1"))
	h.stop()
}

// An agent that delegates work and echoes its input changes no task: echoed responses and
// refusals are ignored.
//
// Rows: D-10, D-17, D-18, T-02.
func TestDelegationByAnEcho(t *testing.T) {
	t.Parallel()
	asked := requesting("t-1", "cook", of("cook"))
	h := troupeOf(t, kitchen(9)+`
agent "parrot" {
  command = ["sh", "-c", "cat said; exec cat"]
}
`, "boss", "cook", "help")
	h.write("said", asked+"\n"+requesting("t-2", "fly")+"\n"+`{"id":"t-1","type":"task.status","payload":[]}`+"\n"+`{"id":3,"type":"cook","payload":{}}`+"\n")
	cook := h.cast("boss", "cook", "help")[1]
	cook.gets("t-1")
	cook.says("t-1", "in_progress")
	h.waitForLines(4, "parrot")
	cook.says("t-1", "input_required", `"message":"how?"`)
	h.waitForLines(5, "parrot")
	cook.says("t-1", "completed", `"result":{"type":"cook"}`)
	lines := strings.Join(h.waitForLines(6, "parrot"), "\n")
	for _, echo := range []string{
		`{"id":"t-2","status":"failed","error":{"code":"CAPABILITY_NOT_FOUND"`, `"correlationId":"t-1"`, `"correlationId":3`,
		`{"id":"t-1","status":"in_progress"}`, `{"id":"t-1","status":"input_required","message":"how?"}`, `{"id":"t-1","status":"completed","result":{"type":"cook"}}`,
	} {
		require.Contains(t, lines, echo)
	}
	cook.quiet()
	require.Equal(t, []string{aRequest}, cook.kinds("t-1"))
	require.Equal(t, wire.TaskDone, h.taskState("t-1"))
	require.Len(t, h.lines("parrot", control.StreamOut), 6, "nobody answers an echo")
	h.stop()
}
