package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/settings"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// gaps returns the times between starts.
func (p *play) gaps(name string) []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var gaps []time.Duration
	for i := 1; i < len(p.starts[name]); i++ {
		gaps = append(gaps, p.starts[name][i].Sub(p.starts[name][i-1]))
	}
	return gaps
}

// TestRestartDelays is torture row 10: crashes at once, after 1.2 s, after 61 s.
func TestRestartDelays(t *testing.T) {
	for _, test := range []struct {
		up, watch time.Duration
		gaps      []time.Duration
		gaveUp    bool
	}{
		{0, time.Minute, []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}, true},
		{1200 * time.Millisecond, time.Minute, []time.Duration{1700 * time.Millisecond, 2200 * time.Millisecond, 3200 * time.Millisecond, 5200 * time.Millisecond, 9200 * time.Millisecond}, true},
		{61 * time.Second, 250 * time.Second, []time.Duration{61500 * time.Millisecond, 61500 * time.Millisecond, 61500 * time.Millisecond, 61500 * time.Millisecond}, false},
	} {
		t.Run(test.up.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := perform(t, Options{}, []settings.Agent{{Name: "a"}}, map[string]part{"a": after(test.up, 1)})
				<-time.After(test.watch)
				require.Equal(t, test.gaps, p.gaps("a"))
				require.Equal(t, test.gaveUp, p.view("a").State == control.StateFailed)
				require.Equal(t, test.gaveUp, p.count(events.AgentGaveUp) == 1)
				require.NoError(t, p.stop())
			})
		})
	}
}

func TestVerdicts(t *testing.T) {
	r := settings.Restart{Policy: settings.OnFailure, Delay: time.Second, Factor: 2, MaxDelay: 5 * time.Second, Jitter: 0.2, ResetAfter: time.Minute, Burst: 5, Window: time.Hour, Permanent: []int{64}}
	now := time.Now()
	decide := func(policy settings.Policy, code int, chance float64) verdict {
		r := r
		r.Policy = policy
		return new(restartHistory).after(r, code, fmt.Sprintf("exit %d", code), 0, now, chance)
	}
	require.Equal(t, verdict{}, decide(settings.OnFailure, 0, 0))
	require.Equal(t, verdict{}, decide(settings.Never, 0, 0))
	require.Contains(t, decide(settings.Never, 1, 0).why, "policy is never")
	require.Contains(t, decide(settings.Always, 64, 0).why, "permanent")
	require.Equal(t, verdict{again: true, delay: 800 * time.Millisecond, attempt: 1}, decide(settings.Always, 0, 0))
	require.Equal(t, verdict{again: true, delay: time.Second, attempt: 1}, decide(settings.OnFailure, 1, 0.5))
	require.Equal(t, verdict{again: true, delay: time.Second, attempt: 1}, decide(settings.OnFailure, -1, 0.5), "ended by a signal")
	require.Equal(t, 5*time.Second, delay(r, 20, 0.5), "capped")
}

// TestClockIsMonotonic is torture row 20: only monotonic time is used, so setting the clock has no
// effect. The String of a time shows a monotonic reading.
func TestClockIsMonotonic(t *testing.T) {
	s := New(Options{}, nil)
	a := s.life.enter(&settings.Agent{Name: "a", Restart: settings.Restart{Burst: 5}})
	s.life.restartIn(a, time.Minute, "", 1)
	require.Contains(t, a.due.at.String(), "m=+")
	v := a.history.again(settings.Restart{Burst: 5, Window: time.Hour, Delay: time.Second, Factor: 1, MaxDelay: time.Second}, "", 0, time.Now(), 0.5)
	require.True(t, v.again)
	require.Contains(t, a.history.restarts[0].String(), "m=+")
	require.Contains(t, s.began.String(), "m=+")
}

func TestPermanentAndNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a"}, {Name: "b", Restart: settings.Restart{Policy: settings.Never}}, {Name: "c"}},
			map[string]part{"a": after(0, 78), "b": after(0, 1), "c": after(0, 0)})
		<-time.After(time.Minute)
		require.Equal(t, control.StateFailed, p.view("a").State)
		require.Equal(t, control.StateFailed, p.view("b").State)
		require.Equal(t, control.StateExited, p.view("c").State)
		require.Empty(t, p.gaps("a"))
		require.Equal(t, 1, p.count(events.OrchestratorIdle))
		require.NoError(t, p.stop())
	})
}

func TestDependenciesStartFirstAndStopLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := []settings.Agent{{Name: "web", DependsOn: []string{"api", "db"}}, {Name: "api", DependsOn: []string{"db"}}, {Name: "db"}}
		p := perform(t, Options{}, agents, map[string]part{"web": untilEOF, "api": untilEOF, "db": untilEOF})
		synctest.Wait()
		require.NoError(t, p.stop())
		require.Equal(t, []string{"+db", "+api", "+web", "-web", "-api", "-db"}, p.order)
	})
}

func TestWaitsForDependencyThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := []settings.Agent{{Name: "web", DependsOn: []string{"db"}}, {Name: "db"}}
		p := perform(t, Options{ExitWhenIdle: true}, agents, map[string]part{"web": untilEOF})
		require.ErrorIs(t, p.end(), ErrAgentsFailed)
		require.Empty(t, p.order, "web must not have started")
	})
}

// speaking returns a part that sends a message first.
func speaking(then part) part {
	return func(r *player) int {
		r.say(request("1", "query-agents", `{}`))
		return then(r)
	}
}

// logging returns a part that sends an event:log first.
func logging(then part) part {
	return func(r *player) int {
		r.say(`{"type":"event:log","id":"l","timestamp":"2026-11-21T14:00:00Z","payload":{"level":"info","message":"begun"}}`)
		return then(r)
	}
}

// TestStopLadder checks the stop sequence: the notice, the end of stdin, the signal, the kill.
func TestStopLadder(t *testing.T) {
	for _, test := range []struct {
		name   string
		part   part
		took   time.Duration
		forced bool
	}{
		{"reads its stdin", untilEOF, 0, false},
		{"never spoke, needs the signal", untilSignal, time.Second, false},
		{"never spoke, needs the kill", deafTo, 6 * time.Second, true},
		{"spoke, needs the signal", speaking(untilSignal), 30 * time.Second, false},
		{"spoke, needs the kill", speaking(deafTo), 35 * time.Second, true},
		{"spoke to the log, needs the signal", logging(untilSignal), 30 * time.Second, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := perform(t, Options{}, []settings.Agent{{Name: "a"}}, map[string]part{"a": test.part})
				synctest.Wait()
				began := time.Now()
				require.NoError(t, p.stop())
				require.Equal(t, test.took, time.Since(began))
				told := strings.Join(p.told(), "\n")
				require.Equal(t, test.forced, strings.Contains(told, "had to be killed"), told)
				require.Contains(t, told, "nothing left running")
			})
		})
	}
}

// Rows: B-72.
func TestShutdownNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		p := perform(t, Options{}, []settings.Agent{{Name: "a"}, {Name: "raw", Raw: true}}, map[string]part{
			"a": func(r *player) int {
				r.say(request("1", "query-agents", `{}`))
				r.read()
				for line := r.read(); line != ""; line = r.read() {
					lines = append(lines, line)
				}
				return 0
			},
			"raw": func(r *player) int { return len(r.read()) },
		})
		synctest.Wait()
		require.NoError(t, p.stop())
		require.Len(t, lines, 1)
		var notice struct {
			Type, ID, Timestamp string
			Payload             struct {
				GracePeriod int64
				Reason      string
			}
		}
		require.NoError(t, json.Unmarshal([]byte(lines[0]), &notice))
		require.Equal(t, "notify:shutdown", notice.Type)
		require.EqualValues(t, 30000, notice.Payload.GracePeriod, "the time until the first signal")
		require.Equal(t, "Orchestrator stopping", notice.Payload.Reason)
		require.Equal(t, "exit 0", p.life.agents["raw"].lastExit, "a raw agent is told nothing")
	})
}

// TestShutdownBudgetIsOne checks the budget of a shutdown: at its end everything is killed,
// however deep the dependencies go.
func TestShutdownBudgetIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := []settings.Agent{{Name: "c", DependsOn: []string{"b"}}, {Name: "b", DependsOn: []string{"a"}}, {Name: "a"}}
		p := perform(t, Options{Shutdown: 10 * time.Second}, agents, map[string]part{"a": deafTo, "b": deafTo, "c": deafTo})
		synctest.Wait()
		began := time.Now()
		require.NoError(t, p.stop())
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

func TestSecondSignalKills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a"}, {Name: "b", DependsOn: []string{"a"}}}, map[string]part{"a": deafTo, "b": deafTo})
		synctest.Wait()
		began := time.Now()
		p.Stop("first")
		p.Kill("second")
		require.NoError(t, p.end())
		require.Zero(t, time.Since(began))
	})
}

func TestLeftOversAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a", Restart: settings.Restart{Policy: settings.Never}}}, map[string]part{"a": func(r *player) int {
			r.left = []child.Process{{PID: 7, Program: "node", Held: true}}
			return 1
		}})
		require.Contains(t, strings.Join(p.told(), "\n"), "a agent.left_over: ended 1 left-over (7 node holding its output open)")
		require.NoError(t, p.stop())
	})
}

// TestStormIsOneMessage is torture row 11: fifty agents crash together.
func TestStormIsOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var agents []settings.Agent
		parts := make(map[string]part)
		crash := make(chan struct{})
		for i := range 50 {
			name := fmt.Sprintf("a%02d", i)
			agents = append(agents, settings.Agent{Name: name})
			var again atomic.Bool
			parts[name] = func(r *player) int {
				if !again.Swap(true) {
					<-crash
					return 1
				}
				return untilEOF(r)
			}
		}
		p := perform(t, Options{}, agents, parts)
		synctest.Wait()
		close(crash)
		<-time.After(10 * time.Second)
		require.Equal(t, 1, p.count(events.OrchestratorStorm))
		first, last := time.Time{}, time.Time{}
		for name := range parts {
			at := p.starts[name][1]
			if first.IsZero() || at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
		require.Greater(t, last.Sub(first), 500*time.Millisecond, "the restarts are not spread")
		require.NoError(t, p.stop())
	})
}

func TestStartTellsOfAnEarlyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "good"}, {Name: "bad", Restart: settings.Restart{Policy: settings.Never}}, {Name: "lost"}}, map[string]part{
			"good": untilEOF,
			"bad": func(r *player) int {
				r.say("no module named requests")
				<-time.After(300 * time.Millisecond)
				return 1
			},
		})
		synctest.Wait()
		_, err := p.StopAgents(t.Context(), control.AgentsRequest{})
		require.NoError(t, err)
		outcomes, err := p.StartAgents(t.Context(), control.AgentsRequest{})
		require.NoError(t, err)
		require.Len(t, outcomes, 3)
		require.True(t, outcomes[0].OK)
		require.EqualValues(t, 1000, outcomes[0].TookMS)
		require.False(t, outcomes[1].OK)
		require.Equal(t, []string{"no module named requests"}, outcomes[1].LastWords[:1])
		require.False(t, outcomes[2].OK)
		require.Contains(t, outcomes[2].Text, "program not found")
		require.NoError(t, p.stop())
	})
}

func TestTemporaryStartFailureIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a"}}, map[string]part{"a": untilEOF})
		synctest.Wait()
		_, err := p.StopAgents(t.Context(), control.AgentsRequest{Agents: []string{"a"}})
		require.NoError(t, err)
		real := p.options.Start
		tries := 0
		p.options.Start = func(spec child.Spec) (Process, error) {
			if tries++; tries < 3 {
				return nil, &child.StartError{Reason: "too many open files", Temporary: true}
			}
			return real(spec)
		}
		_, err = p.StartAgents(t.Context(), control.AgentsRequest{})
		require.NoError(t, err)
		require.Equal(t, 3, tries)
		require.Equal(t, control.StateRunning, p.view("a").State)
		require.NoError(t, p.stop())
	})
}

func TestEnvironmentThatFailsIsPermanent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a"}}, map[string]part{"a": untilEOF})
		synctest.Wait()
		changed := agentOf(t, "a")
		changed.Environ = func(context.Context) ([]string, error) { return nil, errors.New("secret model_key: no such file") }
		request := p.apply(Change{Action: settings.ActionRestart, Name: "a", Agent: changed})
		<-time.After(time.Minute)
		require.Contains(t, request.outcomes()[0].Text, "secret model_key")
		require.Equal(t, control.StateFailed, p.view("a").State)
		require.NoError(t, p.stop())
	})
}

// TestApplyTouchesOnlyWhatChanged is torture row 19: one of twenty agents changes; nineteen are
// not touched.
func TestApplyTouchesOnlyWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var agents []settings.Agent
		parts := map[string]part{"new": untilEOF}
		for i := range 20 {
			name := fmt.Sprintf("a%02d", i)
			agents = append(agents, settings.Agent{Name: name})
			parts[name] = untilEOF
		}
		p := perform(t, Options{}, agents, parts)
		synctest.Wait()
		before, err := p.Status(t.Context())
		require.NoError(t, err)
		changed, fresh, live := agents[7], settings.Agent{Name: "new"}, agents[3]
		changed.Description = "changed"
		live.Description = "live"
		defaults(t, &fresh)
		request := p.apply(
			Change{Action: settings.ActionRestart, Name: "a07", Agent: changed},
			Change{Action: settings.ActionStart, Name: "new", Agent: fresh},
			Change{Action: settings.ActionStop, Name: "a19"},
			Change{Action: settings.ActionLive, Name: "a03", Agent: live},
		)
		<-time.After(time.Minute)
		for _, o := range request.outcomes() {
			require.True(t, o.OK, o)
		}
		now, err := p.Status(t.Context())
		require.NoError(t, err)
		require.Len(t, now.Agents, 20)
		for i, v := range now.Agents[:19] {
			require.Equal(t, v.Name != "a07", v.PID == before.Agents[i].PID, v.Name)
		}
		require.Equal(t, "changed", now.Agents[7].Description)
		require.Equal(t, "live", now.Agents[3].Description)
		require.Equal(t, "new", now.Agents[19].Name)
		require.NoError(t, p.stop())
	})
}

func TestRequestsAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, nil, nil)
		synctest.Wait()
		require.NoError(t, p.stop())
		_, err := p.Status(context.Background())
		require.ErrorIs(t, err, dispatch.ErrOver)
	})
}

func TestUnknownAgentIsRefusedByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a-0", Block: "a"}, {Name: "a-1", Block: "a"}}, map[string]part{"a-0": untilEOF, "a-1": untilEOF})
		synctest.Wait()
		_, err := p.StopAgents(t.Context(), control.AgentsRequest{Agents: []string{"b"}})
		require.EqualError(t, err, `agent "b" does not exist`)
		outcomes, err := p.StopAgents(t.Context(), control.AgentsRequest{Agents: []string{"a"}})
		require.NoError(t, err)
		require.Len(t, outcomes, 2, "a block means its replicas")
		require.NoError(t, p.stop())
	})
}

func TestLogsOverRunsAndLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := []settings.Agent{{Name: "a"}}
		n := 0
		p := perform(t, Options{}, agents, map[string]part{"a": func(r *player) int {
			n++
			r.say(fmt.Sprintf("run %d", n))
			r.spec.Listener.Output(child.Stderr, []byte("no end"))
			<-r.signals
			return 0
		}})
		<-time.After(time.Second)
		_, err := p.RestartAgents(t.Context(), control.AgentsRequest{})
		require.NoError(t, err)
		logs := func(q output.LogQuery) (texts []string) {
			require.NoError(t, p.Logs(t.Context(), q, func(l control.LogLine) error { texts = append(texts, l.Text); return nil }))
			return texts
		}
		require.Equal(t, []string{"run 1", "run 2"}, logs(output.LogQuery{Last: 10, Stream: control.StreamOut}))
		require.Equal(t, []string{"run 2"}, logs(output.LogQuery{Last: 1, Stream: control.StreamOut}))
		require.Equal(t, []string{"run 1", "run 2"}, logs(output.LogQuery{Last: 1000, Stream: control.StreamOut}), "from the files")
		require.NoError(t, p.stop())
		names, err := filepath.Glob(filepath.Join(agents[0].Output.Dir, "a", "*"))
		require.NoError(t, err)
		require.Len(t, names, 4, "a file a run, stderr apart")
		text, err := os.ReadFile(names[0])
		require.NoError(t, err)
		require.Equal(t, " no end\n", string(text)[len(output.Stamp(time.Time{})):])
	})
}

// jumped returns a time as if the clock had been off by d when it was read. Only the wall time
// changes, not the monotonic reading.
func jumped(at time.Time, d time.Duration) time.Time {
	const nsecShift = 30 // of package time: the seconds are above the nanoseconds
	*(*uint64)(unsafe.Pointer(&at)) += uint64(int64(d/time.Second)) << nsecShift
	return at
}

// TestRestartWindowIsMonotonic checks that the restart window uses the monotonic clock: setting
// the clock does not empty it.
func TestRestartWindowIsMonotonic(t *testing.T) {
	first := time.Now()
	require.Zero(t, first.Sub(jumped(first, -time.Hour)), "package time keeps times in another way now")
	require.Equal(t, time.Hour, first.Round(0).Sub(jumped(first, -time.Hour).Round(0)))

	r := settings.Restart{Policy: settings.Always, Delay: time.Second, Factor: 1, MaxDelay: time.Second, Burst: 2, Window: time.Minute}
	var h restartHistory
	require.True(t, h.again(r, "exit 1", 0, first, 0.5).again)
	h.restarts[0] = jumped(first, -time.Hour)
	require.Equal(t, 2, h.again(r, "exit 1", 0, first.Add(time.Second), 0.5).attempt)
}

// TestConversationOfTheRunBefore checks that a run gets the conversation that the run before has
// reported, and that a coding agent gets only one from its program and folder.
func TestConversationOfTheRunBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, settings.Agent{Name: "a"})
		a := all[0]
		p := perform(t, Options{Record: newLedger()}, agents, parts)
		synctest.Wait()
		given := func() (found []string) {
			for _, pair := range a.run.spec.Env {
				if strings.HasPrefix(pair, "ORC_CONVERSATION=") {
					found = append(found, pair)
				}
			}
			return found
		}
		require.Empty(t, given())
		require.Nil(t, p.view("a").Activity)
		a.says(`{"type":"event:session","id":"1","timestamp":"2026-11-21T14:00:00Z","payload":{"id":"c-1","kind":"claude","dir":"/repo"}}`)
		require.Equal(t, "c-1", p.view("a").Activity.Conversation)
		for _, want := range []struct{ protocol, dir, id string }{
			{"claude", "/repo", "c-1"}, {"codex", "/repo", ""}, {"claude", "/other", ""},
		} {
			spec := &settings.Agent{Name: "a", Dir: want.dir, Client: settings.Client{Protocol: want.protocol}}
			require.Equal(t, want.id, p.life.conversation(spec), want)
		}
		restart := p.ask(p.RestartAgents, "a")
		<-time.After(time.Minute)
		require.Len(t, restart.outcomes(), 1)
		require.Equal(t, []string{"ORC_CONVERSATION=c-1"}, given())
		require.NoError(t, p.stop())
	})
}
