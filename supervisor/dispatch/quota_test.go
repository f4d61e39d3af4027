package dispatch

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
)

// TestStored checks that an agent that has used its quota can add no data for a while, but can read, and that other
// agents and operators are not concerned.
//
// Rows: S-05.
func TestStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := begin(t, Options{Record: newLedger()})
		defer d.Close()
		d.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "hog"}, {ID: "free"}}})
		d.Dispatcher.SetStored(map[string]int64{"hog": 10_000, "free": 0})
		submit := func(from handlers.Actor) error {
			_, err := d.Requests().Ask(t.Context(), from, "submit-task", fmt.Appendf(nil, `{"type":"t","name":"n","description":%q}`, strings.Repeat("x", 4000)))
			return err
		}
		hog := handlers.Actor{Kind: handlers.Agent, Name: "hog"}
		for range 3 { // the last one goes beyond the limit
			require.NoError(t, submit(hog))
		}
		refused := &wire.Error{
			Code: wire.CodeLimited, Message: "hog has stored limits.stored = 9.8 KiB: space is available again within a day",
			Details: map[string]any{"reason": "stored", "limit": int64(10_000), "setting": "limits.stored"},
		}
		requireRefused := func(err error) {
			t.Helper()
			var is *wire.Error
			require.ErrorAs(t, err, &is)
			require.Positive(t, is.Details["retry_after_ms"])
			delete(is.Details, "retry_after_ms")
			require.Equal(t, refused, is)
		}
		requireRefused(submit(hog))
		_, err := d.Requests().Ask(t.Context(), hog, "query-tasks", nil)
		require.NoError(t, err)
		for range 5 {
			require.NoError(t, submit(handlers.Actor{Kind: handlers.Agent, Name: "free"}))
			require.NoError(t, submit(handlers.Actor{Kind: handlers.Operator}))
		}
		<-time.After(8 * time.Hour)
		require.NoError(t, submit(hog))
		requireRefused(submit(hog))
		d.Dispatcher.SetStored(map[string]int64{"hog": 1 << 20})
		require.NoError(t, submit(hog), "the limit was raised")
	})
}

// TestStoredByResults checks that results have a bound, too: twice the limit. A short one ends a task in any case.
//
// Rows: S-05.
func TestStoredByResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := begin(t, Options{Record: newLedger()})
		defer d.Close()
		d.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "hog"}}})
		d.Dispatcher.SetStored(map[string]int64{"hog": 20_000})
		a := d.enter("hog", stdin.Limits{Messages: 1000, Bytes: 1 << 20})
		a.listen()
		complete := func(result string) error {
			task, err := d.Requests().Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "submit-task", []byte(`{"type":"t","name":"n"}`))
			require.NoError(t, err)
			id, ok := task.(*wire.TaskReply)
			require.True(t, ok, "%T", task)
			_, err = d.Requests().Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "assign-task", fmt.Appendf(nil, `{"taskId":%q,"agent":"hog"}`, id.Task.ID))
			require.NoError(t, err)
			_, err = d.Requests().Ask(t.Context(), a.actor(), "complete-task", fmt.Appendf(nil, `{"taskId":%q,"result":%q}`, id.Task.ID, result))
			return err
		}
		long := strings.Repeat("x", 15_000)
		for range 3 {
			require.NoError(t, complete(long))
		}
		err := complete(long)
		require.ErrorContains(t, err, "hog has stored twice limits.stored = 19.5 KiB: end the task with a result of at most 4 KiB")
		require.NoError(t, complete("done"))
	})
}

var noonToday = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestUsagesAreBounded checks that actors that come and go are forgotten.
func TestUsagesAreBounded(t *testing.T) {
	var q quotas
	now := time.Now()
	hog := handlers.Actor{Kind: handlers.External, Name: "hog"}
	q.add(&hog, 2, now)
	for i := range maxUsages + 10 {
		q.add(&handlers.Actor{Kind: handlers.External, Name: fmt.Sprint(i)}, 1, now)
	}
	require.Len(t, q.used, maxUsages)
	require.Contains(t, q.used, storer{kind: hog.Kind, name: hog.Name}, "who has stored the most is remembered")
	q.add(&handlers.Actor{Kind: handlers.Operator}, 1<<40, now)
	require.Len(t, q.used, maxUsages)
}
