package api

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"orchestrator/wire"
	"orchestrator/wire/identity"
)

// maxBuckets bounds the callers that are counted separately. Further callers share one limit,
// so that forged addresses cost no memory.
const maxBuckets = 4096

// limits counts requests. Each caller may make as many a second as the rate allows, and as many in one burst.
type limits struct {
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	rest    *rate.Limiter // of those beyond
	swept   time.Time
	paced   map[string]bool // callers with a request that waits for its turn
}

// maxPace is the longest time that a request waits for its turn.
const maxPace = 10 * time.Millisecond

// take counts a request and returns how long the caller has to wait, or 0 if it is granted. A
// refused request does not count. One request of a caller waits up to maxPace for its turn, so a caller that
// waits for each answer is not refused.
func (l *limits) take(ctx context.Context, perSecond int, name string) time.Duration {
	late, paced := l.reserve(perSecond, name, time.Now())
	if !paced {
		return late
	}
	select {
	case <-time.After(late):
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.paced, name)
	return 0
}

// reserve counts a request. If it has to wait, it is counted only if it may wait, and paced is true.
func (l *limits) reserve(perSecond int, name string, now time.Time) (late time.Duration, paced bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	reserved := l.bucket(perSecond, name, now).ReserveN(now, 1)
	late = reserved.DelayFrom(now)
	if late <= 0 {
		return 0, false
	}
	if late > maxPace || l.paced[name] {
		reserved.CancelAt(now)
		return late, false
	}
	if l.paced == nil {
		l.paced = make(map[string]bool)
	}
	l.paced[name] = true
	return late, true
}

func (l *limits) bucket(perSecond int, name string, now time.Time) *rate.Limiter {
	if found := l.buckets[name]; found != nil {
		return found
	}
	fresh := rate.NewLimiter(rate.Limit(perSecond), perSecond)
	if l.buckets == nil {
		l.buckets, l.rest = make(map[string]*rate.Limiter), rate.NewLimiter(rate.Limit(perSecond), perSecond)
	}
	if len(l.buckets) >= maxBuckets && now.Sub(l.swept) >= time.Second {
		l.sweep(now)
	}
	if len(l.buckets) >= maxBuckets {
		return l.rest
	}
	l.buckets[name] = fresh
	return fresh
}

// sweep removes callers after their bucket is full again.
func (l *limits) sweep(now time.Time) {
	l.swept = now
	for name, bucket := range l.buckets {
		if bucket.TokensAt(now) >= float64(bucket.Burst()) {
			delete(l.buckets, name)
		}
	}
}

// bucketName returns the name under which a caller is counted: its own name for any of its
// credentials, otherwise its address. Of an IPv6 address only the network part counts, because
// the host can choose the rest.
func bucketName(c identity.Caller, address string) string {
	if c.Kind != identity.Unknown {
		return fmt.Sprintf("%d %s", c.Kind, c.Name)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	ip = ip.Unmap()
	if network, err := ip.WithZone("").Prefix(64); err == nil && ip.Is6() {
		return network.String()
	}
	return ip.String()
}

// Bounds of the streams of a caller, so that one credential cannot exhaust the process. An operator at a socket
// has no bound for lines.
const (
	maxReaders = 16 // of mail
	maxStreams = 32 // of lines
)

// readers counts the open streams of one kind.
type readers struct {
	mu   sync.Mutex
	open map[holder]int
}

// holder identifies a caller, to count its streams together. Each run of an agent has its own count.
type holder struct {
	kind      identity.Kind
	name, run string
}

func holderOf(c identity.Caller) holder { return holder{kind: c.Kind, name: c.Name, run: c.Run} }

// enter counts a stream until leave is called.
func (r *readers) enter(c identity.Caller, most int) (leave func(), refusal *wire.Error) {
	h := holderOf(c)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[h] >= most {
		return nil, &wire.Error{
			Code: wire.CodeLimited, Message: fmt.Sprintf("%s has %d streams open", displayName(c), most),
			Hint: "Close unused streams",
		}
	}
	if r.open == nil {
		r.open = make(map[holder]int)
	}
	r.open[h]++
	return func() { r.leave(h) }, nil
}

func (r *readers) leave(h holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[h]--; r.open[h] == 0 {
		delete(r.open, h)
	}
}
