package hub

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"orchestrator/supervisor/leadership"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// A front is the handler of the API of a hub: one that passes requests on while the hub stands by,
// and afterwards the handler of the hub at work.
type front struct {
	own  string // the name of this hub
	stop func() // ends this hub

	now     atomic.Pointer[http.Handler]
	shared  atomic.Pointer[sharedStore] // nil while it is being opened
	missing atomic.Pointer[[]string]    // hubs that its opening waits for

	mu   sync.Mutex
	hub  leadership.Hub // the hub at work, as far as this one knows
	over chan struct{}  // closed when requests go elsewhere
}

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

// AtWork implements api.Standby.
func (f *front) AtWork() (name, url string, over <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hub.Name, f.hub.URL, f.over
}

// Hubs implements api.Standby.
func (f *front) Hubs() any {
	if s := f.shared.Load(); s != nil {
		return s.view()
	}
	reply := control.HostsReply{
		FormatVersion: wire.FormatVersion, Hosts: []control.HostView{}, Hubs: []control.HubView{{Name: f.own, State: "standing_by"}},
	}
	if missing := f.Waits(); missing != "" {
		reply.NoQuorum = "it waits for other hubs: " + missing
	}
	return reply
}

// Waits returns which hubs this one waits for before it can open the record, or "".
func (f *front) Waits() string {
	missing := f.missing.Load()
	if missing == nil || len(*missing) == 0 || f.shared.Load() != nil {
		return ""
	}
	return strings.Join(*missing, ", ")
}

// Down implements api.Standby.
func (f *front) Down(w http.ResponseWriter) {
	defer f.stop()
	e := wire.Event{At: object.Timestamp(time.Now()), Kind: events.OrchestratorStopped, Text: f.own + " no longer stands by"}
	if text, err := object.Encode(e); err == nil {
		_, _ = w.Write(append(text, '\n'))
	}
}
