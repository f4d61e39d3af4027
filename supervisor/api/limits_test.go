package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/identity"
)

func TestLimits(t *testing.T) {
	var l limits
	for range 3 {
		require.Zero(t, late(&l, 3, "a", noon), "as many at once as a second")
	}
	require.InDelta(t, time.Second/3, late(&l, 3, "a", noon), float64(time.Millisecond))
	require.Zero(t, late(&l, 3, "b", noon), "each has its own")
	require.NotZero(t, late(&l, 3, "a", noon.Add(300*time.Millisecond)), "what was refused has not counted, and nor has it helped")
	require.Zero(t, late(&l, 3, "a", noon.Add(400*time.Millisecond)))
}

// TestLimitsAreBounded checks that made-up names use bounded memory, and that earlier callers
// keep their buckets.
func TestLimitsAreBounded(t *testing.T) {
	var l limits
	for i := range 2 * maxBuckets {
		late(&l, 1, fmt.Sprint(i), noon)
	}
	require.Len(t, l.buckets, maxBuckets)
	require.NotZero(t, late(&l, 1, "0", noon))
	require.NotZero(t, late(&l, 1, "one more", noon), "those beyond have one bucket")
	require.Zero(t, late(&l, 1, "one more", noon.Add(time.Minute)))
	require.Len(t, l.buckets, 1, "who asked for nothing for long is forgotten")
}

func TestBucketNames(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:80":         "192.0.2.1",
		"[::ffff:192.0.2.1]:1": "192.0.2.1",
		"[2001:db8::1]:80":     "2001:db8::/64",
		"[2001:db8::2]:80":     "2001:db8::/64",
		"[fe80::1%eth0]:80":    "fe80::/64",
		"@":                    "@",
		"pipe:1":               "pipe",
	} {
		require.Equal(t, want, bucketName(identity.Caller{}, address))
	}
	one := bucketName(identity.Caller{Kind: identity.Agent, Name: "a", Run: "1"}, "192.0.2.1:80")
	require.Equal(t, one, bucketName(identity.Caller{Kind: identity.Agent, Name: "a"}, "@"), "whichever of its credentials it shows")
	require.NotEqual(t, one, bucketName(identity.Caller{Kind: identity.Operator, Name: "a"}, "@"))
}

func late(l *limits, rate int, name string, now time.Time) time.Duration {
	late, _ := l.reserve(rate, name, now)
	return late
}

// TestPacedRequests checks that a caller that waits for each answer is not refused, and that of
// many requests at once all but one are.
func TestPacedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l limits
		began := time.Now()
		for range 500 {
			require.Zero(t, l.take(t.Context(), 200, "a"))
		}
		require.InDelta(t, 1500*time.Millisecond, time.Since(began), float64(10*time.Millisecond))
		var all sync.WaitGroup
		var refused atomic.Int64
		for range 300 {
			all.Go(func() {
				if l.take(t.Context(), 200, "b") > 0 {
					refused.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 99, refused.Load())
	})
}

// Rows: A-164, K-06.
func TestTooManyRequests(t *testing.T) {
	door := func() *API {
		return &API{
			Rate:       1,
			Operations: map[string]Operation{"poll-messages": Do(func(context.Context, struct{}) (any, error) { return "seen", nil })},
			Callers:    &fakeCallers{agent: func(key string) (name string, ok bool) { return key, key != "orc_wrong" }},
		}
	}
	ask := func(t *testing.T, c *http.Client, key string) (int, string) {
		t.Helper()
		return asks{client: c, header: http.Header{"X-Api-Key": {key}}}.post(t, "operations/poll-messages", "{}")
	}
	visitAs(t, identity.Caller{}, door(), func(t *testing.T, c *http.Client, _ *pipes) {
		for _, want := range []struct {
			key    string
			status int
		}{{"orc_a", 200}, {"orc_a", 429}, {"orc_a", 429}, {"orc_b", 200}, {"orc_wrong", 401}, {"orc_wrong", 429}, {"orc_b", 429}} {
			status, text := ask(t, c, want.key)
			require.Equal(t, want.status, status, "%s: %s", want.key, text)
		}
		_, text := ask(t, c, "orc_a")
		require.Contains(t, text, `"code":"limited"`)
		require.Contains(t, text, "too many requests: http.rate = 1 a second")
		require.Regexp(t, `"retry_after_ms":\d+`, text)
		<-time.After(time.Second)
		status, _ := ask(t, c, "orc_a")
		require.Equal(t, http.StatusOK, status, "after what Retry-After says")
	})
	visitAs(t, identity.Caller{Kind: identity.Agent, Name: "a", Run: "1"}, door(), func(t *testing.T, c *http.Client, _ *pipes) {
		for _, want := range []int{200, 429} {
			status, _ := asks{client: c}.post(t, "operations/poll-messages", "{}")
			require.Equal(t, want, status, "an agent has its measure at every door")
		}
	})
	known := door()
	known.Signer = signer(t)
	visitAs(t, identity.Caller{}, known, func(t *testing.T, c *http.Client, _ *pipes) {
		token, err := known.Signer.Sign(Claims{ID: "t", Subject: "ann", Role: wire.PersonAdmin, ExpiresAt: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		for _, want := range []int{200, 429} {
			status, _ := asks{client: c, header: http.Header{"Authorization": {"Bearer " + token}}}.post(t, "operations/poll-messages", "{}")
			require.Equal(t, want, status, "so has an operator from elsewhere")
		}
	})
	visitAs(t, identity.Caller{}, door(), func(t *testing.T, c *http.Client, _ *pipes) {
		for _, want := range []int{401, 429} {
			status, _ := asks{client: c}.post(t, "operations/poll-messages", "{}")
			require.Equal(t, want, status, "who is not known has it by the address")
		}
	})
	visitAs(t, identity.Caller{Kind: identity.Operator, Wide: true}, door(), func(t *testing.T, c *http.Client, _ *pipes) {
		for range 20 {
			status, _ := asks{client: c}.post(t, "operations/poll-messages", "{}")
			require.Equal(t, http.StatusOK, status, "an operator at its own socket waits for nothing")
		}
	})
}

func TestRetryAfter(t *testing.T) {
	d := &API{Rate: 1, Callers: &fakeCallers{do: new(hearsay).do}}
	visitAs(t, identity.Caller{}, d, func(t *testing.T, c *http.Client, _ *pipes) {
		limited := 0
		for range 20 {
			response, err := c.Get("http://x/health")
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			if response.StatusCode == http.StatusTooManyRequests {
				limited++
				require.Equal(t, "1", response.Header.Get("Retry-After"))
			}
		}
		require.Equal(t, 19, limited, "also where nobody is asked who")
	})
}
