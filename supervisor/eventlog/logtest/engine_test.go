package logtest_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/logtest"
)

// entry returns an entry that begins with a fact.
func entry(first int64) eventlog.Entry {
	return eventlog.Entry{First: first, Count: 1, Part: 1, Of: 1, Body: []byte("body")}
}

// seen returns the first facts of the entries after entry at.
func seen(t *testing.T, m *logtest.Memory, at int64) (firsts []int64) {
	t.Helper()
	require.NoError(t, m.Get(t.Context(), at, func(n int64, e eventlog.Entry) error {
		require.Equal(t, at+int64(len(firsts))+1, n)
		require.Equal(t, "body", string(e.Body))
		firsts = append(firsts, e.First)
		return nil
	}))
	return firsts
}

// TestMemory checks that the engine in memory keeps its promises.
func TestMemory(t *testing.T) {
	entries := &logtest.Entries{Most: 100}
	a, b := entries.Join(), entries.Join()
	for at := range int64(3) {
		n, err := a.Put(at, entry(10*at+1))
		require.NoError(t, err)
		require.Equal(t, at+1, n)
		_, err = b.Put(at, entry(99))
		require.ErrorIs(t, err, eventlog.ErrBehind)
	}
	_, err := b.Put(4, entry(99))
	require.NotErrorIs(t, err, eventlog.ErrBehind, "there is no other entry")
	require.Error(t, err)
	_, err = b.Put(3, eventlog.Entry{First: 1, Count: 1, Part: 1, Of: 1, Body: make([]byte, 100)})
	require.ErrorContains(t, err, "100 is the limit")
	end, err := b.End(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(3), end)
	for range 2 {
		require.Equal(t, []int64{1, 11, 21}, seen(t, b, 0))
		require.Equal(t, []int64{21}, seen(t, b, 2))
		require.Empty(t, seen(t, b, 3))
	}
	first, err := b.First(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, int64(11), first)
}

// TestMemoryFaults checks the faults, contexts and closing.
func TestMemoryFaults(t *testing.T) {
	entries, fault := &logtest.Entries{}, errors.New("fault")
	m := entries.Join()
	m.Putting = func(int64, eventlog.Entry) error { return fault }
	_, err := m.Put(0, entry(1))
	require.ErrorIs(t, err, fault)
	require.Zero(t, entries.Len())
	m.Putting, m.Stored = nil, m.Putting
	_, err = m.Put(0, entry(1))
	require.ErrorIs(t, err, fault)
	require.Equal(t, []int64{1}, seen(t, m, 0), "it was stored")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.End(over)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	_, err = m.Put(1, entry(2))
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, m.Get(t.Context(), 0, nil), fs.ErrClosed)
	_, err = m.Serve(nil)
	require.ErrorIs(t, err, fs.ErrClosed)
}

// TestMemoryServes checks that a hub at work is seen until it ends or its engine is closed.
func TestMemoryServes(t *testing.T) {
	entries := &logtest.Entries{}
	a, b, c := entries.Join(), entries.Join(), entries.Join()
	vacant := func() bool {
		_, err := c.Ask(t.Context())
		if err != nil {
			require.ErrorIs(t, err, eventlog.ErrVacant)
		}
		return err != nil
	}
	require.True(t, vacant())
	end, err := a.Serve([]byte("a"))
	require.NoError(t, err)
	_, err = b.Serve([]byte("b"))
	require.NoError(t, err)
	end()
	end()
	require.False(t, vacant())
	require.NoError(t, b.Close())
	require.True(t, vacant())
	c.Asking = func() error { return eventlog.ErrSilent }
	_, err = c.Ask(t.Context())
	require.ErrorIs(t, err, eventlog.ErrSilent)
}

// TestMemoryObjects checks the objects in memory.
func TestMemoryObjects(t *testing.T) {
	entries := &logtest.Entries{}
	a, b := entries.Join(), entries.Join()
	logtest.RunObjects(t, a, b)
	require.NoError(t, a.Close())
	require.ErrorIs(t, a.PutObject(t.Context(), "00", nil), fs.ErrClosed)
}
