package eventlog

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// BenchmarkFind searches a log of 100,000 facts, of which one in ten is mail to
// one of a hundred agents.
func BenchmarkFind(b *testing.B) {
	l := mustOpen(b, Options{Path: filepath.Join(b.TempDir(), "events.db")})
	for l.Last() < 100_000 {
		batch := make([]wire.Record, 1000)
		for i := range batch {
			n := int(l.Last()) + i + 1
			if batch[i] = typical(n); n%10 == 0 {
				batch[i].Topic, batch[i].To = "work", fmt.Sprint("agent-", n/10%100)
			}
		}
		require.NoError(b, l.Append(b.Context(), l.Last(), batch))
	}
	keyed := typical(50_000)
	for _, c := range []struct {
		name   string
		search wire.Search
		want   int
	}{
		{"a page of a mailbox", wire.Search{To: []string{"agent-7"}, Until: 100_000}, 100},
		{"a page of five mailboxes", wire.Search{To: []string{"agent-1", "agent-2", "agent-3", "agent-4", "agent-5"}, After: 50_000}, 100},
		{"the newest letter of a mailbox", wire.Search{To: []string{"agent-7"}, Backward: true}, 1},
		{"the last 100 of all mail", wire.Search{Backward: true}, 100},
		{"the next 100 of all mail", wire.Search{After: 50_000}, 100},
		{"all mail", wire.Search{}, 10_000},
		{"a key", wire.Search{From: keyed.From, Key: keyed.Key}, 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for _, err := range l.Find(b.Context(), c.search) {
					if err != nil {
						b.Fatal(err)
					}
					if n++; n == c.want {
						break
					}
				}
				if n != c.want {
					b.Fatal(n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*c.want), "µs/row")
		})
	}
}
