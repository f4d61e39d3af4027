package console

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// shown returns the console output for events.
func shown(p term.Paint, quiet bool, found ...wire.Event) string {
	var screen bytes.Buffer
	c := &Console{out: term.Outlet{To: &screen}, paint: p, quiet: quiet, width: len("planner")}
	for i := range found {
		c.show(output.Line{At: time.Date(2026, 11, 20, 14, 33, 2, 0, time.Local), Agent: found[i].Agent, Event: &found[i]})
	}
	c.out.Flush()
	return screen.String()
}

// workDay has one event of each kind about work.
var workDay = []wire.Event{
	{Kind: events.AgentKnown, Agent: "planner", Text: "is a planner"},
	{Kind: events.TaskCreated, Task: "7f3a9c1e", Text: `7f3a9c1e "Write the spec"`},
	{Kind: events.TaskCreated, Agent: "planner", Task: "91c0aa42", Text: `91c0aa42 "API" after 7f3a9c1e`},
	{Kind: events.TaskAssigned, Agent: "coder", Task: "7f3a9c1e", Text: `7f3a9c1e "Write the spec" -> coder`},
	{Kind: events.TaskStarted, Agent: "coder", Task: "7f3a9c1e", Text: `7f3a9c1e "Write the spec" running`},
	{Kind: events.TaskProgress, Agent: "coder", Task: "7f3a9c1e", Text: "7f3a9c1e \"Write the spec\" 64%  \x1b[2Jhalf"},
	{Kind: events.TaskTrouble, Agent: "coder", Task: "7f3a9c1e", Text: "7f3a9c1e: no ink"},
	{Kind: events.TaskRequeued, Agent: "coder", Task: "7f3a9c1e", Text: `7f3a9c1e "Write the spec" is back in the queue: exit 1`},
	{Kind: events.QuestionAsked, Agent: "coder", Text: "q1 Which login? [oauth]", Payload: wire.Raw(`{"question_id":"q1","context":{"a":1,"a":2}}`)},
	{Kind: events.QuestionAsked, Agent: "coder", Text: "Which?"},
	{Kind: events.QuestionRejoined, Agent: "coder", Text: "q1 is asked again"},
	{Kind: events.QuestionAnswered, Agent: "coder", Text: "q1 is answered: oauth"},
	{Kind: events.QuestionExpired, Agent: "coder", Text: "q2 was not answered in time"},
	{Kind: events.TaskDone, Agent: "coder", Task: "7f3a9c1e", Text: `7f3a9c1e "Write the spec" done`},
	{Kind: events.TaskFailed, Agent: "coder", Task: "91c0aa42", Text: `91c0aa42 "API" failed: no`},
	{Kind: events.TaskCancelled, Task: "91c0aa42", Text: `91c0aa42 "API" cancelled: no`},
	{Kind: events.TaskBlocked, Task: "91c0aa42", Text: `91c0aa42 "API" will not run`},
	{Kind: events.AgentRefused, Agent: "coder", Text: "line 3: payload.name is missing"},
	{Kind: events.KeyIssued, Agent: "ci", Text: "has a new key k1"},
	{Kind: events.AgentForgotten, Agent: "ci", Text: "is no longer in the configuration"},
	{Kind: events.DependencyResolved, Task: "7f3a9c1e", Text: `7f3a9c1e "Write the spec" is there for 91c0aa42`},
	{Kind: events.ContractFulfilled, Task: "7f3a9c1e", Text: `7f3a9c1e "Write the spec" delivers spec`},
	{Kind: events.ContractMissing, Task: "7f3a9c1e", Text: `7f3a9c1e "Write the spec" does not deliver api`},
	{Kind: events.TaskUnblocked, Task: "91c0aa42", Text: `91c0aa42 "API" waits for nothing any more`},
	{Kind: events.TaskAnnounced, Task: "7f3a9c1e", Text: `7f3a9c1e "Write the spec" is done, 1 unblocked`},
	{Kind: events.TaskPlanned, Agent: "coder", Task: "91c0aa42", Text: `91c0aa42 "API" has a plan: a person or a planner has to approve it`},
	{Kind: events.TaskNoted, Task: "91c0aa42", Text: `91c0aa42 "API" noted: hot`},
}

func TestConsoleShowsWork(t *testing.T) {
	require.Equal(t, `14:33:02 + task 7f3a9c1e "Write the spec"
14:33:02 planner + task 91c0aa42 "API" after 7f3a9c1e
14:33:02 coder   > 7f3a9c1e "Write the spec" -> coder
14:33:02 coder   > 7f3a9c1e "Write the spec" running
14:33:02 coder   > 7f3a9c1e "Write the spec" 64%  \x1b[2Jhalf
14:33:02 coder   ! 7f3a9c1e: no ink
14:33:02 coder   ! 7f3a9c1e "Write the spec" is back in the queue: exit 1
14:33:02 coder   ? q1 Which login? [oauth]
14:33:02 coder   ? orchestrator inbox answer q1 VALUE
14:33:02 coder   ? Which?
14:33:02 coder   ? orchestrator inbox
14:33:02 coder   ? q1 is asked again
14:33:02 coder   ok q1 is answered: oauth
14:33:02 coder   ! q2 was not answered in time
14:33:02 coder   ok 7f3a9c1e "Write the spec" done
14:33:02 coder   x 91c0aa42 "API" failed: no
14:33:02 x 91c0aa42 "API" cancelled: no
14:33:02 ! 91c0aa42 "API" will not run
14:33:02 coder   ! line 3: payload.name is missing
14:33:02 ci      . has a new key k1
14:33:02 ok 7f3a9c1e "Write the spec" delivers spec
14:33:02 ! 7f3a9c1e "Write the spec" does not deliver api
14:33:02 > 91c0aa42 "API" waits for nothing any more
14:33:02 coder   ? 91c0aa42 "API" has a plan: a person or a planner has to approve it
14:33:02 coder   ? orchestrator task approve-plan 91c0aa42     or: revise-plan 91c0aa42 -m TEXT
14:33:02 . 91c0aa42 "API" noted: hot
`, shown(false, false, workDay...))
}

// With --quiet, only trouble and questions are shown.
func TestConsoleKeepsCalm(t *testing.T) {
	require.Equal(t, `14:33:02 coder   ! 7f3a9c1e: no ink
14:33:02 coder   ! 7f3a9c1e "Write the spec" is back in the queue: exit 1
14:33:02 coder   ? q1 Which login? [oauth]
14:33:02 coder   ? orchestrator inbox answer q1 VALUE
14:33:02 coder   ? Which?
14:33:02 coder   ? orchestrator inbox
14:33:02 coder   ! q2 was not answered in time
14:33:02 coder   x 91c0aa42 "API" failed: no
14:33:02 x 91c0aa42 "API" cancelled: no
14:33:02 ! 91c0aa42 "API" will not run
14:33:02 coder   ! line 3: payload.name is missing
14:33:02 ! 7f3a9c1e "Write the spec" does not deliver api
14:33:02 coder   ? 91c0aa42 "API" has a plan: a person or a planner has to approve it
14:33:02 coder   ? orchestrator task approve-plan 91c0aa42     or: revise-plan 91c0aa42 -m TEXT
`, shown(false, true, workDay...))
}

// Questions are highlighted and progress is not.
func TestConsolePaintsWork(t *testing.T) {
	screen := shown(true, false, workDay...)
	require.Contains(t, screen, "\x1b[1mq1 Which login? [oauth]\x1b[0m")
	require.Contains(t, screen, "\x1b[2m7f3a9c1e \"Write the spec\" 64%")
}
