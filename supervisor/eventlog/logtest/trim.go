package logtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog/logtest/series"
	"orchestrator/wire"
)

// conformTrim checks that facts are removed from the front only, that reading behind the base is an error, and that all
// other facts stay.
func conformTrim(t *testing.T, subject Subject) {
	l := subject.Open(t)
	require.Zero(t, series.Trimmed(t, l, 100))
	kept := series.Trimmable(t, l, 1000)
	if subject.KeepsAll {
		require.Zero(t, series.Trimmed(t, l, 600))
		require.Equal(t, kept, series.All(t, l, 0))
		return
	}
	before, err := l.Size(t.Context())
	require.NoError(t, err)
	base := series.Trimmed(t, l, 600)
	require.Equal(t, wire.Base{Seq: 600, At: kept[599].At, Removed: series.Later.Truncate(time.Millisecond), Began: kept[0].At}, base)
	after, err := l.Size(t.Context())
	require.NoError(t, err)
	require.Less(t, after, before)
	for _, n := range []int64{-1, 0, 1, 599} {
		series.RequireRemoved(t, l, n, base)
	}
	require.Equal(t, kept[600:], series.All(t, l, 600))
	require.Equal(t, kept[700:], series.All(t, l, 700))
	for _, s := range series.Searches(kept) {
		require.Equal(t, series.Sift(kept[600:], s), series.Found(t, l, s), "%+v", s)
	}
	require.Empty(t, series.Found(t, l, wire.Search{From: kept[599].From, Key: kept[599].Key}))
	require.Len(t, series.Found(t, l, wire.Search{From: kept[600].From, Key: kept[600].Key}), 1)
	seq, state, err := l.Snapshot(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(999), seq)
	require.Equal(t, "state of 999", string(state))

	again := series.Fact(1001)
	again.From, again.Key = kept[0].From, kept[0].Key
	require.NoError(t, l.Append(t.Context(), 1000, []wire.Record{again}), "a key goes with its fact")
	require.Equal(t, int64(998), series.Trimmed(t, l, 5000).Seq, "the older state needs what follows it")
	require.Len(t, series.All(t, l, 998), 3)
	require.NoError(t, l.Append(t.Context(), 1001, series.Facts(1001, 3)))
	require.Len(t, series.All(t, l, 998), 6)
}
