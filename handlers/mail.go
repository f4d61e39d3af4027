package handlers

import (
	"cmp"
	"fmt"
	"strings"

	"orchestrator/handlers/bus"
	"orchestrator/handlers/history"
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

// mailed records a message from an actor. The fields of the record hold the message; its
// correlation holds the cause.
type mailed struct {
	mail.Message
	key   string
	cause *cause
}

// A cause names the agent that sent a message, its request if that can be repeated, and the
// warnings in the answer.
type cause struct {
	Agent    string      `json:"agent"`
	Request  *requestKey `json:"request,omitzero"`
	Warnings []string    `json:"warnings,omitzero"`
}

func (*mailed) kind() string { return events.MessageSent }

// read makes the fact of its record.
func (m *mailed) read(r *wire.Record) error {
	m.Message, m.key = wire.MailOf(r), r.Key
	if r.Correlation == "" {
		return nil
	}
	m.cause = new(cause)
	return object.DecodeOwn([]byte(r.Correlation), m.cause)
}

func (m *mailed) apply(s *core, r *wire.Record) {
	s.bus.Keys.Keep(r.From, m.key, bus.Sent{Seq: r.Seq})
	if r.From != mail.Bus {
		m.heard(s, s.bus.Enter(r.From, r.Seq), r)
	}
	if m.cause != nil {
		answer := &mail.Sent{Message: m.Message, Warnings: m.cause.Warnings}
		answer.Payload = nil // the payload may be large and is in the record
		s.saveReply(m.cause.Agent, m.cause.Request, answer, nil)
	}
}

// heard updates the sender of a message. An agent does not send agent.spawned itself.
func (m *mailed) heard(s *core, c *busActor, r *wire.Record) {
	if r.Topic != mail.TopicAgentSpawned {
		c.Seen = r.At
	}
	switch r.Topic {
	case mail.TopicHeartbeat:
		beat(&s.bus, c, r.At)
	case mail.TopicAgentTerminated:
		switch {
		case r.To != mail.Global:
		case c.Agent != nil:
			c.Agent.farewell = true
		default: // it has ended regularly
			s.bus.Unwatch(c)
		}
	}
}

// post makes a message true.
func (md mailDecision) post(f *mailed) {
	md.recallGuests()
	r := wire.Record{
		At: md.at, From: f.From, To: f.To, Topic: f.Topic, Kind: events.MessageSent, Payload: f.Payload, Key: f.key,
	}
	if f.ReplyTo != nil {
		r.ReplyTo = *f.ReplyTo
	}
	if f.cause != nil {
		text, err := object.Encode(f.cause)
		if err != nil {
			panic(fmt.Sprintf("the request of a message cannot be spelled: %v", err))
		}
		r.Correlation = string(text)
	}
	r.Seq = md.state.next()
	f.Seq, f.CreatedAt = r.Seq, object.Timestamp(md.at)
	md.out.Records = append(md.out.Records, r)
	take(md.state, f, &r)
}

// tellGlobal sends a message to GO.
func (md mailDecision) tellGlobal(from, topic string, about int64, payload any) {
	text, err := object.Encode(payload)
	if err != nil {
		panic(fmt.Sprintf("mail on %s cannot be spelled: %v", topic, err))
	}
	m := &mailed{Message: mail.Message{From: from, To: mail.Global, Topic: topic, Payload: text}}
	if about != 0 {
		m.ReplyTo = &about
	}
	md.post(m)
}

// sendAnswer sends the answer of a person to an agent that runs.
func (md mailDecision) sendAnswer(a *agent, answer *answeredByMail) {
	if a.mail == nil {
		return // another agent has its mailbox
	}
	text, err := object.Encode(answer)
	if err != nil {
		panic(fmt.Sprintf("the answer to %s cannot be spelled: %v", answer.QuestionID, err))
	}
	md.post(&mailed{Message: mail.Message{From: mail.Global, To: a.mail.ID, Topic: mail.TopicDirect, Payload: text}})
}

func sendMessage(md mailDecision, m *wire.SendMessage) (*mail.Sent, *wire.Error) {
	from, err := md.state.agents.writer(md.from, m.From, "from_actor")
	switch {
	case err != nil:
		return nil, err
	case m.To == mail.Broadcast && from != mail.Global:
		return nil, errorf(wire.CodeDenied, details{"actor": from, "pointer": "/payload/to_actor"},
			"only %s may broadcast, and you are %s", mail.Global, from)
	}
	if before, _ := md.state.bus.Keys.Before(&m.Lookup, from, m.Key); before.Seq != 0 { // the record has its content
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
	switch a := md.state.agents.byID[word]; {
	case a == nil && mail.IsName(word):
		return "", md.unknownName(word)
	case a == nil:
		return "", errorf(wire.CodeInvalid, details{"pointer": "/payload/to_actor"}, "to_actor %s", why)
	case a.mail == nil:
		return "", errorf(wire.CodeConflict, details{"agent": word, "pointer": "/payload/to_actor", "reason": "no_actor"},
			"the agent %q has no mailbox: it has not run yet", word)
	default:
		return a.mail.ID, nil
	}
}

// maxNames is how many agents an error names.
const maxNames = 20

// unknownName refuses a message to a name that no agent has. The error lists the agents.
func (md mailDecision) unknownName(word string) *wire.Error {
	var names []string
	for _, a := range md.state.agents.order {
		names = append(names, a.ID)
	}
	more := ""
	if n := len(names) - maxNames; n > 0 {
		names, more = names[:maxNames], fmt.Sprintf(" and %d more", n)
	}
	return errorf(wire.CodeInvalid, details{"pointer": "/payload/to_actor"}, "no agent is called %q. Agents: %s%s",
		word, cmp.Or(strings.Join(names, ", "), "none"), more)
}

// IdempotencyKey returns the idempotency key of an input, its sender, and the Lookup to fill in.
// The caller must search the log for the key before it calls Handle.
func (s *State) IdempotencyKey(in *Input) (l *wire.Lookup, from, key string) {
	return (&turn{state: s.core}).idempotencyKey(in)
}

func (t *turn) idempotencyKey(in *Input) (l *wire.Lookup, from, key string) {
	r, ok := in.Message.(*wire.Request)
	if !ok {
		return nil, "", ""
	}
	switch m := r.Body.(type) {
	case *wire.SendMessage:
		if from, err := t.state.agents.writer(in.From, m.From, "from_actor"); m.Key != "" && err == nil {
			return &m.Lookup, from, m.Key
		}
	case *wire.SaySession:
		if x, err := t.by(in.From).sessions().locate(m); err == nil {
			return &m.Lookup, x.of.key(), m.Message.MessageID
		}
	}
	return nil, "", "" // the request will be refused, or has no key
}

// SumOf returns the checksum of a record with a key, if the same key with other content is
// refused. It returns 0 if only the key counts.
func SumOf(r *wire.Record) uint64 {
	if r.Kind != events.SessionMessage {
		return 0
	}
	var said struct {
		Sum uint64 `json:"sum"`
	}
	_ = object.DecodeOwn(r.Payload, &said) // an unreadable record never matches
	return said.Sum
}

// outdated reports whether the Lookup of a request is too old to decide it.
func (d *decision) outdated(r *wire.Request) bool {
	l, from, key := (&turn{state: d.state}).idempotencyKey(&Input{From: d.from, Message: r})
	if l == nil {
		return false
	}
	_, sure := d.state.bus.Keys.Before(l, from, key)
	return !sure
}

// send sends a message and applies its effects.
func (md mailDecision) send(from string, m *wire.SendMessage) *mail.Sent {
	f := &mailed{Message: mail.Message{From: from, To: m.To, Topic: m.Topic, Payload: m.Payload}, key: m.Key}
	if m.ReplyTo != 0 {
		f.ReplyTo = &m.ReplyTo
	}
	about, warnings := md.linked(m)
	given, odd := md.handsOut(from, m)
	warnings = append(warnings, odd...)
	warnings = append(warnings, md.oddMail(from, m)...)
	if md.from.Kind == Agent {
		f.cause = &cause{Agent: md.from.Name, Request: md.mark(), Warnings: warnings}
	}
	md.post(f)
	if !md.state.rules.knows(m.Topic) {
		md.tellGlobal(mail.Bus, mail.TopicUnknown, f.Seq, mail.UnknownTopic{Topic: m.Topic, From: from, To: m.To, Seq: f.Seq})
	}
	if m.Topic == mail.TopicHeartbeat {
		md.resolveStale(md.state.bus.Actor(from), "its heartbeat is back")
	}
	switch {
	case about != nil:
		md.heed(about, f)
	case given != nil:
		md.tasks().assignBy(given, md.state.bus.Actor(m.To).Agent, &taskAssigned{Way: byHand, mailed: true})
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
	if c := md.state.bus.Actor(m.To); c != nil && c.OfRun && c.Agent != nil && !c.Agent.alive() {
		warnings = append(warnings, fmt.Sprintf("the agent %s does not run, and its next run has another mailbox", c.Agent.ID))
	}
	if m.ReplyTo > md.state.Seq() {
		warnings = append(warnings, fmt.Sprintf("it answers message %d, and there is none yet", m.ReplyTo))
	} else if m.ReplyTo != 0 {
		md.pages = append(md.pages, history.Page{Reply: true})
	}
	if m.Topic == mail.TopicTaskFailed && m.ReplyTo != 0 && object.MemberOf(m.Payload, "error_code") == nil {
		warnings = append(warnings, "its payload has no error_code")
	}
	if !md.state.rules.knows(m.Topic) {
		warnings = append(warnings, fmt.Sprintf("the topic %s is not registered: bus.topics in the configuration is the list", m.Topic))
	}
	return warnings
}

func pollMessages(md mailDecision, r *wire.PollMessages) (*mail.List, *wire.Error) {
	id, err := md.state.agents.writer(md.from, r.Actor, "actor")
	if err != nil {
		return nil, err
	}
	answer := &mail.List{Actor: id, Messages: []mail.Message{}}
	if c := md.state.bus.Actor(id); c != nil {
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
	id, err := md.state.agents.writer(md.from, r.Actor, "actor")
	switch {
	case err != nil:
		return nil, err
	case r.Seq > md.state.Seq():
		return nil, errorf(wire.CodeInvalid, details{"pointer": "/payload/seq", "last": md.state.Seq()},
			"there is no message %d yet: the last number is %d", r.Seq, md.state.Seq())
	}
	if c := md.state.bus.Actor(id); c == nil || r.Seq > c.Cursor {
		md.factOf(id, "", "", &mailAcked{Actor: id, Seq: r.Seq, Agent: agentOf(md.from.String()), Request: md.mark()})
	}
	return &mail.Acked{Actor: id, Cursor: md.state.bus.Actor(id).Cursor}, nil
}

// mailAcked records that an actor has processed its mail up to a number.
type mailAcked struct {
	Actor string `json:"actor"`
	Seq   int64  `json:"seq"`

	Agent   string      `json:"agent,omitzero"` // the agent that requested it
	Request *requestKey `json:"request,omitzero"`
}

func (*mailAcked) kind() string { return events.MessageAcked }

func (m *mailAcked) apply(s *core, r *wire.Record) {
	c := s.bus.Enter(m.Actor, r.Seq)
	c.Cursor = max(c.Cursor, m.Seq)
	if m.Actor != mail.Bus {
		c.Seen = r.At
	}
	s.saveReply(m.Agent, m.Request, &mail.Acked{Actor: m.Actor, Cursor: c.Cursor}, nil)
}

// Receipt implements history.Receipt.
func (m *mailAcked) Receipt(of *mail.Message) *mail.State {
	if m.Seq < of.Seq || of.To != m.Actor && of.To != mail.Broadcast {
		return nil
	}
	return &mail.State{State: mail.StateAcked, Actor: m.Actor}
}

func messageStatus(md mailDecision, r *wire.MessageSeq) (*mail.Status, *wire.Error) {
	page := history.StatusPage{Seq: r.Seq}
	if md.from.Kind != Operator {
		id, err := md.state.agents.writer(md.from, "", "actor")
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

// Acked reports whether an actor has acknowledged a message.
func (s *core) Acked(actor string, seq int64) bool {
	a := s.bus.Actor(actor)
	return a != nil && a.Cursor >= seq
}

// A mailReport is a report of an agent about its task by mail. Such mail is for GO and names the
// task in its payload.
type mailReport struct {
	task     *task
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
	if verb == "" || m.To != mail.Global || said.Read(m.Payload, md.state.rules.Depth, "") != nil {
		return nil, nil
	}
	id := said.FirstText("ticket_id", "task_id", "taskId")
	if _, err := md.tasks().manageableTask(id); err != nil {
		return nil, nil // the name of something that is kept elsewhere
	}
	from := md.from
	from.ExplicitSteps = false // mail has no word for the beginning
	k, err := md.by(from).tasks().reportableTask(id, verb)
	if err != nil {
		return nil, []string{err.Message}
	}
	e := &mailReport{task: k, result: &succeeded, text: said.FirstText("error", "message", "error_code"), code: said.Text("error_code")}
	if at, raw := said.Number("progress"); raw != nil && at >= 0 && at <= 1 {
		e.progress = &at
	}
	if result := hub.ResultIn(&said, "result"); result != nil {
		e.result = from.wrapped(result)
	}
	if m.Topic == mail.TopicTaskCompleted && e.result.Breach != nil && !md.state.rules.LenientResults {
		return nil, []string{fmt.Sprintf("task %s is not completed: %s", k.label(), e.result.Breach.Message)}
	}
	return e, nil
}

// heed applies a report to its task.
func (md mailDecision) heed(e *mailReport, m *mailed) {
	md.tasks().begin(e.task)
	k := e.task
	switch m.Topic {
	case mail.TopicTaskCompleted:
		md.tasks().complete(k, e.result, end{mailed: true})
	case mail.TopicTaskFailed:
		why := cmp.Or(e.text, fmt.Sprintf("said by message %d", m.Seq))
		fault := &delegation.Fault{Code: cmp.Or(e.code, delegation.FaultInternal), Message: why}
		md.tasks().fail(k, failure{why: why, fault: fault, end: end{mailed: true}})
	case mail.TopicTaskProgress:
		if e.progress != nil {
			md.fact("", k.view.ID, &taskProgress{
				ID: k.view.ID, Name: k.view.Name, Agent: md.from.Name, Progress: *e.progress, Message: e.text,
			})
		}
	}
}

// deadLetter notifies GO that an agent could not process a message. The message stays, and GO
// decides about it.
func (md mailDecision) deadLetter(m *mailed) {
	about := mail.Alert{Alert: mail.AlertDead, Actor: m.From}
	var said object.Reader
	if said.Read(m.Payload, md.state.rules.Depth, "") == nil {
		about.Code, about.Text = said.Text("error_code"), said.Text("error")
	}
	md.tellGlobal(mail.Bus, mail.TopicAlertFired, *m.ReplyTo, about)
}

// handsOut returns the pending task that a message of GO gives to an agent.
func (md mailDecision) handsOut(from string, m *wire.SendMessage) (*task, []string) {
	c := md.state.bus.Actor(m.To)
	if from != mail.Global || m.Topic != mail.TopicTaskAssigned || c == nil || c.Agent == nil {
		return nil, nil
	}
	var said object.Reader
	if said.Read(m.Payload, md.state.rules.Depth, "") != nil {
		return nil, nil
	}
	k := md.state.tasks.find(object.CanonicalID(said.FirstText("ticket_id", "task_id", "taskId")))
	if k == nil {
		return nil, nil // the name of something that is kept elsewhere
	}
	err := assignedInSession(k)
	if err == nil && k.view.State != wire.TaskPending {
		err = wrongState(k, "assigned")
	}
	if err != nil {
		return nil, []string{err.Message}
	}
	return k, nil
}

// An onBus fact is also shown on the bus: polls and streams of the actor that mailTo returns
// find its record. If the actor is "", the bus does not show it.
type onBus interface {
	mailTo(s *core) (actor, topic string)
}

func (t *taskAssigned) mailTo(s *core) (actor, topic string) {
	if t.mailed {
		return "", ""
	}
	return s.agents.actorOf(t.Agent), mail.TopicTaskAssigned
}

func (t *taskDone) mailTo(s *core) (actor, topic string) {
	if t.mailed {
		return "", ""
	}
	t.Actor = s.agents.actorOf(t.Agent)
	return mail.Global, mail.TopicTaskCompleted
}

func (f *taskFailed) mailTo(s *core) (actor, topic string) {
	if f.mailed {
		return "", ""
	}
	f.Actor = s.agents.actorOf(f.Agent)
	return mail.Global, mail.TopicTaskFailed
}

func (t *taskHelp) mailTo(s *core) (actor, topic string) {
	t.Actor = s.agents.actorOf(t.Agent)
	return mail.Global, mail.TopicAlertFired
}

// actorOf returns the actor id of an agent, or "" if it has none.
func (as *agents) actorOf(agent string) string {
	if a := as.byID[agent]; a != nil && a.mail != nil {
		return a.mail.ID
	}
	return ""
}
