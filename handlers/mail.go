package handlers

import (
	"cmp"
	"fmt"
	"strings"

	"orchestrator/handlers/bus"
	"orchestrator/handlers/history"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

var mailOperations = []Operation{
	bind("send-message", (*decision).mail, sendMessage),
	bind("poll-messages", (*decision).mail, pollMessages),
	bind("ack-messages", (*decision).mail, ackMessages),
	bind("message-status", (*decision).mail, messageStatus),
}

// post makes a message true.
func (md mailDecision) post(f *state.Mailed) {
	md.recallGuests()
	r := wire.Record{
		At: md.at, From: f.From, To: f.To, Topic: f.Topic, Kind: events.MessageSent, Payload: f.Payload, Key: f.Key,
	}
	if f.ReplyTo != nil {
		r.ReplyTo = *f.ReplyTo
	}
	if f.Cause != nil {
		text, err := object.Encode(f.Cause)
		if err != nil {
			panic(fmt.Sprintf("the request of a message cannot be encoded: %v", err))
		}
		r.Correlation = string(text)
	}
	r.Seq = md.state.Next()
	f.Seq, f.CreatedAt = r.Seq, object.Timestamp(md.at)
	md.out.Records = append(md.out.Records, r)
	md.state.Take(f, &r)
}

// tellGlobal sends a message to GO.
func (md mailDecision) tellGlobal(from, topic string, about int64, payload any) {
	text, err := object.Encode(payload)
	if err != nil {
		panic(fmt.Sprintf("mail on %s cannot be encoded: %v", topic, err))
	}
	m := &state.Mailed{Message: mail.Message{From: from, To: mail.Global, Topic: topic, Payload: text}}
	if about != 0 {
		m.ReplyTo = &about
	}
	md.post(m)
}

// sendAnswer sends the answer of a person to an agent that runs.
func (md mailDecision) sendAnswer(a *state.KnownAgent, answer *state.AnsweredByMail) {
	if a.Mail == nil {
		return // another agent has its mailbox
	}
	text, err := object.Encode(answer)
	if err != nil {
		panic(fmt.Sprintf("the answer to %s cannot be encoded: %v", answer.QuestionID, err))
	}
	md.post(&state.Mailed{Message: mail.Message{From: mail.Global, To: a.Mail.ID, Topic: mail.TopicDirect, Payload: text}})
}

func sendMessage(md mailDecision, m *wire.SendMessage) (*mail.Sent, *wire.Error) {
	from, err := md.state.Agents.Writer(md.from, m.From, "from_actor")
	switch {
	case err != nil:
		return nil, err
	case m.To == mail.Broadcast && from != mail.Global:
		return nil, state.Errorf(wire.CodeDenied, state.Details{"actor": from, "pointer": "/payload/to_actor"},
			"only %s may broadcast, and you are %s", mail.Global, from)
	}
	if before, _ := md.state.Bus.Keys.Before(&m.Lookup, from, m.Key); before.Seq != 0 { // the record has its content
		return &mail.Sent{Message: mail.Message{Seq: before.Seq}, Duplicate: true}, nil
	}
	to, err := md.mailbox(m.To)
	if err != nil {
		return nil, err
	}
	addressed := *m
	addressed.To = to
	return md.send(from, &addressed), nil
}

// mailbox returns the addressee that a word stands for. The name of an agent stands for its
// present actor.
func (md mailDecision) mailbox(word string) (string, *wire.Error) {
	why := mail.CheckAddressee(word)
	if why == "" {
		return word, nil
	}
	switch a := md.state.Agents.ByID[word]; {
	case a == nil && mail.IsName(word):
		return "", md.unknownName(word)
	case a == nil:
		return "", state.Errorf(wire.CodeInvalid, state.Details{"pointer": "/payload/to_actor"}, "to_actor %s", why)
	case a.Mail == nil:
		return "", state.Errorf(wire.CodeConflict, state.Details{"agent": word, "pointer": "/payload/to_actor", "reason": "no_actor"},
			"the agent %q has no mailbox: it has not run yet", word)
	default:
		return a.Mail.ID, nil
	}
}

// maxNames is how many agents an error names.
const maxNames = 20

// unknownName refuses a message to a name that no agent has. The error lists the agents.
func (md mailDecision) unknownName(word string) *wire.Error {
	var names []string
	for _, a := range md.state.Agents.Order {
		names = append(names, a.ID)
	}
	more := ""
	if n := len(names) - maxNames; n > 0 {
		names, more = names[:maxNames], fmt.Sprintf(" and %d more", n)
	}
	return state.Errorf(wire.CodeInvalid, state.Details{"pointer": "/payload/to_actor"}, "no agent is called %q. Agents: %s%s",
		word, cmp.Or(strings.Join(names, ", "), "none"), more)
}

// IdempotencyKey returns the idempotency key of an input, its sender, and the Lookup to fill in.
// The caller must search the log for the key before it calls Handle.
func (s *State) IdempotencyKey(in *Input) (l *wire.Lookup, from, key string) {
	if r, ok := in.Message.(*wire.Request); ok {
		return (&turn{state: s.State}).idempotencyKey(in.From, r.Body)
	}
	return nil, "", ""
}

func (t *turn) idempotencyKey(caller Actor, body any) (l *wire.Lookup, from, key string) {
	switch m := body.(type) {
	case *wire.SendMessage:
		if from, err := t.state.Agents.Writer(caller, m.From, "from_actor"); m.Key != "" && err == nil {
			return &m.Lookup, from, m.Key
		}
	case *wire.SaySession:
		if x, err := t.by(caller).sessions().locate(m); err == nil {
			return &m.Lookup, x.of.Key(), m.Message.MessageID
		}
	}
	return nil, "", "" // the request will be refused, or has no key
}

// outdated reports whether the Lookup of a request is too old to decide it.
func (d *decision) outdated(r *wire.Request) bool {
	l, from, key := d.idempotencyKey(d.from, r.Body)
	if l == nil {
		return false
	}
	_, sure := d.state.Bus.Keys.Before(l, from, key)
	return !sure
}

// send sends a message and applies its effects.
func (md mailDecision) send(from string, m *wire.SendMessage) *mail.Sent {
	f := &state.Mailed{Message: mail.Message{From: from, To: m.To, Topic: m.Topic, Payload: m.Payload}, Key: m.Key}
	if m.ReplyTo != 0 {
		f.ReplyTo = &m.ReplyTo
	}
	about, warnings := md.linked(m)
	given, odd := md.handsOut(from, m)
	warnings = append(warnings, odd...)
	warnings = append(warnings, md.oddMail(from, m)...)
	if md.from.Kind == Agent {
		f.Cause = &state.Cause{Agent: md.from.Name, Request: md.mark(), Warnings: warnings}
	}
	md.post(f)
	if !md.state.Rules.Knows(m.Topic) {
		md.tellGlobal(mail.Bus, mail.TopicUnknown, f.Seq, mail.UnknownTopic{Topic: m.Topic, From: from, To: m.To, Seq: f.Seq})
	}
	if m.Topic == mail.TopicHeartbeat {
		md.resolveStale(md.state.Bus.Actor(from), "its heartbeat is back")
	}
	switch {
	case about != nil:
		md.heed(about, f)
	case given != nil:
		md.tasks().assignBy(given, md.state.Bus.Actor(m.To).Agent, &state.TaskAssigned{Way: state.ByHand, Mailed: true})
	case m.Topic == mail.TopicTaskFailed && m.To == mail.Global && f.ReplyTo != nil:
		md.deadLetter(f)
	}
	return &mail.Sent{Message: f.Message, Warnings: warnings}
}

// oddMail returns warnings about a message that is accepted.
func (md mailDecision) oddMail(from string, m *wire.SendMessage) (warnings []string) {
	if odd := bus.Misdirected(from, m); odd != "" {
		warnings = append(warnings, odd)
	}
	if c := md.state.Bus.Actor(m.To); c != nil && c.OfRun && c.Agent != nil && !c.Agent.Alive() {
		warnings = append(warnings, fmt.Sprintf("the agent %s is not running, and its next run has another mailbox", c.Agent.ID))
	}
	if m.ReplyTo > md.state.Seq() {
		warnings = append(warnings, fmt.Sprintf("it answers message %d, which does not exist yet", m.ReplyTo))
	} else if m.ReplyTo != 0 {
		md.pages = append(md.pages, history.Page{Reply: true})
	}
	if m.Topic == mail.TopicTaskFailed && m.ReplyTo != 0 && object.MemberOf(m.Payload, "error_code") == nil {
		warnings = append(warnings, "its payload has no error_code")
	}
	if !md.state.Rules.Knows(m.Topic) {
		warnings = append(warnings, fmt.Sprintf("the topic %s is not registered: see bus.topics in the configuration", m.Topic))
	}
	return warnings
}

func pollMessages(md mailDecision, r *wire.PollMessages) (*mail.List, *wire.Error) {
	id, err := md.state.Agents.Writer(md.from, r.Actor, "actor")
	if err != nil {
		return nil, err
	}
	answer := &mail.List{Actor: id, Messages: []mail.Message{}}
	if c := md.state.Bus.Actor(id); c != nil {
		answer.Cursor = c.Cursor
	}
	page := &history.MailPage{Actor: id, After: answer.Cursor, Until: max(md.state.Seq(), 1), Limit: cmp.Or(r.Limit, mail.DefaultPage)}
	if r.Cursor != nil {
		page.After = *r.Cursor
	}
	md.pages = append(md.pages, history.Page{Mail: page})
	return answer, nil
}

func ackMessages(md mailDecision, r *wire.AckMessages) (*mail.Acked, *wire.Error) {
	id, err := md.state.Agents.Writer(md.from, r.Actor, "actor")
	switch {
	case err != nil:
		return nil, err
	case r.Seq > md.state.Seq():
		return nil, state.Errorf(wire.CodeInvalid, state.Details{"pointer": "/payload/seq", "last": md.state.Seq()},
			"message %d does not exist yet: the last number is %d", r.Seq, md.state.Seq())
	}
	if c := md.state.Bus.Actor(id); c == nil || r.Seq > c.Cursor {
		md.factOf(id, "", "", &state.MailAcked{Actor: id, Seq: r.Seq, Agent: state.AgentOf(md.from.String()), Request: md.mark()})
	}
	return &mail.Acked{Actor: id, Cursor: md.state.Bus.Actor(id).Cursor}, nil
}

func messageStatus(md mailDecision, r *wire.MessageSeq) (*mail.Status, *wire.Error) {
	page := history.StatusPage{Seq: r.Seq}
	if md.from.Kind != Operator {
		id, err := md.state.Agents.Writer(md.from, "", "actor")
		if err != nil {
			return nil, err
		}
		page.Sender = id
	}
	if r.Seq > md.state.Seq() {
		return nil, history.NoMessage(r.Seq)
	}
	md.pages = append(md.pages, history.Page{Status: &page})
	return &mail.Status{Seq: r.Seq}, nil
}

// A mailReport is a report of an agent about its task by mail. Such mail is for GO and names the
// task in its payload.
type mailReport struct {
	task     *state.Task
	result   *hub.Result // of task.completed
	progress *float64    // of task.progress, if present
	text     string      // the error of a failed task, or a message
	code     string      // the error_code of a failed task
}

// linked returns the report in a message, if it counts: if its sender has the task. Otherwise
// the message is only delivered, with a warning.
func (md mailDecision) linked(m *wire.SendMessage) (*mailReport, []string) {
	if md.from.Kind != Agent {
		return nil, nil
	}
	verb := map[string]string{
		mail.TopicTaskCompleted: "completed", mail.TopicTaskFailed: "failed", mail.TopicTaskProgress: "worked on",
	}[m.Topic]
	var said object.Reader
	if verb == "" || m.To != mail.Global || said.Read(m.Payload, md.state.Rules.Depth, "") != nil {
		return nil, nil
	}
	id := said.FirstText("ticket_id", "task_id", "taskId")
	if _, err := md.tasks().manageableTask(id); err != nil {
		return nil, nil // the name of a ticket of another program
	}
	from := md.from
	from.ExplicitSteps = false // mail has no word for the beginning
	t, err := md.by(from).tasks().reportableTask(id, verb)
	if err != nil {
		return nil, []string{err.Message}
	}
	e := &mailReport{task: t, result: &succeeded, text: said.FirstText("error", "message", "error_code"), code: said.Text("error_code")}
	if at, raw := said.Number("progress"); raw != nil && at >= 0 && at <= 1 {
		e.progress = &at
	}
	if result := hub.ResultIn(&said, "result"); result != nil {
		e.result = from.Wrapped(result)
	}
	if m.Topic == mail.TopicTaskCompleted && e.result.Breach != nil && !md.state.Rules.LenientResults {
		return nil, []string{fmt.Sprintf("task %s is not completed: %s", t.Label(), e.result.Breach.Message)}
	}
	return e, nil
}

// heed applies a report to its task.
func (md mailDecision) heed(e *mailReport, m *state.Mailed) {
	md.tasks().begin(e.task)
	t := e.task
	switch m.Topic {
	case mail.TopicTaskCompleted:
		md.tasks().complete(t, e.result, end{mailed: true})
	case mail.TopicTaskFailed:
		why := cmp.Or(e.text, fmt.Sprintf("reported by message %d", m.Seq))
		fault := &delegation.Fault{Code: cmp.Or(e.code, delegation.FaultInternal), Message: why}
		md.tasks().fail(t, failure{why: why, fault: fault, end: end{mailed: true}})
	case mail.TopicTaskProgress:
		if e.progress != nil {
			md.fact("", t.View.ID, &state.TaskProgress{
				ID: t.View.ID, Name: t.View.Name, Agent: md.from.Name, Progress: *e.progress, Message: e.text,
			})
		}
	}
}

// deadLetter notifies GO that an agent could not process a message. The message stays, and GO
// decides about it.
func (md mailDecision) deadLetter(m *state.Mailed) {
	about := mail.Alert{Alert: mail.AlertDead, Actor: m.From}
	var said object.Reader
	if said.Read(m.Payload, md.state.Rules.Depth, "") == nil {
		about.Code, about.Text = said.Text("error_code"), said.Text("error")
	}
	md.tellGlobal(mail.Bus, mail.TopicAlertFired, *m.ReplyTo, about)
}

// taskIn returns the id of the task that a message names, or "".
func (md mailDecision) taskIn(m *wire.SendMessage) string {
	var said object.Reader
	if said.Read(m.Payload, md.state.Rules.Depth, "") != nil {
		return ""
	}
	return object.CanonicalID(said.FirstText("ticket_id", "task_id", "taskId"))
}

// handsOut returns the pending task that a message of GO gives to an agent.
func (md mailDecision) handsOut(from string, m *wire.SendMessage) (*state.Task, []string) {
	c := md.state.Bus.Actor(m.To)
	if from != mail.Global || m.Topic != mail.TopicTaskAssigned || c == nil || c.Agent == nil {
		return nil, nil
	}
	t := md.state.Tasks.Find(md.taskIn(m))
	if t == nil {
		return nil, nil // the name of a ticket of another program
	}
	err := assignedInSession(t)
	if err == nil && t.View.State != wire.TaskPending {
		err = wrongState(t, "assigned")
	}
	if err != nil {
		return nil, []string{err.Message}
	}
	return t, nil
}
