package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// submitted submits a task and returns its id.
func (p *play) submitted(name string) string {
	answer, err := p.Requests.Do(p.t.Context(), handlers.Actor{Kind: handlers.Operator}, "submit-task", &wire.SubmitTask{Type: "task", Name: name})
	require.NoError(p.t, err)
	return answer.(*wire.TaskReply).Task.ID
}

func (p *play) cancelled(id string) {
	_, err := p.Requests.Do(p.t.Context(), handlers.Actor{Kind: handlers.Operator}, "cancel-task", &wire.CancelTask{TaskID: id})
	require.NoError(p.t, err)
}

// busyHours submits and cancels many tasks in each of some hours. It returns the last one.
func (p *play) busyHours(hours int) (last string) {
	for range hours {
		for n := range 600 {
			last = p.submitted(fmt.Sprint("task ", n))
			p.cancelled(last)
		}
		<-time.After(time.Hour)
		synctest.Wait()
	}
	return last
}

// TestOldRecordsAreRemoved checks that the records of ended work leave the record after a time,
// except records that an open task needs. Readers hear of the removal.
func TestOldRecordsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		o := Options{Record: record, StateDir: t.TempDir(), Keep: dispatch.Retention{For: 90 * time.Minute}}
		p := perform(t, o, nil, nil)
		p.busyHours(1)
		gone := p.submitted("gone later")
		p.cancelled(gone)
		open := p.submitted("open")
		p.busyHours(6)
		base, err := record.Base(t.Context())
		require.NoError(t, err)
		require.Positive(t, base.Seq)
		first := int64(0)
		for r, err := range record.Records(t.Context(), base.Seq) {
			require.NoError(t, err)
			if r.Correlation == open {
				first = r.Seq
				break
			}
		}
		require.Equal(t, first, base.Seq+1, "the open task holds all later records")

		_, err = p.Requests.Do(t.Context(), handlers.Actor{Kind: handlers.Operator}, "get-task", &wire.TaskID{TaskID: gone})
		require.ErrorContains(t, err, fmt.Sprintf("it was removed: records 1 to %d", base.Seq), "the archived task refers to them")
		p.cancelled(open)
		p.busyHours(3)
		after, err := record.Base(t.Context())
		require.NoError(t, err)
		require.Greater(t, after.Seq, base.Seq+5000)
		require.WithinRange(t, after.At, time.Now().Add(-4*time.Hour), time.Now().Add(-89*time.Minute))
		_, err = p.Requests.Do(t.Context(), handlers.Actor{Kind: handlers.Operator}, "get-task", &wire.TaskID{TaskID: gone})
		require.ErrorContains(t, err, fmt.Sprintf("it may have been removed: records 1 to %d", after.Seq))

		var seen []wire.Event
		require.NoError(t, p.Events(t.Context(), output.EventQuery{Since: 10}, func(e wire.Event) error {
			seen = append(seen, e)
			return nil
		}))
		require.Equal(t, events.OrchestratorGap, seen[0].Kind)
		require.Equal(t, seen[1].Seq, 10+seen[0].Figures.Gap+1, "the newest are still in memory")
		require.Contains(t, seen[0].Text, "were removed on")
		require.NoError(t, p.stop())
	})
}

// TestRecordOfASize checks that the record does not grow beyond its size, and that a restart reads
// the rest.
func TestRecordOfASize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		o := Options{Record: record, StateDir: t.TempDir(), Keep: dispatch.Retention{Bytes: 1 << 20}}
		p := perform(t, o, nil, nil)
		last := p.busyHours(12)
		size, err := record.Size(t.Context())
		require.NoError(t, err)
		require.Less(t, size, int64(2<<20), "and what waits for a snapshot")
		require.NoError(t, p.stop())
		again := perform(t, o, nil, nil)
		require.Equal(t, wire.TaskCancelled, again.task(last).State)
		require.NoError(t, again.stop())
	})
}

// TestStateThatIsNeeded checks that no start succeeds without a state if the facts that it was made
// of are gone.
func TestStateThatIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		o := Options{Record: record, StateDir: t.TempDir(), Log: hclog.NewNullLogger(), Keep: dispatch.Retention{Bytes: 1 << 20}}
		p := perform(t, o, nil, nil)
		p.busyHours(12)
		require.NoError(t, p.stop())
		for seq := record.Last() - 1; seq <= record.Last(); seq++ {
			require.NoError(t, record.Keep(t.Context(), seq, bytes.NewReader([]byte(`{"version":"another"}`))))
		}
		o.StateDir = "" // no audit, which only Run ends
		err := New(o, nil).Restore(t.Context())
		var removed *wire.RemovedError
		require.ErrorAs(t, err, &removed)
		require.ErrorContains(t, err, "the saved state cannot be read")
	})
}

// TestNearlyFullDisk checks that a warning comes once until there is room again.
func TestNearlyFullDisk(t *testing.T) {
	var said strings.Builder
	s := &Supervisor{options: Options{StateDir: t.TempDir(), Log: hclog.New(&hclog.LoggerOptions{Output: &said})}}
	var w diskWatch
	for _, share := range []float64{0.5, 0.79, 0.81, 0.9, 0.94, 0.7, 0.85} {
		w.check(s, func(string) (room, error) { return room{free: 1000 - 1000*share, total: 1000}, nil })
	}
	require.Equal(t, 2, strings.Count(said.String(), "nearly full"))
	for _, free := range []float64{50, 11, 9, 8, 12, 9} { // of a large disk, in GiB
		w.check(s, func(string) (room, error) { return room{free: free * (1 << 30), total: 1000 << 30}, nil })
	}
	require.Equal(t, 4, strings.Count(said.String(), "nearly full"))
	w.check(s, func(string) (room, error) { return room{}, errors.New("no answer") })
	r, err := roomOf(s.options.StateDir)
	require.NoError(t, err)
	require.True(t, r.free > 0 && r.free <= r.total, r)
	require.NoError(t, os.Remove(s.options.StateDir))
	_, err = roomOf(s.options.StateDir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestDiskReserve checks the free space that agents need, and the space that ends their refusals.
func TestDiskReserve(t *testing.T) {
	const gib = 1 << 30
	s := New(Options{Log: hclog.NewNullLogger()}, nil)
	s.options.StateDir = t.TempDir()
	s.dispatcher.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "a", Role: wire.RolePlanner}}})
	submit := func(from handlers.ActorKind) error {
		_, err := s.dispatcher.Requests().Ask(t.Context(), handlers.Actor{Kind: from, Name: "a"}, "submit-task", []byte(`{"type":"t","name":"n"}`))
		return err
	}
	var w diskWatch
	for _, step := range []struct {
		free, total float64
		broken      bool
		refused     bool
	}{
		{free: 40 * gib, total: 2000 * gib},   // 2 % of a large disk
		{free: 1.01 * gib, total: 2000 * gib}, // just enough
		{free: 0.99 * gib, total: 2000 * gib, refused: true},
		{free: 1.05 * gib, total: 2000 * gib, refused: true}, // not yet
		{free: 1.2 * gib, total: 2000 * gib},
		{free: 0.6 * gib, total: 10 * gib}, // 6 % of a small disk
		{free: 0.4 * gib, total: 10 * gib, refused: true},
		{broken: true}, // it cannot be read
		{free: 0, total: 0},
	} {
		w.check(s, func(string) (room, error) {
			if step.broken {
				return room{}, errors.New("no answer")
			}
			return room{step.free, step.total}, nil
		})
		require.NoError(t, submit(handlers.Operator))
		_, err := s.dispatcher.Requests().Ask(t.Context(), handlers.Actor{Kind: handlers.Agent, Name: "a"}, "query-tasks", nil)
		require.NoError(t, err, "it can read")
		if err = submit(handlers.Agent); !step.refused {
			require.NoError(t, err, "%+v", step)
			continue
		}
		var refusal *wire.Error
		require.ErrorAs(t, err, &refusal, "%+v", step)
		require.Equal(t, "disk_full", refusal.Details["reason"])
		require.Equal(t, wire.CodeLimited, refusal.Code)
	}
}
