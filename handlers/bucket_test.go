package handlers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
			b := Bucket{Rate: test.rate, Burst: test.burst}
			taken, now := 0, beginning
			for range test.messages {
				if b.Take(now) {
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
// Rows: B-79.
func TestBucketAndClocks(t *testing.T) {
	b := Bucket{Rate: 10, Burst: 2}
	require.True(t, b.Take(beginning))
	require.True(t, b.Take(beginning.Add(-time.Hour)))
	require.False(t, b.Take(beginning.Add(-time.Hour)))
	require.True(t, b.Take(beginning.Add(-time.Hour+100*time.Millisecond)))
	require.True(t, b.Take(beginning.Add(time.Hour)))
	require.True(t, b.Take(beginning.Add(time.Hour)))
	require.False(t, b.Take(beginning.Add(time.Hour)))
}
