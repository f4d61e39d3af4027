package handlers

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/access"
	"orchestrator/handlers/bus"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// The tests of the start and end of an actor.

// atEnds returns a player with agents. One of them has a name.
func atEnds(t *testing.T) *player {
	p := newPlayer(t)
	p.play("acts named PO:named")
	p.play("agents: named(worker) plain(worker) other(worker)")
	p.play("up")
	p.play("start named")
	p.play("start plain")
	return p
}

// heard returns all that GO hears about an agent on a topic, in the words of its payload.
func (p *player) heard(topic, agent string) []string {
	var texts []string
	for _, r := range p.records {
		var said struct{ Alert, Agent, Actor, Run string }
		if r.Kind != events.MessageSent || r.Topic != topic || r.To != mail.Global {
			continue
		}
		require.NoError(p.t, json.Unmarshal(r.Payload, &said))
		if said.Agent == agent {
			texts = append(texts, said.Run+said.Alert)
		}
	}
	return texts
}

// TestLateHeartbeat checks that a heartbeat is answered with the time of its arrival, even if the
// process is gone by then.
//
// Rows: E-64, E-66.
func TestLateHeartbeat(t *testing.T) {
	p := atEnds(t)
	p.play("at +1m")
	p.play("event agent.exited plain")
	p.play("> plain 1 heartbeat {}")
	require.Nil(t, p.last.Refused)
	require.Equal(t, object.Timestamp(p.at), p.last.Letters[0].Payload.(*mail.Beat).LastSeen)
}

// TestLastHeartbeat checks that no alert fires soon after a heartbeat, even if it was the last.
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

// TestEndAfterChange checks that GO hears how a run ended, even if the configuration changed the
// agent after the process was gone.
//
// Rows: E-47, E-48.
func TestEndAfterChange(t *testing.T) {
	for code, topic := range []string{mail.TopicAgentTerminated, mail.TopicAlertFired} {
		for _, agent := range []string{"plain", "named"} {
			t.Run(fmt.Sprint(agent, " ", code), func(t *testing.T) {
				p := atEnds(t)
				p.play("event agent.exited " + agent)
				p.play("agents: named(worker; go) plain(worker; go) other(worker)")
				p.do(Actor{}, &wire.Event{Kind: events.AgentEnded, Agent: agent, Run: p.run(agent), Figures: wire.Figures{ExitCode: &code}})
				require.Len(t, p.heard(topic, agent), 1)
				p.play("start " + agent)
				require.Len(t, p.heard(mail.TopicAlertResolved, agent), code, "what was not said is not taken back")
				p.requireReplay()
			})
		}
	}
}

// apart returns what was heard without one text.
func apart(heard []string, what string) []string {
	return slices.DeleteFunc(heard, func(s string) bool { return s == what })
}

// TestNameMoves checks a name that the configuration gives to another agent. No alert fires for it
// while that agent does not run, and GO hears how the run that had it ended.
//
// Rows: E-47, E-48, E-67, E-74.
func TestNameMoves(t *testing.T) {
	for code, topic := range []string{mail.TopicAgentTerminated, mail.TopicAlertFired} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			p := atEnds(t)
			p.play("acts other PO:named")
			p.play("agents: named(worker) plain(worker) other(worker)") // as in a reload: the old agent is still there
			p.play("at +10m")
			p.do(Actor{}, wire.Tick{})
			require.Empty(t, p.heard(mail.TopicAlertFired, "other"), "it does not run")
			p.play("start other")
			p.do(Actor{}, &wire.Event{Kind: events.AgentEnded, Agent: "named", Run: p.run("named"), Figures: wire.Figures{ExitCode: &code}})
			require.Len(t, apart(p.heard(topic, "named"), mail.AlertStale), 1)
			p.play("acts named PO:another")
			p.play("agents: named(worker) plain(worker) other(worker)")
			p.play("start named")
			require.Len(t, apart(p.heard(mail.TopicAlertResolved, "named"), mail.AlertStale), code)
			p.play("exit other 0")
			require.Equal(t, []string{p.run("other")}, p.heard(mail.TopicAgentTerminated, "other"), "what another said is not its own")
			p.requireReplay()
		})
	}
}

// TestMissedAndGone checks that an alert does not stay forever. It is resolved when the agent
// ended with its orchestrator or left the configuration.
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
			require.Equal(t, []string{mail.AlertStale}, p.heard(mail.TopicAlertFired, "plain"))
			for _, line := range lines {
				p.play(line)
			}
			require.Contains(t, p.heard(mail.TopicAlertResolved, "plain"), mail.AlertStale)
			p.requireReplay()
		})
	}
}

// TestFarewellToAnother checks that GO hears of an end even if the agent reported it to another
// actor.
//
// Rows: E-47.
func TestFarewellToAnother(t *testing.T) {
	p := atEnds(t)
	p.play(`> plain 1 send-message {"to_actor":"PO:named","topic":"agent.terminated","payload":{}}`)
	p.play("exit plain 0")
	require.Len(t, p.heard(mail.TopicAgentTerminated, "plain"), 1)
}

// TestTokenOfAgent checks that a token of an external actor does not act for an agent. The name
// was free when it was issued.
//
// Rows: E-74, E-76, E-78.
func TestTokenOfAgent(t *testing.T) {
	p := atEnds(t)
	p.play(`> operator 1 issue-token {"actor":"PO:free"}`)
	issued := p.last.Letters[0].Payload.(*wire.IssuedToken)
	actor, ok := p.state.ActorOf(access.Hash(issued.Token), p.at)
	require.True(t, ok)
	require.Equal(t, "PO:free", actor)
	p.play("acts other PO:free")
	p.play("agents: named(worker) plain(worker) other(worker)")
	p.play("start other")
	_, ok = p.state.ActorOf(access.Hash(issued.Token), p.at)
	require.False(t, ok, "two would be one")
}

// TestFailedWithResult checks that a failed task needs no valid result.
//
// Rows: E-44.
func TestFailedWithResult(t *testing.T) {
	p := atEnds(t)
	p.play(`> operator 1 submit-task {"type":"t","name":"one"}`)
	p.play(`> operator 2 assign-task {"taskId":"$one","agent":"plain"}`)
	p.play(`> plain 1 send-message {"to_actor":"GO","topic":"task.failed","payload":{"ticket_id":"$one","error":"e","result":{"$schema":"orchestratia/task-result/v1","contracts":7}}}`)
	require.Nil(t, p.last.Refused)
	require.Equal(t, wire.TaskFailed, p.task("one").View.State)
}

// TestComesToNothingTogether checks the end of an agent with two tasks. One waits for the other. A
// task that ends with the other one is not requeued.
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
			require.Equal(t, test.one, p.task("one").View.State)
			require.Equal(t, test.two, p.task("two").View.State)
			p.requireReplay()
		})
	}
}

// TestKeyAgain checks a message with a key that was looked up before keys were forgotten. It is not
// decided: it has no records, no letters and no effect. After a new lookup there is one message
// with its key.
//
// Rows: E-10, E-16, E-60, T-23, T-37.
func TestKeyAgain(t *testing.T) {
	p := newPlayer(t)
	p.play("acts one PO:one")
	p.play("agents: one(worker)")
	p.play("start one")
	send := func(from Actor, key string) *wire.Request {
		p.chance++
		return &wire.Request{ID: fmt.Sprint("r", p.chance), Operation: "send-message", Timestamp: "t", Body: &wire.SendMessage{
			To: "GO", Topic: "message.direct", Payload: wire.Raw(`{"key":"` + key + `"}`), Key: key,
		}}
	}
	// decide handles a request after a lookup in the first records.
	decide := func(from Actor, r *wire.Request, looked int) Outcome {
		in := Input{At: p.at, From: from, Message: r}
		shelf(p.records[:looked]).lookUp(p.state, &in)
		out := p.state.Handle(in)
		require.NoError(t, out.Fault)
		p.records = append(p.records, out.Records...)
		return out
	}
	one, far := Actor{Kind: Agent, Name: "one", Run: "one.1"}, Actor{Kind: External, Name: "HO:far"}
	early := len(p.records)
	first := send(one, "k0")
	require.Len(t, decide(one, first, early).Records, 1)
	seq := p.state.Seq()
	for i := range bus.MaxKeys {
		require.Len(t, decide(far, send(far, fmt.Sprint("k", i)), len(p.records)).Records, 1)
	}
	require.NoError(t, p.state.Bus.Keys.Check())
	for name, restart := range map[string]func() *State{
		"as it was": func() *State { return p.state },
		"replayed":  p.replayed,
		"restored":  func() *State { return restored(t, p.rules, spelled(t, p.state)) },
	} {
		t.Run(name, func(t *testing.T) {
			p.state = restart()
			for _, test := range []struct {
				from  Actor
				key   string
				there int64 // the message with this key; 0: none yet
			}{{one, "k0", seq}, {one, "new " + name, 0}, {far, "new " + name, 0}} {
				before, r := spelled(t, p.state), send(test.from, test.key)
				out := decide(test.from, r, early)
				require.True(t, out.Again)
				require.Empty(t, out.Records)
				require.Empty(t, out.Letters)
				require.Nil(t, out.Refused)
				require.False(t, out.Waits)
				require.Equal(t, before, spelled(t, p.state))
				out = decide(test.from, r, len(p.records))
				require.False(t, out.Again)
				require.Len(t, out.Letters, 1)
				sent := out.Letters[0].Payload.(*mail.Sent)
				if test.there != 0 {
					require.Empty(t, out.Records)
					require.True(t, sent.Duplicate)
					require.Equal(t, test.there, sent.Seq)
					whole, err := state.Complete(sent, out.Letters[0].Pages, shelf(p.records))
					require.NoError(t, err)
					require.Equal(t, "PO:one", whole.(*mail.Sent).From)
					require.JSONEq(t, `{"key":"k0"}`, string(whole.(*mail.Sent).Payload))
					continue
				}
				require.Len(t, out.Records, 1)
				require.Equal(t, test.key, out.Records[0].Key)
				require.Empty(t, decide(test.from, send(test.from, test.key), len(p.records)).Records)
			}
		})
	}
	out := decide(one, first, early)
	require.False(t, out.Again, "an answer that is remembered needs no look")
	require.Empty(t, out.Records)
	require.Len(t, out.Letters, 1)
}

// TestAgainOfServer checks that an undecided message of a server has no effect either. That the
// server was seen is recorded with the message.
//
// Rows: E-16, E-60.
func TestAgainOfServer(t *testing.T) {
	p := newPlayer(t)
	p.play("> operator 1 issue-registration {}")
	p.play(`> newcomer 2 register-agent {"name":"far","registration_token":"$TOKEN"}`)
	p.state = restored(t, p.rules, spelled(t, p.state)) // earlier messages are forgotten
	p.play("at +1m")
	r := &wire.Request{ID: "1", Operation: "send-message", Timestamp: "t", Body: &wire.SendMessage{
		To: "GO", Topic: "message.direct", Payload: wire.Raw(`{}`), Key: "k",
	}}
	from := Actor{Kind: Agent, Name: "far"}
	out := p.state.Handle(Input{At: p.at, From: from, Message: r})
	require.True(t, out.Again)
	require.Empty(t, out.Records)
	out = p.do(from, r)
	require.False(t, out.Again)
	require.Len(t, out.Records, 2)
	p.requireReplay()
}

// TestActorsOfRuns checks that the actor of a single run is known as long as late messages of
// the run may come. The number of actors does not grow with the runs.
//
// Rows: E-72, E-73.
func TestActorsOfRuns(t *testing.T) {
	p := newPlayer(t)
	p.play("acts two S:db")
	p.play("acts three PO:three")
	p.play("agents: one(worker) two(worker) three(worker) four(worker)")
	for n := range 200 {
		p.play("up")
		for _, who := range []string{"one", "two", "three", "four"} {
			p.play("start " + who)
			p.play("> " + who + ` 1 heartbeat {}`)
			p.play("> " + who + ` 2 ack-messages {"seq":1}`)
			p.play("> " + who + ` 3 send-message {"to_actor":"W:` + p.run("one") + `","topic":"message.direct","payload":{}}`)
			require.Nil(t, p.last.Refused)
		}
		if n%2 == 0 {
			p.play("exit one 0")
			p.play("exit two 1")
			p.play("stop three 0")
		}
		if n%8 == 0 {
			p.state = p.replayed()
		}
		require.Len(t, p.state.Bus.All(), 5)
		require.LessOrEqual(t, len(p.state.Bus.Expected()), 4)
		requireSoundBus(t, p.state)
	}
	p.requireReplay()
}
