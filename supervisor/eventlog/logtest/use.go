package logtest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/logtest/series"
	"orchestrator/wire"
)

// conformReaders checks that each reader always sees a complete beginning of the log.
func conformReaders(t *testing.T, subject Subject) {
	l := subject.Open(t)
	const batches, size = 30, 20
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for seen := int64(0); seen < batches*size; {
				atLeast := l.Last()
				n := int64(0)
				for r, err := range l.Records(t.Context(), 0) {
					if n++; err != nil || r.Seq != n || string(r.Payload) != string(series.Fact(int(n)).Payload) {
						t.Errorf("fact %d is %v, %v", n, r, err)
						return
					}
				}
				if n < atLeast || n%size != 0 {
					t.Errorf("saw %d facts of at least %d", n, atLeast)
					return
				}
				seen = n
			}
		})
	}
	for range batches {
		require.NoError(t, l.Append(t.Context(), l.Last(), series.Facts(l.Last(), size)))
	}
	group.Wait()
}

// conformNested checks that a running iteration blocks no other call.
func conformNested(t *testing.T, subject Subject) {
	l := subject.Open(t)
	require.NoError(t, l.Append(t.Context(), 0, series.Facts(0, 3)))
	for r, err := range l.Records(t.Context(), 0) {
		require.NoError(t, err)
		require.NoError(t, l.Append(t.Context(), l.Last(), series.Facts(l.Last(), 1)))
		require.NoError(t, l.Keep(t.Context(), r.Seq, bytes.NewReader([]byte("x"))))
		require.Len(t, series.All(t, l, r.Seq), int(l.Last()-r.Seq))
	}
	require.Equal(t, int64(6), l.Last(), "a range ends where the log ended when it began")
}

func conformStop(t *testing.T, subject Subject) {
	l := subject.Open(t)
	require.NoError(t, l.Append(t.Context(), 0, series.Facts(0, 600)))
	for r, err := range l.Records(t.Context(), 0) {
		require.NoError(t, err)
		if r.Seq == 2 {
			break
		}
	}
	require.Len(t, series.All(t, l, 0), 600)
}

func conformStates(t *testing.T, subject Subject) {
	l := subject.Open(t)
	require.Error(t, l.Keep(t.Context(), 1, bytes.NewReader([]byte("too early"))))
	require.NoError(t, l.Append(t.Context(), 0, series.Facts(0, 10)))
	newest := func(seq int64, state string) {
		t.Helper()
		gotSeq, got, err := l.Snapshot(t.Context())
		require.NoError(t, err)
		require.Equal(t, seq, gotSeq)
		require.Equal(t, state, string(got))
	}
	for _, seq := range []int64{-1, 0, 11} {
		require.Error(t, l.Keep(t.Context(), seq, bytes.NewReader([]byte("of nothing"))))
	}
	newest(0, "")
	require.NoError(t, l.Keep(t.Context(), 3, bytes.NewReader([]byte("three"))))
	newest(3, "three")
	require.NoError(t, l.Keep(t.Context(), 5, bytes.NewReader([]byte("five"))))
	require.NoError(t, l.Keep(t.Context(), 5, bytes.NewReader([]byte("five again \x00\xff"))))
	newest(5, "five again \x00\xff")
	require.NoError(t, l.Keep(t.Context(), 4, bytes.NewReader([]byte("four"))))
	newest(5, "five again \x00\xff")
	require.NoError(t, l.Keep(t.Context(), 9, bytes.NewReader([]byte{})))
	newest(9, "")
	for _, size := range []int{partBytes - 1, partBytes, partBytes + 1, 2 * partBytes, 5*partBytes + 7} {
		big := strings.Repeat("state", size/5+1)[:size]
		require.NoError(t, l.Keep(t.Context(), 10, bytes.NewReader([]byte(big))))
		newest(10, big)
	}
	require.NoError(t, l.Append(t.Context(), 10, series.Facts(10, 1)))
}

// conformContext checks that a canceled context neither changes nor breaks the log.
func conformContext(t *testing.T, subject Subject) {
	l := subject.Open(t)
	require.NoError(t, l.Append(t.Context(), 0, series.Facts(0, 2)))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, l.Append(over, 2, series.Facts(2, 1)), context.Canceled)
	require.ErrorIs(t, l.Keep(over, 2, bytes.NewReader(nil)), context.Canceled)
	_, _, err := l.Snapshot(over)
	require.ErrorIs(t, err, context.Canceled)
	errs := 0
	for _, err := range l.Records(over, 0) {
		require.ErrorIs(t, err, context.Canceled)
		errs++
	}
	require.Equal(t, 1, errs)
	require.NoError(t, l.Append(t.Context(), 2, series.Facts(2, 1)))
	require.Len(t, series.All(t, l, 0), 3)

	// A canceled append either happened or not, and its error tells which.
	for n := range 40 {
		last := l.Last()
		soon, cancel := context.WithTimeout(t.Context(), time.Duration(n*10)*time.Microsecond)
		err := l.Append(soon, last, series.Facts(last, 50))
		cancel()
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, last, l.Last())
		} else {
			require.Equal(t, last+50, l.Last())
		}
		require.Len(t, series.All(t, l, last), int(l.Last()-last))
	}
}

func conformClosed(t *testing.T, subject Subject) {
	l := subject.Open(t)
	require.NoError(t, l.Append(t.Context(), 0, series.Facts(0, 1)))
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.Append(t.Context(), 1, series.Facts(1, 1)), fs.ErrClosed)
	require.ErrorIs(t, l.Keep(t.Context(), 1, bytes.NewReader(nil)), fs.ErrClosed)
	_, _, err := l.Snapshot(t.Context())
	require.ErrorIs(t, err, fs.ErrClosed)
	for _, err := range l.Records(t.Context(), 0) {
		require.ErrorIs(t, err, fs.ErrClosed)
	}
	require.NoError(t, l.Close(), "twice is once")
}

func conformReopen(t *testing.T, subject Subject) {
	if !subject.Remembers {
		return // a log in memory has no file to reopen
	}
	var want []wire.Record
	for round := range 4 {
		l := subject.Open(t)
		last := int64(len(want))
		require.Equal(t, last, l.Last())
		require.Equal(t, want, series.All(t, l, 0))
		seq, state, err := l.Snapshot(t.Context())
		require.NoError(t, err)
		require.Equal(t, last, seq)
		if round > 0 {
			require.Equal(t, fmt.Sprint(round), string(state))
		}
		batch := series.Facts(last, 700)
		batch[0].Key = fmt.Sprint("round-", round)
		require.NoError(t, l.Append(t.Context(), last, batch))
		want = append(want, series.Numbered(last, batch)...)
		require.NoError(t, l.Keep(t.Context(), last+700, bytes.NewReader([]byte(fmt.Sprint(round+1)))))
		require.NoError(t, l.Close())
	}
	l := subject.Open(t)
	again := series.Fact(1)
	again.From, again.Key = want[0].From, want[0].Key
	require.ErrorIs(t, l.Append(t.Context(), l.Last(), []wire.Record{again}), eventlog.ErrTaken)
}
