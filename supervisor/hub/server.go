package hub

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"

	"orchestrator/supervisor/api"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/web"
)

// A Server serves an API at the sockets of a place and at its listeners.
type Server struct {
	*api.Server
	place *Place
	stop  func() // nil: it does not serve yet
}

// NewServer returns a Server that does not serve yet.
func NewServer(p *Place) *Server { return &Server{place: p} }

// Serve begins to serve a handler at the socket and at listeners.
func (s *Server) Serve(handler http.Handler, listeners ...net.Listener) {
	s.Server = api.NewServer(handler, s.place.Log)
	s.place.Runs.Answer = s.Await
	serving, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.Server.Serve(serving, append(listeners, s.place.socket)...)
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		<-served
	})
}

// Stop ends the API. It may be called more than once.
func (s *Server) Stop() {
	if s.stop != nil {
		s.stop()
	}
}

// listeners are the part of a hub with the TCP listeners of its API.
type listeners struct {
	place  *Place
	http   config.HTTP
	shared bool           // the hubs share a key
	open   []net.Listener // in the order of http.Listen
	urls   []string
}

// A ListenError reports a listener that cannot be opened, or a key that cannot be read: then Address is empty.
type ListenError struct {
	Address string
	Err     error
}

func (e *ListenError) Error() string { return e.Err.Error() }
func (e *ListenError) Unwrap() error { return e.Err }

// Start opens the listeners.
func (l *listeners) Start(context.Context) error {
	for _, address := range l.http.Listen {
		one, err := l.place.Before.listen(address, api.TCP{Hosts: l.http.Hosts, View: l.place.viewHost(), Certificate: l.http.Certificate, Key: l.http.Key})
		if err != nil {
			l.Stop()
			return &ListenError{address, err}
		}
		l.open = append(l.open, one)
		l.urls = append(l.urls, one.URL())
	}
	if len(l.urls) == 0 {
		return nil
	}
	l.place.Runs.URL = l.urls[0]
	if l.shared {
		return nil
	}
	if err := l.place.signer.Ready(); err != nil {
		l.Stop()
		return &ListenError{"", err}
	}
	return nil
}

// Stop closes the listeners.
func (l *listeners) Stop() {
	for _, one := range l.open {
		_ = one.Close()
	}
}

// reachable returns the URL of the first listener that other hubs can use to reach the hub with a name, or "".
// A listener at all addresses is reached by the name of the hub.
func reachable(node string, listeners []net.Listener) string {
	host, _, err := net.SplitHostPort(node)
	if err != nil {
		host = node
	}
	for _, l := range listeners {
		known, ok := l.(interface{ URL() string })
		at, tcp := l.Addr().(*net.TCPAddr)
		if !ok || !tcp {
			continue
		}
		u, err := url.Parse(known.URL())
		if err != nil {
			continue
		}
		if at.IP.IsUnspecified() {
			u.Host = net.JoinHostPort(host, strconv.Itoa(at.Port))
		}
		if !local(u.Hostname()) || local(host) {
			return u.String()
		}
	}
	return ""
}

// local reports whether a host is only reached from its own machine.
func local(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// viewHost returns the host name of the web view, or "" if browsers do not find it.
func (p *Place) viewHost() string {
	place, err := web.PlaceIn(p.Home.Dir)
	if err != nil {
		p.Log.Warn("the web view gets another address at the next start", "error", err)
	}
	return place.Host()
}

// openWeb returns the web view of the team with a name.
func (l *listeners) openWeb(team string, server *Server) *web.View {
	v := &web.View{
		SignIns: &api.SignIns{Team: team}, URLs: l.urls, Answer: func(own net.Listener) { server.Answer(own) }, Dir: l.place.Home.Dir,
		Listen: func(address string) (*api.TCPListener, error) {
			if l.place.Before != nil && l.place.Before.TCP[web.Address] != 0 {
				address = web.Address // it is open already
			}
			return l.place.Before.listen(address, api.TCP{Hosts: l.http.Hosts, View: l.place.viewHost()})
		},
	}
	for _, one := range l.open {
		if tcp, ok := one.(*api.TCPListener); ok {
			v.Views = append(v.Views, tcp.ViewURL())
		}
	}
	v.Clear()
	if err := v.SignIns.Open(filepath.Join(l.place.Home.Dir, "sign-ins.json")); err != nil {
		l.place.Log.Warn("all sign-ins to the web view have ended", "error", err)
	}
	return v
}
