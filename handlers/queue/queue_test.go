package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// item is an Item of a test.
type item struct {
	urgency uint8
	created int64
	in      *Bucket[*item, string]
}

func (i *item) Urgency() uint8 { return i.urgency }
func (i *item) Created() int64 { return i.created }

// TestModel compares a Queue with a plain list. Items come and go at random; each bucket must
// hold its items in order.
func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		chance := rand.New(rand.NewPCG(seed, 0))
		q := New[*item, string](chance.IntN(3))
		plain := make(map[string][]*item)
		var all []*item
		for n := range int64(400) {
			if len(all) > 0 && chance.IntN(5) < 2 {
				at := chance.IntN(len(all))
				x := all[at]
				all = slices.Delete(all, at, at+1)
				plain[x.in.Asks] = slices.DeleteFunc(plain[x.in.Asks], func(o *item) bool { return o == x })
				q.Remove(x.in, x)
			} else {
				x := &item{urgency: uint8(chance.IntN(Urgencies)), created: n - int64(chance.IntN(3))*1000}
				asks := fmt.Sprint(chance.IntN(6))
				if x.in = q.Find(AppendKey(nil, asks)); x.in == nil {
					x.in = q.Open(AppendKey(nil, asks), []string{"all", asks}[chance.IntN(2):], asks)
				}
				require.Equal(t, len(plain[asks]) == 0, q.Add(x.in, x))
				all, plain[asks] = append(all, x), append(plain[asks], x)
			}
			requireSame(t, &q, plain)
		}
	}
}

// requireSame requires that a queue holds exactly some items.
func requireSame(t *testing.T, q *Queue[*item, string], plain map[string][]*item) {
	require.NoError(t, q.Check())
	buckets := 0
	for b := range q.Buckets() {
		buckets++
		want := slices.SortedFunc(slices.Values(plain[b.Asks]), Compare)
		require.Equal(t, want, slices.Collect(b.Items()))
		require.Same(t, want[0], b.Head())
		require.Contains(t, slices.Concat(q.Under("all"), q.Under(b.Asks)), b)
	}
	for _, items := range plain {
		if len(items) > 0 {
			buckets--
		}
	}
	require.Zero(t, buckets)
	require.GreaterOrEqual(t, q.Len(), buckets)
}

// TestFiledUnderTheRarest checks that a bucket is found under the text with the fewest buckets,
// and under "" if it asks for none.
func TestFiledUnderTheRarest(t *testing.T) {
	q := New[*item, string](0)
	for i, under := range [][]string{{"go"}, {"go", "rust"}, {"go", "rust"}, nil} {
		key := AppendKey(nil, fmt.Sprint(i))
		q.Add(q.Open(key, under, ""), &item{created: int64(i)})
	}
	require.Len(t, q.Under("go"), 2, "the first text is taken when both have as many")
	require.Len(t, q.Under("rust"), 1)
	require.Len(t, q.Under(""), 1)
}

// TestList checks the order of a list, and that an item is in it once.
func TestList(t *testing.T) {
	one, two, three := &item{created: 1}, &item{created: 2}, &item{created: 3}
	l := List[*item]{}.With(one).With(three).With(two).With(two)
	require.Equal(t, List[*item]{one, two, three}, l)
	require.Equal(t, List[*item]{three}, l.After(two.Created()))
	require.Equal(t, List[*item]{one, three}, l.Without(two))
	require.True(t, Before(&item{created: 9}, &item{urgency: 1}))
	require.Empty(t, List[*item]{one}.Without(one))
	require.Len(t, List[*item]{one}.Without(two), 1)
}

// moment is an element of a Timeline of a test.
type moment struct {
	at     time.Time
	number int64
}

func (m moment) Date() (time.Time, int64) { return m.at, m.number }

// TestTimeline checks the order of a Timeline, and the earliest entry after a time.
func TestTimeline(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	early, late, later := moment{noon, 1}, moment{noon.Add(time.Second), 2}, moment{noon.Add(time.Second), 3}
	var l Timeline[moment]
	for _, m := range []moment{later, early, late, early} {
		l.Add(m)
	}
	require.Equal(t, Timeline[moment]{early, late, later}, l)
	require.Equal(t, noon, l.First(noon.Add(-time.Hour)))
	require.Equal(t, noon.Add(time.Hour), l.First(noon.Add(time.Hour)))
	l.Drop(early)
	l.Drop(early)
	require.Equal(t, Timeline[moment]{late, later}, l)
}

// Different lists of texts have different keys, although they are the same when they are joined.
func TestKeysOfTexts(t *testing.T) {
	keyOf := func(texts ...string) string {
		var key []byte
		for _, text := range texts {
			key = AppendKey(key, text)
		}
		return string(key)
	}
	seen := make(map[string][]string)
	for _, texts := range [][]string{
		nil, {""}, {"", ""}, {"a"}, {"a", ""}, {"", "a"}, {"ab"}, {"a", "b"}, {"\x01a"}, {"\x01", "a"}, {"a\x01b"}, {strings.Repeat("a", 300)},
		{strings.Repeat("a", 299), "a"},
	} {
		require.Nil(t, seen[keyOf(texts...)], "%q", texts)
		seen[keyOf(texts...)] = append([]string{}, texts...)
	}
}

// TestDistinct checks that each text is kept once, at its first place, for few texts and for
// many.
func TestDistinct(t *testing.T) {
	for _, size := range []int{0, 1, few - 1, few, few + 1, 10 * few} {
		var d Set
		var expected []string
		for i := range size {
			expected = append(expected, fmt.Sprint(i))
			for range 3 {
				d.Add(fmt.Sprint(i))
				d.Add(fmt.Sprint(i / 2))
			}
		}
		require.Equal(t, expected, d.Texts)
	}
}
