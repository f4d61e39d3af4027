package agents_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"orchestrator/agents"
	"orchestrator/wire"

	"github.com/stretchr/testify/require"
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
