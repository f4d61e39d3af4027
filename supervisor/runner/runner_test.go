package runner

import (
	"bufio"
	"context"
	"io/fs"
	"net"
	"os"
	"strings"
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
	ended chan struct{}
}

func (p *fakeProcess) PID() int                  { return 42 }
func (p *fakeProcess) Stdin() child.Stdin        { return p }
func (p *fakeProcess) Signal(sig syscall.Signal) { p.exit(child.Exit{Code: -1, Signal: sig}) }
func (p *fakeProcess) Kill()                     { p.exit(child.Exit{Code: -1, Signal: syscall.SIGKILL}) }
func (p *fakeProcess) Unread() int64             { return 0 }
func (p *fakeProcess) Usage() (int64, int64)     { return 1, 2 }

func (p *fakeProcess) ReadFile(path string, most int64) (string, error) {
	if path == "missing" {
		return "", fs.ErrNotExist
	}
	return strings.Repeat(path, int(most)/len(path)), nil
}

func (p *fakeProcess) CloseStdin() bool {
	p.exit(child.Exit{})
	return true
}

func (p *fakeProcess) exit(e child.Exit) {
	p.end.Do(func() {
		go func() {
			p.spec.Listener.Exited(e)
			p.spec.Listener.Ended(child.Ending{})
			close(p.ended)
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

// sinceNow returns a clock.
func sinceNow() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

// A served is a host, and the hub that a test plays.
type served struct {
	t *testing.T
	*link.Conn
	host      *Host
	processes chan *fakeProcess
	drain     chan struct{}
	over      chan error
	renewed   chan *hostlink.Line
	working   chan struct{} // closed when its only work has begun
	beats     bool          // it confirms beats
	hub       string        // the instance of the hub
	m         map[string]int64
}

// serve starts a host that has joined.
func serve(t *testing.T) *served {
	s := &served{
		t: t, processes: make(chan *fakeProcess, 10), drain: make(chan struct{}), over: make(chan error, 1), beats: true, m: map[string]int64{},
		renewed: make(chan *hostlink.Line, 10), working: make(chan struct{}),
	}
	s.host = New(t.Context(), Options{
		Memory: Memory{Epochs: map[string]int64{"team": 3}}, Clock: sinceNow(), EndAt: func(time.Duration) {}, Log: hclog.NewNullLogger(),
		Agents: s,
	})
	s.join(nil)
	return s
}

// Launch implements Agents.
func (s *served) Launch(_ context.Context, order *hostlink.Line, spec child.Spec) (Process, error) {
	if order.Agent == "missing" {
		return nil, &child.StartError{Reason: "it is not there", Err: fs.ErrNotExist}
	}
	p := &fakeProcess{spec: spec, ended: make(chan struct{})}
	s.processes <- p
	return p, nil
}

// Renew implements Agents.
func (s *served) Renew(order *hostlink.Line) { s.renewed <- order }

// Work implements Agents. It works until it is cancelled.
func (s *served) Work(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	close(s.working)
	<-ctx.Done()
	return nil, ctx.Err()
}

// join lets the host join the hub, which has these lines of runs. It returns the lines that the host reports.
func (s *served) join(runs map[string]hostlink.Going) map[string]hostlink.Going {
	here, there := net.Pipe()
	s.Conn = link.New(there, bufio.NewReader(there))
	go func() {
		s.over <- s.host.Serve(s.t.Context(), link.New(here, bufio.NewReader(here)), s.drain, func(*hostlink.Line) {})
	}()
	l, err := s.Read()
	require.NoError(s.t, err)
	require.Equal(s.t, hostlink.Hello, l.Type)
	require.NoError(s.t, s.Send(&hostlink.Line{Type: hostlink.Welcome, Team: "team", Epoch: 3, Instance: s.hub, Runs: runs}))
	return l.Runs
}

// say sends a line about a run.
func (s *served) say(run string, l *hostlink.Line) {
	s.m[run]++
	l.Run, l.M = run, s.m[run]
	go func() { _ = s.Send(l) }()
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
	s.say(run, &hostlink.Line{Type: hostlink.Start, Agent: "far"})
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
		go p.spec.Listener.Output(child.Stderr, []byte("hello\n"))
		l := s.read()
		require.Equal(t, "hello\n", string(l.Bytes))
		require.True(t, l.Stderr)
		s.say("r1", &hostlink.Line{Type: hostlink.Input, Bytes: []byte("abc")})
		require.Equal(t, 3, s.read().N)
		require.Equal(t, "abc", string(p.wrote))

		s.say("r2", &hostlink.Line{Type: hostlink.Start, Agent: "missing"})
		l = s.read()
		require.Equal(t, hostlink.Failed, l.Type)
		require.True(t, l.Missing)

		close(s.drain)
		require.Equal(t, hostlink.Drain, s.read().Type)
		s.say("r1", &hostlink.Line{Type: hostlink.Close})
		require.Equal(t, hostlink.Exited, s.read().Type)
		require.Equal(t, hostlink.Ended, s.read().Type)
		if l, err := s.Read(); err == nil { // otherwise it knows already that all was heard, and has gone
			require.NoError(t, s.Send(&hostlink.Line{Type: hostlink.Beat, Number: l.Number}))
		}
		require.NoError(t, <-s.over)
		s.host.Close()
	})
}

// Output waits while the hub has no room.
func TestOutputWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		p := s.start("r1")
		done := make(chan struct{})
		go func() {
			p.spec.Listener.Output(child.Stdout, make([]byte, 2*hostlink.OutputRoom))
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
		require.NoError(t, s.Close())
		require.Error(t, <-s.over)
		began := time.Now()
		<-done // the rest is dropped when the run is killed
		require.LessOrEqual(t, time.Since(began), hostlink.Grace+hostlink.BeatEvery)
		s.host.Close()
	})
}

// A host with unconfirmed beats gives the link up although the hub continues to send, and kills its agents before the
// hub gives them up.
func TestUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		p := s.start("r1")
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
			for n := s.m["r1"] + 1; s.Send(&hostlink.Line{Type: hostlink.Heard, Run: "r1", M: n}) == nil; n++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Second):
				}
			}
		}()
		require.Error(t, <-s.over)
		close(stop)
		require.LessOrEqual(t, time.Since(began), hostlink.Silence+hostlink.BeatEvery)
		<-p.ended
		require.Less(t, time.Since(began), hostlink.GivenUp(hostlink.Grace))
		s.host.Close()
		require.NoError(t, s.Close())
		<-time.After(time.Second)
	})
}

// A run continues through the next link, with the lines from both sides since then. One that the hub does not know is
// killed.
func TestNextLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		p, other := s.start("r1"), s.start("r2")
		require.NoError(t, s.Close())
		require.Error(t, <-s.over)
		p.spec.Listener.Output(child.Stdout, []byte("meanwhile\n"))
		<-time.After(hostlink.Grace - time.Second)
		require.Len(t, s.join(map[string]hostlink.Going{"r1": {Got: 1}}), 2)
		<-other.ended
		require.Equal(t, "meanwhile\n", string(s.read().Bytes))
		s.say("r1", &hostlink.Line{Type: hostlink.Input, Bytes: []byte("abc")})
		require.Equal(t, 3, s.read().N)
		s.beats = false // a confirmation that names no run means that the hub is done with it
		s.say("r1", &hostlink.Line{Type: hostlink.Kill})
		require.Equal(t, hostlink.Exited, s.read().Type)
		require.Equal(t, hostlink.Ended, s.read().Type)
		synctest.Wait() // the host, too, has seen the end
		require.NoError(t, s.Close())
		<-s.over
		require.Contains(t, s.join(nil), "r1", "the hub may not have heard of the end")
		require.NoError(t, s.Send(&hostlink.Line{Type: hostlink.Beat, Number: s.beat().Number}))
		require.NoError(t, s.Close())
		<-s.over
		require.Empty(t, s.join(nil), "it has done with them")
		require.NoError(t, s.Close())
		<-s.over
		s.host.Close()
	})
}

// Another hub continues a run: unsettled output is sent again, from the beginning of a line.
func TestOtherHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		p := s.start("r1")
		go p.spec.Listener.Output(child.Stdout, []byte("one\ntw"))
		s.read()
		go func() {
			_ = s.Send(&hostlink.Line{Type: hostlink.Settled, Runs: map[string]hostlink.Going{"r1": {Got: 2, Seq: 40, Mail: 7}}})
		}()
		s.say("r1", &hostlink.Line{Type: hostlink.Input, Bytes: []byte("abc\n")})
		require.Equal(t, 4, s.read().N)
		go p.spec.Listener.Output(child.Stdout, []byte("o\nthree\n"))
		s.read()
		go p.spec.Listener.Output(child.Stderr, []byte("cry\n"))
		s.read()
		s.say("r1", &hostlink.Line{Type: hostlink.Heard, Got: 5})
		synctest.Wait()
		require.NoError(t, s.Close())
		<-s.over

		s.hub, s.m = "h2", map[string]int64{}
		require.Equal(t, hostlink.Going{Got: 3, Seq: 40, Mail: 7}, s.join(map[string]hostlink.Going{"r1": {}})["r1"])
		s.say("r1", &hostlink.Line{Type: hostlink.Start, Agent: "far", Env: []string{"A=b"}})
		require.Equal(t, "two\nthree\n", string(s.read().Bytes))
		require.Equal(t, 42, s.read().PID)
		require.Equal(t, []string{"A=b"}, (<-s.renewed).Env)
		s.say("r1", &hostlink.Line{Type: hostlink.Input, Bytes: []byte("half")})
		require.Equal(t, 4, s.read().N)
		require.NoError(t, s.Close())
		<-s.over
		s.hub = "h3"
		require.True(t, s.join(nil)["r1"].Unfit, "another hub would write its lines behind the half one")
		<-p.ended
		require.NoError(t, s.Close())
		<-s.over
		s.host.Close()
	})
}

// Work that the end of its run interrupts has not failed: the hub hears only of the end.
func TestInterruptedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		p := s.start("r1")
		s.say("r1", &hostlink.Line{Type: hostlink.Fetch, Number: 1, Bytes: []byte("verify")})
		<-s.working
		p.Kill()
		require.Equal(t, hostlink.Exited, s.read().Type)
		require.Equal(t, hostlink.Ended, s.read().Type)
		synctest.Wait()
		s.say("r1", &hostlink.Line{Type: hostlink.Fetch, Number: 2, Path: "file"})
		require.Equal(t, int64(2), s.read().Number)
		require.NoError(t, s.Close())
		<-s.over
		s.host.Close()
	})
}

// beat returns the next beat.
func (s *served) beat() *hostlink.Line {
	l, err := s.Read()
	require.NoError(s.t, err)
	require.Equal(s.t, hostlink.Beat, l.Type)
	return l
}

// The answer to a beat from before a run is no news about the run.
func TestEarlierBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		early := s.beat().Number
		s.say("r1", &hostlink.Line{Type: hostlink.Start, Agent: "missing"})
		require.Equal(t, hostlink.Failed, s.read().Type)
		require.NoError(t, s.Send(&hostlink.Line{Type: hostlink.Beat, Number: early}))
		require.NoError(t, s.Close())
		require.Error(t, <-s.over)
		require.Contains(t, s.join(map[string]hostlink.Going{"r1": {}}), "r1")
		require.Equal(t, hostlink.Failed, s.read().Type)
		require.NoError(t, s.Close())
		<-s.over
		s.host.Close()
	})
}

// Close kills the runs, also one that is just being started.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		p := s.start("r1")
		s.say("r2", &hostlink.Line{Type: hostlink.Start, Agent: "far"})
		late := <-s.processes
		require.NoError(t, s.Close())
		require.Error(t, <-s.over)
		s.host.Close()
		<-p.ended
		<-late.ended
	})
}

// A hub of an earlier epoch is refused.
func TestEarlierHub(t *testing.T) {
	here, there := net.Pipe()
	hub := link.New(there, bufio.NewReader(there))
	go func() {
		_, _ = hub.Read()
		_ = hub.Send(&hostlink.Line{Type: hostlink.Welcome, Team: "team", Epoch: 2, Hub: "h0"})
	}()
	h := New(t.Context(), Options{Memory: Memory{Epochs: map[string]int64{"team": 3, "other": 1}}, Clock: sinceNow(), Log: hclog.NewNullLogger()})
	defer h.Close()
	err := h.Serve(t.Context(), link.New(here, bufio.NewReader(here)), nil, func(*hostlink.Line) {})
	require.ErrorContains(t, err, "of epoch 2")
	require.NotErrorIs(t, err, os.ErrClosed)
}

// A host remembers its name and the epochs.
func TestRemember(t *testing.T) {
	dir := t.TempDir()
	m, err := Remember(dir)
	require.NoError(t, err)
	require.NotEmpty(t, m.Instance)
	require.Empty(t, m.Epochs)
	require.NoError(t, m.note("team", 7))
	again, err := Remember(dir)
	require.NoError(t, err)
	require.Equal(t, m, again)
	require.NoError(t, os.WriteFile(m.path, []byte("{"), 0o600))
	again, err = Remember(dir)
	require.NoError(t, err)
	require.Empty(t, again.Epochs)
	_, err = Remember(dir + "/missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
