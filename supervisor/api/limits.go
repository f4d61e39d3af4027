package api

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// mostBuckets is how many callers are counted one by one. Those beyond are
// counted together, so that invented addresses cost no memory.
const mostBuckets = 4096

// limits counts the requests of callers: each may make as many a second as the
// rate says, and as many at once.
type limits struct {
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	rest    *rate.Limiter // of those beyond
	swept   time.Time
}

// take counts a request. It returns how long its caller should wait before the
// next try; 0: it is granted. One that is not granted does not count.
func (l *limits) take(perSecond int, name string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	reserved := l.bucket(perSecond, name, now).ReserveN(now, 1)
	late := reserved.DelayFrom(now)
	if late > 0 {
		reserved.CancelAt(now)
	}
	return late
}

func (l *limits) bucket(perSecond int, name string, now time.Time) *rate.Limiter {
	if found := l.buckets[name]; found != nil {
		return found
	}
	fresh := rate.NewLimiter(rate.Limit(perSecond), perSecond)
	if l.buckets == nil {
		l.buckets, l.rest = make(map[string]*rate.Limiter), rate.NewLimiter(rate.Limit(perSecond), perSecond)
	}
	if len(l.buckets) >= mostBuckets && now.Sub(l.swept) >= time.Second {
		l.sweep(now)
	}
	if len(l.buckets) >= mostBuckets {
		return l.rest
	}
	l.buckets[name] = fresh
	return fresh
}

// sweep forgets those who have asked for nothing for so long that they are as
// good as new.
func (l *limits) sweep(now time.Time) {
	l.swept = now
	for name, bucket := range l.buckets {
		if bucket.TokensAt(now) >= float64(bucket.Burst()) {
			delete(l.buckets, name)
		}
	}
}

// bucketName is under what a caller is counted: its name, whichever of its
// credentials it shows, and without one its address. Of an address of version 6
// only the part is taken that is not its owner's to choose.
func bucketName(c Caller, address string) string {
	if c.Kind != Unknown {
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
