package leadership

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/logtest"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// A hub of a test.
type hub struct {
	Options
	engine *logtest.Memory
	heard  chan Hub
}

func newHub(t *testing.T, entries *logtest.Entries, name string) *hub {
	h := &hub{engine: entries.Join(), heard: make(chan Hub, 100)}
	log, err := eventlog.OpenShared(t.Context(), filepath.Join(t.TempDir(), "copy.db"), h.engine)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	h.Options = Options{
		Log: log, Engine: h.engine, Hub: Hub{Name: name, Version: "v"}, Heard: func(who Hub) { h.heard <- who }, Logger: hclog.NewNullLogger(),
	}
	return h
}

// takes waits for the turn of the hub and then serves.
func (h *hub) takes(t *testing.T) (mine Hub, end func()) {
	mine, err := Wait(t.Context(), h.Options)
	require.NoError(t, err)
	end, err = Serve(h.engine, mine)
	require.NoError(t, err)
	return mine, end
}

func (h *hub) append(t *testing.T) error {
	return h.Log.Append(t.Context(), h.Log.Last(), []wire.Record{{At: time.Now(), From: "GO", Kind: "k"}})
}

// The first hub takes the turn. The second stands by, hears of it, and takes over when it ends.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	entries := &logtest.Entries{}
	a, b := newHub(t, entries, "a"), newHub(t, entries, "b")
	first, end := a.takes(t)
	require.Equal(t, int64(1), first.Epoch)
	require.NoError(t, a.append(t))

	second := make(chan Hub)
	go func() {
		mine, err := Wait(t.Context(), b.Options)
		if err == nil {
			second <- mine
		}
	}()
	require.Equal(t, first, <-b.heard)
	select {
	case mine := <-second:
		require.Fail(t, "there are two hubs", "%v", mine)
	case <-time.After(3 * askEvery):
	}
	require.NoError(t, a.append(t))
	end()
	mine := <-second
	require.Equal(t, Hub{Name: "b", Version: "v", Epoch: 4}, mine)
	require.ErrorIs(t, a.append(t), eventlog.ErrMoved, "the hub before it appends nothing")
	require.NoError(t, b.append(t))

	var kinds []string
	for r, err := range b.Log.Records(t.Context(), 0) {
		require.NoError(t, err)
		kinds = append(kinds, r.Kind)
	}
	require.Equal(t, []string{events.HubEpoch, "k", "k", events.HubEpoch, "k"}, kinds)
}

// Of hubs that try at the same time, one takes the turn, and the others continue to stand by.
func TestOneTurn(t *testing.T) {
	t.Parallel()
	entries := &logtest.Entries{}
	taken := make(chan Hub, 3)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 3)
	for _, name := range []string{"a", "b", "c"} {
		h := newHub(t, entries, name)
		go func() {
			mine, err := Wait(ctx, h.Options)
			if err == nil {
				_, err = Serve(h.engine, mine)
				taken <- mine
			}
			ended <- err
		}()
	}
	<-taken
	require.NoError(t, <-ended)
	select {
	case mine := <-taken:
		require.Fail(t, "there are two hubs", "%v", mine)
	case <-time.After(maxStart + 3*askEvery):
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// A hub takes no turn while the record is moved into the log. It does when the move is done, and does not when
// the record was moved out.
func TestNoTurnDuringAMove(t *testing.T) {
	t.Parallel()
	entries := &logtest.Entries{}
	a, b := newHub(t, entries, "a"), newHub(t, entries, "b")
	mover := entries.Join()
	fact := []wire.Record{{At: time.Now(), From: "GO", Kind: "k"}}
	local, err := eventlog.Open(t.Context(), eventlog.Options{Path: filepath.Join(t.TempDir(), "events.db")})
	require.NoError(t, err)
	defer local.Close()
	require.NoError(t, local.Append(t.Context(), 0, fact))
	m := eventlog.Move{From: local, Engine: mover, Owner: "c"}
	mover.Putting = func(_ int64, e eventlog.Entry) error {
		if e.Count == 0 {
			return errors.New("interrupted")
		}
		return nil
	}
	require.ErrorContains(t, m.In(t.Context()), "interrupted")
	taken := make(chan Hub, 1)
	go func() {
		if mine, err := Wait(t.Context(), a.Options); err == nil {
			taken <- mine
		}
	}()
	select {
	case mine := <-taken:
		require.Fail(t, "a part of a record is used", "%v", mine)
	case <-time.After(emptyFor + 3*askEvery):
	}
	mover.Putting = nil
	require.NoError(t, m.In(t.Context()))
	require.Equal(t, int64(2), (<-taken).Epoch)
	require.NoError(t, b.Log.MoveOut(t.Context(), "b"))
	require.ErrorIs(t, a.append(t), eventlog.ErrMoved)
	_, err = Wait(t.Context(), b.Options)
	require.ErrorContains(t, err, "moved out of the shared log, to b, after fact 2")
}

// A silent hub keeps its turn for a while, and one without answers to its questions asks again.
func TestSilence(t *testing.T) {
	t.Parallel()
	entries := &logtest.Entries{}
	a, b := newHub(t, entries, "a"), newHub(t, entries, "b")
	a.takes(t)
	var asked atomic.Int64
	b.engine.Asking = func() error {
		if asked.Add(1) < 5 {
			return eventlog.ErrUnanswered
		}
		return nil
	}
	b.Engine = silent{b.engine}
	began := time.Now()
	mine, err := Wait(t.Context(), b.Options)
	require.NoError(t, err)
	require.Equal(t, int64(2), mine.Epoch)
	require.GreaterOrEqual(t, time.Since(began), maxSilence)
}

// silent is an engine with a hub at work that does not answer.
type silent struct{ *logtest.Memory }

func (silent) Ask(context.Context) ([]byte, error) { return nil, eventlog.ErrSilent }

// Standing by ends with its context, and with a log that cannot be used.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	entries := &logtest.Entries{}
	a, b := newHub(t, entries, "a"), newHub(t, entries, "b")
	a.takes(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(askEvery, cancel)
	_, err := Wait(ctx, b.Options)
	require.ErrorIs(t, err, context.Canceled)
	lost := errors.New("lost")
	c := newHub(t, entries, "c")
	c.engine.Asking = func() error { return lost }
	_, err = Wait(t.Context(), c.Options)
	require.ErrorIs(t, err, lost)
}
