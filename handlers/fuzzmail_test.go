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
func (z *fuzzer) decide(in *Input) Outcome {
	if z.early {
		z.early = false
		shelf(z.records[:len(z.records)/2]).lookUp(z.state, in)
		out := z.state.Handle(*in)
		if !out.Again {
			return out
		}
		require.Empty(z.t, out.Records)
		require.Empty(z.t, out.Letters)
	}
	shelf(z.records).lookUp(z.state, in)
	out := z.state.Handle(*in)
	require.False(z.t, out.Again)
	return out
}

// mailName returns an actor that may have mail.
func (z *fuzzer) mailName() string {
	known := z.state.bus.order
	if n := z.next(); n < len(known) {
		return known[n].id
	}
	return []string{"HO:far", "PO:a", "W:0", "S:db:0", "broadcast", "Bus", "GO"}[z.next()%7]
}

// heldTask returns a task that an agent holds, or any task.
func (z *fuzzer) heldTask() string {
	if n := z.next(); n%4 > 0 {
		if a := z.state.agents.byID[z.name(n/4)]; a != nil && len(a.holds) > 0 {
			return a.holds[0].view.ID
		}
	}
	return z.task()
}

// mail makes a request about mail that is likely to be granted, or lets time pass.
func (z *fuzzer) mail(n int) {
	pick := func(of ...string) string { return of[z.next()%len(of)] }
	claim := func(key string) string {
		if z.next()%3 > 0 {
			return ""
		}
		return fmt.Sprintf(`%q:%q,`, key, z.mailName())
	}
	switch n {
	case 20:
		z.early = z.next()%2 == 0
		task, err := object.Encode(z.heldTask())
		require.NoError(z.t, err)
		topic := pick("message.direct", "heartbeat", "task.completed", "task.failed", "task.progress", "agent.terminated", "a.b", "topic.unknown", "broadcast.all")
		z.request("send-message", fmt.Sprintf(`{%s"to_actor":%q,"topic":%q,"payload":{"ticket_id":%s,"progress":0.5,"error":"e","result":%s},"reply_to":%s%s}`,
			claim("from_actor"), z.mailName(), topic, task, pick("null", `{}`, `{"$schema":"orchestratia/task-result/v1"}`), pick("null", "1", `"2"`, "9999"),
			pick("", `,"idempotency_key":"k"`, `,"idempotency_key":"l"`)))
	case 21:
		z.request("poll-messages", fmt.Sprintf(`{%s%s"limit":%d}`, claim("actor"), pick("", `"cursor":0,`, `"cursor":7,`), 1+z.next()))
	case 22:
		z.request("ack-messages", fmt.Sprintf(`{%s"seq":%d}`, claim("actor"), z.next()))
	case 23:
		z.request("heartbeat", fmt.Sprintf(`{%s"x":0}`, claim("actor")))
	case 24:
		z.at = z.at.Add(time.Duration(z.next()) * time.Second)
		if id := z.mailName(); z.next()%4 == 0 && mail.CheckActor(id) == "" {
			z.request("issue-token", fmt.Sprintf(`{"actor":%q,"overlap":%d,"ttl":60000}`, id, z.next()*1000))
		}
	case 25:
		z.state = restored(z.t, z.state.rules, spelled(z.t, z.state))
	}
}

// address turns a record into mail, sometimes into mail that no actor sends.
func (z *fuzzer) address(r *wire.Record) {
	pick := func(of ...string) string { return of[z.next()%len(of)] }
	r.From, r.To = pick("W:r0", "PO:a", "GO", "Bus", ""), pick("W:r0", "GO", "broadcast", "PO:later", "")
	r.Topic, r.Key = pick("message.direct", "heartbeat", "agent.spawned", "agent.terminated", ""), pick("", "k", "l")
	r.ReplyTo = int64(z.next() % 3)
	r.Correlation = pick("", `{"agent":"a0","id":"1","run":"r0","timestamp":"t","sum":1}`, `{"agent":"nobody","id":"1","run":"","timestamp":"","sum":1,"warnings":["w"]}`, `{`)
}
