package logtest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog/logtest/series"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// archived returns the record of an archived task.
func archived(seq int64, task string, created int64) wire.Record {
	r := series.Fact(int(seq))
	r.Kind, r.Correlation, r.ReplyTo, r.Topic, r.To, r.Key = events.TaskArchived, task, created, "", "", ""
	return r
}

// conformArchived checks the searches for archived tasks.
func conformArchived(t *testing.T, subject Subject) {
	l := subject.Open(t)
	require.Empty(t, series.Found(t, l, wire.Search{Archived: true}))
	batch := []wire.Record{series.Fact(1), archived(2, "b", 20), archived(3, "a", 10), series.Letter(4, "a"), archived(5, "c", 30), archived(6, "a", 10)}
	for n := range 100 {
		batch = append(batch, archived(int64(7+n), fmt.Sprint("many-", n), int64(1000-n)))
	}
	require.NoError(t, l.Append(t.Context(), 0, batch))
	numbers := func(s wire.Search) (seqs []int64) {
		s.Archived = true
		for _, r := range series.Found(t, l, s) {
			require.Equal(t, events.TaskArchived, r.Kind)
			seqs = append(seqs, r.Seq)
		}
		return seqs
	}
	require.Equal(t, []int64{6, 2, 5}, numbers(wire.Search{})[:3], "in the order of creation, the newest of each")
	require.Len(t, numbers(wire.Search{}), 103)
	require.Equal(t, int64(106), numbers(wire.Search{After: 30})[0])
	require.Equal(t, []int64{3, 2}, numbers(wire.Search{Until: 3}))
	require.Equal(t, []int64{6}, numbers(wire.Search{Task: "a"}))
	require.Equal(t, []int64{3}, numbers(wire.Search{Task: "a", Until: 5}))
	require.Empty(t, numbers(wire.Search{Task: "none"}))
	for _, err := range l.Find(t.Context(), wire.Search{Archived: true}) {
		require.NoError(t, err)
		break
	}
	require.Len(t, numbers(wire.Search{}), 103, "a search that was left early")
}

// conformRefs checks the search for records that may refer to artifacts.
func conformRefs(t *testing.T, subject Subject) {
	l := subject.Open(t)
	require.Empty(t, series.Found(t, l, wire.Search{Artifacts: true}))
	const ref = `{"artifacts":[{"ref":"sha256:00"}]}`
	var batch []wire.Record
	for n := range 600 {
		r := series.Fact(n + 1)
		r.Kind, r.Payload, r.Key = []string{"task.done", "task.archived", "taskless", "agent.ended"}[n%4], []byte(ref), ""
		if n%8 > 3 {
			r.Payload = []byte(`{"text":"sha256:00 is no ref"}`)[:n%2*30]
		}
		batch = append(batch, r)
	}
	require.NoError(t, l.Append(t.Context(), 0, batch))
	batch = series.Numbered(0, batch)
	fits := func(s wire.Search) (fit []wire.Record) {
		for _, r := range batch {
			if strings.HasPrefix(r.Kind, "task.") && strings.Contains(string(r.Payload), `"sha256:`) && r.Seq > s.After && (s.Until == 0 || r.Seq <= s.Until) {
				fit = append(fit, r)
			}
		}
		return fit
	}
	for _, s := range []wire.Search{{}, {After: 1}, {After: 2}, {Until: 9}, {After: 100, Until: 500}, {After: 598}} {
		s.Artifacts = true
		require.Equal(t, series.Seqs(fits(s)), series.Seqs(series.Found(t, l, s)), "%+v", s)
	}
	require.NotEmpty(t, fits(wire.Search{}))
	for _, err := range l.Find(t.Context(), wire.Search{Artifacts: true}) {
		require.NoError(t, err)
		break
	}
}

func conformMail(t *testing.T, subject Subject) {
	l := subject.Open(t)
	require.Empty(t, series.Found(t, l, wire.Search{}), "of an empty log")
	untitled, toNobody := series.Letter(4, "a"), series.Letter(5, "")
	untitled.Topic = ""
	require.NoError(t, l.Append(t.Context(), 0, []wire.Record{
		series.Fact(1), series.Letter(2, "a"), series.Letter(3, "b"), untitled, toNobody, series.Letter(6, "a"), series.Fact(7), series.Letter(8, "c"), series.Letter(9, "b"), series.Fact(10),
	}))
	for _, c := range []struct {
		search wire.Search
		want   []int64
	}{
		{wire.Search{}, []int64{2, 3, 6, 8, 9}},
		{wire.Search{Backward: true}, []int64{9, 8, 6, 3, 2}},
		{wire.Search{From: "agent-2"}, []int64{2, 3, 6, 8, 9}}, // a sender only counts with a key
		{wire.Search{After: 2}, []int64{3, 6, 8, 9}},
		{wire.Search{After: 2, Until: 8}, []int64{3, 6, 8}},
		{wire.Search{After: 2, Until: 8, Backward: true}, []int64{8, 6, 3}},
		{wire.Search{After: 8, Until: 8}, []int64{}},
		{wire.Search{After: 9, Until: 2}, []int64{}},
		{wire.Search{After: -5, Until: 2}, []int64{2}},
		{wire.Search{Until: -1}, []int64{}},
		{wire.Search{Until: math.MinInt64, Backward: true}, []int64{}},
		{wire.Search{After: math.MinInt64, Until: math.MaxInt64}, []int64{2, 3, 6, 8, 9}},
		{wire.Search{After: math.MaxInt64}, []int64{}},
		{wire.Search{To: []string{"a"}}, []int64{2, 6}},
		{wire.Search{To: []string{"a"}, Backward: true}, []int64{6, 2}},
		{wire.Search{To: []string{"c", "a"}}, []int64{2, 6, 8}},
		{wire.Search{To: []string{"b", "a", "b", "a", "x", ""}}, []int64{2, 3, 6, 9}},
		{wire.Search{To: []string{"a", "b"}, After: 2, Until: 6, Backward: true}, []int64{6, 3}},
		{wire.Search{To: []string{""}}, []int64{}},
		{wire.Search{To: []string{"A", "a ", "x"}}, []int64{}},
	} {
		require.Equal(t, c.want, series.Seqs(series.Found(t, l, c.search)), "%+v", c.search)
		require.Equal(t, series.Sift(series.All(t, l, 0), c.search), series.Found(t, l, c.search), "%+v", c.search)
	}
	to := []string{"b", "a"}
	series.Found(t, l, wire.Search{To: to})
	require.Equal(t, []string{"b", "a"}, to, "the search is the caller's")
}

func conformFindKey(t *testing.T, subject Subject) {
	l := subject.Open(t)
	keyed := func(r wire.Record, from, key string) wire.Record {
		r.From, r.Key = from, key
		return r
	}
	batch := []wire.Record{
		keyed(series.Fact(1), "a", "1"), keyed(series.Fact(2), "b", "1"), keyed(series.Letter(3, "a"), "a", "2"), keyed(series.Fact(4), "", "1"), series.Fact(5),
	}
	require.NoError(t, l.Append(t.Context(), 0, batch))
	kept := series.Numbered(0, batch)
	for _, c := range []struct {
		search wire.Search
		want   []wire.Record
	}{
		{wire.Search{From: "a", Key: "1"}, kept[:1]},
		{wire.Search{From: "b", Key: "1"}, kept[1:2]},
		{wire.Search{From: "a", Key: "2"}, kept[2:3]},
		{wire.Search{Key: "1"}, kept[3:4]},
		{wire.Search{From: "b", Key: "2"}, nil},
		{wire.Search{From: "c", Key: "1"}, nil},
		{wire.Search{From: "a", Key: "1", To: []string{"x"}, After: 4, Until: 5, Backward: true}, kept[:1]},
	} {
		require.Equal(t, c.want, series.Found(t, l, c.search), "%+v", c.search)
	}
	for _, err := range []error{
		l.Append(t.Context(), 5, []wire.Record{keyed(series.Fact(6), "c", "3"), keyed(series.Fact(7), "a", "1")}),
		l.Append(t.Context(), 4, []wire.Record{keyed(series.Fact(6), "c", "3")}),
	} {
		require.Error(t, err)
		require.Empty(t, series.Found(t, l, wire.Search{From: "c", Key: "3"}), "a batch that was refused is not there")
	}
}

// conformFindAny checks that Find is a filter of Records, for any log and any search.
func conformFindAny(t *testing.T, subject Subject) {
	l := subject.Open(t)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	names := []string{"a", "b", "c", "d", "nobody", ""}
	for l.Last() < int64(series.Rounds(4000)) {
		batch := series.Facts(l.Last(), 1+random.IntN(300))
		share := random.Float64()
		for i := range batch {
			r := &batch[i]
			if random.Float64() < share {
				*r = series.Letter(int(l.Last())+i+1, names[random.IntN(4)])
			}
			switch random.IntN(12) {
			case 0:
				r.Topic = ""
			case 1:
				r.To = ""
			case 2:
				r.Topic, r.Key = "odd", fmt.Sprint(l.Last()+int64(i))
			}
		}
		require.NoError(t, l.Append(t.Context(), l.Last(), batch))
	}
	records := series.All(t, l, 0)
	number := func() int64 { return random.Int64N(l.Last()+20) - 10 }
	for range series.Rounds(240) {
		s := wire.Search{Backward: random.IntN(2) == 0}
		for range random.IntN(5) {
			s.To = append(s.To, names[random.IntN(len(names))])
		}
		if random.IntN(2) == 0 {
			s.After = number()
		}
		if random.IntN(2) == 0 {
			s.Until = number()
		}
		if random.IntN(4) == 0 {
			holder := records[random.IntN(len(records))]
			s.From, s.Key = holder.From, holder.Key
		}
		require.Equal(t, series.Sift(records, s), series.Found(t, l, s), "%+v, seed %d", s, seed)
	}
}

// conformFindReaders checks that a search sees whole batches, never less than before, and only facts that the log
// reports as its content.
func conformFindReaders(t *testing.T, subject Subject) {
	l := subject.Open(t)
	const batches, size = 40, 12
	search := func() error {
		atLeast, n := l.Last(), int64(0)
		for r, err := range l.Find(t.Context(), wire.Search{To: []string{"a", "b"}}) {
			if n++; err != nil || r.Seq != 2*n || r.Seq > l.Last() {
				return fmt.Errorf("letter %d is %v, %w", n, r, err)
			}
		}
		if 2*n < atLeast || 2*n%size != 0 {
			return fmt.Errorf("saw %d letters, the log had %d facts", n, atLeast)
		}
		for r, err := range l.Find(t.Context(), wire.Search{Backward: true}) {
			if err != nil || r.Seq < 2*n || r.Seq%size != 0 || r.Seq > l.Last() {
				return fmt.Errorf("the newest of at least %d is %v, %w", n, r, err)
			}
			break
		}
		for r, err := range l.Find(t.Context(), wire.Search{From: "keeper", Key: fmt.Sprint(atLeast + size)}) {
			if err != nil || r.Seq > l.Last() {
				return fmt.Errorf("the last fact is %d, the key is that of %v, %w", l.Last(), r, err)
			}
		}
		return nil
	}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for l.Last() < batches*size {
				if err := search(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range batches {
		batch := series.Facts(l.Last(), size)
		for i := 1; i < size; i += 2 {
			batch[i] = series.Letter(int(l.Last())+i+1, []string{"a", "b"}[i/2%2])
		}
		batch[size-1].From, batch[size-1].Key = "keeper", fmt.Sprint(l.Last()+size)
		require.NoError(t, l.Append(t.Context(), l.Last(), batch))
	}
	group.Wait()
}

// conformFindNested checks that a running search blocks no other call, and does not see later appends.
func conformFindNested(t *testing.T, subject Subject) {
	l := subject.Open(t)
	send := func(n int) {
		for range n {
			require.NoError(t, l.Append(t.Context(), l.Last(), []wire.Record{series.Letter(int(l.Last())+1, "a")}))
		}
	}
	for _, s := range []wire.Search{{}, {To: []string{"a"}}, {Backward: true}, {Until: math.MaxInt64}} {
		s.After = l.Last()
		send(20)
		end, n := l.Last(), 0
		for r, err := range l.Find(t.Context(), s) {
			require.NoError(t, err)
			require.LessOrEqual(t, r.Seq, end)
			n++
			send(1)
			require.NoError(t, l.Keep(t.Context(), r.Seq, bytes.NewReader([]byte("x"))))
			require.Len(t, series.Found(t, l, wire.Search{After: r.Seq}), int(l.Last()-r.Seq))
		}
		require.Equal(t, 20, n)
	}
}

// conformFindLarge checks that large letters are returned whole, and that a search may stop
// after one.
func conformFindLarge(t *testing.T, subject Subject) {
	l := subject.Open(t)
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20/16)
	n := series.Rounds(24)
	for i := range n {
		r := series.Letter(i+1, []string{"a", "b"}[i%2])
		r.Payload = large
		require.NoError(t, l.Append(t.Context(), l.Last(), []wire.Record{r}))
	}
	count := 0
	for r, err := range l.Find(t.Context(), wire.Search{To: []string{"a", "b"}, Backward: true}) {
		require.NoError(t, err)
		require.Equal(t, int64(n-count), r.Seq)
		require.True(t, bytes.Equal(large, r.Payload))
		count++
	}
	require.Equal(t, n, count)
	for r, err := range l.Find(t.Context(), wire.Search{}) {
		require.NoError(t, err)
		require.Equal(t, int64(1), r.Seq)
		break
	}
}

// conformFindOver checks that a canceled context ends a search at once or midway, and so does
// closing before it begins.
func conformFindOver(t *testing.T, subject Subject) {
	l := subject.Open(t)
	require.NoError(t, l.Append(t.Context(), 0, []wire.Record{series.Letter(1, "a"), series.Letter(2, "a"), series.Letter(3, "b")}))
	searches := []wire.Search{{}, {To: []string{"a", "b"}}, {To: []string{"nobody"}, Backward: true}, {From: "x", Key: "y"}}
	over, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	for _, err := range l.Find(over, wire.Search{}) {
		if seen++; seen == 2 {
			require.ErrorIs(t, err, context.Canceled)
			break
		}
		require.NoError(t, err)
		cancel()
	}
	require.Equal(t, 2, seen)
	alone := func(ctx context.Context, want error) {
		for _, s := range searches {
			errs := 0
			for _, err := range l.Find(ctx, s) {
				require.ErrorIs(t, err, want, "%+v", s)
				errs++
			}
			require.Equal(t, 1, errs, "%+v", s)
		}
	}
	alone(over, context.Canceled)
	require.NoError(t, l.Append(t.Context(), 3, series.Facts(3, 1)), "nothing is broken")
	require.NoError(t, l.Close())
	alone(t.Context(), fs.ErrClosed)
	alone(over, fs.ErrClosed)
}

// conformFindText checks that a name is found unchanged, whatever characters it has.
func conformFindText(t *testing.T, subject Subject) {
	l := subject.Open(t)
	names := []string{"é", "e\u0301", "É", "%", "_", "'", "a\nb", " ", "\u2028", "\U0010ffff", "*", strings.Repeat("long", 5000)}
	for i, name := range names {
		r := series.Letter(i+1, name)
		r.From, r.Key = name, name
		require.NoError(t, l.Append(t.Context(), int64(i), []wire.Record{r}))
	}
	for i, name := range names {
		require.Equal(t, []int64{int64(i) + 1}, series.Seqs(series.Found(t, l, wire.Search{To: []string{name}})), "%q", name)
		require.Equal(t, []int64{int64(i) + 1}, series.Seqs(series.Found(t, l, wire.Search{From: name, Key: name})), "%q", name)
	}
	require.Len(t, series.Found(t, l, wire.Search{To: names}), len(names))
}
