package session

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
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
func ear(s *stage.Orchestrator) (found []aWord) {
	text, _ := os.ReadFile(s.Path("deaf.ear"))
	for line := range strings.Lines(string(text)) {
		if line, whole := strings.CutSuffix(line, "\n"); whole && strings.HasPrefix(line, `{"id":"t-`) {
			found = append(found, readWord(s.T, line))
		}
	}
	return found
}

// An agent that stops reading gets each task once, and the acts on it, when it reads again. It
// never gets a task that was cancelled before that. No other agent waits.
//
// Rows: D-11, D-17, D-36, D-38, T-04.
func TestDelegationToTheDeaf(t *testing.T) {
	t.Parallel()
	const many = 40
	h := stage.NewQuickTeam(t, kitchen(99)+deafUntil("deaf"), "boss", "cook", "help")
	h.Write("deaf.says", "")
	all := h.StartAll("boss", "cook", "help")
	boss, cook := all[0], all[1]
	large := fmt.Sprintf(`"large":%q`, strings.Repeat("long ", 2000))
	for n := range many {
		asks(boss, fmt.Sprintf("t-%02d", n), "listen", large)
		asks(boss, fmt.Sprintf("c-%02d", n), "cook")
	}
	for n := range many {
		gets(cook, fmt.Sprintf("c-%02d", n))
	}
	h.WaitForEvents(1, events.TaskReturned, "deaf")
	h.WaitForEvents(1, events.AgentStalled, "deaf")
	acts(boss, "t-00", delegation.ActUpdate, `{"input":1}`)
	acts(boss, fmt.Sprintf("t-%02d", many-1), delegation.ActCancel, `{}`) // the agent has not got this one
	hear(boss, 1, fmt.Sprintf("t-%02d", many-1), delegation.Cancelled)

	h.Write("go", "")
	stage.WaitFor(t, "everything", func() bool { return len(ear(h.Orchestrator)) >= many })
	boss.Settle()
	var requests, acts []string
	for _, w := range ear(h.Orchestrator) {
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
	h.Stop()
}

// A source that stops reading gets the latest response to each task when it reads again.
//
// Rows: D-10, D-17, D-36, T-04.
func TestDelegationByTheDeaf(t *testing.T) {
	t.Parallel()
	const many = 40
	h := stage.NewQuickTeam(t, kitchen(99)+deafUntil("deaf"), "boss", "cook", "help")
	var said strings.Builder
	for n := range many {
		fmt.Fprintln(&said, requesting(fmt.Sprintf("t-%02d", n), "cook"))
	}
	h.Write("deaf.says", said.String())
	all := h.StartAll("boss", "cook", "help")
	boss, cook := all[0], all[1]
	large := fmt.Sprintf(`"message":%q`, strings.Repeat("long ", 2000))
	for n := range many {
		id := fmt.Sprintf("t-%02d", n)
		gets(cook, id)
		says(cook, id, "in_progress", large)
	}
	h.WaitForEvents(1, events.TaskUnanswered, "")
	for n := range many {
		says(cook, fmt.Sprintf("t-%02d", n), "completed", fmt.Sprintf(`"result":%d`, n))
	}
	cook.Settle()
	asks(boss, "t-boss", "cook")
	gets(cook, "t-boss")
	says(cook, "t-boss", "completed")
	hear(boss, 1, "t-boss", delegation.Completed)

	h.Write("go", "")
	ends := make(map[string]string)
	stage.WaitFor(t, "the end of everything", func() bool {
		for _, w := range ear(h.Orchestrator) {
			if w.kind() == delegation.Completed {
				ends[w.ID] = string(w.Result)
			}
		}
		return len(ends) == many
	})
	for n := range many {
		require.Equal(t, fmt.Sprint(n), ends[fmt.Sprintf("t-%02d", n)])
	}
	stage.WaitFor(t, "receipts", func() bool {
		answered := make(map[string]bool)
		for _, e := range h.Events(events.TaskAnswered, "") {
			answered[e.Task] = true
		}
		return len(answered) == many+1
	})
	over := make(map[string]bool)
	for _, w := range ear(h.Orchestrator) {
		require.False(t, over[w.ID], "%s says more when it is over", w.ID)
		over[w.ID] = w.kind() == delegation.Completed
	}
	h.Stop()
}

// requireNothingHeeded requires that all output of an agent is log lines with these prefixes,
// and that none was taken for a message.
func requireNothingHeeded(s *stage.Orchestrator, agent string, starts ...string) {
	s.T.Helper()
	lines := s.WaitForLines(len(starts), agent)
	require.Len(s.T, lines, len(starts))
	for n, start := range starts {
		require.True(s.T, strings.HasPrefix(lines[n], start), "%s is none of %s", lines[n], start)
	}
	require.Empty(s.T, s.Events(events.AgentRefused, agent))
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
	asks(boss, "t-1", "echo", of("cat"), `"context":{"user":"ann"}`, `"observability":{"traceId":"x"}`)
	h.WaitForLines(1, "cat")
	acts(boss, "t-1", delegation.ActStatus, `{}`)
	h.WaitForLines(2, "cat")
	require.Equal(t, "cat", hear(boss, 1, "t-1", delegation.Pending).Metadata.Agent, "it says nothing, and so it is said for it")
	acts(boss, "t-1", delegation.ActUpdate, `{"input":["more"]}`)
	h.WaitForLines(3, "cat")
	require.Equal(t, wire.TaskAssigned, h.TaskState("t-1"))
	acts(boss, "t-1", delegation.ActCancel, `{"reason":"enough"}`)
	hear(boss, 1, "t-1", delegation.Cancelled)
	h.WaitForLines(4, "cat")
	asks(boss, "t-2", "echo") // after any effect of the echoes
	h.WaitForLines(5, "cat")
	h.Operated(nil, "cancel-task", `{"taskId":"t-2"}`)
	requireNothingHeeded(h.Orchestrator, "cat", `{"id":"t-1","type":"echo",`, `{"id":"t-1","type":"task.status",`, `{"id":"t-1","type":"task.update",`,
		`{"id":"t-1","type":"task.cancel",`, `{"id":"t-2","type":"echo",`, `{"id":"t-2","type":"task.cancel",`)
	require.Equal(t, []string{delegation.Pending, delegation.Cancelled}, kinds(boss, "t-1"))
	require.Empty(t, boss.Answers("t-1"))
	h.Stop()
}

// An agent that delegates work and echoes its input changes no task: echoed responses and
// refusals are ignored.
//
// Rows: D-10, D-17, D-18, T-02.
func TestDelegationByAnEcho(t *testing.T) {
	t.Parallel()
	asked := requesting("t-1", "cook", of("cook"))
	h := stage.NewQuickTeam(t, kitchen(9)+`
agent "parrot" {
  command = ["sh", "-c", "cat said; exec cat"]
}
`, "boss", "cook", "help")
	h.Write("said", asked+"\n"+requesting("t-2", "fly")+"\n"+`{"id":"t-1","type":"task.status","payload":[]}`+"\n"+`{"id":3,"type":"cook","payload":{}}`+"\n")
	cook := h.StartAll("boss", "cook", "help")[1]
	gets(cook, "t-1")
	says(cook, "t-1", "in_progress")
	h.WaitForLines(4, "parrot")
	says(cook, "t-1", "input_required", `"message":"how?"`)
	h.WaitForLines(5, "parrot")
	says(cook, "t-1", "completed", `"result":{"type":"cook"}`)
	lines := strings.Join(h.WaitForLines(6, "parrot"), "\n")
	for _, echo := range []string{
		`{"id":"t-2","status":"failed","error":{"code":"CAPABILITY_NOT_FOUND"`, `"correlationId":"t-1"`, `"correlationId":3`,
		`{"id":"t-1","status":"in_progress"}`, `{"id":"t-1","status":"input_required","message":"how?"}`, `{"id":"t-1","status":"completed","result":{"type":"cook"}}`,
	} {
		require.Contains(t, lines, echo)
	}
	cook.Settle()
	require.Equal(t, []string{aRequest}, kinds(cook, "t-1"))
	require.Equal(t, wire.TaskDone, h.TaskState("t-1"))
	require.Len(t, h.Lines("parrot", control.StreamOut), 6, "nobody answers an echo")
	h.Stop()
}
