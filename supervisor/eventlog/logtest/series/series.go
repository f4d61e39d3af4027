// Package series has the facts that the tests of logs write, and reads them back. It does not
// import the package eventlog, so that the tests in that package can use it as well.
package series

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// A Reader is the reading half of a log.
type Reader interface {
	Records(ctx context.Context, after int64) iter.Seq2[wire.Record, error]
	Find(ctx context.Context, s wire.Search) iter.Seq2[wire.Record, error]
}

// Noon is the time of the first fact.
var Noon = time.Date(2026, 11, 2, 12, 0, 0, 250e6, time.UTC)

// Fact returns the n-th fact of a series of different facts.
func Fact(n int) wire.Record {
	return wire.Record{
		At: Noon.Add(time.Duration(n) * time.Millisecond), From: fmt.Sprint("agent-", n%7), Kind: "task.created",
		Payload: fmt.Appendf(nil, `{"task":%d}`, n), Correlation: fmt.Sprint("c-", n),
	}
}

// Facts returns the n facts of the series after number last.
func Facts(last int64, n int) []wire.Record {
	batch := make([]wire.Record, n)
	for i := range batch {
		batch[i] = Fact(int(last) + i + 1)
	}
	return batch
}

// Keyed returns batch n of a sender. Its facts have the keys n-0, n-1 and so on.
func Keyed(from string, n, size int) []wire.Record {
	batch := make([]wire.Record, size)
	for i := range batch {
		batch[i] = wire.Record{At: Noon, From: from, Kind: "task.created", Key: fmt.Sprintf("%d-%d", n, i), Payload: fmt.Appendf(nil, `{"n":%d}`, n)}
	}
	return batch
}

// Letter returns the n-th fact of the series, as mail.
func Letter(n int, to string) wire.Record {
	r := Fact(n)
	r.To, r.Topic, r.Kind = to, "work", "mail.sent"
	return r
}

// AsKept returns a fact as a log returns it.
func AsKept(r wire.Record, seq int64) wire.Record {
	r.Seq = seq
	r.At = r.At.UTC().Truncate(time.Millisecond)
	if len(r.Payload) == 0 {
		r.Payload = nil
	}
	return r
}

// Numbered returns a batch as the log returns it.
func Numbered(last int64, batch []wire.Record) []wire.Record {
	kept := make([]wire.Record, len(batch))
	for i, r := range batch {
		kept[i] = AsKept(r, last+int64(i)+1)
	}
	return kept
}

// All reads the facts behind number after.
func All(t testing.TB, l Reader, after int64) []wire.Record {
	t.Helper()
	var found []wire.Record
	for r, err := range l.Records(t.Context(), after) {
		require.NoError(t, err)
		found = append(found, r)
	}
	return found
}

// Found returns all results of a search.
func Found(t testing.TB, l Reader, s wire.Search) []wire.Record {
	t.Helper()
	var all []wire.Record
	for r, err := range l.Find(t.Context(), s) {
		require.NoError(t, err)
		all = append(all, r)
	}
	return all
}

// Seqs returns the numbers of facts.
func Seqs(records []wire.Record) []int64 {
	all := []int64{}
	for _, r := range records {
		all = append(all, r.Seq)
	}
	return all
}

// Sift defines Find without an index: it scans everything.
func Sift(all []wire.Record, s wire.Search) (wanted []wire.Record) {
	for _, r := range all {
		mail := r.Topic != "" && r.To != "" &&
			(len(s.To) == 0 || slices.Contains(s.To, r.To)) &&
			r.Seq > s.After && (s.Until == 0 || r.Seq <= s.Until)
		if s.Key == "" && mail || s.Key != "" && r.Key == s.Key && r.From == s.From {
			wanted = append(wanted, r)
		}
	}
	if s.Backward {
		slices.Reverse(wanted)
	}
	return wanted
}

// Searches returns one search of each kind.
func Searches(kept []wire.Record) []wire.Search {
	return []wire.Search{
		{}, {Backward: true}, {After: 100, Until: 800}, {To: []string{"agent-1"}}, {To: []string{"agent-1", "agent-4"}, Backward: true},
		{To: []string{"nobody"}}, {From: kept[2].From, Key: kept[2].Key},
	}
}

// Rounds returns how often to repeat a random test: n times, or n/8 under the race detector,
// where each round is several times slower. Races show early; rare cases are left to the run
// without it.
func Rounds(n int) int {
	build, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return n / 8
	}
	return n
}
