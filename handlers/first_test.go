package handlers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

func TestFirst(t *testing.T) {
	s := New(Rules{})
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	var all []wire.Record
	n := byte(0)
	do := func(from Actor, m wire.Message) Outcome {
		n++
		if r, ok := m.(*wire.Request); ok {
			r.Timestamp = "2026-11-21T14:00:00Z"
			if err := Prepare(r, 64); err != nil {
				t.Fatal(err)
			}
		}
		out := s.Handle(Input{At: at, From: from, Message: m, Random: [16]byte{n}})
		require.NoError(t, out.Fault)
		all = append(all, out.Records...)
		for _, r := range out.Records {
			t.Log(r.Seq, r.From, r.To, r.Kind, string(r.Payload), "|", Tell(r).Text)
		}
		for _, l := range out.Letters {
			b := wire.Envelope{ID: "x", At: at}
			if l.Notice != "" {
				t.Log("  to", l.To, string(b.AppendNotice(nil, l.Notice, l.Payload)))
			} else {
				t.Log("  to", l.To, string(b.AppendAnswer(nil, l.Request, l.Payload, l.Refusal)))
			}
		}
		return out
	}
	do(Actor{}, &wire.Roster{Agents: []wire.Member{{ID: "p", Role: "planner", Capacity: 1, OnExit: "auto"}, {ID: "w", Role: "worker", Capacity: 1, OnExit: "auto"}}})
	do(Actor{}, &wire.Event{Kind: wire.EventUp})
	do(Actor{}, &wire.Event{Kind: wire.EventStarted, Agent: "p", Run: "r1"})
	do(Actor{}, &wire.Event{Kind: wire.EventStarted, Agent: "w", Run: "r2"})
	p := Actor{Kind: Agent, Name: "p", Run: "r1"}
	w := Actor{Kind: Agent, Name: "w", Run: "r2"}
	do(p, &wire.Request{ID: "1", Operation: "submit-task", Payload: []byte(`{"type":"t","name":"n","requiredRole":"worker","payload":{"n":12345678901234567890,"h":"<a&b>"}}`)})
	id := s.list[0].view.ID
	do(Actor{}, &wire.Told{Agent: "w", Run: "r2", Task: id})
	do(p, &wire.Request{ID: "1", Operation: "submit-task", Payload: []byte(`{"type":"t","name":"n","requiredRole":"worker","payload":{"n":12345678901234567890,"h":"<a&b>"}}`)})
	do(w, &wire.Request{ID: "1", Operation: "complete-task", Payload: []byte(`{"taskId":"` + id + `","result":"ok"}`)})
	do(p, &wire.Request{ID: "2", Operation: "get-task", Payload: []byte(`{"taskId":"` + id + `"}`)})
	do(p, &wire.Request{ID: "3", Operation: "ask-user", Payload: []byte(`{"question":"which?","options":[{"label":"A","value":"a"}]}`)})
	do(Actor{Kind: Operator}, &wire.Request{ID: "h", Operation: "answer-question", Payload: []byte(`{"questionId":"q1","answer":"a"}`)})
	replayed := New(Rules{})
	for _, r := range all {
		require.NoError(t, replayed.Apply(r))
	}
	a, err := s.Snapshot()
	require.NoError(t, err)
	b, err := replayed.Snapshot()
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))
	c, ok := Restore(Rules{}, a)
	require.True(t, ok)
	d, err := c.Snapshot()
	require.NoError(t, err)
	require.Equal(t, string(a), string(d))
	t.Log(string(a))
}
