package supervisor

import (
	"context"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/settings"
	"orchestrator/wire/control"
)

// Requests of people for agents in every state. No request waits forever or gets a false answer.

// TestStopWaitsForTheLast checks that an agent that exits by itself during a stop is counted once:
// the stop lasts until the last one has ended.
func TestStopWaitsForTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := []settings.Agent{{Name: "web", DependsOn: []string{"db"}}, {Name: "db"}, {Name: "slow"}}
		p := perform(t, Options{}, agents, map[string]part{
			"web": slowly(500 * time.Millisecond), "db": after(2100*time.Millisecond, 0), "slow": slowly(2 * time.Second),
		})
		<-time.After(2 * time.Second)
		began := time.Now()
		require.NoError(t, p.stop())
		require.Equal(t, 2*time.Second, time.Since(began))
	})
}

func TestRestartThenStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a"}}, map[string]part{"a": slowly(2 * time.Second)})
		<-time.After(5 * time.Second)
		restart := p.ask(p.RestartAgents, "a")
		stop := p.ask(p.StopAgents, "a")
		<-time.After(time.Minute)
		require.True(t, stop.outcomes()[0].OK)
		require.False(t, restart.outcomes()[0].OK)
		require.Equal(t, control.StateStopped, p.view("a").State)
		require.NoError(t, p.stop())
	})
}

func TestRestartOfOneThatIsTakenOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a"}, {Name: "b"}}, map[string]part{"a": slowly(2 * time.Second), "b": untilEOF})
		<-time.After(5 * time.Second)
		restart := p.ask(p.RestartAgents, "a")
		reload := p.apply(Change{Action: settings.ActionStop, Name: "a"})
		<-time.After(time.Minute)
		require.False(t, restart.outcomes()[0].OK)
		require.True(t, reload.outcomes()[0].OK)
		all := p.ask(p.RestartAgents)
		<-time.After(time.Minute)
		require.Len(t, all.outcomes(), 1, "those that are gone are not meant by all")
		require.NoError(t, p.stop())
	})
}

func TestStartDuringStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a"}}, map[string]part{"a": slowly(2 * time.Second)})
		<-time.After(5 * time.Second)
		stop := p.ask(p.StopAgents, "a")
		start := p.ask(p.StartAgents, "a")
		<-time.After(time.Minute)
		require.False(t, stop.outcomes()[0].OK)
		require.True(t, start.outcomes()[0].OK)
		require.Equal(t, control.StateRunning, p.view("a").State)
		require.NoError(t, p.stop())
	})
}

func TestStartOfOneWhoseDependencyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "web", DependsOn: []string{"db"}}, {Name: "db"}}, map[string]part{"web": untilEOF})
		<-time.After(5 * time.Second)
		start := p.ask(p.StartAgents, "web")
		<-time.After(time.Minute)
		require.Contains(t, start.outcomes()[0].Text, "waits for db, which will not run")
		require.NoError(t, p.stop())
	})
}

// TestReloadWithDependencyThatFails checks that a file with a wrong dependency can be followed
// by a correct one.
func TestReloadWithDependencyThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "keep"}}, map[string]part{"keep": untilEOF, "web": untilEOF})
		<-time.After(5 * time.Second)
		wrong := p.apply(Change{Action: settings.ActionStart, Name: "web", Agent: agentOf(t, "web", "db")}, Change{Action: settings.ActionStart, Name: "db", Agent: agentOf(t, "db")})
		<-time.After(time.Minute)
		require.Len(t, wrong.outcomes(), 2)
		right := p.apply(Change{Action: settings.ActionLive, Name: "web", Agent: agentOf(t, "web")}, Change{Action: settings.ActionStop, Name: "db"})
		<-time.After(time.Minute)
		require.Len(t, right.outcomes(), 2)
		require.Equal(t, control.StateRunning, p.view("web").State, "it depends on nothing any more")
		require.NoError(t, p.stop())
	})
}

// TestStartWhileClearing checks a start when the leader is dead and its tree still exists.
func TestStartWhileClearing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := make(chan time.Time, 10)
		start := func(spec child.Spec) (Process, error) {
			ours, theirs := net.Pipe()
			r := &player{spec: spec, pid: 5, began: time.Now(), ours: ours, theirs: theirs, signals: make(chan syscall.Signal, 8), killed: make(chan struct{})}
			starts <- r.began
			go func() {
				select {
				case <-time.After(2 * time.Second):
				case <-r.signals:
				}
				spec.Listener.Exited(child.Exit{At: time.Now()})
				<-time.After(500 * time.Millisecond)
				_, _ = ours.Close(), theirs.Close()
				spec.Listener.Ended(child.Ending{})
			}()
			return r, nil
		}
		p := perform(t, Options{Start: start}, []settings.Agent{{Name: "a"}}, nil)
		<-time.After(2200 * time.Millisecond)
		again := p.ask(p.StartAgents, "a")
		<-time.After(1900 * time.Millisecond)
		require.True(t, again.outcomes()[0].OK)
		first := <-starts
		require.Equal(t, 2500*time.Millisecond, (<-starts).Sub(first))
		require.NoError(t, p.stop())
	})
}

func TestConsoleOutlivesAnAgentThatIsTakenOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a"}, {Name: "b"}}, map[string]part{"a": untilEOF, "b": untilEOF, "c": func(r *player) int {
			r.say("hello")
			return untilEOF(r)
		}})
		everybody, _, err := p.follow(t.Context(), nil)
		require.NoError(t, err)
		one, _, err := p.follow(t.Context(), []string{"a"})
		require.NoError(t, err)
		heard, ended := make(chan string, 100), make(chan struct{})
		listen := func(f *output.Follower, see func(output.Line), done func()) {
			var spare output.Backlog
			for f.Next(context.Background(), &spare, see) {
			}
			done()
		}
		go listen(everybody, func(l output.Line) { heard <- l.Agent + " " + string(l.Text) }, func() { close(heard) })
		go listen(one, func(output.Line) {}, func() { close(ended) })
		p.apply(Change{Action: settings.ActionStop, Name: "a"})
		<-ended
		p.apply(Change{Action: settings.ActionStart, Name: "c", Agent: agentOf(t, "c")})
		synctest.Wait()
		require.NoError(t, p.stop())
		var lines []string
		for line := range heard {
			lines = append(lines, line)
		}
		require.Contains(t, lines, "c hello")
	})
}

func TestRestartLeavesADoneDependencyAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := []settings.Agent{{Name: "web", DependsOn: []string{"migrate"}}, {Name: "migrate"}}
		p := perform(t, Options{}, agents, map[string]part{"web": untilEOF, "migrate": after(time.Second, 0)})
		<-time.After(5 * time.Second)
		p.apply(Change{Action: settings.ActionRestart, Name: "web", Agent: agentOf(t, "web", "migrate")})
		<-time.After(5 * time.Second)
		p.ask(p.RestartAgents, "web")
		<-time.After(5 * time.Second)
		require.Len(t, p.starts["web"], 3)
		require.Len(t, p.starts["migrate"], 1)
		require.NoError(t, p.stop())
	})
}

func TestRestartWithANewDependency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "web"}}, map[string]part{"web": untilEOF, "db": untilEOF})
		<-time.After(5 * time.Second)
		db := agentOf(t, "db")
		db.Environ = func(context.Context) ([]string, error) { <-time.After(3 * time.Second); return nil, nil }
		p.apply(Change{Action: settings.ActionRestart, Name: "web", Agent: agentOf(t, "web", "db")}, Change{Action: settings.ActionStart, Name: "db", Agent: db})
		<-time.After(10 * time.Second)
		require.Equal(t, []string{"+web", "-web", "+db", "+web"}, p.sequence())
		require.NoError(t, p.stop())
	})
}

func TestStopAndRestartOfAllKeepTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := []settings.Agent{{Name: "db"}, {Name: "web", DependsOn: []string{"db"}}}
		p := perform(t, Options{}, agents, map[string]part{"web": slowly(2 * time.Second), "db": untilEOF})
		<-time.After(5 * time.Second)
		p.ask(p.RestartAgents)
		<-time.After(5 * time.Second)
		require.Equal(t, []string{"+db", "+web", "-web", "-db", "+db", "+web"}, p.sequence())
		p.ask(p.StopAgents)
		<-time.After(5 * time.Second)
		require.Equal(t, []string{"-web", "-db"}, p.sequence()[6:])
		require.NoError(t, p.stop())
	})
}

func TestReloadDuringTheStopIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a"}}, map[string]part{"a": slowly(time.Second)})
		<-time.After(5 * time.Second)
		p.cancel()
		synctest.Wait()
		_, err := p.Apply(t.Context(), []Change{{Action: settings.ActionStart, Name: "b", Agent: agentOf(t, "b")}}, nil)
		require.ErrorIs(t, err, errStopping)
		require.NoError(t, p.end())
	})
}

// TestReloadCanBeMadeAgain checks that an interrupted reload can be repeated: starting a running
// agent or stopping a missing one is not an error.
func TestReloadCanBeMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a"}}, map[string]part{"a": untilEOF, "b": untilEOF})
		<-time.After(5 * time.Second)
		changes := []Change{{Action: settings.ActionStop, Name: "a"}, {Action: settings.ActionStart, Name: "b", Agent: agentOf(t, "b")}}
		ctx, leave := context.WithCancel(t.Context())
		wait, err := p.Apply(ctx, changes, nil)
		require.NoError(t, err)
		leave()
		_, err = wait(ctx)
		require.Error(t, err)
		<-time.After(time.Minute)
		for _, o := range p.apply(changes...).outcomes() {
			require.True(t, o.OK, o)
		}
		require.ElementsMatch(t, []string{"+a", "-a", "+b"}, p.sequence())
		require.NoError(t, p.stop())
	})
}

// TestStallHasTwoCauses checks that an agent that is deaf and silent has recovered when it is
// neither.
func TestStallHasTwoCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := settings.Agent{Name: "a", Health: settings.Health{Silence: 5 * time.Second, WriteTimeout: 10 * time.Second}}
		hear := make(chan struct{})
		p := perform(t, Options{}, []settings.Agent{a}, map[string]part{"a": func(r *player) int {
			<-time.After(30 * time.Second)
			go func() {
				<-hear
				untilEOF(r)
			}()
			for {
				r.say("hello")
				select {
				case <-time.After(3 * time.Second):
				case <-r.signals:
					return 0
				}
			}
		}})
		synctest.Wait()
		require.NoError(t, p.Tell(t.Context(), "a", []byte("message\n")))
		<-time.After(20 * time.Second)
		require.Equal(t, control.StateStalled, p.view("a").State)
		<-time.After(15 * time.Second)
		require.Equal(t, control.StateStalled, p.view("a").State, "it speaks, but does not read")
		close(hear)
		require.Equal(t, control.StateRunning, p.view("a").State)
		require.NoError(t, p.stop())
	})
}

// TestStopOfAStartThatHangs checks that an environment that hangs does not delay a stop.
func TestStopOfAStartThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a"}}, map[string]part{"a": untilEOF, "b": untilEOF})
		synctest.Wait()
		b := agentOf(t, "b")
		b.Environ = func(ctx context.Context) ([]string, error) { <-ctx.Done(); return nil, ctx.Err() }
		p.apply(Change{Action: settings.ActionStart, Name: "b", Agent: b})
		<-time.After(time.Hour)
		require.True(t, p.ask(p.StopAgents, "b").outcomes()[0].OK)
		p.ask(p.StartAgents, "b")
		<-time.After(time.Hour)
		require.NoError(t, p.stop())
		require.Equal(t, []string{"+a", "-a"}, p.sequence())
	})
}

// TestLeftOversOfAStopAreAsked checks that processes that outlive a stopped leader get the rest
// of the stop sequence.
func TestLeftOversOfAStopAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var signalled, killed time.Duration
		start := func(spec child.Spec) (Process, error) {
			ours, theirs := net.Pipe()
			r := &player{spec: spec, pid: 5, began: time.Now(), ours: ours, theirs: theirs, signals: make(chan syscall.Signal, 8), killed: make(chan struct{})}
			go func() {
				buffer := make([]byte, 1000)
				for _, err := theirs.Read(buffer); err == nil; _, err = theirs.Read(buffer) {
				}
				began := time.Now()
				spec.Listener.Exited(child.Exit{At: began})
				<-r.signals
				signalled = time.Since(began)
				<-r.killed
				killed = time.Since(began)
				spec.Listener.Ended(child.Ending{})
			}()
			return r, nil
		}
		p := perform(t, Options{Start: start}, []settings.Agent{{Name: "a"}}, nil)
		synctest.Wait()
		_, err := p.RestartAgents(t.Context(), control.AgentsRequest{})
		require.NoError(t, err)
		require.Zero(t, signalled)
		require.Equal(t, 5*time.Second, killed)
		p.Kill("enough")
		require.NoError(t, p.end())
	})
}
