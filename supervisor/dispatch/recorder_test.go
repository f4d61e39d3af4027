package dispatch

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/handlers"
	"orchestrator/supervisor/eventlog"
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
		for range 2 * smallEvery / len(inputs) {
			d.submit(inputs, new(work))
			synctest.Wait()
		}
		require.Len(t, record.keeps, 2)
		for i, seq := range record.keeps {
			require.GreaterOrEqual(t, seq, int64(i+1)*smallEvery)
		}
		d.submit(inputs[:1], new(work))
		d.Close()
		require.Len(t, record.keeps, 3)
	})
}

// TestSnapshotIsDue checks after how many facts a snapshot is due.
func TestSnapshotIsDue(t *testing.T) {
	for _, c := range []struct {
		name         string
		slow, wanted bool
		last, tasks  int // tasks of the last snapshot, and now
		first        int64
	}{
		{name: "small", first: smallEvery},
		{name: "ten for each task", tasks: 5000, first: 50_000},
		{name: "large", tasks: 1_000_000, first: snapshotEvery},
		{name: "grows", last: 300_000, tasks: 1_000_000, first: 300_000},
		{name: "shrinks", last: 300_000, tasks: 10, first: smallEvery},
		{name: "slow start", slow: true, tasks: 1_000_000, first: slowFacts},
		{name: "removal waits", wanted: true, tasks: 5000, first: trimSnapshot},
	} {
		s := newSnapshots()
		s.slow, s.last = c.slow, result{seq: 7, tasks: c.last}
		s.wanted.Store(c.wanted)
		require.False(t, s.due(7+c.first-1, c.tasks), c.name)
		require.True(t, s.due(7+c.first, c.tasks), c.name)
	}
}

// TestStateIsKeptWithManyTasks checks that a State that grows with each fact is kept too, and that
// the kept form of a large one equals the State. At the end a State of moderate size is kept.
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
		synctest.Wait()
		require.GreaterOrEqual(t, d.state.TaskCount(), tasks)
		require.GreaterOrEqual(t, len(record.keeps), 3)
		for i, seq := range record.keeps[1:] {
			require.LessOrEqual(t, seq, 4*record.keeps[i]+100)
		}
		seq, text, err := record.Snapshot(t.Context())
		require.NoError(t, err)
		require.Less(t, seq, record.Last())
		copied, ok := handlers.Restore(handlers.Rules{}, text, nil)
		require.True(t, ok)
		for r, err := range record.Records(t.Context(), seq) {
			require.NoError(t, err)
			require.NoError(t, copied.Apply(nil, r))
		}
		want, err := d.state.Snapshot().Text()
		require.NoError(t, err)
		got, err := copied.Snapshot().Text()
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
		d.Close()
		seq, _, err = record.Snapshot(t.Context())
		require.NoError(t, err)
		require.Equal(t, record.Last(), seq)
	})
}

// TestWarm checks that a State that follows a record, in steps, equals the State of the program that writes it, and
// that another program begins with it.
func TestWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		o := Options{Record: record, Log: hclog.NewNullLogger()}
		d := begin(t, o)
		w := NewWarm(o)
		for n := range 20 {
			require.NoError(t, w.Follow(t.Context()))
			_, err := d.Requests().Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "submit-task", fmt.Appendf(nil, `{"type":"t","name":"task %d"}`, n))
			require.NoError(t, err)
		}
		d.Close()
		o.Warm = w
		next := begin(t, o)
		require.NoError(t, next.Restore(t.Context()))
		want, err := d.state.Snapshot().Text()
		require.NoError(t, err)
		got, err := next.state.Snapshot().Text()
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
		require.Equal(t, record.Last(), next.last.Load())
		next.Close()
	})
}

// TestSnapshotEnds checks that an end does not wait for the snapshot of a large State.
func TestSnapshotEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		d := begin(t, Options{Record: record})
		reading, release := make(chan struct{}), make(chan struct{})
		var once atomic.Bool
		record.onKeep = func() {
			if once.CompareAndSwap(false, true) {
				close(reading)
				<-release
			}
		}
		for n := range 1000 {
			_, err := d.Requests().Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "submit-task", fmt.Appendf(nil, `{"type":"t","name":"task %d"}`, n))
			require.NoError(t, err)
		}
		d.keepEvery(100)
		_, err := d.Requests().Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "submit-task", []byte(`{"type":"t","name":"last"}`))
		require.NoError(t, err)
		<-reading
		d.Close()
		kept := len(record.keeps)
		close(release)
		synctest.Wait()
		require.Len(t, record.keeps, kept, "a snapshot that was ended is not kept")
		require.Equal(t, record.Last(), record.keeps[kept-1])
	})
}

// TestHoldDuringASnapshot checks that Hold does not wait for a snapshot that is being stored, which may
// wait for Hold.
func TestHoldDuringASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		d := begin(t, Options{Record: record})
		reading, release := make(chan struct{}), make(chan struct{})
		var once atomic.Bool
		var storing sync.Mutex
		record.onKeep = func() {
			if once.CompareAndSwap(false, true) {
				close(reading)
			}
			storing.Lock() // as the record does
			defer storing.Unlock()
			<-release
		}
		for n := range 1000 {
			_, err := d.Requests().Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "submit-task", fmt.Appendf(nil, `{"type":"t","name":"task %d"}`, n))
			require.NoError(t, err)
		}
		d.keepEvery(100)
		_, err := d.Requests().Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, "submit-task", []byte(`{"type":"t","name":"last"}`))
		require.NoError(t, err)
		<-reading
		resume, err := d.Dispatcher.Hold(time.Second)
		require.NoError(t, err)
		resume()
		close(release)
		d.Close()
		require.Equal(t, record.Last(), record.keeps[len(record.keeps)-1])
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

// TestNothingIsRecordedAfterAFailure checks that an event that waited behind a failed commit is shown,
// and not recorded.
func TestNothingIsRecordedAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := newLedger()
		d := begin(t, Options{Record: record})
		appends, release := 0, make(chan struct{})
		record.meddle(func() error {
			appends++
			<-release
			return errors.New("broken")
		})
		d.Note(&wire.Event{Kind: events.OrchestratorIdle})
		synctest.Wait()
		d.Note(&wire.Event{Kind: events.OrchestratorIdle})
		close(release)
		require.Error(t, <-d.broke)
		require.Len(t, d.taken(), 2)
		d.Close()
		require.Equal(t, 1, appends)
		require.Zero(t, record.Last())
	})
}

// A movedCheck refuses after an error.
type movedCheck struct {
	moved   error
	refusal *wire.Error
}

func (movedCheck) Sound() error { return nil }

func (c movedCheck) Deposed(err error) *wire.Error {
	if errors.Is(err, c.moved) {
		return c.refusal
	}
	return nil
}

// A lossCheck finds a lost record.
type lossCheck struct {
	lost *atomic.Bool
	gone error
}

func (c lossCheck) Sound() error {
	if c.lost.Load() {
		return c.gone
	}
	return nil
}

func (lossCheck) Deposed(error) *wire.Error { return nil }

// TestDeposed checks that a request that another hub keeps from the log is refused with the error of the RecordCheck,
// and so is a later one. An internal error would keep clients from asking the other hub.
func TestDeposed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record, moved := newLedger(), errors.New("moved")
		elsewhere := &wire.Error{Code: "no_quorum", Message: "another hub is at work"}
		d := begin(t, Options{Record: record, Check: movedCheck{moved, elsewhere}})
		door := d.recipients.wait("door:boss")
		boss := handlers.Actor{Kind: handlers.Agent, Name: "boss", Run: "door:boss"}
		d.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "boss", Role: wire.RolePlanner}}})
		d.Settle()
		record.meddle(func() error { return moved })
		for _, id := range []string{"1", "2"} {
			r := &wire.Request{ID: id, Operation: "submit-task", Timestamp: noon, Payload: []byte(`{"type":"t","name":"n","requiredRole":"worker"}`)}
			require.Nil(t, handlers.Prepare(r, 64))
			d.submit([]handlers.Input{{At: time.Now(), From: boss, Message: r, Random: randomBytes()}}, new(work))
			require.Equal(t, elsewhere, (<-door).Refusal)
		}
		d.Close()
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
				d := begin(t, Options{Record: record, Check: lossCheck{&lost, gone}})
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

// TestArchivedTasks checks that tasks that ended long ago are only in the record, and that they are
// shown and listed as before, also after a restart.
func TestArchivedTasks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.db")
	const tasks, kept = 60, 5
	var ids []string
	for start := range 3 {
		log, err := eventlog.Open(t.Context(), eventlog.Options{Path: path})
		require.NoError(t, err)
		s := begin(t, Options{Record: log, Rules: handlers.Rules{KeepFinished: kept}})
		require.NoError(t, s.Restore(t.Context()))
		ask := func(operation, payload string) any {
			answer, err := s.Requests().Ask(t.Context(), handlers.Actor{Kind: handlers.Operator}, operation, []byte(payload))
			require.NoError(t, err)
			return answer
		}
		for n := range tasks / 3 {
			reply := ask("submit-task", fmt.Sprintf(`{"type":"t","name":"n%d","description":"words"}`, start*tasks/3+n)).(*wire.TaskReply)
			ids = append(ids, reply.Task.ID)
			ask("cancel-task", fmt.Sprintf(`{"taskId":%q}`, reply.Task.ID))
		}
		s.Look(func(state *handlers.State) {
			require.LessOrEqual(t, state.TaskCount(), kept+1)
			require.Equal(t, len(ids), state.Counts().Cancelled)
			require.Zero(t, state.Open())
		})
		shown := ask("get-task", fmt.Sprintf(`{"taskId":%q}`, ids[0])).(*wire.TaskReply).Task
		require.Equal(t, "words", shown.Description)
		var listed []string
		for cursor := ""; ; {
			list := ask("query-tasks", fmt.Sprintf(`{"limit":7,"cursor":%q}`, cursor)).(*wire.TaskList)
			for i := range list.Tasks {
				listed = append(listed, list.Tasks[i].ID)
			}
			require.EqualValues(t, len(ids)-len(listed), list.More)
			if cursor = list.Cursor; cursor == "" {
				break
			}
		}
		require.Equal(t, ids, listed)
		ask("add-note", fmt.Sprintf(`{"taskId":%q,"content":"n%d"}`, ids[1], start))
		require.Len(t, ask("list-notes", fmt.Sprintf(`{"taskId":%q}`, ids[1])).(*wire.NoteList).Notes, start+1)
		s.Close()
		require.NoError(t, log.Close())
	}
}
