package handlers

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// noise returns bytes that make all kinds of inputs.
func noise(seed uint64) []byte {
	chance := rand.New(rand.NewPCG(seed, 4))
	bytes := make([]byte, 3000)
	for i := range bytes {
		bytes[i] = byte(chance.IntN([]int{8, 26, 256}[chance.IntN(3)])) // short texts, and all kinds
	}
	return bytes
}

// decide handles an input after a lookup in the log. The first lookup may be out of date.
func (f *fuzzer) decide(in *Input) Outcome {
	if f.early {
		f.early = false
		shelf(f.records[:len(f.records)/2]).lookUp(f.state, in)
		out := f.state.Handle(*in)
		if !out.Again {
			return out
		}
		require.Empty(f.t, out.Records)
		require.Empty(f.t, out.Letters)
	}
	shelf(f.records).lookUp(f.state, in)
	out := f.state.Handle(*in)
	require.False(f.t, out.Again)
	return out
}

// mailName returns an actor that may have mail.
func (f *fuzzer) mailName() string {
	known := f.state.bus.All()
	if n := f.next(); n < len(known) {
		return known[n].ID
	}
	return []string{"HO:far", "PO:a", "W:0", "S:db:0", "broadcast", "Bus", "GO"}[f.next()%7]
}

// heldTask returns a task that an agent holds, or any task.
func (f *fuzzer) heldTask() string {
	if n := f.next(); n%4 > 0 {
		if a := f.state.agents.byID[f.name(n/4)]; a != nil && len(a.holds) > 0 {
			return a.holds[0].view.ID
		}
	}
	return f.task()
}

// mail makes a request about mail that is likely to be granted, or lets time pass.
func (f *fuzzer) mail(n int) {
	pick := func(of ...string) string { return of[f.next()%len(of)] }
	claim := func(key string) string {
		if f.next()%3 > 0 {
			return ""
		}
		return fmt.Sprintf(`%q:%q,`, key, f.mailName())
	}
	switch n {
	case 20:
		f.early = f.next()%2 == 0
		task, err := object.Encode(f.heldTask())
		require.NoError(f.t, err)
		topic := pick("message.direct", "heartbeat", "task.completed", "task.failed", "task.progress", "agent.terminated", "a.b", "topic.unknown", "broadcast.all")
		f.request("send-message", fmt.Sprintf(`{%s"to_actor":%q,"topic":%q,"payload":{"ticket_id":%s,"progress":0.5,"error":"e","result":%s},"reply_to":%s%s}`,
			claim("from_actor"), f.mailName(), topic, task, pick("null", `{}`, `{"$schema":"orchestratia/task-result/v1"}`), pick("null", "1", `"2"`, "9999"),
			pick("", `,"idempotency_key":"k"`, `,"idempotency_key":"l"`)))
	case 21:
		f.request("poll-messages", fmt.Sprintf(`{%s%s"limit":%d}`, claim("actor"), pick("", `"cursor":0,`, `"cursor":7,`), 1+f.next()))
	case 22:
		f.request("ack-messages", fmt.Sprintf(`{%s"seq":%d}`, claim("actor"), f.next()))
	case 23:
		f.request("heartbeat", fmt.Sprintf(`{%s"x":0}`, claim("actor")))
	case 24:
		f.at = f.at.Add(time.Duration(f.next()) * time.Second)
		if id := f.mailName(); f.next()%4 == 0 && mail.CheckActor(id) == "" {
			f.request("issue-token", fmt.Sprintf(`{"actor":%q,"overlap":%d,"ttl":60000}`, id, f.next()*1000))
		}
	case 25:
		f.state = restored(f.t, f.state.rules, spelled(f.t, f.state))
	}
}

// address turns a record into mail, sometimes into mail that no actor sends.
func (f *fuzzer) address(r *wire.Record) {
	pick := func(of ...string) string { return of[f.next()%len(of)] }
	r.From, r.To = pick("W:r0", "PO:a", "GO", "Bus", ""), pick("W:r0", "GO", "broadcast", "PO:later", "")
	r.Topic, r.Key = pick("message.direct", "heartbeat", "agent.spawned", "agent.terminated", ""), pick("", "k", "l")
	r.ReplyTo = int64(f.next() % 3)
	r.Correlation = pick("", `{"agent":"a0","id":"1","run":"r0","timestamp":"t","sum":1}`, `{"agent":"nobody","id":"1","run":"","timestamp":"","sum":1,"warnings":["w"]}`, `{`)
}
