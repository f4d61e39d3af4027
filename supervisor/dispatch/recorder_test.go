package dispatch

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// TestStateIsKeptNowAndThen checks that a State is kept after a number of facts, and never
// before all facts that it includes.
func TestStateIsKeptNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		d := begin(t, Options{Record: record})
		inputs := make([]handlers.Input, 10_000)
		for i := range inputs {
			inputs[i] = handlers.Input{At: time.Now(), Message: &wire.Event{Kind: events.OrchestratorIdle}}
		}
		for range 2*snapshotEvery/len(inputs) + 1 {
			d.submit(inputs, new(work))
			synctest.Wait()
		}
		require.Len(t, record.keeps, 2)
		for i, seq := range record.keeps {
			require.GreaterOrEqual(t, seq, int64(i+1)*snapshotEvery)
		}
		d.Close()
		require.Len(t, record.keeps, 3)
	})
}

// TestStateIsKeptWithManyTasks checks that a State that grows with each fact is kept too.
func TestStateIsKeptWithManyTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		d := begin(t, Options{Record: record})
		d.keepEvery(100)
		const tasks = 2000
		for n := range tasks {
			_, err := d.Requests().Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "submit-task", fmt.Appendf(nil, `{"type":"t","name":"task %d"}`, n))
			require.NoError(t, err)
		}
		require.GreaterOrEqual(t, d.state.Tasks(), tasks)
		require.GreaterOrEqual(t, len(record.keeps), 3)
		for i, seq := range record.keeps[1:] {
			require.LessOrEqual(t, seq, 4*record.keeps[i]+100)
		}
		d.Close()
	})
}

// TestStateWaitsForItsFacts checks that a State is not offered to a log that has not committed
// its facts, or never will.
func TestStateWaitsForItsFacts(t *testing.T) {
	idle := make([]handlers.Input, 60)
	for i := range idle {
		idle[i] = handlers.Input{At: time.Now(), Message: &wire.Event{Kind: events.OrchestratorIdle}}
	}
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		d := begin(t, Options{Record: record})
		d.keepEvery(50)
		release := make(chan struct{})
		record.meddle(func() error { <-release; return nil })
		d.submit(idle, new(work))
		synctest.Wait()
		require.Empty(t, record.keeps)
		close(release)
		synctest.Wait()
		require.Len(t, record.keeps, 1)
		d.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		d := begin(t, Options{Record: record})
		d.keepEvery(50)
		record.meddle(func() error { return errors.New("no") })
		d.submit(idle, new(work))
		require.Error(t, <-d.broke)
		d.Close()
		require.Empty(t, record.keeps)
	})
}

// TestRecordThatIsLost checks that a log that was moved or deleted is noticed within a second,
// even without commits, and before a batch after a pause.
func TestRecordThatIsLost(t *testing.T) {
	gone := errors.New("events.db was deleted")
	for name, busy := range map[string]bool{"idle": false, "with a batch": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				record := newLedger()
				var lost atomic.Bool
				sound := func() error {
					if lost.Load() {
						return gone
					}
					return nil
				}
				d := begin(t, Options{Record: record, Sound: sound})
				d.Note(&wire.Event{Kind: events.OrchestratorStarted})
				d.Settle()
				<-time.After(soundAfter)
				lost.Store(true)
				before := record.Last()
				began := time.Now()
				if busy {
					d.submit([]handlers.Input{{At: time.Now(), Message: &wire.Event{Kind: events.OrchestratorIdle}}}, new(work))
				}
				require.ErrorIs(t, <-d.broke, gone)
				require.LessOrEqual(t, time.Since(began), soundEvery)
				d.Close()
				require.Equal(t, before, record.Last())
			})
		})
	}
}
