package eventlog

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// typical returns a fact of the usual size: some 330 bytes, one in four with a key.
func typical(n int) wire.Record {
	r := fact(n)
	r.To, r.Payload = "orchestrator", fmt.Appendf(nil, `{"task":"%08d","title":"%s"}`, n, strings.Repeat("do it ", 35))
	if n%4 == 0 {
		r.Key = fmt.Sprintf("%x", uint64(n)*0x9e3779b97f4a7c15)
	}
	return r
}

// BenchmarkAppend appends batches, alternating with the same rows through the bare statement,
// without checks and chain. x-floor is the ratio.
func BenchmarkAppend(b *testing.B) {
	for _, durable := range []bool{true, false} {
		for _, n := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("durable=%v/batch=%d", durable, n), func(b *testing.B) {
				ours := mustOpen(b, Options{Path: filepath.Join(b.TempDir(), "ours.db"), Durable: durable})
				bare := mustOpen(b, Options{Path: filepath.Join(b.TempDir(), "bare.db"), Durable: durable})
				var spent, floor time.Duration
				last := int64(0)
				batch, at := make([]wire.Record, n), []byte(noon.Format(atLayout))
				b.ReportAllocs()
				for b.Loop() {
					for i := range batch {
						batch[i] = typical(int(last) + i + 1)
					}
					began := time.Now()
					require.NoError(b, ours.Append(b.Context(), last, batch))
					between := time.Now()
					require.NoError(b, insertBare(bare, last, at, batch))
					spent, floor = spent+between.Sub(began), floor+time.Since(between)
					last += int64(n)
				}
				report(b, spent, floor, float64(last))
			})
		}
	}
}

func report(b *testing.B, spent, floor time.Duration, rows float64) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(spent)/rows, "ns/row")
	b.ReportMetric(float64(floor)/rows, "floor-ns/row")
	b.ReportMetric(float64(spent)/float64(floor), "x-floor")
}

func insertBare(l *SQLite, last int64, at []byte, batch []wire.Record) error {
	if err := l.begin.run(nil); err != nil {
		return err
	}
	s := l.insert.(ncrucesStmt)
	for i := range batch {
		r := &batch[i]
		s.BindInt64(1, last+int64(i)+1)
		s.BindRawText(2, at)
		s.BindText(3, r.From)
		s.BindText(4, r.To)
		s.BindNull(5)
		s.BindText(6, r.Kind)
		s.BindRawText(7, r.Payload)
		s.BindNull(8)
		if s.BindNull(9); r.Key != "" {
			s.BindText(9, r.Key)
		}
		s.BindText(10, r.Correlation)
		s.BindInt64(11, 12345678)
		if err := s.Exec(); err != nil {
			return err
		}
	}
	return l.commit.run(nil)
}

// BenchmarkRecords reads 100,000 facts from a log just opened. It alternates with stepping
// through the same rows (x-scan) and with reading each of their columns (x-columns).
func BenchmarkRecords(b *testing.B) {
	const n = 100_000
	path := filepath.Join(b.TempDir(), "events.db")
	l := mustOpen(b, Options{Path: path})
	for last := int64(0); last < n; last = l.Last() {
		batch := make([]wire.Record, 1000)
		for i := range batch {
			batch[i] = typical(int(last) + i + 1)
		}
		require.NoError(b, l.Append(b.Context(), last, batch))
	}
	var spent, scan, looked time.Duration
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		l, err := Open(b.Context(), Options{Path: path, ReadOnly: true})
		require.NoError(b, err)
		rows := 0
		for _, err := range l.Records(b.Context(), 0) {
			if err != nil {
				b.Fatal(err)
			}
			rows++
		}
		require.Equal(b, n, rows)
		require.NoError(b, l.Close())
		spent += time.Since(began)
		scan += scanBare(b, path, func(ncrucesStmt) {})
		looked += scanBare(b, path, func(s ncrucesStmt) {
			for i := range 11 {
				if i == 0 || i == 7 || i == 10 {
					s.ColumnInt64(i)
				} else {
					s.ColumnRawText(i)
				}
			}
		})
	}
	report(b, spent, scan, float64(n*b.N))
	b.ReportMetric(0, "x-floor")
	b.ReportMetric(float64(spent)/float64(scan), "x-scan")
	b.ReportMetric(float64(spent)/float64(looked), "x-columns")
}

func scanBare(b *testing.B, path string, see func(ncrucesStmt)) time.Duration {
	began := time.Now()
	c, err := ncruces(path, true)
	require.NoError(b, err)
	rows, err := c.prepare("SELECT " + columns + " FROM events ORDER BY seq")
	require.NoError(b, err)
	for rows.(ncrucesStmt).Step() {
		see(rows.(ncrucesStmt))
	}
	require.NoError(b, rows.close())
	require.NoError(b, c.close())
	return time.Since(began)
}

// BenchmarkFind searches a log of 100,000 facts. One in ten is mail to one of a hundred agents.
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
