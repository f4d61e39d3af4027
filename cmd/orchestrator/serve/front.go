package serve

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/leadership"
	"orchestrator/supervisor/web"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// A front is the handler of the API of a hub: one that passes requests on while the hub stands by,
// and then that of the hub at work.
type front struct {
	now     atomic.Pointer[http.Handler]
	shared  atomic.Pointer[sharedStore] // nil while it is being opened
	missing atomic.Pointer[[]string]    // hubs for which opening it waits

	mu   sync.Mutex
	hub  leadership.Hub // the hub at work, as far as this one knows
	over chan struct{}  // closed when requests go elsewhere
}

func newFront() *front { return &front{over: make(chan struct{})} }

// set replaces the handler. What the former one has passed on is cut.
func (f *front) set(h http.Handler) {
	f.now.Store(&h)
	f.turn(leadership.Hub{})
}

// heard notes that another hub is at work.
func (f *front) heard(who leadership.Hub) { f.turn(who) }

// turn notes where requests go from now on.
func (f *front) turn(to leadership.Hub) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.over)
	f.hub, f.over = to, make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*f.now.Load()).ServeHTTP(w, r) }

// atWork returns the hub at work. The channel is closed when requests go elsewhere.
func (f *front) atWork() (name, url string, over <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hub.Name, f.hub.URL, f.over
}

// listHubs answers for a hub that stands by.
func (f *front) listHubs(own string) any {
	if s := f.shared.Load(); s != nil {
		return s.view()
	}
	reply := control.HostsReply{
		FormatVersion: wire.FormatVersion, Hosts: []control.HostView{}, Hubs: []control.HubView{{Name: own, State: "standing_by"}},
	}
	if missing := f.waits(); missing != "" {
		reply.NoQuorum = "it waits for other hubs: " + missing
	}
	return reply
}

// waits returns which hubs this one waits for before it can open the record, or "".
func (f *front) waits() string {
	missing := f.missing.Load()
	if missing == nil || len(*missing) == 0 || f.shared.Load() != nil {
		return ""
	}
	return strings.Join(*missing, ", ")
}

// openFront begins to answer for a hub that stands by.
func (t *Instance) openFront(own leadership.Hub, certificates *tls.Config, stop func()) *front {
	t.front = newFront()
	f := &api.Forwarder{
		Node: own.Name, Hub: t.front.atWork, Runs: t.runs, Signer: t.signer, Log: t.log, Again: t.front, Waits: t.front.waits,
		Hubs: func() any { return t.front.listHubs(own.Name) },
		Down: func(w http.ResponseWriter) {
			defer stop()
			e := wire.Event{At: object.Timestamp(time.Now()), Kind: events.OrchestratorStopped, Text: own.Name + " stands by no longer"}
			if text, err := object.Encode(e); err == nil {
				_, _ = w.Write(append(text, '\n'))
			}
		},
	}
	if certificates != nil {
		f.Roots = certificates.RootCAs
	}
	t.front.set(f.Handler())
	t.server = api.NewServer(t.front, t.log)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		t.server.Serve(ctx, append(t.remote, t.listener)...)
	}()
	t.shut = sync.OnceFunc(func() {
		cancel()
		<-served
	})
	return t.front
}

// reachable returns the URL of the first listener at which other hubs can reach the hub with a name, or "".
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
func (t *Instance) viewHost() string {
	place, err := web.PlaceIn(t.Home.Dir)
	if err != nil {
		t.log.Warn("the web view gets another address at the next start", "error", err)
	}
	return place.Host()
}

// signedIn tells people that somebody has signed in to the web view.
func (t *Instance) signedIn(name, role string) {
	t.Super.Report(&wire.Event{Kind: events.PersonSignedIn, Text: name + " has signed in to the web view as " + role})
}

// openWeb returns the web view of the team with a name.
func (t *Instance) openWeb(team string) *web.View {
	v := &web.View{
		SignIns: &api.SignIns{Team: team}, URLs: t.urls, Answer: func(l net.Listener) { t.server.Answer(l) }, Dir: t.Home.Dir,
		Listen: func(address string) (*api.TCPListener, error) {
			if t.before != nil && t.before.TCP[web.Address] != 0 {
				address = web.Address // it is open already
			}
			return t.before.listen(address, api.TCP{Hosts: t.http.Hosts, View: t.viewHost()})
		},
	}
	for _, l := range t.remote {
		if tcp, ok := l.(*api.TCPListener); ok {
			v.Views = append(v.Views, tcp.ViewURL())
		}
	}
	v.Clear()
	if err := v.SignIns.Open(filepath.Join(t.Home.Dir, "sign-ins.json")); err != nil {
		t.log.Warn("all sign-ins to the web view have ended", "error", err)
	}
	return v
}

// showWeb serves the listener of the web view that the program before this one has had, and prints the
// address of the web view if that is asked for.
func (t *Instance) showWeb(a *cli.App, asked bool) {
	var err error
	handed := t.before != nil && t.before.TCP[web.Address] != 0
	if (handed || t.web.SignIns.Any()) && len(t.urls) == 0 { // open pages go on
		_, err = t.web.Own()
	}
	if asked && err == nil {
		var url string
		if url, err = t.web.Show(); err == nil {
			a.Note("The web view is at %s (once, within two minutes; then: orchestrator ui)", url)
		}
	}
	if err != nil {
		t.log.Error("the web view has no address", "error", err)
	}
}

// noteWeb prints the address of the web view of an orchestrator in the background.
func noteWeb(a *cli.App) error {
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		text, err := a.Ask(ctx, d, "open-ui", control.OpenUIRequest{})
		if err != nil {
			return err
		}
		reply, err := client.Decode[control.OpenUIReply](text)
		a.Note("The web view is at %s (once, within two minutes; then: orchestrator ui)", reply.URL)
		return err
	})
}
