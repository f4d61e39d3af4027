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
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
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
	{Kind: events.TaskAssigned, Agent: "coder", Task: "7f3a9c1e", Text: `7f3a9c1e "Write the spec" assigned to coder`},
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
	{Kind: events.DependencyResolved, Task: "7f3a9c1e", Text: `7f3a9c1e "Write the spec" is available to 91c0aa42`},
	{Kind: events.ContractFulfilled, Task: "7f3a9c1e", Text: `7f3a9c1e "Write the spec" delivers spec`},
	{Kind: events.ContractMissing, Task: "7f3a9c1e", Text: `7f3a9c1e "Write the spec" does not deliver api`},
	{Kind: events.TaskUnblocked, Task: "91c0aa42", Text: `91c0aa42 "API" unblocked`},
	{Kind: events.TaskAnnounced, Task: "7f3a9c1e", Text: `7f3a9c1e "Write the spec" is done, 1 unblocked`},
	{Kind: events.TaskPlanned, Agent: "coder", Task: "91c0aa42", Text: `91c0aa42 "API" has a plan: a person or a planner must approve it`},
	{Kind: events.TaskNoted, Task: "91c0aa42", Text: `91c0aa42 "API" noted: hot`},
}

func TestConsoleShowsWork(t *testing.T) {
	require.Equal(t, `14:33:02 + task 7f3a9c1e "Write the spec"
14:33:02 planner + task 91c0aa42 "API" after 7f3a9c1e
14:33:02 coder   > 7f3a9c1e "Write the spec" assigned to coder
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
14:33:02 > 91c0aa42 "API" unblocked
14:33:02 coder   ? 91c0aa42 "API" has a plan: a person or a planner must approve it
14:33:02 coder   ? orchestrator task approve-plan 91c0aa42     or: revise-plan 91c0aa42 -m TEXT
14:33:02 . 91c0aa42 "API" noted: hot
`, shown(false, false, workDay...))
}

// Reports of coding agents are routine, except limits and refused messages.
func TestConsoleShowsReports(t *testing.T) {
	reports := []wire.Event{
		{Kind: events.AgentConversation, Agent: "coder", Text: "its conversation is c1"},
		{Kind: events.AgentUsage, Agent: "coder", Text: "used 300 tokens in, 60 out"},
		{Kind: events.MessageReceipt, Agent: "coder", Text: "message 7 is in the context of its model", Payload: wire.Raw(`{"agent":"coder","seq":7,"state":"in_context"}`)},
		{Kind: events.MessageReceipt, Agent: "coder", Text: "message 8 was refused by its program", Payload: wire.Raw(`{"agent":"coder","seq":8,"state":"refused"}`)},
		{Kind: events.AgentInterrupted, Agent: "coder", Text: "was interrupted"},
		{Kind: events.AgentLimited, Agent: "coder", Text: "is limited by its vendor until noon", Payload: wire.Raw(`{"agent":"coder","until":"2026-11-20T12:00:00.000Z"}`)},
		{Kind: events.AgentLimited, Agent: "coder", Text: "is no longer limited", Payload: wire.Raw(`{"agent":"coder"}`)},
		{Kind: events.QuestionKept, Agent: "coder", Text: "q1 is answered by mail"},
	}
	require.Equal(t, `14:33:02 coder   . its conversation is c1
14:33:02 coder   . used 300 tokens in, 60 out
14:33:02 coder   ! message 8 was refused by its program
14:33:02 coder   . was interrupted
14:33:02 coder   ! is limited by its vendor until noon
14:33:02 coder   . is no longer limited
14:33:02 coder   . q1 is answered by mail
`, shown(false, false, reports...))
	require.Equal(t, `14:33:02 coder   ! message 8 was refused by its program
14:33:02 coder   ! is limited by its vendor until noon
`, shown(false, true, reports...))
}

// The work on a branch is progress, and only failures are trouble. The last lines of a failed
// command follow its event once, as lines.
func TestConsoleShowsVerification(t *testing.T) {
	require.Equal(t, `14:33:02 coder   > 7f3a has a workspace: /w
14:33:02 coder   > 7f3a is being verified: sh test.sh
14:33:02 coder   ! 7f3a is not verified: sh test.sh: exit 1
14:33:02 coder       two
14:33:02 coder       three
14:33:02 coder       four
14:33:02 coder   ok 7f3a is verified
14:33:02 coder   ok 7f3a is merged into main
`, shown(false, false,
		wire.Event{Kind: events.TaskWorkspace, Agent: "coder", Text: "7f3a has a workspace: /w"},
		wire.Event{Kind: events.TaskVerifying, Agent: "coder", Text: "7f3a is being verified: sh test.sh"},
		wire.Event{Kind: events.TaskUnverified, Agent: "coder", Text: "7f3a is not verified: sh test.sh: exit 1"},
		wire.Event{Kind: events.AgentRefused, Agent: "coder", Text: "refused request:complete-task \"c\": the task is not done\none\ntwo\n\nthree\nfour\n"},
		wire.Event{Kind: events.TaskVerified, Agent: "coder", Text: "7f3a is verified"},
		wire.Event{Kind: events.TaskMerged, Agent: "coder", Text: "7f3a is merged into main"},
	))
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
14:33:02 coder   ? 91c0aa42 "API" has a plan: a person or a planner must approve it
14:33:02 coder   ? orchestrator task approve-plan 91c0aa42     or: revise-plan 91c0aa42 -m TEXT
`, shown(false, true, workDay...))
}

// Questions are highlighted and progress is not.
func TestConsolePaintsWork(t *testing.T) {
	screen := shown(true, false, workDay...)
	require.Contains(t, screen, "\x1b[1mq1 Which login? [oauth]\x1b[0m")
	require.Contains(t, screen, "\x1b[2m7f3a9c1e \"Write the spec\" 64%")
}

// responded returns the event of a response.
func responded(status, text string) wire.Event {
	return wire.Event{
		Kind: events.TaskResponded, Agent: "cook", Task: "t-1", Text: `t-1 "cook" is ` + status + text,
		Payload: wire.Raw(`{"task":"t-1","status":"` + status + `","document":{"status":"x","a":1,"a":2}}`),
	}
}

// errands has one event of each kind about delegated tasks.
var errands = []wire.Event{
	{Kind: events.TaskForwarded, Agent: "cook", Task: "t-1", Text: `t-1 "cook" is sent to cook`},
	responded("pending", ": its source is notified"),
	{Kind: events.TaskAnswered, Task: "t-1", Text: `the source of t-1 "cook" has the response`},
	responded("in_progress", ", says cook\x1b[2J"),
	{Kind: events.TaskActed, Agent: "cook", Task: "t-1", Text: `cook is asked how t-1 "cook" stands`},
	{Kind: events.TaskHelpWanted, Agent: "cook", Task: "t-1", Text: `t-1 "cook" needs a person: q1 How hot?`, Payload: wire.Raw(`{"question_id":"q1"}`)},
	responded("input_required", ", says cook"),
	{Kind: events.TaskReturned, Agent: "cook", Task: "t-1", Text: `cook does not read: t-1 "cook" waits until it does`},
	{Kind: events.TaskUnanswered, Task: "t-1", Text: `the source of t-1 "cook" does not read its messages: the response waits until it does`},
	{Kind: events.TaskRetried, Agent: "cook", Task: "t-1", Text: `t-1 "cook" is tried again after POT_LOST: it has burnt`},
	responded("completed", ", says cook"),
	responded("failed", ", says cook"),
	responded("cancelled", ", says cook"),
	{Kind: events.TaskResponded, Agent: "cook", Task: "t-1", Text: `t-1 "cook" is odd`},
}

// A delegated task is shown like other work: each step once, and only obstacles as trouble.
func TestConsoleShowsDelegation(t *testing.T) {
	require.Equal(t, `14:33:02 cook    > t-1 "cook" is sent to cook
14:33:02 cook    > t-1 "cook" is pending: its source is notified
14:33:02 cook    > t-1 "cook" is in_progress, says cook\x1b[2J
14:33:02 cook    > cook is asked how t-1 "cook" stands
14:33:02 cook    ? t-1 "cook" needs a person: q1 How hot?
14:33:02 cook    ? orchestrator inbox answer q1 VALUE
14:33:02 cook    ! cook does not read: t-1 "cook" waits until it does
14:33:02 ! the source of t-1 "cook" does not read its messages: the response waits until it does
14:33:02 cook    ! t-1 "cook" is tried again after POT_LOST: it has burnt
14:33:02 cook    > t-1 "cook" is odd
`, shown(false, false, errands...))
}

// With --quiet, only obstacles and questions are shown.
func TestConsoleKeepsCalmAboutDelegation(t *testing.T) {
	require.Equal(t, `14:33:02 cook    ? t-1 "cook" needs a person: q1 How hot?
14:33:02 cook    ? orchestrator inbox answer q1 VALUE
14:33:02 cook    ! cook does not read: t-1 "cook" waits until it does
14:33:02 ! the source of t-1 "cook" does not read its messages: the response waits until it does
14:33:02 cook    ! t-1 "cook" is tried again after POT_LOST: it has burnt
`, shown(false, true, errands...))
}

// Steps are highlighted and progress is dimmed.
func TestConsolePaintsDelegation(t *testing.T) {
	screen := shown(true, false, errands...)
	require.Contains(t, screen, "\x1b[32m>\x1b[0m t-1 \"cook\" is sent to cook")
	require.Contains(t, screen, "\x1b[2mt-1 \"cook\" is in_progress")
	require.Contains(t, screen, "\x1b[33m!\x1b[0m cook does not read")
}

// mailed returns the event of a message.
func mailed(from, to, topic, payload string, answers int64) wire.Event {
	m := &mail.Message{Seq: 42, From: from, To: to, Topic: topic, Payload: wire.Raw(payload)}
	if answers != 0 {
		m.ReplyTo = &answers
	}
	return wire.Event{Kind: events.MessageSent, Text: from + " -> " + to + "  " + topic, Mail: m}
}

// correspondence has the events about messages.
var correspondence = []wire.Event{
	mailed("GO", "GO", mail.TopicAgentSpawned, `{"agent":"shop"}`, 0),
	mailed("PO:shop", "PO:coder", mail.TopicDirect, `{"text":"hello"}`, 0),
	{Kind: events.MessageAcked, Text: "PO:coder acknowledged its mail up to 42"},
	{Kind: events.ActorSeen, Text: "PO:shop is present"},
	{Kind: events.ActorStale, Text: "PO:shop stopped sending heartbeats"},
	mailed("Bus", "GO", mail.TopicAlertFired, `{"alert":"agent.stale","actor":"PO:shop","agent":"shop","last_seen":"2026-11-20T14:30:00.000Z"}`, 0),
	mailed("Bus", "GO", mail.TopicAlertResolved, `{"alert":"agent.stale","actor":"PO:shop","agent":"shop","text":"its heartbeat is back"}`, 0),
	mailed("Bus", "GO", mail.TopicAlertFired, `{"alert":"agent.crashed","actor":"PO:shop","agent":"shop","exit_code":3}`, 0),
	mailed("Bus", "GO", mail.TopicAlertResolved, `{"alert":"agent.crashed","actor":"PO:shop","agent":"shop"}`, 0),
	mailed("Bus", "GO", mail.TopicAlertFired, `{"alert":"message.failed","actor":"HO:attic","text":"no \u001b[2Jink"}`, 41),
	mailed("Bus", "GO", mail.TopicAlertFired, `{"alert":"message.failed","actor":"HO:attic"}`, 0),
	mailed("Bus", "GO", mail.TopicAlertFired, `{"alert":"disk.full","actor":"Bus","text":"no room"}`, 0),
	mailed("PO:shop", "GO", mail.TopicAlertFired, `{"alert":"agent.stale","actor":"PO:coder"}`, 0),
	mailed("PO:shop", "PO:coder", mail.TopicAlertFired, `{"alert":"agent.stale"}`, 0),
	mailed("Bus", "GO", mail.TopicUnknown, `{"topic":"odd.thing","from_actor":"PO:shop","to_actor":"GO","seq":7}`, 7),
	mailed("Bus", "GO", mail.TopicUnknown, `{"topic":"odd.thing","from_actor":"PO:shop","to_actor":"GO","seq":9}`, 9),
	mailed("PO:shop", "GO", mail.TopicUnknown, `{"topic":"other"}`, 0),
	{Kind: events.MessageSent, Text: "cannot be read"},
	{Kind: events.ActorTokenIssued, Text: "HO:attic has a new token a1b2c3d4"},
}

// The console shows alerts, unknown topics and each crash once, and not every message.
func TestConsoleShowsAlerts(t *testing.T) {
	require.Equal(t, `14:33:02 shop    ! PO:shop sends no heartbeat (agent.stale)
14:33:02 shop    ok PO:shop is no longer missing: its heartbeat is back (agent.stale)
14:33:02 ! HO:attic could not process message 41: no \x1b[2Jink (message.failed)
14:33:02 ! HO:attic could not process a message (message.failed)
14:33:02 ! Bus: no room (disk.full)
14:33:02 ! PO:shop: {"alert":"agent.stale","actor":"PO:coder"} (alert.fired)
14:33:02 . PO:shop uses the topic odd.thing, which is not registered (bus.topics)
14:33:02 . HO:attic has a new token a1b2c3d4
`, shown(false, false, correspondence...))
}

// With --quiet, only trouble is shown.
func TestConsoleKeepsCalmAboutMessages(t *testing.T) {
	require.Equal(t, `14:33:02 shop    ! PO:shop sends no heartbeat (agent.stale)
14:33:02 ! HO:attic could not process message 41: no \x1b[2Jink (message.failed)
14:33:02 ! HO:attic could not process a message (message.failed)
14:33:02 ! Bus: no room (disk.full)
14:33:02 ! PO:shop: {"alert":"agent.stale","actor":"PO:coder"} (alert.fired)
`, shown(false, true, correspondence...))
}

// Only trouble is highlighted.
func TestConsolePaintsAlerts(t *testing.T) {
	screen := shown(true, false, correspondence...)
	require.Contains(t, screen, "\x1b[33m!\x1b[0m PO:shop sends no heartbeat")
	require.Contains(t, screen, "\x1b[32mok\x1b[0m PO:shop is no longer missing")
	require.Contains(t, screen, "\x1b[2mPO:shop uses the topic odd.thing")
	require.Contains(t, screen, "\x1b[2mHO:attic has a new token")
}

// A done task with an unmerged branch is a failure for a CI system.
func TestReportOfAnUnmergedBranch(t *testing.T) {
	now := time.Now()
	tasks := []wire.Task{
		{ID: "a", Name: "merged", State: wire.TaskDone, Details: &wire.Details{Workspace: &wire.Workspace{Merge: hub.MergeDone}}},
		{ID: "b", Name: "left", State: wire.TaskDone, Details: &wire.Details{Workspace: &wire.Workspace{Merge: hub.MergeRefused}}},
	}
	r := newReport("team", now, now, tasks)
	require.Equal(t, map[string]int{"done": 1, "unmerged": 1}, r.Counts)
	text, err := r.junit()
	require.NoError(t, err)
	require.Contains(t, string(text), `failures="1"`)
	require.Contains(t, string(text), `<failure message="its branch is not merged: orchestrator why b">`)
	page, err := r.html()
	require.NoError(t, err)
	require.Contains(t, string(page), "0 not done, 1 not merged.")
}
