package handlers

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// What happens at the edges of the life of an actor.

// atEnds is a player with agents of which one has a name.
func atEnds(t *testing.T) *player {
	p := newPlayer(t)
	p.play("acts named PO:named")
	p.play("agents: named(worker) plain(worker) other(worker)")
	p.play("up")
	p.play("start named")
	p.play("start plain")
	return p
}

// heard is what GO is told in all of somebody on a topic, in the words of its
// payload.
func (p *player) heard(topic, agent string) []string {
	var texts []string
	for _, r := range p.records {
		var said struct{ Alert, Agent, Actor, Run string }
		if r.Kind != wire.EventMail || r.Topic != topic || r.To != wire.ActorGlobal {
			continue
		}
		require.NoError(p.t, json.Unmarshal(r.Payload, &said))
		if said.Agent == agent {
			texts = append(texts, said.Run+said.Alert)
		}
	}
	return texts
}

// TestLateHeartbeat: a heartbeat is answered with when it was there, also when
// its process has gone in the meantime.
//
// Rows: E-64, E-66.
func TestLateHeartbeat(t *testing.T) {
	p := atEnds(t)
	p.play("at +1m")
	p.play("event agent.exited plain")
	p.play("> plain 1 heartbeat {}")
	require.Nil(t, p.last.Refused)
	require.Equal(t, object.Timestamp(p.at), p.last.Letters[0].Payload.(*wire.Beat).LastSeen)
}

// TestLastHeartbeat: nobody is missed so soon after a heartbeat, though it was the
// last.
//
// Rows: E-67, T-40.
func TestLastHeartbeat(t *testing.T) {
	p := atEnds(t)
	p.play("> named 1 heartbeat {}")
	p.play("at +2m")
	p.play("event agent.exited named")
	p.play("> named 2 heartbeat {}")
	p.play("at +4m")
	p.do(Actor{}, wire.Tick{})
	require.Empty(t, p.last.Records, "its heartbeat was there two minutes ago")
}

// TestEndAfterChange: GO hears how a run has ended, though the configuration has
// changed its agent since its process was gone.
//
// Rows: E-47, E-48.
func TestEndAfterChange(t *testing.T) {
	for code, topic := range []string{wire.TopicAgentTerminated, wire.TopicAlertFired} {
		for _, agent := range []string{"plain", "named"} {
			t.Run(fmt.Sprint(agent, " ", code), func(t *testing.T) {
				p := atEnds(t)
				p.play("event agent.exited " + agent)
				p.play("agents: named(worker; go) plain(worker; go) other(worker)")
				p.do(Actor{}, &wire.Event{Kind: wire.EventEnded, Agent: agent, Run: p.run(agent), Figures: wire.Figures{ExitCode: &code}})
				require.Len(t, p.heard(topic, agent), 1)
				p.play("start " + agent)
				require.Len(t, p.heard(wire.TopicAlertResolved, agent), code, "what was not said is not taken back")
				p.requireReplay()
			})
		}
	}
}

// apart is what was heard but for one thing.
func apart(heard []string, what string) []string {
	return slices.DeleteFunc(heard, func(s string) bool { return s == what })
}

// TestNameMoves: a name that the configuration gives to another agent is not
// missed as long as that does not run, and GO hears how the run has ended that
// had it.
//
// Rows: E-47, E-48, E-67, E-74.
func TestNameMoves(t *testing.T) {
	for code, topic := range []string{wire.TopicAgentTerminated, wire.TopicAlertFired} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			p := atEnds(t)
			p.play("acts other PO:named")
			p.play("agents: named(worker) plain(worker) other(worker)") // as in a reload: the one that has it is still there
			p.play("at +10m")
			p.do(Actor{}, wire.Tick{})
			require.Empty(t, p.heard(wire.TopicAlertFired, "other"), "it does not run")
			p.play("start other")
			p.do(Actor{}, &wire.Event{Kind: wire.EventEnded, Agent: "named", Run: p.run("named"), Figures: wire.Figures{ExitCode: &code}})
			require.Len(t, apart(p.heard(topic, "named"), wire.AlertStale), 1)
			p.play("acts named PO:another")
			p.play("agents: named(worker) plain(worker) other(worker)")
			p.play("start named")
			require.Len(t, apart(p.heard(wire.TopicAlertResolved, "named"), wire.AlertStale), code)
			p.play("exit other 0")
			require.Equal(t, []string{p.run("other")}, p.heard(wire.TopicAgentTerminated, "other"), "what another said is not its own")
			p.requireReplay()
		})
	}
}

// TestMissedAndGone: nobody is missed for ever. When it is gone with its
// orchestrator, or out of the configuration, GO hears that too.
//
// Rows: E-49, E-67.
func TestMissedAndGone(t *testing.T) {
	for name, lines := range map[string][]string{
		"killed with its orchestrator": {"restart", "up", "start plain"},
		"forgotten":                    {"agents: named(worker) other(worker)"},
	} {
		t.Run(name, func(t *testing.T) {
			p := atEnds(t)
			p.play("> plain 1 heartbeat {}")
			p.play("at +4m")
			p.do(Actor{}, wire.Tick{})
			require.Equal(t, []string{wire.AlertStale}, p.heard(wire.TopicAlertFired, "plain"))
			for _, line := range lines {
				p.play(line)
			}
			require.Contains(t, p.heard(wire.TopicAlertResolved, "plain"), wire.AlertStale)
			p.requireReplay()
		})
	}
}

// TestFarewellToAnother: that an agent has told somebody else that it ends is no
// reason to keep it from GO.
//
// Rows: E-47.
func TestFarewellToAnother(t *testing.T) {
	p := atEnds(t)
	p.play(`> plain 1 send-message {"to_actor":"PO:named","topic":"agent.terminated","payload":{}}`)
	p.play("exit plain 0")
	require.Len(t, p.heard(wire.TopicAgentTerminated, "plain"), 1)
}

// TestTokenOfAgent: a token from elsewhere does not speak for an agent, which has
// its own. The name was free when it was issued.
//
// Rows: E-74, E-76, E-78.
func TestTokenOfAgent(t *testing.T) {
	p := atEnds(t)
	p.play(`> operator 1 issue-token {"actor":"PO:free"}`)
	issued := p.last.Letters[0].Payload.(*wire.IssuedToken)
	actor, ok := p.state.ActorOf(HashKey(issued.Token), p.at)
	require.True(t, ok)
	require.Equal(t, "PO:free", actor)
	p.play("acts other PO:free")
	p.play("agents: named(worker) plain(worker) other(worker)")
	p.play("start other")
	_, ok = p.state.ActorOf(HashKey(issued.Token), p.at)
	require.False(t, ok, "two would be one")
}

// TestFailedWithResult: a task that has failed needs no result in the right form.
//
// Rows: E-44.
func TestFailedWithResult(t *testing.T) {
	p := atEnds(t)
	p.play(`> operator 1 submit-task {"type":"t","name":"one"}`)
	p.play(`> operator 2 assign-task {"taskId":"$one","agent":"plain"}`)
	p.play(`> plain 1 send-message {"to_actor":"GO","topic":"task.failed","payload":{"ticket_id":"$one","error":"e","result":{"$schema":"orchestratia/task-result/v1","contracts":7}}}`)
	require.Nil(t, p.last.Refused)
	require.Equal(t, wire.TaskFailed, p.task("one").view.State)
}

// TestComesToNothingTogether: an agent that ends had two tasks of which one waited
// for the other. What has come to nothing with the first is not given back.
//
// Rows: K-04, T-44, T-57.
func TestComesToNothingTogether(t *testing.T) {
	for name, test := range map[string]struct {
		ends     []string
		one, two wire.TaskState
	}{
		"its process ends":           {[]string{"exit dev 1"}, wire.TaskFailed, wire.TaskCancelled},
		"its orchestrator is killed": {[]string{"restart", "up"}, wire.TaskPending, wire.TaskPending},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t)
			for _, line := range append([]string{
				"rules: dependency-failure=cancel online-only=true",
				`able dev {"languages":["go"],"max_concurrent_tasks":4}`,
				"agents: dev(worker; ; 4; fail)",
				"up",
				"start dev",
				`> operator 1 submit-task {"type":"t","name":"one"}`,
				`> operator 2 submit-task {"type":"t","name":"two","requirements":{"languages":["go"]},"dependencies":["$one"]}`,
				`> operator 3 assign-task {"taskId":"$one","agent":"dev"}`,
				`> dev 1 start-task {"taskId":"$one"}`,
				`> operator 4 assign-task {"taskId":"$two","agent":"dev"}`,
			}, test.ends...) {
				p.play(line)
			}
			require.Equal(t, test.one, p.task("one").view.State)
			require.Equal(t, test.two, p.task("two").view.State)
			p.requireReplay()
		})
	}
}
