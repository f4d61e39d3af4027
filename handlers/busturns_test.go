package handlers

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// The checks of the mail of one turn.

// identity returns the actor that the credential names, or "".
func (l *ledger) identity(from Actor, claimed string) string {
	switch {
	case from.Kind == External:
		return from.Name
	case from.Kind == Operator && from.Name != "":
		if id := "IO:" + from.Name; mail.CheckActor(id) == "" {
			return id
		}
	case from.Kind == Operator && claimed != "":
		return claimed
	case from.Kind == Operator:
		return mail.Global
	case from.Kind == Agent && l.isOf(from.Name):
		return l.lives[from.Name].actor
	}
	return ""
}

// lookAtMail checks the mail of a turn and the replies about it. Mail without a sender comes
// from the bus: about a run, a silent actor, or a message.
func (w *world) lookAtMail(in *Input, out *Outcome) {
	w.must(w.bus.about == "", "%s is stale, or is not, and GO is not told", w.bus.about)
	var received []*wire.Record
	for i := range out.Records {
		if out.Records[i].Kind == events.MessageSent {
			received = append(received, &out.Records[i])
		}
	}
	switch m := in.Message.(type) {
	case *wire.Request:
		received = w.lookAtAsked(in, m, out, received)
	case *wire.Event:
		received = w.lookAtLife(m, received)
	}
	for _, r := range received {
		if w.isLateAnswer(in, r) {
			continue
		}
		known := r.Topic == mail.TopicAlertFired || r.Topic == mail.TopicAlertResolved
		w.must(r.From == mail.Bus && r.To == mail.Global && known, "%s -> %s %s %s, and nobody has sent it", r.From, r.To, r.Topic, r.Payload)
	}
}

// isLateAnswer reports whether a message has the answer to a question of a caller that did not wait
// for it. It is for the run that the agent has now, and sent when a person answers or the run
// starts.
func (w *world) isLateAnswer(in *Input, r *wire.Record) bool {
	if id, _ := object.TextOf(r.Payload, "questionId"); id == "" || r.From != mail.Global || r.Topic != mail.TopicDirect {
		return false
	}
	e, happened := in.Message.(*wire.Event)
	q, asked := in.Message.(*wire.Request)
	w.must(happened && e.Kind == events.AgentStarted || asked && q.Operation == "answer-question", "%s at another time", r.Payload)
	c := w.state.Bus.Actor(r.To)
	w.must(c != nil && c.Agent != nil && c.Agent.Alive() && c.Agent.Mail == c, "%s to %s, which does not run", r.Payload, r.To)
	return true
}

// lookAtAsked looks at the answer to a request about mail.
func (w *world) lookAtAsked(in *Input, r *wire.Request, out *Outcome, received []*wire.Record) []*wire.Record {
	var answer any
	for i := range out.Letters {
		if l := &out.Letters[i]; l.Request == r.ID && l.To == in.From && l.Refusal == nil {
			answer = l.Payload
		}
	}
	if acked, ok := answer.(*mail.Acked); ok && len(out.Records) == 0 {
		if a := w.state.Agents.ByID[in.From.Name]; a != nil && a.Memories.Find(r.ID) != nil && a.Memories.Find(r.ID).Answer == any(acked) {
			return received // the answer of the first time
		}
	}
	sent, _ := answer.(*mail.Sent)
	if again := sent != nil && len(received) == 0 && !sent.Duplicate; !again { // a repeat was allowed the first time
		w.lookAtClaim(in, r.Body, out)
	}
	switch answer := answer.(type) {
	case *mail.Sent:
		return w.lookAtSent(in, r, answer, out, received)
	case *mail.List:
		w.lookAtPage(in, r.Body.(*wire.PollMessages), answer, out)
	case *mail.Acked:
		w.must(answer.Cursor == w.bus.cursors[answer.Actor], "%s has acked %d, not %d", answer.Actor, w.bus.cursors[answer.Actor], answer.Cursor)
		w.must(answer.Cursor >= r.Body.(*wire.AckMessages).Seq && answer.Cursor <= w.state.Seq(), "%s has acked %d", answer.Actor, answer.Cursor)
	case *mail.Beat:
		seen, _ := object.ParseTime(answer.LastSeen)
		w.must(w.at.Sub(seen) < beatsApart+time.Millisecond, "%s sends a heartbeat at %v, and was last there at %s", answer.Actor, w.at, answer.LastSeen)
	case nil:
		w.must(len(received) == 0, "%s was refused, and there is mail", r.Operation)
	}
	return received
}

// lookAtClaim checks that a request about mail is granted exactly if the caller is the actor
// that it names.
func (w *world) lookAtClaim(in *Input, asked any, out *Outcome) {
	claimed, may, refused := "", true, out.Refused
	switch asked := asked.(type) {
	case *wire.SendMessage:
		claimed, may = asked.From, asked.To != "broadcast" || w.bus.identity(in.From, asked.From) == "GO"
	case *wire.PollMessages:
		claimed = asked.Actor
	case *wire.AckMessages:
		claimed, may = asked.Actor, asked.Seq <= w.state.Seq()
		if refused != nil { // records of this turn came after it
			may = asked.Seq <= w.state.Seq()-int64(len(out.Records))
		}
	case *wire.Heartbeat:
		claimed = asked.Actor
	default:
		return
	}
	id := w.bus.identity(in.From, claimed)
	may = may && id != "" && (claimed == "" || claimed == id)
	if refused != nil && (refused.Details["reason"] == "id_reused" || in.From.Kind == Agent && w.bus.lives[in.From.Name] == nil) {
		return
	}
	w.must(may == (refused == nil), "%v is %q, says that it is %q, and asks for %+v: %v", in.From, id, claimed, asked, refused)
}

// lookAtSent checks that a message is recorded as it was sent, or was recorded before. The rest
// of the mail must come from the bus.
func (w *world) lookAtSent(in *Input, r *wire.Request, answer *mail.Sent, out *Outcome, received []*wire.Record) []*wire.Record {
	m := r.Body.(*wire.SendMessage)
	from := w.bus.identity(in.From, m.From)
	if len(received) == 0 {
		kept, _ := w.bus.Record(answer.Seq)
		same := kept.To == m.To && kept.Topic == m.Topic && string(kept.Payload) == string(m.Payload) && kept.ReplyTo == m.ReplyTo && kept.Key == m.Key
		if answer.Duplicate {
			w.saw["a key again"]++
			w.must(m.Key != "" && kept.From == from && kept.Key == m.Key, "%s has not sent %s with the key %s", from, kept.Key, m.Key)
		} else {
			w.saw["a message again"]++
			w.must(in.From.Kind == Agent && same, "%d is not what was sent", answer.Seq)
		}
		w.must(len(out.Records) == 0 || w.servers[in.From.Name], "what was sent before has an effect")
		return nil
	}
	sent := received[0]
	w.must(sent.From == from && sent.To == m.To && sent.Topic == m.Topic && sent.ReplyTo == m.ReplyTo && sent.Key == m.Key && sent.Seq == answer.Seq &&
		sent.At.Equal(w.at.Truncate(time.Millisecond)), "%s has sent %+v", from, sent)
	w.must(string(sent.Payload) == string(m.Payload) && bytes.Contains(r.Payload, sent.Payload), "%s was sent as %s", r.Payload, sent.Payload)
	w.must(string(answer.Payload) == string(m.Payload) && !answer.Duplicate && answer.From == from, "it was answered with %+v", answer)
	w.lookAtErrand(in, m, out.Records)
	received, unknown := split(received[1:], func(r *wire.Record) bool { return r.Topic == mail.TopicUnknown })
	known := slices.Contains(registered, m.Topic)
	w.must(known && len(unknown) == 0 || !known && len(unknown) == 1, "%s is known: %t, and it was said %d times", m.Topic, known, len(unknown))
	for _, r := range unknown {
		var said mail.UnknownTopic
		err := json.Unmarshal(r.Payload, &said)
		w.must(err == nil && said == mail.UnknownTopic{Topic: m.Topic, From: from, To: m.To, Seq: sent.Seq} && r.ReplyTo == sent.Seq && r.From == mail.Bus && r.To == mail.Global, "%+v", r)
	}
	return received
}

// registered lists the standard topics and the one of this world.
var registered = []string{
	"task.assigned", "task.completed", "task.failed", "task.progress", "agent.spawned", "agent.terminated", "alert.fired", "alert.resolved",
	"heartbeat", "message.direct", "broadcast.all", "topic.unknown", "build.finished",
}

func split(received []*wire.Record, apart func(*wire.Record) bool) (rest, those []*wire.Record) {
	for _, r := range received {
		if apart(r) {
			those = append(those, r)
		} else {
			rest = append(rest, r)
		}
	}
	return rest, those
}

// lookAtErrand checks that a message reports on a task only on such a topic and from the agent
// that has the task. GO is notified of a message that could not be applied.
func (w *world) lookAtErrand(in *Input, m *wire.SendMessage, records []wire.Record) {
	ends := map[string]string{
		mail.TopicTaskCompleted: events.TaskDone, mail.TopicTaskFailed: events.TaskFailed, mail.TopicTaskProgress: events.TaskProgress,
	}
	said, dead := 0, 0
	for _, r := range records {
		switch r.Kind {
		case events.TaskDone, events.TaskFailed, events.TaskProgress:
			w.must(r.From == in.From.String() && in.From.Kind == Agent && r.Kind == ends[m.Topic] && bytes.Contains(m.Payload, []byte(r.Correlation)),
				"%s by mail of %v on %s: %s", r.Kind, in.From, m.Topic, m.Payload)
			said++
			w.saw["by mail: "+r.Kind]++
		case events.MessageSent:
			if r.Topic == mail.TopicAlertFired && r.From == mail.Bus {
				dead++
				w.must(r.ReplyTo == m.ReplyTo, "%d was not dealt with, not %d", m.ReplyTo, r.ReplyTo)
			}
		}
	}
	w.must(said <= 1, "one message says %d things of tasks", said)
	want := 0
	if m.Topic == mail.TopicTaskFailed && m.To == mail.Global && m.ReplyTo != 0 && said == 0 {
		want = 1
	}
	w.must(dead == want, "GO is told %d times that a message was not dealt with", dead)
}

// lookAtPage checks that a poll returns the same mail as a scan of all mail, without an effect.
func (w *world) lookAtPage(in *Input, p *wire.PollMessages, answer *mail.List, out *Outcome) {
	i := slices.IndexFunc(out.Letters, func(l Letter) bool { return l.Payload == answer })
	pages := out.Letters[i].Pages
	whole, err := state.Complete(answer, pages, w.bus)
	w.must(err == nil, "%v", err)
	page := whole.(*mail.List)
	id := w.bus.identity(in.From, p.Actor)
	after, limit := w.bus.cursors[id], int(p.Limit)
	w.must(page.Actor == id && page.Cursor == after, "%s has acked %d, and %s is told %d", id, after, page.Actor, page.Cursor)
	w.must(len(out.Records) == 0 || w.servers[in.From.Name], "a poll changes something")
	if p.Cursor != nil {
		after = *p.Cursor
	}
	if limit == 0 {
		limit = mail.DefaultPage
	}
	at, n := len(w.bus.letters), 0
	for at > 0 && w.bus.letters[at-1].Seq > after {
		at--
	}
	for _, m := range w.bus.letters[at:] {
		if m.To != id && (m.To != "broadcast" || m.From == id) {
			continue
		}
		if m.Seq > pages[0].Mail.Until { // recorded after the page: polling brings a server online
			continue
		}
		if n++; n > limit {
			break
		}
		w.must(n <= len(page.Messages) && sameMail(&page.Messages[n-1], &m), "%s is to read %+v", id, m)
	}
	w.must(len(page.Messages) == min(n, limit) && page.More == (n > limit), "%s reads %d messages, not %d, more: %t", id, len(page.Messages), n, page.More)
	w.saw["messages read"] += len(page.Messages)
}

func sameMail(m *mail.Message, r *wire.Record) bool {
	answers := int64(0)
	if m.ReplyTo != nil {
		answers = *m.ReplyTo
	}
	if r.Kind != events.MessageSent { // mail has other members in the record
		task, _ := object.TextOf(m.Payload, "ticket_id")
		return m.Seq == r.Seq && m.To == r.To && m.Topic == r.Topic && task == r.Correlation
	}
	return m.Seq == r.Seq && m.From == r.From && m.To == r.To && m.Topic == r.Topic && string(m.Payload) == string(r.Payload) && answers == r.ReplyTo &&
		m.CreatedAt == object.Timestamp(r.At)
}

// lookAtLife checks that GO is notified once that an agent has started and once how it ended. A
// good end may have been reported by the agent itself.
func (w *world) lookAtLife(e *wire.Event, received []*wire.Record) []*wire.Record {
	v := w.bus.lives[e.Agent]
	received, spawns := split(received, func(r *wire.Record) bool { return r.From == mail.Global && r.Topic == mail.TopicAgentSpawned })
	received, ends := split(received, func(r *wire.Record) bool { return r.Topic == mail.TopicAgentTerminated })
	started, well, badly := 0, 0, 0
	switch {
	case e.Kind == events.OrchestratorStarted:
		badly = w.bus.lost
	case v == nil || v.remote || v.run != e.Run: // unknown, or another run by now
	case e.Kind == events.AgentStarted:
		started = 1
		w.must(!v.crashed && !w.bus.missed[v.actor], "%s has started anew, and GO believes that it has not", e.Agent)
	case e.Kind != events.AgentEnded:
	case !e.Figures.Ordered && (e.Figures.ExitCode == nil || *e.Figures.ExitCode != 0):
		badly = 1
	case !v.parted:
		well = 1
	}
	for _, r := range append(spawns, ends...) {
		var said mail.Spawned
		err := json.Unmarshal(r.Payload, &said)
		w.must(err == nil && r.To == mail.Global && said.Agent == e.Agent && said.Run == e.Run, "%+v", r)
		w.must(!w.bus.isOf(e.Agent) || said.Actor == v.actor, "%s is %s: %s", e.Agent, v.actor, r.Payload)
	}
	received, crashes := split(received, func(r *wire.Record) bool {
		return r.Topic == mail.TopicAlertFired && bytes.Contains(r.Payload, []byte(mail.AlertCrashed))
	})
	w.must(len(spawns) == started && len(ends) == well && len(crashes) == badly, "%s of %s: GO is told %d, %d, %d times that it has started, ended, ended badly",
		e.Kind, e.Agent, len(spawns), len(ends), len(crashes))
	if e.Kind == events.AgentEnded && w.bus.isOf(e.Agent) && !v.remote {
		w.must(!w.bus.missed[v.actor], "%s has ended, and is missed", v.actor)
	}
	return received
}

// lookAtMissed checks that GO was notified of every actor that has been silent for too long. It
// is called after everything due has been done.
func (w *world) lookAtMissed() {
	for id := range w.bus.expected {
		silent := w.at.Sub(w.bus.heard(id))
		w.must(w.bus.missed[id] || silent <= w.rules.Stale, "%s has been silent for %v, and GO was not told", id, silent)
	}
}

// lookAtBus compares the bus with the records.
func (w *world) lookAtBus() {
	for _, c := range w.state.Bus.All() {
		w.must(c.Stale == w.bus.missed[c.ID], "%s is stale: %t", c.ID, c.Stale)
		w.must(c.Cursor == w.bus.cursors[c.ID], "%s has acked %d, not %d", c.ID, w.bus.cursors[c.ID], c.Cursor)
	}
	for id, is := range w.bus.missed {
		w.must(!is || w.state.Bus.Actor(id) != nil, "GO waits for %s, and nobody knows it", id)
	}
	for hash, token := range w.bus.tokens {
		id, ok := w.state.ActorOf(hash, w.at)
		holds := (token.until.IsZero() || token.until.After(w.at)) && w.bus.whose[token.actor] == ""
		w.must(ok == holds && (!ok || id == token.actor), "a token of %s, good until %v, speaks for %q: %t", token.actor, token.until, id, ok)
	}
}
