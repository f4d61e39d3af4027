package hosts

import (
	"bufio"
	"errors"
	"io/fs"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/hosts/link"
	"orchestrator/wire/hostlink"
)

// A fakeHost is the other end of a link, which a test plays.
type fakeHost struct {
	t *testing.T
	*link.Conn
	served chan error
}

func newHosts(confirmed func() bool) (*Hosts, *atomic.Int64) {
	changed := new(atomic.Int64)
	return New(Options{
		Hub: "h1", Epoch: 7, Confirmed: confirmed, Changed: func() { changed.Add(1) }, Drain: func(string) {}, Note: func(string, string, string) {},
		Log: hclog.NewNullLogger(),
	}), changed
}

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

// A recorded is the callbacks of a run.
type recorded struct {
	mu    sync.Mutex
	calls []string
	ended chan struct{}
}

func (r *recorded) add(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
}

func newRecorded() (*recorded, child.Spec) {
	r := &recorded{ended: make(chan struct{})}
	return r, child.Spec{
		Run:     "r1",
		Output:  func(_ child.Stream, text []byte) { r.add("output " + string(text)) },
		Exited:  func(e child.Exit) { r.add(e.String()) },
		Stopped: func(yes bool) { r.add("stopped") },
		Ended: func(child.Ending) {
			r.add("ended")
			close(r.ended)
		},
	}
}

// A run on a host is started, written to, read from and ended.
func TestRun(t *testing.T) {
	h, _ := newHosts(nil)
	f := joins(t, h, "attic", hostlink.Line{})
	require.EqualValues(t, 7, f.read(hostlink.Welcome).Epoch)
	calls, spec := newRecorded()
	started := make(chan *Process, 1)
	go func() {
		p, err := h.Start(Order{Host: "attic", Agent: "far", Env: []string{"A=b"}}, spec)
		if err == nil {
			started <- p
		}
	}()
	order := f.read(hostlink.Start)
	require.Equal(t, []string{"A=b"}, order.Env)
	require.NoError(t, f.Send(&hostlink.Line{Type: hostlink.Output, Run: "r1", Bytes: []byte("early\n")}))
	require.NoError(t, f.Send(&hostlink.Line{Type: hostlink.Started, Run: "r1", PID: 42}))
	p := <-started
	require.Equal(t, 42, p.PID())
	require.Equal(t, "attic", p.Host())
	require.Equal(t, hostlink.PieceCost+6, f.read(hostlink.Heard).N)

	wrote := make(chan error, 1)
	go func() {
		_, err := p.Stdin().Write([]byte("line\n"))
		wrote <- err
	}()
	require.Equal(t, "line\n", string(f.read(hostlink.Input).Bytes))
	require.NoError(t, <-wrote)
	require.EqualValues(t, 5, p.Unread())
	require.NoError(t, f.Send(&hostlink.Line{Type: hostlink.Taken, Run: "r1", N: 5}))
	go p.Signal(syscall.SIGTERM)
	require.Equal(t, int(syscall.SIGTERM), f.read(hostlink.Signal).Signal)
	require.NoError(t, f.Send(&hostlink.Line{Type: hostlink.Exited, Run: "r1", Code: 3}))
	require.NoError(t, f.Send(&hostlink.Line{Type: hostlink.Ended, Run: "r1"}))
	<-calls.ended
	require.Equal(t, []string{"output early\n", "exit 3", "ended"}, calls.calls)
	require.False(t, p.Lost())
	_, err := p.Stdin().Write([]byte("late"))
	require.ErrorIs(t, err, fs.ErrClosed)
}

// A program that does not read its stdin holds up the writer as a full pipe does.
func TestNoRoom(t *testing.T) {
	h, _ := newHosts(nil)
	f := joins(t, h, "attic", hostlink.Line{})
	f.read(hostlink.Welcome)
	_, spec := newRecorded()
	started := make(chan *Process, 1)
	go func() {
		p, _ := h.Start(Order{Host: "attic", Agent: "far"}, spec)
		started <- p
	}()
	f.read(hostlink.Start)
	require.NoError(t, f.Send(&hostlink.Line{Type: hostlink.Started, Run: "r1", PID: 1}))
	p := <-started
	go func() {
		for {
			if _, err := f.Read(); err != nil {
				return
			}
		}
	}()
	require.NoError(t, p.Stdin().SetWriteDeadline(time.Now().Add(20*time.Millisecond)))
	n, err := p.Stdin().Write(make([]byte, hostlink.InputRoom+10))
	require.Equal(t, hostlink.InputRoom, n)
	require.Error(t, err)
	require.NoError(t, f.Close())
}

// The runs of a host whose link is gone end when the host has killed them for certain, or when it joins
// again.
func TestLost(t *testing.T) {
	for name, again := range map[string]bool{"for good": false, "and back": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, _ := newHosts(nil)
				f := joins(t, h, "attic", hostlink.Line{})
				f.read(hostlink.Welcome)
				calls, spec := newRecorded()
				started := make(chan *Process, 1)
				go func() {
					p, _ := h.Start(Order{Host: "attic", Agent: "far"}, spec)
					started <- p
				}()
				f.read(hostlink.Start)
				require.NoError(t, f.Send(&hostlink.Line{Type: hostlink.Started, Run: "r1", PID: 1}))
				p := <-started
				began := time.Now()
				require.NoError(t, f.Close())
				require.Error(t, <-f.served)
				_, why := h.Find("far", "far", Placement{})
				require.Contains(t, why, "is not connected")
				if again {
					f = joins(t, h, "attic", hostlink.Line{})
					f.read(hostlink.Welcome)
				}
				<-calls.ended
				if again {
					require.Zero(t, time.Since(began))
				} else {
					require.Equal(t, hostlink.GivenUp, time.Since(began))
				}
				require.True(t, p.Lost())
				require.Equal(t, []string{"killed by SIGKILL", "ended"}, calls.calls)
				_ = f.Close()
				synctest.Wait()
			})
		})
	}
}

// A host that says nothing for a while loses its link, and one that sends too much as well.
func TestLinkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newHosts(nil)
		f := joins(t, h, "attic", hostlink.Line{})
		f.read(hostlink.Welcome)
		began := time.Now()
		require.Error(t, <-f.served)
		require.Equal(t, hostlink.Silence, time.Since(began))
	})
	h, _ := newHosts(nil)
	f := joins(t, h, "attic", hostlink.Line{})
	f.read(hostlink.Welcome)
	_, spec := newRecorded()
	spec.Output = func(child.Stream, []byte) { select {} } // a hub that does not get on
	go func() { _, _ = h.Start(Order{Host: "attic", Agent: "far"}, spec) }()
	f.read(hostlink.Start)
	require.NoError(t, f.Send(&hostlink.Line{Type: hostlink.Started, Run: "r1", PID: 1}))
	for range 2 * hostlink.OutputRoom / hostlink.MaxPiece {
		if f.Send(&hostlink.Line{Type: hostlink.Output, Run: "r1", Bytes: make([]byte, hostlink.MaxPiece)}) != nil {
			break
		}
	}
	require.ErrorIs(t, <-f.served, errTooMuch)
}

// A hub that may have been replaced does not confirm that a host is alive.
func TestBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sure atomic.Bool
		sure.Store(true)
		h, _ := newHosts(sure.Load)
		f := joins(t, h, "attic", hostlink.Line{})
		f.read(hostlink.Welcome)
		require.NoError(t, f.Send(&hostlink.Line{Type: hostlink.Beat, Number: 1}))
		require.EqualValues(t, 1, f.read(hostlink.Beat).Number)
		sure.Store(false)
		require.NoError(t, f.Send(&hostlink.Line{Type: hostlink.Beat, Number: 2}))
		synctest.Wait()
		sure.Store(true)
		require.NoError(t, f.Send(&hostlink.Line{Type: hostlink.Beat, Number: 3}))
		require.EqualValues(t, 3, f.read(hostlink.Beat).Number, "the second was not confirmed")
		require.NoError(t, f.Close())
		<-f.served
	})
}

// A host of another version, or one that has spoken to a later hub, is refused.
func TestRefused(t *testing.T) {
	h, _ := newHosts(nil)
	f := joins(t, h, "attic", hostlink.Line{Epoch: 8})
	require.Contains(t, f.read(hostlink.Refused).Error.Message, "a later hub")
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- h.Serve("attic", "", link.New(here, bufio.NewReader(here))) }()
	other := link.New(there, bufio.NewReader(there))
	require.NoError(t, other.Send(&hostlink.Line{Type: hostlink.Hello, Version: 99}))
	l, err := other.Read()
	require.NoError(t, err)
	require.Contains(t, l.Error.Message, "version 99")
	_ = other.Close()
	<-served
	h.SetRules([]Rule{{Name: "gpu", Names: []string{"gpu-*"}}})
	require.Contains(t, joins(t, h, "attic", hostlink.Line{}).read(hostlink.Refused).Error.Message, "no host block allows")
	joins(t, h, "gpu-1", hostlink.Line{}).read(hostlink.Welcome)
}

// Find chooses the host with the fewest agents of those that fit, and says why others do not.
func TestFind(t *testing.T) {
	h, changed := newHosts(nil)
	h.SetRules([]Rule{{Name: "any", Names: []string{"*"}, Labels: map[string]string{"site": "here"}}, {Name: "late"}})
	_, why := h.Find("a", "a", Placement{Hosts: "gpu-*", Labels: map[string]string{"gpu": "a100"}})
	require.Equal(t, "a host called gpu-* with gpu=a100", why)
	for _, name := range []string{"h1", "h2"} {
		joins(t, h, name, hostlink.Line{Capacity: 2, Labels: map[string]string{"disk": name}}).read(hostlink.Welcome)
	}
	require.EventuallyWithT(t, func(t *assert.CollectT) { require.EqualValues(t, 2, changed.Load()) }, time.Minute, time.Millisecond)
	var got []string
	for _, agent := range []string{"a", "b", "c", "d"} {
		host, why := h.Find(agent, "block", Placement{Labels: map[string]string{"site": "here"}})
		require.Empty(t, why)
		got = append(got, host)
	}
	require.Equal(t, "h1 h2 h1 h2", strings.Join(got, " "))
	_, why = h.Find("e", "e", Placement{})
	require.Equal(t, "a host: h1 is full, h2 is full", why)
	_, why = h.Find("e", "e", Placement{Labels: map[string]string{"disk": "h1"}})
	require.Contains(t, why, "h2 is full")
	_, err := h.Drain("h1", false)
	require.NoError(t, err)
	_, why = h.Find("e", "e", Placement{Hosts: "h1"})
	require.Contains(t, why, "h1 is being drained")
	_, err = h.Drain("h3", false)
	require.Error(t, err)
	h.Close()
	_, err = h.Start(Order{Host: "h9", Agent: "a"}, child.Spec{})
	refused, ok := errors.AsType[*child.StartError](err)
	require.True(t, ok)
	require.True(t, refused.Temporary)
}

// Agents that an earlier hub may have placed are waited for.
func TestSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := make(chan struct{})
		h := New(Options{Settled: time.Now().Add(hostlink.GivenUp), Changed: func() { close(changed) }})
		_, why := h.Find("a", "a", Placement{})
		require.Contains(t, why, "the hub before this one")
		<-changed
		_, why = h.Find("a", "a", Placement{})
		require.Equal(t, "a host", why)
	})
}
