package hosts

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/child"
	"orchestrator/wire/hostlink"
)

// A run on a host is started, written to, read from and ended.
func TestRun(t *testing.T) {
	h := newHosts()
	f := joins(t, h, "attic", hostlink.Line{})
	require.EqualValues(t, 7, f.read(hostlink.Welcome).Epoch)
	calls := newRecorded()
	started := make(chan *Process, 1)
	go func() {
		p, err := h.Start(t.Context(), order(calls, "A=b"))
		if err == nil {
			started <- p
		}
	}()
	order := f.read(hostlink.Start)
	require.Equal(t, []string{"A=b"}, order.Env)
	f.say(&hostlink.Line{Type: hostlink.Output, Bytes: []byte("early\n")})
	f.say(&hostlink.Line{Type: hostlink.Started, PID: 42})
	p := <-started
	require.Equal(t, 42, p.PID())
	require.Equal(t, "attic", p.Host())
	f.say(&hostlink.Line{Type: hostlink.Output, Bytes: make([]byte, hostlink.HeardEvery)})
	require.Equal(t, 2*hostlink.PieceCost+6+hostlink.HeardEvery, f.read(hostlink.Heard).N)

	wrote := make(chan error, 1)
	go func() {
		_, err := p.Stdin().Write([]byte("line\n"))
		wrote <- err
	}()
	require.Equal(t, "line\n", string(f.read(hostlink.Input).Bytes))
	require.NoError(t, <-wrote)
	require.EqualValues(t, 5, p.Unread())
	f.say(&hostlink.Line{Type: hostlink.Taken, N: 5})
	go p.Signal(syscall.SIGTERM)
	require.Equal(t, int(syscall.SIGTERM), f.read(hostlink.Signal).Signal)
	f.say(&hostlink.Line{Type: hostlink.Exited, Code: 3})
	f.say(&hostlink.Line{Type: hostlink.Ended})
	<-calls.ended
	require.Equal(t, []string{"output early\n", "exit 3", "ended"}, calls.calls)
	require.False(t, p.Lost())
	_, err := p.Stdin().Write([]byte("late"))
	require.ErrorIs(t, err, fs.ErrClosed)
}

// A program that does not read its stdin holds up the writer as a full pipe does.
func TestNoRoom(t *testing.T) {
	h := newHosts()
	f := joins(t, h, "attic", hostlink.Line{})
	calls := newRecorded()
	p := runsOn(t, h, f, calls)
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

// runsOn starts run r1 on a host that has joined.
func runsOn(t *testing.T, h *Hosts, f *fakeHost, calls *recorded) *Process {
	f.hub = f.read(hostlink.Welcome).Instance
	started := make(chan *Process, 1)
	go func() {
		p, _ := h.Start(t.Context(), order(calls))
		started <- p
	}()
	f.read(hostlink.Start)
	f.say(&hostlink.Line{Type: hostlink.Started, PID: 1})
	return <-started
}

// A run without its link ends when its host must have killed it, or when the host reports that it
// has.
func TestLost(t *testing.T) {
	for name, test := range map[string]struct {
		hello *hostlink.Line
		after time.Duration
	}{
		"for good":         {after: hostlink.GivenUp(hostlink.Grace)},
		"started anew":     {hello: &hostlink.Line{Instance: "i1"}},
		"another machine":  {hello: &hostlink.Line{Instance: "i2"}, after: hostlink.GivenUp(hostlink.Grace)},
		"another with run": {hello: &hostlink.Line{Instance: "i2", Runs: map[string]hostlink.Going{"r1": {Got: 1}}}, after: hostlink.GivenUp(hostlink.Grace)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHosts()
				f := joins(t, h, "attic", hostlink.Line{Instance: "i1"})
				calls := newRecorded()
				p := runsOn(t, h, f, calls)
				began := time.Now()
				require.NoError(t, f.Close())
				require.Error(t, <-f.served)
				_, why := h.Find("far", "far", Placement{})
				require.Contains(t, why, "is not connected")
				if test.hello != nil {
					f = joins(t, h, "attic", *test.hello)
					require.Empty(t, f.read(hostlink.Welcome).Runs)
					go func() {
						for range 100 {
							if f.Send(&hostlink.Line{Type: hostlink.Beat}) != nil {
								return
							}
							_, _ = f.Read()
							<-time.After(hostlink.BeatEvery)
						}
					}()
				}
				<-calls.ended
				require.Equal(t, test.after, time.Since(began))
				require.True(t, p.Lost())
				require.Equal(t, []string{"killed by SIGKILL", "ended"}, calls.calls)
				_ = f.Close()
				<-time.After(hostlink.BeatEvery)
			})
		})
	}
}

// A hub that another one has replaced gives its runs up at once, and the host does not hear of it.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts()
		f := joins(t, h, "attic", hostlink.Line{Instance: "i1"})
		calls := newRecorded()
		p := runsOn(t, h, f, calls)
		began := time.Now()
		h.Leave()
		p.Signal(syscall.SIGTERM)
		p.Kill()
		<-calls.ended
		require.Zero(t, time.Since(began))
		require.Equal(t, []string{"killed by SIGKILL", "ended"}, calls.calls)
		_, err := f.Read()
		require.Error(t, err)
		require.Error(t, <-f.served)
		_ = f.Close()
		<-time.After(hostlink.GivenUp(hostlink.Grace))
	})
}

// A run continues through the next link, with the lines from both sides since then. No line is sent twice.
func TestBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts()
		f := joins(t, h, "attic", hostlink.Line{Instance: "i1"})
		calls, away := newRecorded(), make(chan bool, 2)
		calls.away = away
		p := runsOn(t, h, f, calls)
		f.say(&hostlink.Line{Type: hostlink.Output, Bytes: []byte("one\n")})
		synctest.Wait()
		m := f.m
		require.NoError(t, f.Close())
		<-f.served
		n, err := p.Stdin().Write([]byte("meanwhile\n"))
		require.NoError(t, err)
		require.Equal(t, 10, n)
		p.Signal(syscall.SIGUSR1)
		<-time.After(hostlink.Grace)

		f = joins(t, h, "attic", hostlink.Line{Instance: "i1", Hub: f.hub, Runs: map[string]hostlink.Going{"r1": {Got: 1}}})
		require.Equal(t, map[string]hostlink.Going{"r1": {Got: m}}, f.read(hostlink.Welcome).Runs)
		require.Equal(t, "meanwhile\n", string(f.read(hostlink.Input).Bytes))
		f.read(hostlink.Signal)
		f.m = m - 1
		f.say(&hostlink.Line{Type: hostlink.Output, Bytes: []byte("one\n")})
		f.say(&hostlink.Line{Type: hostlink.Output, Bytes: []byte("two\n")})
		f.say(&hostlink.Line{Type: hostlink.Exited})
		f.say(&hostlink.Line{Type: hostlink.Ended})
		<-calls.ended
		require.Equal(t, []string{"output one\n", "output two\n", "exit 0", "ended"}, calls.calls)
		require.True(t, <-away)
		require.False(t, <-away)
		require.False(t, p.Lost())
		require.NoError(t, f.Close())
		<-f.served
		<-time.After(hostlink.GivenUp(hostlink.Grace)) // the timer of the lost link has no effect
	})
}

// A run of an earlier hub continues if its host still has it and this hub knows all about it. Otherwise it is killed,
// or given up.
func TestExpect(t *testing.T) {
	sound := hostlink.Going{Got: 17, Seq: 3, Mail: 2}
	for name, test := range map[string]struct {
		hello *hostlink.Line
		unfit bool // it is killed
		calls string
		after time.Duration
	}{
		"goes on":     {hello: &hostlink.Line{Runs: map[string]hostlink.Going{"r1": sound}}, calls: "found 2, output later\n, exit 0, ended"},
		"says unfit":  {hello: &hostlink.Line{Runs: map[string]hostlink.Going{"r1": {Seq: 3, Unfit: true}}}, unfit: true, calls: "unfit, exit 0, ended"},
		"not sound":   {hello: &hostlink.Line{Runs: map[string]hostlink.Going{"r1": {Seq: 2}}}, unfit: true, calls: "unfit, exit 0, ended"},
		"has ended":   {hello: &hostlink.Line{}, calls: "killed by SIGKILL, ended"},
		"never comes": {calls: "killed by SIGKILL, ended", after: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				h := newHosts()
				h.options.Settled = began.Add(time.Minute)
				calls := newRecorded()
				p := h.Expect(order(calls))
				require.Equal(t, []string{"far"}, h.View()[0].Agents)
				if test.hello != nil {
					f := joins(t, h, "attic", *test.hello)
					_, goesOn := f.read(hostlink.Welcome).Runs["r1"]
					require.Equal(t, len(test.hello.Runs) > 0, goesOn)
					if goesOn {
						f.read(hostlink.Start)
						if test.unfit {
							f.read(hostlink.Kill)
						}
						f.say(&hostlink.Line{Type: hostlink.Output, Bytes: []byte("later\n")})
						f.say(&hostlink.Line{Type: hostlink.Started, PID: 4})
						synctest.Wait()
						require.Equal(t, 4, p.PID())
						f.say(&hostlink.Line{Type: hostlink.Exited})
						f.say(&hostlink.Line{Type: hostlink.Ended})
					}
					defer func() {
						_ = f.Close()
						<-f.served
						<-time.After(time.Minute)
					}()
				}
				<-calls.ended
				require.Equal(t, test.calls, strings.Join(calls.calls, ", "))
				require.Equal(t, test.after, time.Since(began))
			})
		})
	}
}

// A host that dials before the hub has begun waits, and then its run continues.
func TestOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{Settled: time.Now().Add(time.Minute), Owner: owner{}})
		f := joins(t, h, "attic", hostlink.Line{Runs: map[string]hostlink.Going{"r1": {Seq: 3}}})
		synctest.Wait()
		calls := newRecorded()
		h.Expect(order(calls))
		h.Open()
		require.Len(t, f.read(hostlink.Welcome).Runs, 1)
		f.read(hostlink.Start)
		f.say(&hostlink.Line{Type: hostlink.Ended})
		<-calls.ended
		require.Equal(t, "found 0", calls.calls[0])
		require.NoError(t, f.Close())
		<-f.served
		<-time.After(time.Minute)
	})
}

// A hub reports to the host the settled lines of a run that is quiet.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts()
		f := joins(t, h, "attic", hostlink.Line{})
		f.read(hostlink.Welcome)
		calls := newRecorded()
		go func() { _, _ = h.Start(t.Context(), order(calls)) }()
		f.read(hostlink.Start)
		f.say(&hostlink.Line{Type: hostlink.Started, PID: 1})
		f.say(&hostlink.Line{Type: hostlink.Output, Bytes: []byte("x\n")})
		<-time.After(2 * settleEvery)
		calls.quiet.Store(true)
		require.Equal(t, map[string]hostlink.Going{"r1": {Got: 2, Seq: 5, Mail: 9, Waits: true}}, f.read(hostlink.Settled).Runs)
		began := time.Now()
		f.say(&hostlink.Line{Type: hostlink.Output, Bytes: []byte("y\n")})
		require.EqualValues(t, 3, f.read(hostlink.Settled).Runs["r1"].Got)
		require.Equal(t, settleSoon, time.Since(began), "a run that talks is settled soon")
		require.NoError(t, f.Close())
		<-f.served
		<-time.After(time.Minute)
	})
}

// A start that a host has not heard of is sent again.
func TestStartAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts()
		f := joins(t, h, "attic", hostlink.Line{Instance: "i1"})
		f.read(hostlink.Welcome)
		calls := newRecorded()
		started := make(chan *Process, 1)
		go func() {
			p, _ := h.Start(t.Context(), order(calls))
			started <- p
		}()
		f.read(hostlink.Start)
		require.NoError(t, f.Close())
		<-f.served
		f = joins(t, h, "attic", hostlink.Line{Instance: "i1"})
		f.read(hostlink.Welcome)
		f.read(hostlink.Start)
		f.say(&hostlink.Line{Type: hostlink.Started, PID: 7})
		require.Equal(t, 7, (<-started).PID())
		require.NoError(t, f.Close())
		<-f.served
		<-time.After(time.Minute)
	})
}

// A start that a host has heard of, and forgotten because it was killed, has failed.
func TestStartForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts()
		f := joins(t, h, "attic", hostlink.Line{Instance: "i1"})
		f.read(hostlink.Welcome)
		calls := newRecorded()
		failed := make(chan error, 1)
		go func() {
			_, err := h.Start(t.Context(), order(calls))
			failed <- err
		}()
		f.read(hostlink.Start)
		require.NoError(t, f.Send(&hostlink.Line{Type: hostlink.Beat, Number: 1, Figures: map[string]hostlink.Usage{"r1": {Got: 1}}}))
		f.read(hostlink.Beat)
		require.NoError(t, f.Close())
		<-f.served
		f = joins(t, h, "attic", hostlink.Line{Instance: "i1"})
		require.Empty(t, f.read(hostlink.Welcome).Runs)
		refused, ok := errors.AsType[*child.StartError](<-failed)
		require.True(t, ok)
		require.True(t, refused.Temporary)
		require.Empty(t, h.View()[0].Agents)
		require.NoError(t, f.Close())
		<-f.served
		<-time.After(time.Minute)
	})
}

// A start can be given up. The run is killed when it has started, and the hub does not hear of it.
func TestStartGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts()
		f := joins(t, h, "attic", hostlink.Line{})
		f.read(hostlink.Welcome)
		calls := newRecorded()
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := h.Start(ctx, order(calls))
			failed <- err
		}()
		f.read(hostlink.Start)
		cancel()
		f.read(hostlink.Kill)
		require.ErrorIs(t, <-failed, context.Canceled)
		require.Equal(t, []string{"far"}, h.View()[0].Agents)
		f.say(&hostlink.Line{Type: hostlink.Started, PID: 1})
		f.say(&hostlink.Line{Type: hostlink.Output, Bytes: []byte("late")})
		f.say(&hostlink.Line{Type: hostlink.Ended})
		synctest.Wait()
		require.Empty(t, h.View()[0].Agents)
		require.Empty(t, calls.calls)
		require.NoError(t, f.Close())
		<-f.served
	})
}

// A host that does not say how a run has ended has not ended it well.
func TestEndedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts()
		f := joins(t, h, "attic", hostlink.Line{})
		calls := newRecorded()
		runsOn(t, h, f, calls)
		f.say(&hostlink.Line{Type: hostlink.Ended})
		f.say(&hostlink.Line{Type: hostlink.Exited})
		f.say(&hostlink.Line{Type: hostlink.Ended})
		<-calls.ended
		synctest.Wait()
		require.Equal(t, []string{"killed by SIGKILL", "ended"}, calls.calls)
		require.NoError(t, f.Close())
		<-f.served
	})
}

// Impossible lines end the link: they skip lines, or confirm lines that were not sent.
func TestBadNumbers(t *testing.T) {
	for name, l := range map[string]hostlink.Line{
		"skips":     {M: 9},
		"no number": {},
		"negative":  {M: 2, Got: -1},
		"future":    {M: 2, Got: 99},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHosts()
				f := joins(t, h, "attic", hostlink.Line{})
				calls := newRecorded()
				runsOn(t, h, f, calls)
				l.Type, l.Run, l.Bytes = hostlink.Output, "r1", []byte("x")
				require.NoError(t, f.Send(&l))
				require.ErrorContains(t, <-f.served, "of run r1")
				_ = f.Close()
				<-time.After(time.Minute)
			})
		})
	}
}

// Two programs cannot be one host at once.
func TestTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts()
		f := joins(t, h, "attic", hostlink.Line{Instance: "i1"})
		f.read(hostlink.Welcome)
		other := joins(t, h, "attic", hostlink.Line{Instance: "i2"})
		require.Contains(t, other.read(hostlink.Refused).Error.Message, "another program has joined as attic")
		<-other.served
		again := joins(t, h, "attic", hostlink.Line{Instance: "i1"})
		again.read(hostlink.Welcome)
		require.Error(t, <-f.served)
		require.NoError(t, again.Close())
		<-again.served
	})
}

// A silent host loses its link after a while, and one that sends too much as well.
func TestLinkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts()
		f := joins(t, h, "attic", hostlink.Line{})
		f.read(hostlink.Welcome)
		began := time.Now()
		require.Error(t, <-f.served)
		require.Equal(t, hostlink.Silence, time.Since(began))
	})
	h := newHosts()
	f := joins(t, h, "attic", hostlink.Line{})
	f.read(hostlink.Welcome)
	go func() { _, _ = h.Start(t.Context(), order(&recorded{stuck: true})) }()
	f.read(hostlink.Start)
	f.say(&hostlink.Line{Type: hostlink.Started, PID: 1})
	for range 2 * hostlink.OutputRoom / hostlink.MaxPiece {
		f.m++
		if f.Send(&hostlink.Line{Type: hostlink.Output, Run: "r1", M: f.m, Bytes: make([]byte, hostlink.MaxPiece)}) != nil {
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
		h := newHosts()
		h.options.Confirmed = sure.Load
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
