package hub

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"orchestrator/supervisor/leadership"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// A front is the handler of the API of a hub: one that passes requests on while the hub stands by,
// and afterwards the handler of the hub at work.
type front struct {
	now     atomic.Pointer[http.Handler]
	shared  atomic.Pointer[sharedStore] // nil while it is being opened
	missing atomic.Pointer[[]string]    // hubs that its opening waits for

	mu   sync.Mutex
	hub  leadership.Hub // the hub at work, as far as this one knows
	over chan struct{}  // closed when requests go elsewhere
}

func newFront() *front { return &front{over: make(chan struct{})} }

// set replaces the handler and cuts requests that the former one has passed on.
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
