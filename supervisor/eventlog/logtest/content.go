package logtest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/logtest/series"
	"orchestrator/wire"
)

func conformEmpty(t *testing.T, subject Subject) {
	l := subject.Open(t)
	require.Zero(t, l.Last())
	require.Empty(t, series.All(t, l, 0))
	require.Empty(t, series.All(t, l, 5))
	require.NoError(t, l.Append(t.Context(), 0, nil))
	seq, state, err := l.Snapshot(t.Context())
	require.NoError(t, err)
	require.Zero(t, seq)
	require.Nil(t, state)
}

func conformRoundTrip(t *testing.T, subject Subject) {
	l := subject.Open(t)
	zone := time.FixedZone("", 3600)
	batch := []wire.Record{
		{At: series.Noon, From: "a", To: "b", Topic: "t", Kind: "mail.sent", Payload: []byte(`{}`), ReplyTo: 7, Key: "k", Correlation: "c"},
		{At: series.Noon, From: "a", Kind: "bare"},
		{At: series.Noon, Kind: "nobody", Payload: []byte{}},
		{At: series.Noon.In(zone).Add(999 * time.Microsecond), From: "a", Kind: "elsewhere"},
		{Kind: "the beginning of time"},
		{At: time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC), Kind: "the end"},
		{At: series.Noon, From: "a", Kind: "numbered", Seq: 7},
	}
	given := append([]wire.Record{}, batch...)
	require.NoError(t, l.Append(t.Context(), 0, batch))
	require.Equal(t, given, batch, "the batch is the caller's")
	found := series.All(t, l, 0)
	require.Equal(t, series.Numbered(0, batch), found)
	require.Equal(t, series.Noon, found[3].At)
	require.Nil(t, found[2].Payload)
}

func conformOrder(t *testing.T, subject Subject) {
	l := subject.Open(t)
	var want []wire.Record
	for n := range 40 {
		last := l.Last()
		batch := series.Facts(last, n)
		require.NoError(t, l.Append(t.Context(), last, batch))
		want = append(want, series.Numbered(last, batch)...)
		require.Equal(t, int64(len(want)), l.Last())
	}
	for _, after := range []int{0, 1, 511, 512, 513, len(want) - 1, len(want)} {
		require.Equal(t, append([]wire.Record(nil), want[after:]...), series.All(t, l, int64(after)))
	}
	require.Empty(t, series.All(t, l, int64(len(want)+1)))
}

func conformFence(t *testing.T, subject Subject) {
	l := subject.Open(t)
	require.NoError(t, l.Append(t.Context(), 0, series.Facts(0, 3)))
	for _, last := range []int64{0, 2, 4, -1} {
		require.ErrorIs(t, l.Append(t.Context(), last, series.Facts(last, 1)), eventlog.ErrMoved)
		require.ErrorIs(t, l.Append(t.Context(), last, nil), eventlog.ErrMoved)
	}
	require.Len(t, series.All(t, l, 0), 3)
	require.NoError(t, l.Append(t.Context(), 3, series.Facts(3, 1)))
}

// conformRace checks that exactly one of several appends at the same place succeeds.
func conformRace(t *testing.T, subject Subject) {
	const writers, numbers = 8, 60
	l := subject.Open(t)
	logs := []Log{l, l}
	if subject.Remembers {
		logs[1] = subject.Open(t) // a second one in the same file
	}
	won := make([]map[int64]string, writers)
	var group sync.WaitGroup
	for w := range writers {
		won[w] = make(map[int64]string)
		group.Go(func() {
			log := logs[w%2]
			for last := log.Last(); last < numbers; last = log.Last() {
				mine := series.Fact(int(last) + 1)
				mine.From = fmt.Sprint("writer-", w)
				switch err := log.Append(t.Context(), last, []wire.Record{mine}); {
				case err == nil:
					won[w][last+1] = mine.From
				case errors.Is(err, eventlog.ErrBusy): // SQLite gives the file to waiting writers in no order, and waits a second
				case !errors.Is(err, eventlog.ErrMoved):
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	winners := make(map[int64]string)
	for _, mine := range won {
		for seq, who := range mine {
			require.NotContains(t, winners, seq)
			winners[seq] = who
		}
	}
	require.GreaterOrEqual(t, len(winners), numbers)
	for _, r := range series.All(t, l, 0) {
		require.Equal(t, winners[r.Seq], r.From)
	}
}

func conformKeys(t *testing.T, subject Subject) {
	l := subject.Open(t)
	keyed := func(from, key string) wire.Record {
		return wire.Record{At: series.Noon, From: from, Key: key, Kind: "k"}
	}
	require.NoError(t, l.Append(t.Context(), 0, []wire.Record{keyed("a", "1"), keyed("b", "1"), keyed("a", ""), keyed("a", ""), keyed("a", "2")}))

	err := l.Append(t.Context(), 5, []wire.Record{keyed("a", "3"), series.Fact(7), keyed("a", "2"), keyed("b", "1")})
	require.ErrorIs(t, err, eventlog.ErrTaken)
	var taken *eventlog.TakenError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, eventlog.TakenError{Index: 2, From: "a", Key: "2", Seq: 5}, *taken)
	require.Len(t, series.All(t, l, 0), 5, "nothing of the batch is there")

	require.NoError(t, l.Append(t.Context(), 5, []wire.Record{keyed("a", "3")}), "its key is free still")

	require.ErrorAs(t, l.Append(t.Context(), 6, []wire.Record{keyed("c", "1"), keyed("a", "4"), keyed("a", "4")}), &taken)
	require.Equal(t, eventlog.TakenError{Index: 2, From: "a", Key: "4"}, *taken)
	require.NoError(t, l.Append(t.Context(), 6, []wire.Record{keyed("c", "1"), keyed("a", "4")}))
	require.Equal(t, int64(8), l.Last())
}

func conformInvalid(t *testing.T, subject Subject) {
	l := subject.Open(t)
	for _, bad := range []string{"\xff", "ok\xc3", "\xed\xa0\x80", "nul\x00nul"} {
		for _, r := range []wire.Record{{Payload: []byte(bad)}, {From: bad}, {To: bad}, {Topic: bad}, {Kind: bad}, {Key: bad}, {Correlation: bad}} {
			require.ErrorIs(t, l.Append(t.Context(), 0, []wire.Record{series.Fact(1), r}), eventlog.ErrInvalid, "%q", bad)
		}
	}
	for _, r := range []wire.Record{
		{At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		{At: time.Date(-1, 12, 31, 0, 0, 0, 0, time.UTC)},
		{Seq: 3}, {Seq: -2},
		{From: "a", Payload: bytes.Repeat([]byte("x"), maxFact)},
	} {
		require.ErrorIs(t, l.Append(t.Context(), 0, []wire.Record{series.Fact(1), r}), eventlog.ErrInvalid)
	}
	require.Empty(t, series.All(t, l, 0))
	require.NoError(t, l.Append(t.Context(), 0, series.Facts(0, 1)), "a refusal breaks nothing")
}

func conformText(t *testing.T, subject Subject) {
	l := subject.Open(t)
	var text strings.Builder
	for c := rune(1); c <= 0x10ffff; c += 1 + c/64 {
		text.WriteRune(c) // surrogates become U+FFFD
	}
	s := text.String()
	batch := []wire.Record{{At: series.Noon, From: s, To: s, Topic: s, Kind: s, Payload: []byte(s), Key: s, Correlation: s}}
	require.NoError(t, l.Append(t.Context(), 0, batch))
	require.Equal(t, series.Numbered(0, batch), series.All(t, l, 0))
}

func conformHuge(t *testing.T, subject Subject) {
	l := subject.Open(t)
	huge := series.Fact(2)
	huge.Payload = append(append([]byte{'"'}, bytes.Repeat([]byte("0123456789abcdef"), series.Rounds(24)<<20/16)...), '"')
	batch := []wire.Record{series.Fact(1), huge, series.Fact(3)}
	require.NoError(t, l.Append(t.Context(), 0, batch))
	found := series.All(t, l, 0)
	require.Len(t, found, 3)
	require.True(t, bytes.Equal(huge.Payload, found[1].Payload))
	require.Equal(t, series.AsKept(series.Fact(3), 3), found[2])
}
