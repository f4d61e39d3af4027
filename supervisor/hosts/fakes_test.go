package hosts

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/hosts/link"
	"orchestrator/wire"
	"orchestrator/wire/hostlink"
)

// A fakeHost is the other end of a link, which a test plays.
type fakeHost struct {
	t *testing.T
	*link.Conn
	served chan error
	hub    string // the instance of the hub that it has joined
	m      int64  // the number of the last line about a run
}

// say sends a line about run r1.
func (f *fakeHost) say(l *hostlink.Line) {
	f.m++
	l.Run, l.M = "r1", f.m
	require.NoError(f.t, f.Send(l))
}

// order returns an order for a run on attic.
func order(calls *recorded, env ...string) Order {
	return Order{Host: "attic", Agent: "far", Run: "r1", Env: env, Listener: calls}
}

// newHosts returns open hosts. A test may change their options before it uses them.
func newHosts() *Hosts {
	h := New(Options{Hub: "h1", Team: "team", Epoch: 7, Owner: owner{last: 5}, Drain: func(string, []string) {}})
	h.Open()
	return h
}

// An owner is a team that ignores the events of hosts.
type owner struct {
	last    int64  // the number of its last record; 0: it does not tell which lines are settled
	changed func() // HostsChanged; nil: ignored
}

func (o owner) HostsChanged() {
	if o.changed != nil {
		o.changed()
	}
}

func (o owner) Committed(note func()) int64 {
	if o.last > 0 {
		note()
	}
	return o.last
}

func (owner) NoteHost(_, _, _ string, _ wire.Figures) {}

// joins lets a host say hello.
func joins(t *testing.T, h *Hosts, name string, hello hostlink.Line) *fakeHost {
	here, there := net.Pipe()
	f := &fakeHost{t: t, Conn: link.New(there, bufio.NewReader(there)), served: make(chan error, 1)}
	go func() { f.served <- h.Serve(name, "10.0.0.1:1", link.New(here, bufio.NewReader(here))) }()
	hello.Type, hello.Version = hostlink.Hello, hostlink.Version
	require.NoError(t, f.Send(&hello))
	return f
}

func (f *fakeHost) read(kind string) *hostlink.Line {
	l, err := f.Read()
	require.NoError(f.t, err)
	require.Equal(f.t, kind, l.Type)
	return l
}

// A recorded listens to a run.
type recorded struct {
	mu    sync.Mutex
	calls []string
	ended chan struct{}
	away  chan bool // takes the reports about the host; nil: ignored
	quiet atomic.Bool
	stuck bool // it takes no output
}

func newRecorded() *recorded { return &recorded{ended: make(chan struct{})} }

func (r *recorded) add(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
}

func (r *recorded) Output(_ child.Stream, text []byte) {
	if r.stuck {
		select {}
	}
	if len(text) < 100 {
		r.add("output " + string(text))
	}
}

func (r *recorded) Exited(e child.Exit) { r.add(e.String()) }

func (r *recorded) Stopped(bool) { r.add("stopped") }

func (r *recorded) Lost(child.Ending) {}

func (r *recorded) Ended(child.Ending) {
	r.add("ended")
	close(r.ended)
}

func (r *recorded) Away(yes bool) {
	if r.away != nil {
		r.away <- yes
	}
}

func (r *recorded) Quiet() (mail int64, waits, ok bool) { return 9, true, r.quiet.Load() }

func (r *recorded) Unsound(seq int64, _ bool) string {
	if seq == 3 {
		return ""
	}
	return "there is more"
}

func (r *recorded) Found(mail int64, unfit string) {
	if unfit != "" {
		r.add("unfit")
	} else {
		r.add(fmt.Sprintf("found %d", mail))
	}
}
