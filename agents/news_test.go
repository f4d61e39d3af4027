package agents_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

func TestNews(t *testing.T) {
	converse(t, func(t *talk) {
		t.notify(agents.TaskAssigned, "task-1")
		t.say(`{"type":"notify:weather","id":"n-1","timestamp":"2026-02-04T14:30:00Z","payload":{"rain":0.10}}`)
		t.say(`{"type":"notify:bare"}`)
		t.say(`{"type":"notify:wrong","payload":[]}`)
		require.NoError(t, t.peer.Notify(agents.Shutdown, wire.ShutdownNotice{GracePeriod: 30000, Reason: "stopping"}))
		t.peer.End()

		var names []string
		for notice := range t.agent.News(t.Context()) {
			names = append(names, notice.Name)
			switch notice.Name {
			case agents.TaskAssigned:
				var about wire.TaskNotice
				require.NoError(t, notice.Read(&about))
				require.Equal(t, "task-1", about.TaskID)
			case "weather":
				require.Equal(t, agents.Notice{
					Name: "weather", ID: "n-1", Timestamp: "2026-02-04T14:30:00Z", Payload: wire.Raw(`{"rain":0.10}`),
				}, notice)
			case "bare":
				require.NoError(t, notice.Read(new(wire.TaskNotice)))
			case agents.Shutdown:
				var about wire.ShutdownNotice
				require.NoError(t, notice.Read(&about))
				require.EqualValues(t, 30000, about.GracePeriod)
			}
		}
		require.Equal(t, []string{agents.TaskAssigned, "weather", "bare", agents.Shutdown}, names)
	})
}

// TestNewsThatNobodyTakesHoldsUpNothing checks that unread notices do not delay answers, and
// that none of them is lost.
func TestNewsThatNobodyTakesHoldsUpNothing(t *testing.T) {
	converse(t, func(t *talk) {
		const many = 10_000
		done := t.asking(t.Context(), "x")
		request := t.request("get-task")
		for n := range many {
			t.say(fmt.Sprintf(`{"type":"notify:noise","id":"%d"}`, n))
		}
		t.answer(request, taskNamed("x"))
		require.NoError(t, (<-done).err)

		t.peer.End()
		heard := 0
		for notice := range t.agent.News(t.Context()) {
			require.Equal(t, fmt.Sprint(heard), notice.ID)
			heard++
		}
		require.Equal(t, many, heard)
	})
}

func TestWhoeverStopsListeningLosesNothing(t *testing.T) {
	converse(t, func(t *talk) {
		t.notify(agents.TaskAssigned, "task-1")
		t.notify(agents.TaskAssigned, "task-2")
		for range t.agent.News(t.Context()) {
			break
		}
		ctx, stop := context.WithCancel(t.Context())
		for notice := range t.agent.News(ctx) {
			require.Contains(t, string(notice.Payload), "task-2")
			stop()
		}
		for range t.agent.News(ctx) {
			require.Fail(t, "it has stopped")
		}
		stop()
	})
}

func TestManyListenersShareTheNews(t *testing.T) {
	converse(t, func(t *talk) {
		const many = 300
		var all sync.WaitGroup
		heard := make(chan string, many)
		for range 3 {
			all.Go(func() {
				for notice := range t.agent.News(t.Context()) {
					heard <- notice.ID
				}
			})
		}
		for n := range many {
			t.say(fmt.Sprintf(`{"type":"notify:noise","id":"%d"}`, n))
		}
		t.peer.End()
		all.Wait()
		close(heard)
		different := make(map[string]bool)
		for id := range heard {
			different[id] = true
		}
		require.Len(t, different, many)
	})
}

// TestTalk checks that each message is received once and in order, and that other lines are
// skipped.
func TestTalk(t *testing.T) {
	converse(t, func(t *talk) {
		query := spoken{from: lead, to: coder, kind: session.TypeStatusQuery, payload: map[string]any{}}
		for n := range 3 {
			query.id = fmt.Sprintf("msg-%d", n)
			t.say(query.line())
			t.say(query.line())
			t.notify(agents.TaskUpdated, "kettle")
		}
		query.from, query.id = judge, "msg-1" // the first message of judge
		t.say(query.line())
		query.id = "no id"
		t.say(query.line())
		t.say(`{"message_type":7}`)
		t.peer.End()
		var heard []string
		for said := range t.agent.Talk(t.Context()) {
			heard = append(heard, said.From.AgentID+" "+said.MessageID)
		}
		require.Equal(t, []string{"lead msg-0", "lead msg-1", "lead msg-2", "judge msg-1"}, heard)
		notices := 0
		for range t.agent.News(t.Context()) {
			notices++
		}
		require.Equal(t, 3, notices)
	})
}

// TestTalkForgetsTheOldest checks that a connection remembers a bounded number of message ids.
func TestTalkForgetsTheOldest(t *testing.T) {
	converse(t, func(t *talk) {
		query := spoken{from: lead, to: coder, kind: session.TypeStatusQuery, payload: map[string]any{}}
		for n := range 4200 {
			query.id = fmt.Sprintf("msg-%d", n)
			t.say(query.line())
		}
		t.say(query.line())
		query.id = "msg-0"
		t.say(query.line())
		t.peer.End()
		heard := 0
		for range t.agent.Talk(t.Context()) {
			heard++
		}
		require.Equal(t, 4201, heard)
	})
}

// TestNumbersOfOthers checks that 3.0 is read as an integer, since the schemas allow it.
func TestNumbersOfOthers(t *testing.T) {
	converse(t, func(t *talk) {
		t.deliver(spoken{from: lead, to: coder, kind: session.TypeTaskAssignment, payload: wire.Raw(`{"priority":"low","max_iterations":3.0,"task":{
			"task_id":"kettle","task_description":"","context":{"specs":[],"reference_files":[]},"acceptance_criteria":[],"extra":1,
			"constraints":{"scope":[],"testing_required":true}}}`)})
		for said := range t.agent.Talk(t.Context()) {
			var work agents.Assignment
			require.NoError(t, said.Read(&work))
			require.EqualValues(t, 3, work.MaxIterations)
			require.True(t, work.Task.Constraints.TestingRequired)
			require.ErrorContains(t, said.Read(new(string)), "understanding a task_assignment")
			break
		}
	})
}

// TestUndelivered checks that a message that is tried again may still arrive, and that the
// sender learns once of one that is not.
func TestUndelivered(t *testing.T) {
	converse(t, func(t *talk) {
		s := t.as(lead)
		var sent *agents.Sent
		done := doing(func() (err error) { sent, err = s.Assign(t.Context(), "coder", boil("kettle")); return err })
		t.hears(session.TypeTaskAssignment, nil)
		require.NoError(t, <-done)
		require.NoError(t, sent.Err())

		slow := &wire.Error{Code: wire.CodeTimeout, Message: "coder does not read"}
		require.NoError(t, t.peer.Undelivered(sent.MessageID, "2026-02-04T12:00:02.000Z", slow))
		synctest.Wait()
		require.NoError(t, sent.Err())
		require.NoError(t, t.peer.Undelivered(sent.MessageID, "", &wire.Error{
			Code: wire.CodeConflict, Message: "not so", Details: map[string]any{"scope": []string{"a/**"}},
		}))
		require.NoError(t, t.peer.Undelivered(sent.MessageID, "", slow))
		require.NoError(t, t.peer.Undelivered("nobody's", "", slow))
		<-sent.Refused()
		synctest.Wait()
		require.EqualError(t, sent.Err(), "not delivered: not so (INVALID_REQUEST)")
		var why *agents.Undelivered
		require.ErrorAs(t, sent.Err(), &why)
		require.Equal(t, session.DeliveryRejected, why.ErrorType)
		require.Equal(t, agents.ReasonConflict, why.Reason())
		scope, outside := why.Scope()
		require.True(t, outside)
		require.Equal(t, []string{"a/**"}, scope)
		var refused *agents.Refusal
		require.ErrorAs(t, sent.Err(), &refused)
	})
}
