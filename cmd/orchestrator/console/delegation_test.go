package console

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// responded returns the event of a response.
func responded(status, text string) wire.Event {
	return wire.Event{
		Kind: events.TaskResponded, Agent: "cook", Task: "t-1", Text: `t-1 "cook" is ` + status + text,
		Payload: wire.Raw(`{"task":"t-1","status":"` + status + `","document":{"status":"x","a":1,"a":2}}`),
	}
}

// errands has one event of each kind about delegated tasks.
var errands = []wire.Event{
	{Kind: events.TaskForwarded, Agent: "cook", Task: "t-1", Text: `t-1 "cook" is brought to cook`},
	responded("pending", ": its source is told so"),
	{Kind: events.TaskAnswered, Task: "t-1", Text: `the source of t-1 "cook" has the response`},
	responded("in_progress", ", says cook\x1b[2J"),
	{Kind: events.TaskActed, Agent: "cook", Task: "t-1", Text: `cook is asked how t-1 "cook" stands`},
	{Kind: events.TaskHelpWanted, Agent: "cook", Task: "t-1", Text: `t-1 "cook" needs a person: q1 How hot?`, Payload: wire.Raw(`{"question_id":"q1"}`)},
	responded("input_required", ", says cook"),
	{Kind: events.TaskReturned, Agent: "cook", Task: "t-1", Text: `cook does not read: t-1 "cook" waits until it does`},
	{Kind: events.TaskUnanswered, Task: "t-1", Text: `the source of t-1 "cook" does not read: the response waits until it does`},
	{Kind: events.TaskRetried, Agent: "cook", Task: "t-1", Text: `t-1 "cook" is tried again after POT_LOST: it has burnt`},
	responded("completed", ", says cook"),
	responded("failed", ", says cook"),
	responded("cancelled", ", says cook"),
	{Kind: events.TaskResponded, Agent: "cook", Task: "t-1", Text: `t-1 "cook" is odd`},
}

// A delegated task is shown like other work: each step once, and only obstacles as trouble.
func TestConsoleShowsDelegation(t *testing.T) {
	require.Equal(t, `14:33:02 cook    > t-1 "cook" is brought to cook
14:33:02 cook    > t-1 "cook" is pending: its source is told so
14:33:02 cook    > t-1 "cook" is in_progress, says cook\x1b[2J
14:33:02 cook    > cook is asked how t-1 "cook" stands
14:33:02 cook    ? t-1 "cook" needs a person: q1 How hot?
14:33:02 cook    ? orchestrator inbox answer q1 VALUE
14:33:02 cook    ! cook does not read: t-1 "cook" waits until it does
14:33:02 ! the source of t-1 "cook" does not read: the response waits until it does
14:33:02 cook    ! t-1 "cook" is tried again after POT_LOST: it has burnt
14:33:02 cook    > t-1 "cook" is odd
`, shown(false, false, errands...))
}

// With --quiet, only obstacles and questions are shown.
func TestConsoleKeepsCalmAboutDelegation(t *testing.T) {
	require.Equal(t, `14:33:02 cook    ? t-1 "cook" needs a person: q1 How hot?
14:33:02 cook    ? orchestrator inbox answer q1 VALUE
14:33:02 cook    ! cook does not read: t-1 "cook" waits until it does
14:33:02 ! the source of t-1 "cook" does not read: the response waits until it does
14:33:02 cook    ! t-1 "cook" is tried again after POT_LOST: it has burnt
`, shown(false, true, errands...))
}

// Steps are highlighted and progress is dimmed.
func TestConsolePaintsDelegation(t *testing.T) {
	screen := shown(true, false, errands...)
	require.Contains(t, screen, "\x1b[32m>\x1b[0m t-1 \"cook\" is brought to cook")
	require.Contains(t, screen, "\x1b[2mt-1 \"cook\" is in_progress")
	require.Contains(t, screen, "\x1b[33m!\x1b[0m cook does not read")
}
