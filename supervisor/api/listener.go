package api

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// listenerInfo holds what a listener determines about its callers.
type listenerInfo struct {
	caller Caller          // the caller if a request has no credential
	visit  *runSocket      // the run whose socket it is, or nil
	hosts  map[string]bool // accepted host names; nil: all
}

// entranceKey is the context key of a listenerInfo.
type entranceKey struct{}

// enterBy returns the base context of requests at a listener. If the listener has no entrance
// method, callers are Unknown.
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

// hostNames returns the accepted values of the Host header. A name without a port accepts any
// port.
func hostNames(hosts []string) map[string]bool {
	names := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		names[hostName(host)] = true
	}
	return names
}

// hostName returns the normalized form of a host name.
func hostName(host string) string {
	if bare, ok := strings.CutPrefix(host, "["); ok {
		if bare, ok = strings.CutSuffix(bare, "]"); ok {
			host = bare
		}
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// answersTo reports whether the Host of a request is a name of this listener. The check stops
// DNS rebinding: a web page whose name resolves to this address is refused.
func (l *listenerInfo) answersTo(r *http.Request) bool {
	if l.hosts == nil {
		return true
	}
	name := r.Host
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		name = host
	}
	if l.hosts[hostName(name)] || l.hosts[hostName(r.Host)] {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	asked, err := netip.ParseAddr(hostName(name))
	return ok && err == nil && asked.Unmap() == local.AddrPort().Addr().Unmap()
}
