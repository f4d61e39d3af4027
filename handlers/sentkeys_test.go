package handlers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/bus"
	"orchestrator/wire"
)

// TestKeyAgain checks a message whose key was looked up before keys were forgotten. It is not
// decided: there are no records, no letters and no change. After a new lookup there is one
// message with its key.
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
	require.NoError(t, p.state.bus.Keys.Check())
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
				sent := out.Letters[0].Payload.(*wire.Sent)
				if test.there != 0 {
					require.Empty(t, out.Records)
					require.True(t, sent.Duplicate)
					require.Equal(t, test.there, sent.Seq)
					whole, err := Complete(sent, out.Letters[0].Pages, shelf(p.records))
					require.NoError(t, err)
					require.Equal(t, "PO:one", whole.(*wire.Sent).From)
					require.JSONEq(t, `{"key":"k0"}`, string(whole.(*wire.Sent).Payload))
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
	p.state = restored(t, p.rules, spelled(t, p.state)) // earlier messages are not known any more
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
		require.Len(t, p.state.bus.All(), 5)
		require.LessOrEqual(t, len(p.state.bus.Expected()), 4)
		requireSoundBus(t, p.state)
	}
	p.requireReplay()
}
