package runner

import (
	"bufio"
	"context"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/hosts/link"
	"orchestrator/wire/hostlink"
)

// A fakeProcess is a program that a test plays. It ends when it is killed or its stdin is closed.
type fakeProcess struct {
	spec  child.Spec
	mu    sync.Mutex
	wrote []byte
	end   sync.Once
}

func (p *fakeProcess) PID() int                  { return 42 }
func (p *fakeProcess) Stdin() child.Stdin        { return p }
func (p *fakeProcess) Signal(sig syscall.Signal) { p.exit(child.Exit{Code: -1, Signal: sig}) }
func (p *fakeProcess) Kill()                     { p.exit(child.Exit{Code: -1, Signal: syscall.SIGKILL}) }
func (p *fakeProcess) Unread() int64             { return 0 }
func (p *fakeProcess) Usage() (int64, int64)     { return 1, 2 }

func (p *fakeProcess) CloseStdin() bool {
	p.exit(child.Exit{})
	return true
}

func (p *fakeProcess) exit(e child.Exit) {
	p.end.Do(func() {
		go func() {
			p.spec.Exited(e)
			p.spec.Ended(child.Ending{})
		}()
	})
}

func (p *fakeProcess) SetWriteDeadline(time.Time) error { return nil }

func (p *fakeProcess) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrote = append(p.wrote, text...)
	return len(text), nil
}

// A served is a host, and the hub that a test plays.
type served struct {
	t *testing.T
	*link.Conn
	processes chan *fakeProcess
	drain     chan struct{}
	over      chan error
	beats     bool // it confirms beats
}

// serve starts a host that has joined.
func serve(t *testing.T) *served {
	here, there := net.Pipe()
	s := &served{
		t: t, Conn: link.New(there, bufio.NewReader(there)), processes: make(chan *fakeProcess, 10), drain: make(chan struct{}), over: make(chan error, 1), beats: true,
	}
	go func() {
		s.over <- Serve(t.Context(), link.New(here, bufio.NewReader(here)), Options{
			Epoch: 3, Seen: func(int64) error { return nil }, Log: hclog.NewNullLogger(),
			Launch: func(_ context.Context, order *hostlink.Line, spec child.Spec) (Process, error) {
				if order.Agent == "missing" {
					return nil, &child.StartError{Reason: "it is not there", Err: fs.ErrNotExist}
				}
				p := &fakeProcess{spec: spec}
				s.processes <- p
				return p, nil
			},
		}, s.drain, func(*hostlink.Line) {})
	}()
	l, err := s.Read()
	require.NoError(t, err)
	require.Equal(t, hostlink.Hello, l.Type)
	require.NoError(t, s.Send(&hostlink.Line{Type: hostlink.Welcome, Epoch: 3}))
	return s
}

// read returns the next line that is no beat, and confirms beats.
func (s *served) read() *hostlink.Line {
	for {
		l, err := s.Read()
		require.NoError(s.t, err)
		if l.Type != hostlink.Beat {
			return l
		}
		if s.beats {
			require.NoError(s.t, s.Send(&hostlink.Line{Type: hostlink.Beat, Number: l.Number}))
		}
	}
}

// start starts a run.
func (s *served) start(run string) *fakeProcess {
	go func() { _ = s.Send(&hostlink.Line{Type: hostlink.Start, Run: run, Agent: "far"}) }()
	l := s.read()
	require.Equal(s.t, hostlink.Started, l.Type)
	require.Equal(s.t, 42, l.PID)
	return <-s.processes
}

// A host starts a run, passes input and output on, and drains.
func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		p := s.start("r1")
		go p.spec.Output(child.Stderr, []byte("hello\n"))
		l := s.read()
		require.Equal(t, "hello\n", string(l.Bytes))
		require.True(t, l.Stderr)
		go func() { _ = s.Send(&hostlink.Line{Type: hostlink.Input, Run: "r1", Bytes: []byte("abc")}) }()
		require.Equal(t, 3, s.read().N)
		require.Equal(t, "abc", string(p.wrote))

		go func() { _ = s.Send(&hostlink.Line{Type: hostlink.Start, Run: "r2", Agent: "missing"}) }()
		l = s.read()
		require.Equal(t, hostlink.Failed, l.Type)
		require.True(t, l.Missing)

		close(s.drain)
		require.Equal(t, hostlink.Drain, s.read().Type)
		go func() { _ = s.Send(&hostlink.Line{Type: hostlink.Close, Run: "r1"}) }()
		require.Equal(t, hostlink.Exited, s.read().Type)
		require.Equal(t, hostlink.Ended, s.read().Type)
		require.NoError(t, <-s.over)
	})
}

// Output waits while the hub has no room.
func TestOutputWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		p := s.start("r1")
		done := make(chan struct{})
		go func() {
			p.spec.Output(child.Stdout, make([]byte, 2*hostlink.OutputRoom))
			close(done)
		}()
		got := 0
		for cost := 0; cost+hostlink.PieceCost < hostlink.OutputRoom; {
			l := s.read()
			got, cost = got+len(l.Bytes), cost+len(l.Bytes)+hostlink.PieceCost
		}
		require.Less(t, got, hostlink.OutputRoom)
		select {
		case <-done:
			require.Fail(t, "more was sent than there is room for")
		default:
		}
		require.NoError(t, s.Close()) // then the rest is dropped, and the run is killed
		<-done
		require.Error(t, <-s.over)
	})
}

// A host whose beats are not confirmed kills its agents before the hub gives them up, although the hub
// goes on speaking.
func TestUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		s.start("r1")
		began := time.Now()
		s.beats = false
		go func() {
			for {
				if _, err := s.Read(); err != nil {
					return
				}
			}
		}()
		stop := make(chan struct{})
		go func() {
			for s.Send(&hostlink.Line{Type: hostlink.Heard, Run: "r1"}) == nil {
				select {
				case <-stop:
					return
				case <-time.After(time.Second):
				}
			}
		}()
		require.Error(t, <-s.over)
		close(stop)
		require.Less(t, time.Since(began), hostlink.GivenUp)
		require.NoError(t, s.Close())
	})
}

// A link that breaks kills the runs, also one that is just being started.
func TestBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		s.start("r1")
		s.start("r2")
		require.NoError(t, s.Close())
		require.Error(t, <-s.over)
	})
}

// A hub of an earlier epoch is refused.
func TestEarlierHub(t *testing.T) {
	here, there := net.Pipe()
	hub := link.New(there, bufio.NewReader(there))
	go func() {
		_, _ = hub.Read()
		_ = hub.Send(&hostlink.Line{Type: hostlink.Welcome, Epoch: 2, Hub: "h0"})
	}()
	err := Serve(t.Context(), link.New(here, bufio.NewReader(here)), Options{Epoch: 3, Log: hclog.NewNullLogger()}, nil, func(*hostlink.Line) {})
	require.ErrorContains(t, err, "of epoch 2")
	require.NotErrorIs(t, err, os.ErrClosed)
}
