package api

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// listenerInfo is what a listener knows of all who come in by it.
type listenerInfo struct {
	caller Caller          // who one is that shows no credential
	visit  *runSocket      // whose own socket it is; nil: of no run
	hosts  map[string]bool // by which names it may be asked for; nil: it has none
}

// entranceKey is under what a context has its entrance.
type entranceKey struct{}

// enterBy is the context of all that comes in by a listener. One that does not
// say who comes in by it makes every caller Unknown.
func enterBy(l net.Listener) context.Context {
	e := new(listenerInfo)
	if known, ok := l.(interface{ entrance() *listenerInfo }); ok {
		e = known.entrance()
	}
	return context.WithValue(context.Background(), entranceKey{}, e)
}

func entranceOf(ctx context.Context) *listenerInfo {
	if e, ok := ctx.Value(entranceKey{}).(*listenerInfo); ok {
		return e
	}
	return new(listenerInfo)
}

// hostNames are the names by which a listener may be asked for: with a port, or
// without one for any.
func hostNames(hosts []string) map[string]bool {
	names := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		names[hostName(host)] = true
	}
	return names
}

// hostName spells a name in the one way in which it is looked up.
func hostName(host string) string {
	if bare, ok := strings.CutPrefix(host, "["); ok {
		if bare, ok = strings.CutSuffix(bare, "]"); ok {
			host = bare
		}
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// answersTo reports whether a request asks for this listener by one of its names.
// A page in a browser that has had its own name lead here would not; no credential
// name stands behind the number itself.
func (e *listenerInfo) answersTo(r *http.Request) bool {
	if e.hosts == nil {
		return true
	}
	name := r.Host
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		name = host
	}
	if e.hosts[hostName(name)] || e.hosts[hostName(r.Host)] {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	asked, err := netip.ParseAddr(hostName(name))
	return ok && err == nil && asked.Unmap() == local.AddrPort().Addr().Unmap()
}
