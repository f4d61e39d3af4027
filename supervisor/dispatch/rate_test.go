package dispatch

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/line"
)

// TestBucket checks how many messages a bucket allows.
//
// Rows: B-79, T-24.
func TestBucket(t *testing.T) {
	for _, test := range []struct {
		name        string
		rate, burst float64
		gap         time.Duration // between two messages
		messages    int
		taken       int
	}{
		{"a flood", 100, 100, 0, 300, 100},
		{"a flood over a second", 100, 100, time.Second / 300, 300, 199},
		{"just at the rate", 100, 100, 10 * time.Millisecond, 10_000, 10_000},
		{"just above the rate", 100, 10, 5 * time.Millisecond, 2000, 1009},
		{"one at a time", 1, 1, time.Second, 5, 5},
		{"half a second apart", 1, 1, time.Second / 2, 6, 3},
		{"nothing is allowed", 1, 0, time.Second, 5, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := bucket{rate: test.rate, burst: test.burst}
			taken, now := 0, time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
			for range test.messages {
				if b.take(now) {
					taken++
				}
				now = now.Add(test.gap)
			}
			require.Equal(t, test.taken, taken)
		})
	}
}

// TestBucketAndClocks checks that a clock set back does not block the caller, and that one set
// ahead gives at most a full bucket.
//
// Rows: B-79, S-05.
func TestBucketAndClocks(t *testing.T) {
	large := bucket{rate: 10, burst: 2}
	require.Zero(t, large.wait(noonToday, 0))
	large.spend(20)
	require.Equal(t, 1800*time.Millisecond, large.wait(noonToday, 0), "a large message is followed by a wait")
	require.Zero(t, large.wait(noonToday.Add(1800*time.Millisecond), 0))
	b := bucket{rate: 10, burst: 2}
	require.True(t, b.take(noonToday))
	require.True(t, b.take(noonToday.Add(-time.Hour)))
	require.False(t, b.take(noonToday.Add(-time.Hour)))
	require.True(t, b.take(noonToday.Add(-time.Hour+100*time.Millisecond)))
	require.True(t, b.take(noonToday.Add(time.Hour)))
	require.True(t, b.take(noonToday.Add(time.Hour)))
	require.False(t, b.take(noonToday.Add(time.Hour)))
}

// TestPace checks that an agent that waits for each answer is never refused, that its pace is the rate, and
// that lines of the maximum length only make it wait.
//
// Rows: B-79, T-24.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, Options{Record: newLedger()})
		a := s.enter("a", stdin.Limits{Messages: 1000, Bytes: 1 << 20})
		a.LimitBytes(1<<20, 2<<20)
		a.listen()
		began := time.Now()
		for n := range 400 {
			a.says(query(n, ""))
		}
		require.Len(t, a.lines(), 400)
		for _, answer := range a.lines() {
			require.NotContains(t, answer, "rate_limited")
		}
		require.InDelta(t, 3*time.Second, time.Since(began), float64(10*time.Millisecond), "a hundred at once, then one each 10 ms")

		<-time.After(time.Minute)
		began = time.Now()
		long := strings.Repeat("x", 2<<20-200)
		for n := range 6 {
			a.says(query(n, long))
			a.says(query(n, ""))
		}
		require.Len(t, a.lines(), 412)
		for _, answer := range a.lines() {
			require.NotContains(t, answer, "rate_limited")
		}
		require.Less(t, time.Since(began), 12*maxPace)
		s.Close()
	})
}

// TestPiledUp checks that a burst is refused but for its first hundred, with the setting and the time to wait,
// and that a message that comes after that time is taken.
//
// Rows: B-79, T-24.
func TestPiledUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, Options{Record: newLedger()})
		a := s.enter("a", stdin.Limits{Messages: 1000, Bytes: 1 << 20})
		a.listen()
		var burst []string
		for n := range 300 {
			burst = append(burst, query(n, ""))
		}
		a.says(burst...)
		require.Len(t, a.lines(), 300)
		refused := 0
		for _, answer := range a.lines() {
			if strings.Contains(answer, "rate_limited") {
				require.Contains(t, answer, `"message":"too many messages: protocol.rate = 100 a second. Wait 10 ms"`)
				require.Contains(t, answer, `"setting":"protocol.rate"`)
				require.Contains(t, answer, `"retry_after_ms":10`)
				refused++
			}
		}
		require.Equal(t, 200, refused)
		<-time.After(10 * time.Millisecond)
		a.says(query(301, ""))
		require.NotContains(t, a.lines()[300], "rate_limited")
		s.Close()
	})
}

// TestBytesPiledUp checks the limit of bytes. Its refusal has the words of the configuration.
//
// Rows: B-79, T-24.
func TestBytesPiledUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, Options{Record: newLedger()})
		a := s.enter("a", stdin.Limits{Messages: 1000, Bytes: 1 << 20})
		a.LimitBytes(8<<20, 1<<20)
		a.listen()
		long := strings.Repeat("x", 1<<20-200)
		a.says(query(1, long), query(2, long), query(3, ""))
		require.Len(t, a.lines(), 3)
		refused := strings.Join(a.lines(), "\n")
		require.Contains(t, refused, `"message":"too many bytes: limits.rate_bytes = 8 MiB a second. Wait 125 ms"`)
		require.Contains(t, refused, `"retry_after_ms":125`)
		require.Equal(t, 1, strings.Count(refused, "rate_limited"))
		s.Close()
	})
}

// TestVitalEvents checks that events that end tasks or count against budgets are not dropped with the rest.
func TestVitalEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, Options{Record: newLedger()})
		s.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "a"}}})
		a := s.enter("a", stdin.Limits{Messages: 1000, Bytes: 1 << 20})
		a.listen()
		var flood []string
		for n := range 200 {
			flood = append(flood, telling(n, "question", `{"question":"why?"}`))
		}
		for n := range 20 {
			flood = append(flood, telling(1000+n, "error", fmt.Sprintf(`{"error":"fault %d"}`, n)), telling(2000+n, "usage", `{"input":1,"output":1}`))
		}
		a.says(flood...)
		count := map[string]int{}
		for _, r := range s.taken() {
			count[r.Kind]++
		}
		require.Equal(t, 100, count[events.QuestionAsked])
		require.Equal(t, 20, count[events.TaskTrouble])
		require.Equal(t, 20, count[events.AgentUsage])
		s.Close()
	})
}

// TestOverlongLine checks that the refusal of an oversized line names the limit, in bytes.
func TestOverlongLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, Options{Record: newLedger()})
		a := s.enter("a", stdin.Limits{Messages: 1000, Bytes: 1 << 20})
		a.LimitBytes(0, 16<<20)
		a.listen()
		require.False(t, a.Take(line.Line{Text: []byte(query(1, "xxx")), Size: 16<<20 + 1, Cut: true}, time.Now()))
		a.Send(time.Now())
		require.Len(t, a.lines(), 1)
		require.Contains(t, a.lines()[0], "its line has 16777217 bytes, more than protocol.max_line = 16 MiB (16777216 bytes)")
		require.Contains(t, a.lines()[0], `"limit":16777216`)
		require.Contains(t, a.lines()[0], `"bytes":16777217`)
		s.Close()
	})
}

func query(n int, filling string) string {
	return fmt.Sprintf(`{"type":"request:query-agents","id":"%d","timestamp":%q,"payload":{},"x":%q}`, n, noon, filling)
}

func telling(n int, name, payload string) string {
	return fmt.Sprintf(`{"type":"event:%s","id":"e%d","timestamp":%q,"payload":%s}`, name, n, noon, payload)
}
