package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// logUnderTest adds to Log what every engine has.
type logUnderTest interface {
	Log
	Last() int64
	Close() error
}

// engine is an implementation of Log. open opens the log of a test. If the engine remembers,
// that is the same log each time, with its content.
type engine struct {
	name      string
	remembers bool
	open      func(t *testing.T) logUnderTest
}

func engines(t *testing.T) []engine {
	inFile := func(name string, library library) engine {
		path := filepath.Join(t.TempDir(), name)
		return engine{name: name, remembers: true, open: func(t *testing.T) logUnderTest {
			folder := filepath.Dir(path)
			file := filepath.Join(folder, strings.ReplaceAll(t.Name(), "/", "_"))
			return mustOpen(t, Options{Path: file, Durable: true, library: library})
		}}
	}
	return []engine{
		{name: "memory", open: func(*testing.T) logUnderTest { return NewMemory() }},
		inFile("ncruces", ncruces),
		inFile("modernc", modernc),
	}
}

func mustOpen(t testing.TB, o Options) *SQLite {
	l, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// TestConformance runs the rules that any engine must pass.
func TestConformance(t *testing.T) {
	t.Parallel()
	rules := []struct {
		name string
		test func(t *testing.T, e engine)
	}{
		{"an empty log", conformEmpty},
		{"facts come back as they went in", conformRoundTrip},
		{"order and numbers", conformOrder},
		{"the fence", conformFence},
		{"one of many wins each number", conformRace},
		{"keys", conformKeys},
		{"what cannot be kept", conformInvalid},
		{"every character of text", conformText},
		{"a huge payload", conformHuge},
		{"readers beside a writer", conformReaders},
		{"a reader who writes and reads", conformNested},
		{"a reader who stops", conformStop},
		{"mail is found", conformMail},
		{"archived tasks are found", conformArchived},
		{"records that refer to artifacts are found", conformRefs},
		{"facts are removed from the front", conformTrim},
		{"a key is found", conformFindKey},
		{"any search", conformFindAny},
		{"searches beside a writer", conformFindReaders},
		{"a search that writes and searches", conformFindNested},
		{"large letters", conformFindLarge},
		{"a search that is over", conformFindOver},
		{"names of any text", conformFindText},
		{"states", conformStates},
		{"a cancelled context", conformContext},
		{"closed", conformClosed},
		{"opened again", conformReopen},
	}
	for _, e := range engines(t) {
		t.Run(e.name, func(t *testing.T) {
			for _, rule := range rules {
				t.Run(rule.name, func(t *testing.T) { rule.test(t, e) })
			}
		})
	}
}

// noon is the time of the first fact.
var noon = time.Date(2026, 11, 2, 12, 0, 0, 250e6, time.UTC)

// fact returns the n-th fact of a series in which all differ.
func fact(n int) wire.Record {
	return wire.Record{
		At: noon.Add(time.Duration(n) * time.Millisecond), From: fmt.Sprint("agent-", n%7), Kind: "task.created",
		Payload: fmt.Appendf(nil, `{"task":%d}`, n), Correlation: fmt.Sprint("c-", n),
	}
}

// facts returns the n facts of the series after number last.
func facts(last int64, n int) []wire.Record {
	batch := make([]wire.Record, n)
	for i := range batch {
		batch[i] = fact(int(last) + i + 1)
	}
	return batch
}

// all reads the facts behind number after.
func all(t testing.TB, l Log, after int64) []wire.Record {
	var found []wire.Record
	for r, err := range l.Records(t.Context(), after) {
		require.NoError(t, err)
		found = append(found, r)
	}
	return found
}

// numbered returns a batch as the log returns it.
func numbered(last int64, batch []wire.Record) []wire.Record {
	kept := make([]wire.Record, len(batch))
	for i, r := range batch {
		kept[i] = asKept(r, last+int64(i)+1)
	}
	return kept
}

func conformEmpty(t *testing.T, e engine) {
	l := e.open(t)
	require.Zero(t, l.Last())
	require.Empty(t, all(t, l, 0))
	require.Empty(t, all(t, l, 5))
	require.NoError(t, l.Append(t.Context(), 0, nil))
	seq, state, err := l.Snapshot(t.Context())
	require.NoError(t, err)
	require.Zero(t, seq)
	require.Nil(t, state)
}

func conformRoundTrip(t *testing.T, e engine) {
	l := e.open(t)
	zone := time.FixedZone("", 3600)
	batch := []wire.Record{
		{At: noon, From: "a", To: "b", Topic: "t", Kind: "mail.sent", Payload: []byte(`{}`), ReplyTo: 7, Key: "k", Correlation: "c"},
		{At: noon, From: "a", Kind: "bare"},
		{At: noon, Kind: "nobody", Payload: []byte{}},
		{At: noon.In(zone).Add(999 * time.Microsecond), From: "a", Kind: "elsewhere"},
		{Kind: "the beginning of time"},
		{At: time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC), Kind: "the end"},
		{At: noon, From: "a", Kind: "numbered", Seq: 7},
	}
	given := append([]wire.Record{}, batch...)
	require.NoError(t, l.Append(t.Context(), 0, batch))
	require.Equal(t, given, batch, "the batch is the caller's")
	found := all(t, l, 0)
	require.Equal(t, numbered(0, batch), found)
	require.Equal(t, noon, found[3].At)
	require.Nil(t, found[2].Payload)
}

func conformOrder(t *testing.T, e engine) {
	l := e.open(t)
	var want []wire.Record
	for n := range 40 {
		last := l.Last()
		batch := facts(last, n)
		require.NoError(t, l.Append(t.Context(), last, batch))
		want = append(want, numbered(last, batch)...)
		require.Equal(t, int64(len(want)), l.Last())
	}
	for _, after := range []int{0, 1, 511, 512, 513, len(want) - 1, len(want)} {
		require.Equal(t, append([]wire.Record(nil), want[after:]...), all(t, l, int64(after)))
	}
	require.Empty(t, all(t, l, int64(len(want)+1)))
}

func conformFence(t *testing.T, e engine) {
	l := e.open(t)
	require.NoError(t, l.Append(t.Context(), 0, facts(0, 3)))
	for _, last := range []int64{0, 2, 4, -1} {
		require.ErrorIs(t, l.Append(t.Context(), last, facts(last, 1)), ErrMoved)
		require.ErrorIs(t, l.Append(t.Context(), last, nil), ErrMoved)
	}
	require.Len(t, all(t, l, 0), 3)
	require.NoError(t, l.Append(t.Context(), 3, facts(3, 1)))
}

// conformRace checks that of several appends at the same place exactly one succeeds.
func conformRace(t *testing.T, e engine) {
	const writers, numbers = 8, 60
	l := e.open(t)
	logs := []logUnderTest{l, l}
	if e.remembers {
		logs[1] = e.open(t) // a second one in the same file
	}
	won := make([]map[int64]string, writers)
	var group sync.WaitGroup
	for w := range writers {
		won[w] = make(map[int64]string)
		group.Go(func() {
			log := logs[w%2]
			for last := log.Last(); last < numbers; last = log.Last() {
				mine := fact(int(last) + 1)
				mine.From = fmt.Sprint("writer-", w)
				switch err := log.Append(t.Context(), last, []wire.Record{mine}); {
				case err == nil:
					won[w][last+1] = mine.From
				case !errors.Is(err, ErrMoved):
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
	for _, r := range all(t, l, 0) {
		require.Equal(t, winners[r.Seq], r.From)
	}
}

func conformKeys(t *testing.T, e engine) {
	l := e.open(t)
	keyed := func(from, key string) wire.Record {
		return wire.Record{At: noon, From: from, Key: key, Kind: "k"}
	}
	require.NoError(t, l.Append(t.Context(), 0, []wire.Record{keyed("a", "1"), keyed("b", "1"), keyed("a", ""), keyed("a", ""), keyed("a", "2")}))

	err := l.Append(t.Context(), 5, []wire.Record{keyed("a", "3"), fact(7), keyed("a", "2"), keyed("b", "1")})
	require.ErrorIs(t, err, ErrTaken)
	var taken *TakenError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, TakenError{Index: 2, From: "a", Key: "2", Seq: 5}, *taken)
	require.Len(t, all(t, l, 0), 5, "nothing of the batch is there")

	require.NoError(t, l.Append(t.Context(), 5, []wire.Record{keyed("a", "3")}), "its key is free still")

	require.ErrorAs(t, l.Append(t.Context(), 6, []wire.Record{keyed("c", "1"), keyed("a", "4"), keyed("a", "4")}), &taken)
	require.Equal(t, TakenError{Index: 2, From: "a", Key: "4"}, *taken)
	require.NoError(t, l.Append(t.Context(), 6, []wire.Record{keyed("c", "1"), keyed("a", "4")}))
	require.Equal(t, int64(8), l.Last())
}

func conformInvalid(t *testing.T, e engine) {
	l := e.open(t)
	for _, bad := range []string{"\xff", "ok\xc3", "\xed\xa0\x80", "nul\x00nul"} {
		for _, r := range []wire.Record{{Payload: []byte(bad)}, {From: bad}, {To: bad}, {Topic: bad}, {Kind: bad}, {Key: bad}, {Correlation: bad}} {
			require.ErrorIs(t, l.Append(t.Context(), 0, []wire.Record{fact(1), r}), ErrInvalid, "%q", bad)
		}
	}
	for _, r := range []wire.Record{
		{At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		{At: time.Date(-1, 12, 31, 0, 0, 0, 0, time.UTC)},
		{Seq: 3}, {Seq: -2},
		{From: "a", Payload: bytes.Repeat([]byte("x"), maxFact)},
	} {
		require.ErrorIs(t, l.Append(t.Context(), 0, []wire.Record{fact(1), r}), ErrInvalid)
	}
	require.Empty(t, all(t, l, 0))
	require.NoError(t, l.Append(t.Context(), 0, facts(0, 1)), "a refusal breaks nothing")
}

func conformText(t *testing.T, e engine) {
	l := e.open(t)
	var text strings.Builder
	for c := rune(1); c <= 0x10ffff; c += 1 + c/64 {
		text.WriteRune(c) // surrogates become U+FFFD
	}
	s := text.String()
	batch := []wire.Record{{At: noon, From: s, To: s, Topic: s, Kind: s, Payload: []byte(s), Key: s, Correlation: s}}
	require.NoError(t, l.Append(t.Context(), 0, batch))
	require.Equal(t, numbered(0, batch), all(t, l, 0))
}

func conformHuge(t *testing.T, e engine) {
	l := e.open(t)
	huge := fact(2)
	huge.Payload = append(append([]byte{'"'}, bytes.Repeat([]byte("0123456789abcdef"), rounds(24)<<20/16)...), '"')
	batch := []wire.Record{fact(1), huge, fact(3)}
	require.NoError(t, l.Append(t.Context(), 0, batch))
	found := all(t, l, 0)
	require.Len(t, found, 3)
	require.True(t, bytes.Equal(huge.Payload, found[1].Payload))
	require.Equal(t, asKept(fact(3), 3), found[2])
}

// The rules for a log in use: several readers and a writer, states, contexts, closing and
// reopening. The rules for the content are in conformance_test.go, those for searches in
// conformance_find_test.go.

// conformReaders checks that each reader always sees a complete beginning of the log.
func conformReaders(t *testing.T, e engine) {
	l := e.open(t)
	const batches, size = 30, 20
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for seen := int64(0); seen < batches*size; {
				atLeast := l.Last()
				n := int64(0)
				for r, err := range l.Records(t.Context(), 0) {
					if n++; err != nil || r.Seq != n || string(r.Payload) != string(fact(int(n)).Payload) {
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
		require.NoError(t, l.Append(t.Context(), l.Last(), facts(l.Last(), size)))
	}
	group.Wait()
}

// conformNested checks that a running iteration blocks nothing.
func conformNested(t *testing.T, e engine) {
	l := e.open(t)
	require.NoError(t, l.Append(t.Context(), 0, facts(0, 3)))
	for r, err := range l.Records(t.Context(), 0) {
		require.NoError(t, err)
		require.NoError(t, l.Append(t.Context(), l.Last(), facts(l.Last(), 1)))
		require.NoError(t, l.Keep(t.Context(), r.Seq, bytes.NewReader([]byte("x"))))
		require.Len(t, all(t, l, r.Seq), int(l.Last()-r.Seq))
	}
	require.Equal(t, int64(6), l.Last(), "a range ends where the log ended when it began")
}

func conformStop(t *testing.T, e engine) {
	l := e.open(t)
	require.NoError(t, l.Append(t.Context(), 0, facts(0, 600)))
	for r, err := range l.Records(t.Context(), 0) {
		require.NoError(t, err)
		if r.Seq == 2 {
			break
		}
	}
	require.Len(t, all(t, l, 0), 600)
}

func conformStates(t *testing.T, e engine) {
	l := e.open(t)
	require.Error(t, l.Keep(t.Context(), 1, bytes.NewReader([]byte("too early"))))
	require.NoError(t, l.Append(t.Context(), 0, facts(0, 10)))
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
	require.NoError(t, l.Append(t.Context(), 10, facts(10, 1)))
}

// conformContext checks that a canceled context changes nothing and breaks nothing.
func conformContext(t *testing.T, e engine) {
	l := e.open(t)
	require.NoError(t, l.Append(t.Context(), 0, facts(0, 2)))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, l.Append(over, 2, facts(2, 1)), context.Canceled)
	require.ErrorIs(t, l.Keep(over, 2, bytes.NewReader(nil)), context.Canceled)
	_, _, err := l.Snapshot(over)
	require.ErrorIs(t, err, context.Canceled)
	errs := 0
	for _, err := range l.Records(over, 0) {
		require.ErrorIs(t, err, context.Canceled)
		errs++
	}
	require.Equal(t, 1, errs)
	require.NoError(t, l.Append(t.Context(), 2, facts(2, 1)))
	require.Len(t, all(t, l, 0), 3)

	// A canceled append either happened or not, and its error tells which.
	for n := range 40 {
		last := l.Last()
		soon, cancel := context.WithTimeout(t.Context(), time.Duration(n*10)*time.Microsecond)
		err := l.Append(soon, last, facts(last, 50))
		cancel()
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, last, l.Last())
		} else {
			require.Equal(t, last+50, l.Last())
		}
		require.Len(t, all(t, l, last), int(l.Last()-last))
	}
}

func conformClosed(t *testing.T, e engine) {
	l := e.open(t)
	require.NoError(t, l.Append(t.Context(), 0, facts(0, 1)))
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.Append(t.Context(), 1, facts(1, 1)), fs.ErrClosed)
	require.ErrorIs(t, l.Keep(t.Context(), 1, bytes.NewReader(nil)), fs.ErrClosed)
	_, _, err := l.Snapshot(t.Context())
	require.ErrorIs(t, err, fs.ErrClosed)
	for _, err := range l.Records(t.Context(), 0) {
		require.ErrorIs(t, err, fs.ErrClosed)
	}
	require.NoError(t, l.Close(), "twice is once")
}

func conformReopen(t *testing.T, e engine) {
	if !e.remembers {
		return // a log in memory has nothing to reopen
	}
	var want []wire.Record
	for round := range 4 {
		l := e.open(t)
		last := int64(len(want))
		require.Equal(t, last, l.Last())
		require.Equal(t, want, all(t, l, 0))
		seq, state, err := l.Snapshot(t.Context())
		require.NoError(t, err)
		require.Equal(t, last, seq)
		if round > 0 {
			require.Equal(t, fmt.Sprint(round), string(state))
		}
		batch := facts(last, 700)
		batch[0].Key = fmt.Sprint("round-", round)
		require.NoError(t, l.Append(t.Context(), last, batch))
		want = append(want, numbered(last, batch)...)
		require.NoError(t, l.Keep(t.Context(), last+700, bytes.NewReader([]byte(fmt.Sprint(round+1)))))
		require.NoError(t, l.Close())
	}
	l := e.open(t)
	again := fact(1)
	again.From, again.Key = want[0].From, want[0].Key
	require.ErrorIs(t, l.Append(t.Context(), l.Last(), []wire.Record{again}), ErrTaken)
}
