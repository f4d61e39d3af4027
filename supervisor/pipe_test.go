package supervisor

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

func TestGuestComesAndGoes(t *testing.T) {
	pipes(t, nil, func(t *testing.T, p *play) {
		me := p.join("me", "go")
		v := p.view("me")
		require.Equal(t, control.StateRunning, v.State)
		require.Equal(t, wire.RoleWorker, v.Role)
		require.Zero(t, v.PID)
		me.ask("1", "query-agents", `{}`)
		require.Contains(t, me.hear(), `"correlationId":"1"`)
		me.end()
		me.goodbye()
		require.Empty(t, p.names())
		told := p.told()
		require.Contains(t, told, "me agent.started: joined by pipe")
		require.Contains(t, told, "me agent.exited: exit 0 after 0.0s")
	})
}

// TestPipeLastLine checks that a last line counts without a newline, and also if it was sent
// together with the end.
func TestPipeLastLine(t *testing.T) {
	pipes(t, nil, func(t *testing.T, p *play) {
		me := p.join("me")
		_, err := io.WriteString(me.mouth, `{"type":"request:query-agents","id":"last","timestamp":"2026-11-21T14:00:00Z","payload":{}}`)
		require.NoError(t, err)
		me.end()
		require.Contains(t, me.hear(), `"correlationId":"last"`)
		me.goodbye()
	})
}

// TestPipeWaitsForItsAnswers checks that a question is answered before the pipe ends, by a person
// or by its timeout. Until then the agent gets no work.
func TestPipeWaitsForItsAnswers(t *testing.T) {
	pipes(t, nil, func(t *testing.T, p *play) {
		for _, answered := range []bool{true, false} {
			me := p.join("me", "go")
			me.ask("q", "ask-user", `{"question":"which?","timeout":60000}`)
			me.end()
			<-time.After(30 * time.Second)
			require.Equal(t, control.StateStopping, p.view("me").State)
			id := p.work("go")
			if answered {
				questions := p.operate("list-questions", `{}`).(*wire.QuestionList).Questions
				p.operate("answer-question", `{"questionId":"`+questions[0].ID+`","answer":"this"}`)
				require.Contains(t, me.hear(), `"this"`)
			} else {
				require.Contains(t, me.hear(), `"TIMEOUT"`)
			}
			me.goodbye()
			require.Equal(t, wire.TaskPending, p.task(id).State)
			p.operate("cancel-task", `{"taskId":"`+id+`"}`)
		}
	})
}

// TestPipeEndsWithATask checks that the task of a pipe is done if the pipe ended in order, and
// failed if it vanished.
func TestPipeEndsWithATask(t *testing.T) {
	pipes(t, nil, func(t *testing.T, p *play) {
		me := p.join("me", "go")
		id := p.work("go")
		require.Contains(t, me.hear(), "notify:task-assigned")
		synctest.Wait()
		require.Equal(t, wire.TaskRunning, p.task(id).State)
		me.end()
		me.goodbye()
		require.Equal(t, wire.TaskDone, p.task(id).State)

		me = p.join("me", "go")
		id = p.work("go")
		require.Contains(t, me.hear(), "notify:task-assigned")
		synctest.Wait()
		me.vanish()
		require.NoError(t, me.over())
		require.Equal(t, wire.TaskFailed, p.task(id).State)
		require.Contains(t, p.task(id).Error, "killed by SIGHUP")
		require.Empty(t, p.names())
	})
}

// TestPipeVanishes checks that an agent that vanishes while it waits for a reply, or that does
// not read, loses its name.
func TestPipeVanishes(t *testing.T) {
	pipes(t, nil, func(t *testing.T, p *play) {
		me := p.join("me")
		me.ask("q", "ask-user", `{"question":"which?","timeout":3600000}`)
		me.end()
		<-time.After(time.Minute)
		me.vanish()
		require.NoError(t, me.over())
		require.Empty(t, p.names())

		deaf := p.join("me")
		deaf.ask("1", "query-agents", `{}`)
		<-time.After(time.Minute)
		require.Equal(t, control.StateStalled, p.view("me").State)
		deaf.vanish()
		require.NoError(t, deaf.over())
		require.Empty(t, p.names())
	})
}

// TestPipeIsStopped checks that a pipe gets a stop notice like any other agent, may send a last
// message, and is cut off if it stays.
func TestPipeIsStopped(t *testing.T) {
	pipes(t, nil, func(t *testing.T, p *play) {
		quick, slow := p.join("quick"), p.join("slow")
		stop := p.ask(p.StopAgents, "quick", "slow")
		for _, c := range []*caller{quick, slow} {
			notice := c.hear()
			require.Contains(t, notice, `"notify:shutdown"`)
			require.Contains(t, notice, `"gracePeriod":1000`, "neither has sent a message")
			require.Equal(t, strings.TrimSuffix(wire.Farewell, "\n"), c.hear())
		}
		quick.say("a last word")
		quick.end()
		require.NoError(t, quick.over())
		<-time.After(1100 * time.Millisecond)
		require.NoError(t, slow.over())
		for _, o := range stop.outcomes() {
			require.True(t, o.OK)
			require.Contains(t, o.Text, "exit 0")
		}
		require.Empty(t, p.names())
	})
}

func TestPipeWhenEverythingStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, nil, nil)
		me := p.join("me")
		p.cancel()
		require.Contains(t, me.hear(), `"notify:shutdown"`)
		require.Equal(t, strings.TrimSuffix(wire.Farewell, "\n"), me.hear())
		late := p.join("late")
		require.ErrorContains(t, late.over(), "stopping")
		me.end()
		require.NoError(t, me.over())
		require.NoError(t, p.end())
		require.ErrorIs(t, p.join("later").over(), dispatch.ErrOver)
	})
}

func TestPipeIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, nil, nil)
		me := p.join("me")
		p.Kill("by hand")
		for me.hear() != "" {
		}
		require.NoError(t, me.over())
		require.NoError(t, p.end())
	})
}

// A program that has ended its output, and does not read the farewell, does not stay.
func TestPipeIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, nil, nil)
		me := p.join("me")
		me.end()
		<-time.After(goodbyePatience)
		require.NoError(t, me.over())
		require.NoError(t, p.stop())
	})
}

// TestJoinAsAnAgent checks that a pipe can join as an agent that does not run. The settings of
// the file apply, its command is not started, and afterwards the agent is as before.
func TestJoinAsAnAgent(t *testing.T) {
	idle := settings.Agent{Name: "idle", Profile: control.Profile{Description: "idle"}, Role: "reviewer", Offers: []string{"read"}, Restart: settings.Restart{Policy: settings.Always, Delay: time.Second}}
	done := settings.Agent{Name: "done", Restart: settings.Restart{Policy: settings.Never}}
	pipes(t, []settings.Agent{idle, done}, func(t *testing.T, p *play) {
		p.mu.Lock()
		_ = p.live["done"].theirs.Close() // it exits by itself
		p.mu.Unlock()
		synctest.Wait()
		_, err := p.StopAgents(t.Context(), control.AgentsRequest{Agents: []string{"done"}})
		require.NoError(t, err)

		me := p.join("idle", "write")
		v := p.view("idle")
		require.Equal(t, control.StateRunning, v.State)
		require.Equal(t, "reviewer", v.Role)
		require.Contains(t, p.operate("query-agents", `{}`).(*wire.AgentList).Agents,
			wire.Agent{ID: "idle", Role: "reviewer", Status: "idle", Capabilities: []string{"read"}})
		start := p.ask(p.StartAgents, "idle")
		<-time.After(2 * time.Second)
		require.Equal(t, "runs, joined by pipe", start.outcomes()[0].Text)
		me.vanish()
		require.NoError(t, me.over())
		<-time.After(time.Minute)
		require.Equal(t, control.StateStopped, p.view("idle").State)
		require.NotContains(t, p.sequence(), "+idle")

		restart := p.join("idle")
		outcome := p.ask(p.RestartAgents, "idle")
		require.Contains(t, restart.hear(), `"notify:shutdown"`)
		restart.end()
		require.Equal(t, strings.TrimSuffix(wire.Farewell, "\n"), restart.hear())
		<-time.After(2 * time.Second)
		require.True(t, outcome.outcomes()[0].OK)
		require.Contains(t, p.sequence(), "+idle", "a restart is for its own command")
	})
}

func TestJoinIsRefused(t *testing.T) {
	raw := settings.Agent{Name: "raw", Profile: control.Profile{Description: "idle"}, Raw: true}
	waits := settings.Agent{Name: "waits", DependsOn: []string{"raw"}}
	pipes(t, []settings.Agent{{Name: "runs"}, raw, waits, {Name: "coder-0", Block: "coder"}}, func(t *testing.T, p *play) {
		for name, why := range map[string]string{
			"runs":  `agent "runs" runs its own command`,
			"raw":   `agent "raw" takes no messages`,
			"waits": `agent "waits" is waiting, and runs its own command`,
			"coder": `"coder" stands for the agents coder-0`,
		} {
			require.ErrorContains(t, p.join(name).over(), why)
		}
		me := p.join("me")
		second := p.join("me")
		<-time.After(2 * lately)
		require.ErrorContains(t, second.over(), `a program has already joined as "me"`)
		third := p.join("me")
		me.end()
		me.goodbye()
		third.ask("1", "query-agents", `{}`)
		require.Contains(t, third.hear(), `"correlationId":"1"`, "the name was free a moment later")
		third.end()
		third.goodbye()
	})
}

// TestJoinThatIsNotAccepted checks that a pipe that leaves before it was accepted leaves no trace.
func TestJoinThatIsNotAccepted(t *testing.T) {
	pipes(t, []settings.Agent{{Name: "idle", Profile: control.Profile{Description: "idle"}}}, func(t *testing.T, p *play) {
		for _, name := range []string{"idle", "me"} {
			gone := errors.New("gone")
			require.ErrorIs(t, p.Join(t.Context(), agentOf(t, name), func() (Conn, error) { return nil, gone }), gone)
		}
		require.Equal(t, []string{"idle"}, p.names())
		require.Equal(t, control.StateStopped, p.view("idle").State)
	})
}

func TestReloadWithGuests(t *testing.T) {
	pipes(t, []settings.Agent{{Name: "idle", Profile: control.Profile{Description: "idle"}}}, func(t *testing.T, p *play) {
		me, joined := p.join("me"), p.join("idle")
		heir := agentOf(t, "me")
		heir.Role = "reviewer"
		p.mu.Lock()
		p.parts["me"] = untilEOF
		p.mu.Unlock()
		next := agentOf(t, "idle")
		next.Role, next.Autostart = wire.RolePlanner, false
		reload := p.apply(Change{Action: settings.ActionStart, Name: "me", Agent: heir}, Change{Action: settings.ActionRestart, Name: "idle", Agent: next}).outcomes()
		require.Equal(t, "waits for the pipe with its name to end", reload[0].Text)
		require.Equal(t, "is joined through a pipe: the change applies when the pipe ends", reload[1].Text)
		require.Equal(t, wire.RoleWorker, p.view("me").Role)

		taken := p.apply(Change{Action: settings.ActionStop, Name: "me"})
		require.True(t, taken.outcomes()[0].OK)
		require.Equal(t, control.StateRunning, p.view("me").State, "a reload does not end a guest")
		p.apply(Change{Action: settings.ActionStart, Name: "me", Agent: heir})

		me.end()
		me.goodbye()
		v := p.view("me")
		require.Equal(t, control.StateRunning, v.State)
		require.Equal(t, "reviewer", v.Role)
		require.NotZero(t, v.PID)
		joined.end()
		joined.goodbye()
		require.Equal(t, wire.RolePlanner, p.view("idle").Role)
		require.Equal(t, control.StateStopped, p.view("idle").State)

		last := p.join("idle")
		removed := p.apply(Change{Action: settings.ActionStop, Name: "idle"})
		require.Contains(t, last.hear(), `"notify:shutdown"`)
		require.Equal(t, strings.TrimSuffix(wire.Farewell, "\n"), last.hear())
		last.end()
		require.NoError(t, last.over())
		require.True(t, removed.outcomes()[0].OK)
		require.Equal(t, []string{"me"}, p.names())
	})
}

// TestGuestsAmongOthers checks that a guest cannot be restarted, and that a team with a guest is
// not idle.
func TestGuestsAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := perform(t, Options{ExitWhenIdle: true}, []settings.Agent{{Name: "a"}}, map[string]part{"a": after(time.Minute, 0)})
		me := p.join("me")
		<-time.After(2 * time.Minute)
		restart := p.ask(p.RestartAgents, "me")
		require.Equal(t, "has joined through a pipe and keeps running", restart.outcomes()[0].Text)
		_, err := p.Status(ctx)
		require.NoError(t, err, "it is not over while somebody is there")
		me.end()
		me.goodbye()
		require.NoError(t, p.end())
	})
}
