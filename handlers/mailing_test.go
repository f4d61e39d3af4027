package handlers

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// Actions of agents, people and external actors with mail.

// elsewhere lists actors that no agent ever has.
var elsewhere = []string{"HO:far", "PO:far", "W:far", "S:far:1", "IO:ann"}

// names lists actors that the configuration gives to agents.
var names = []string{"GO", "PO:one", "PO:two", "HO:three", "IO:four"}

// christen gives a member its first actor: some have a name, some another actor in each run.
func (m *inhabitant) christen(i int) {
	switch {
	case i < len(names):
		m.Actor = names[i]
	case i < 8:
		m.Actor = "S:db"
	case i == 8:
		m.Actor = "W"
	}
}

// rename gives a member another actor. The member that had it loses it, at once or when its run
// has ended.
func (w *world) rename(m *inhabitant) {
	m.yields, m.Actor = false, w.one(append([]string{"", "W", "S:db", "S:ui"}, names...)...)
	if mail.PerRun(m.writes()) {
		return
	}
	for _, o := range w.members {
		if o == m || o.Actor != m.Actor {
			continue
		}
		if o.yields = o.listed && o.up && w.chance.IntN(2) == 0; !o.yields {
			o.Actor = ""
		}
	}
}

func (m *inhabitant) writes() string { return (&state.KnownAgent{Member: m.Member}).Writes() }

// yield has an ended member give up an actor that another one has by now.
func (w *world) yield(m *inhabitant) {
	if m.yields {
		m.yields, m.Actor = false, ""
		w.enlist()
	}
}

// post makes one random request about mail.
func (w *world) post(m *inhabitant) {
	from := w.anyCaller(m)
	switch w.chance.IntN(8) {
	case 0:
		from = Actor{Kind: External, Name: w.one(elsewhere...)}
	case 1:
		from = Actor{Kind: Operator, Name: w.one("ann", "bob", "no one")}
	}
	switch n := w.chance.IntN(100); {
	case n < 40:
		w.send(from)
	case n < 50:
		w.reportByMail(m)
	case n < 62:
		w.request(from, "poll-messages", "{"+w.claim(from, "actor")+w.one("", "", fmt.Sprintf(`"cursor":%d,`, w.someSeq()))+w.one("", `"limit":3,`)+`"x":0}`)
	case n < 73:
		seq := w.someSeq()
		out := w.request(from, "ack-messages", fmt.Sprintf(`{%s"seq":%d}`, w.claim(from, "actor"), seq))
		w.must(out.Refused != nil || seq <= w.state.Seq(), "%d is acked, and there is none", seq)
	case n < 92:
		w.request(from, "heartbeat", "{"+w.claim(from, "actor")+`"x":0}`)
	case n < 96:
		w.pass(from)
	default:
		out := w.request(from, w.one("list-actors", "list-topics", "query-agents"), "{}")
		w.must((out.Refused == nil) || from.Kind == External, "%v", out.Refused)
	}
}

// someSeq returns the number of a record, sometimes of one that does not exist yet.
func (w *world) someSeq() int64 {
	switch last := w.state.Seq(); w.chance.IntN(8) {
	case 0:
		return w.chance.Int64N(last + 1)
	case 1:
		return last + w.chance.Int64N(3)
	case 2:
		return 0
	default:
		return max(0, last-w.chance.Int64N(200))
	}
}

// claim returns a payload member that names the actor of the caller. Mostly it is empty;
// sometimes it is false.
func (w *world) claim(from Actor, key string) string {
	id := w.bus.identity(from, "")
	switch n := w.chance.IntN(12); {
	case n == 0 || n < 6 && from == Actor{Kind: Operator}:
		id = w.one(append(names, elsewhere...)...)
	case n < 8:
		return ""
	}
	if id == "" {
		return ""
	}
	return fmt.Sprintf("%q:%q,", key, id)
}

// anyRecipient returns a recipient of mail, which may not exist.
func (w *world) anyRecipient() string {
	switch w.chance.IntN(10) {
	case 0:
		return w.one("broadcast", "broadcast", "Bus", "Governor")
	case 1:
		return w.one("HO:later", "W:nobody", "S:db:nobody")
	case 2, 3:
		return w.one(elsewhere...)
	case 4, 5:
		return w.one(names...)
	}
	m := w.members[w.chance.IntN(len(w.members))]
	if v := w.bus.lives[m.ID]; v != nil && v.actor != "" {
		return v.actor
	}
	return "GO"
}

var topics = []string{
	"message.direct", "message.direct", "broadcast.all", "build.finished", "build.begun", "a", "topic.unknown", "alert.fired", "agent.spawned",
	"agent.terminated", "heartbeat", "heartbeat", "task.assigned", "task.failed",
}

// send sends a message.
func (w *world) send(from Actor) {
	payload := fmt.Sprintf(`{"step":%d}`, w.steps)
	if w.chance.IntN(4) == 0 {
		payload = fmt.Sprintf(`{ "n" : 12345678901234567890, "text":"<é\u00e9>", "idempotency_key":"k", "ticket_id":%q }`, w.someTask())
	}
	text := w.claim(from, "from_actor") + fmt.Sprintf(`"to_actor":%q,"topic":%q,"payload":%s`, w.anyRecipient(), w.one(topics...), payload)
	switch w.chance.IntN(6) {
	case 0:
		text += fmt.Sprintf(`,"reply_to":%d`, 1+w.someSeq())
	case 1:
		text += fmt.Sprintf(`,"reply_to":"%d"`, 1+w.someSeq())
	}
	if w.chance.IntN(3) == 0 {
		text += fmt.Sprintf(`,"idempotency_key":"k%d"`, w.chance.IntN(60))
	}
	w.request(from, "send-message", "{"+text+"}")
}

// reportByMail has an agent report by mail on a task, which it may not have.
func (w *world) reportByMail(m *inhabitant) {
	if !m.up && !m.dying {
		return
	}
	id, mine := w.someTask(), false
	if holds := w.state.TasksOf(m.ID); len(holds) > 0 && w.chance.IntN(4) > 0 {
		held := holds[w.chance.IntN(len(holds))]
		id, mine = held.ID, held.State == wire.TaskRunning
	}
	topic := w.one(mail.TopicTaskCompleted, mail.TopicTaskFailed, mail.TopicTaskProgress)
	before := w.saw["by mail: "+events.TaskProgress] + w.saw["by mail: "+events.TaskFailed]
	out := w.request(m.actor(), "send-message", fmt.Sprintf(
		`{"to_actor":"GO","topic":%q,"payload":{%q:%q,"progress":0.5,"error":"no","result":%s},"reply_to":%s}`,
		topic, w.one("ticket_id", "task_id", "taskId"), id, w.result(), w.one("null", "1")))
	after := w.saw["by mail: "+events.TaskProgress] + w.saw["by mail: "+events.TaskFailed]
	w.must(!mine || out.Refused != nil || topic == mail.TopicTaskCompleted || after > before, "%s of %s by mail, and it was not heeded", topic, id)
}

// pass makes one random request about tokens of actors.
func (w *world) pass(from Actor) {
	id := w.one(append(names, elsewhere...)...)
	if w.chance.IntN(3) == 0 {
		out := w.request(Actor{Kind: Operator}, "list-tokens", "{}")
		all := out.Letters[len(out.Letters)-1].Payload.(*wire.CredentialList).Credentials
		if len(all) > 8 {
			w.request(Actor{Kind: Operator}, "revoke-token", fmt.Sprintf(`{"id":%q}`, all[w.chance.IntN(len(all))].ID))
		}
		return
	}
	out := w.request(from, "issue-token", fmt.Sprintf(`{"actor":%q,"overlap":%d%s}`, id, w.chance.IntN(3)*60_000, w.one("", `,"ttl":90000`)))
	may := from.Kind == Operator || w.bus.identity(from, "") == mail.Global
	w.must((out.Refused == nil) == (may && w.bus.whose[id] == ""), "%v makes a token for %s: %v", from, id, out.Refused)
}

// key is a key of an agent, and the time until which it is valid.
type key struct {
	agent string
	until time.Time // zero: as long as the agent exists
}

// enroll has a member that is not in the configuration register as a server.
func (w *world) enroll(m *inhabitant) {
	out := w.request(Actor{Kind: Operator}, "issue-registration", fmt.Sprintf(`{"name":%q}`, m.ID))
	token := out.Letters[len(out.Letters)-1].Payload.(*wire.IssuedRegistration).Token
	capabilities := ""
	if w.chance.IntN(4) > 0 {
		capabilities = fmt.Sprintf(`,"capabilities":%s`, w.abilities(1+w.chance.IntN(3)))
	}
	payload := fmt.Sprintf(`{"name":%q,"registration_token":%q%s}`, m.ID, token, capabilities)
	out = w.request(Actor{Kind: Anonymous}, "register-agent", payload)
	w.must(out.Refused == nil, "%v", out.Refused)
	m.far, m.up, m.dying, m.run = true, true, false, ""
	require.NotNil(w.t, w.request(Actor{Kind: Anonymous}, "register-agent", payload).Refused, "the token is spent")
}

// administer has a person change keys and tokens.
func (w *world) administer(m *inhabitant) {
	person := Actor{Kind: Operator}
	switch w.chance.IntN(6) {
	case 0:
		w.request(person, "issue-key", fmt.Sprintf(`{"agent":%q}`, m.ID))
	case 1:
		w.request(person, "rotate-key", fmt.Sprintf(`{"agent":%q,"overlap":%d}`, m.ID, w.chance.IntN(3)*60_000))
	case 2:
		out := w.request(person, "list-keys", "{}")
		all := out.Letters[len(out.Letters)-1].Payload.(*wire.CredentialList).Credentials
		if len(all) > 10 {
			w.request(person, "revoke-key", fmt.Sprintf(`{"id":%q}`, all[w.chance.IntN(len(all))].ID))
		}
	case 3:
		out := w.request(person, "issue-token", `{"sub":"ann","ttl":60000}`)
		token := out.Letters[len(out.Letters)-1].Payload.(*wire.IssuedToken)
		w.must(w.state.TokenIssued(token.ID), "a token that was issued does not hold")
		if w.chance.IntN(2) == 0 {
			w.request(person, "revoke-token", fmt.Sprintf(`{"id":%q}`, token.ID))
			w.must(!w.state.TokenIssued(token.ID), "a token that was revoked holds")
		}
	case 4:
		if m.far && m.up && w.chance.IntN(2) == 0 {
			w.enroll(m) // registering again revokes its keys
			break
		}
		w.request(person, "interrupt-agent", fmt.Sprintf(`{"agent":%q,"message":"stop"}`, m.ID))
	default:
		w.tryKeys()
	}
}

// hearKey follows the keys.
func (w *world) hearKey(r *wire.Record) {
	switch r.Kind {
	case events.KeyIssued, events.KeyRotated, events.ServerRegistered, events.KeyRevoked, events.AgentKnown:
	default:
		return
	}
	f, err := state.Decode(r, new([]object.Member))
	w.must(err == nil, "%v", err)
	switch f := f.(type) {
	case *state.KeyIssued:
		w.keys[f.Hash] = &key{agent: f.Agent}
	case *state.KeysRotated:
		until, _ := object.ParseTime(f.Until)
		for _, k := range w.keys {
			if k.agent == f.Agent && (k.until.IsZero() || until.Before(k.until)) {
				k.until = until
			}
		}
		w.keys[f.Hash] = &key{agent: f.Agent}
	case *state.ServerRegistered:
		w.servers[f.Agent] = true
		w.forgetKeys(f.Agent)
		w.keys[f.Hash] = &key{agent: f.Agent}
	case *state.KeyRevoked:
		for hash := range w.keys {
			if "k"+hash[:8] == f.ID {
				delete(w.keys, hash)
			}
		}
	case *state.AgentKnown:
		if w.servers[f.ID] {
			delete(w.servers, f.ID)
			w.forgetKeys(f.ID)
		}
	}
}

func (w *world) forgetKeys(agent string) {
	for hash, k := range w.keys {
		if k.agent == agent {
			delete(w.keys, hash)
		}
	}
}

// tryKeys checks that a key acts for its agent as long as both exist.
func (w *world) tryKeys() {
	for hash, k := range w.keys {
		name, ok := w.state.AgentOf(hash, w.at)
		holds := (k.until.IsZero() || k.until.After(w.at)) && w.state.Agents.ByID[k.agent] != nil
		w.must(ok == holds && (!ok || name == k.agent), "a key of %s, good until %v, speaks for %q: %t", k.agent, k.until, name, ok)
		w.saw[fmt.Sprintf("a key holds: %t", ok)]++
	}
}
