package dispatch

import (
	"fmt"
	"sync/atomic"
	"time"

	"orchestrator/handlers"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/dialect"
	"orchestrator/wire/events"
	"orchestrator/wire/line"
	"orchestrator/wire/object"
	"orchestrator/wire/stdio"
)

// A Channel extracts the messages from the output of one run of an agent. It runs on the
// goroutine that reads the agent's stdout, so parsing, checks and limits delay only that agent.
// The goroutine also waits while the agent's mailbox is full.
type Channel struct {
	dispatcher *Dispatcher
	actor      handlers.Actor
	mail       *stdin.Mailbox
	reader     stdio.Reader
	payloads   wire.Payloads
	rates      rates
	maxLine    int  // bytes
	size       int  // of the present line
	piled      bool // a message of this chunk was counted: the next one did not wait for its answer
	complain   func(kind string, text string, count int64)

	inputs   []handlers.Input // since the last send
	requests int              // among them
	takes    bool             // one of them may assign a task to the agent
	refused  stdin.Entry      // answers that need no decision, mostly to malformed messages
	work     work

	turn atomic.Pointer[activity.Turn] // the agent's activity, as it reported last

	refusals complaints
	warned   bool // it has reported a line that was nearly a message, once a run
	untimed  bool // it has reported an event without a valid timestamp, once a run
	logged   bool // has sent an event:log
}

// Channel returns the Channel of a run that is about to begin. It calls complain with texts for
// the output of the agent.
func (d *Dispatcher) Channel(agent, run string, complain func(kind, text string, count int64)) *Channel {
	depth := d.options.Protocol.Depth
	c := &Channel{
		dispatcher: d,
		actor:      handlers.Actor{Kind: handlers.Agent, Name: agent, Run: run},
		payloads:   wire.Payloads{Depth: depth},
		rates:      d.options.Protocol.rates(),
		complain:   complain,
	}
	c.reader = stdio.Reader{Agent: agent, Depth: depth, Capability: d.does, Given: c.given}
	return c
}

// does reports whether an agent can do tasks of a type. It tells a task request from a
// misspelled message.
func (d *Dispatcher) does(kind string) (so bool) {
	d.Look(func(state *handlers.State) { so = state.Does(kind) })
	return so
}

// Open makes a mailbox the destination of letters to the run. It must be called before Take.
func (c *Channel) Open(mail *stdin.Mailbox) {
	c.mail = mail
	c.dispatcher.recipients.open(c.actor.Name, c.actor.Run, mail)
}

// BringMail starts the delivery of mail to the run, from the first message that the agent has
// not acked, and that comes after the given one.
func (c *Channel) BringMail(after int64) {
	d := c.dispatcher
	if d.record == nil {
		return
	}
	r := &round{to: c.actor, mail: c.mail}
	d.Look(func(state *handlers.State) { r.actor, r.after = state.Reads(c.actor.Name) })
	r.after = max(r.after, after)
	if r.actor != "" {
		d.mail.begin(r)
	}
}

// Take handles a line if it is a message. It returns false if the line is to be logged.
func (c *Channel) Take(line line.Line, now time.Time) bool {
	var message wire.Message
	c.size = len(line.Text)
	if line.Cut {
		message = c.parseHead(line)
	} else {
		message = c.reader.Parse(line.Text)
	}
	switch m := message.(type) {
	case *wire.Request:
		c.request(m, now)
		return true
	case *wire.AgentEvent:
		return c.event(m, now)
	case *wire.Refused:
		if err := c.admit(now, false); err != nil {
			m.Err = err
		}
		c.refuse(m.Request, m.Form, m.ID, m.Type, m.Err, now)
		return !line.Cut && (m.Request || m.Err.Code == wire.CodeLimited)
	case *wire.Answered:
		c.reply(m, now)
		return true
	case *wire.Session:
		c.session(m, now)
		return !line.Cut
	case wire.Log:
		if m.Nearly != "" && !c.warned {
			c.warned = true
			c.refusals.add("treated a malformed message as log: " + m.Nearly)
		}
	}
	return false
}

// parseHead returns the message of an oversized line. The refusal of a request names the limit.
func (c *Channel) parseHead(l line.Line) wire.Message {
	message := c.reader.ParseHead(l.Text, fmt.Sprintf("its line has %d bytes, more than protocol.max_line = %s (%d bytes)",
		l.Size, line.FormatSize(int64(c.maxLine)), c.maxLine))
	if refused, ok := message.(*wire.Refused); ok {
		refused.Err.Details = map[string]any{"pointer": "", "setting": "protocol.max_line", "limit": c.maxLine, "bytes": l.Size}
	}
	return message
}

// reply sends the ready answer of a tool call that needs no decision.
func (c *Channel) reply(m *wire.Answered, now time.Time) {
	err := c.admit(now, false)
	if err != nil {
		c.refuse(true, dialect.ToolCall, m.ID, m.Method, err, now)
		return
	}
	c.refused.Text = append(c.refused.Text, m.Text...)
	c.refused.Lines++
	c.dispatcher.refused(now, c.actor, m.Method, m.ID, m.Err)
}

// request adds a request to the inputs, or refuses it. The body of a delegated task, or of a
// message about one, has been parsed already.
func (c *Channel) request(r *wire.Request, now time.Time) {
	err := c.admit(now, false)
	switch {
	case err != nil || r.Body != nil:
	case r.Repeat != nil && r.Repeat.Body != nil:
		r.Body = r.Repeat.Body
	default:
		err = handlers.PrepareIn(&c.payloads, r)
		c.takes = c.takes || r.Declaration().IsWrite()
		if r.Repeat != nil && err == nil {
			r.Repeat.Body = r.Body
		}
	}
	if err != nil {
		c.refuse(true, r.Form, r.RawID(), calledOf(r).String(), err, now)
		return
	}
	r.Payload = nil // it is valid only as long as the line
	if _, _, work := c.dispatcher.wanted(c.actor, r); work {
		kept := *r // its memory is used again after Send
		r = &kept
	}
	refusal := c.prepare(r, &now)
	if refusal == nil {
		refusal = c.dispatcher.collect(c.actor, r)
	}
	in := handlers.Input{At: now, From: c.actor, Message: r, Refusal: refusal}
	if r.Declaration().IsWrite() {
		in.Random = randomBytes()
	}
	c.inputs = append(c.inputs, in)
	c.requests++
}

// prepare does the work before the decision about a message, and sets now to the end of that work.
func (c *Channel) prepare(m wire.Message, now *time.Time) *wire.Error {
	worked := false
	refused := c.dispatcher.prepare(c.actor, m, func() {
		c.send(*now)
		c.dispatcher.Settle()
		worked = true
	})
	if worked {
		*now = time.Now()
	}
	return refused
}

// session adds a message of a session to the inputs, or refuses it. A malformed message gets a
// decision like any other, because the log of its session contains it.
func (c *Channel) session(s *wire.Session, now time.Time) {
	if err := c.admit(now, false); err != nil {
		c.refuse(true, dialect.Session, s.RawID, called{class: classSession, name: s.Type}.String(), err, now)
		return
	}
	r := &wire.Request{ID: s.ID, Operation: sayOperation, Form: dialect.Session, Body: &wire.SaySession{Session: *s}}
	refusal := c.prepare(r, &now)
	c.inputs = append(c.inputs, handlers.Input{At: now, From: c.actor, Random: randomBytes(), Message: r, Refusal: refusal})
	c.requests++
}

// event adds an event to the inputs. It returns false for an event that is to be logged: one
// named "log", or a malformed one, which gets no answer. A response that cannot be accepted is
// answered with a refusal, because its requester waits for it.
func (c *Channel) event(r *wire.AgentEvent, now time.Time) bool {
	err := c.admit(now, isVital(r.Name))
	response, responds := r.Body.(*delegation.Response)
	switch {
	case err != nil:
	case responds:
		if err = c.prepare(r, &now); err == nil {
			err = c.dispatcher.detach(&c.actor, response, now)
		}
	case r.Name == "log":
		err = c.payloads.CheckLog(r)
	default:
		r.Body, err = c.payloads.Report(r)
		if used, ok := r.Body.(*activity.Usage); ok && c.dispatcher.options.Price != nil {
			c.dispatcher.options.Price(used)
		}
	}
	if err != nil {
		c.refuse(responds, dialect.TaskAct, object.Quote(r.ID), calledIn(r).String(), err, now)
		return responds || err.Code == wire.CodeLimited
	}
	if r.Name == "log" {
		c.logged = true
		return false
	}
	if _, ok := object.ParseTime(r.Timestamp); !ok && !responds && !c.untimed {
		c.untimed = true
		c.refusals.add(fmt.Sprintf("accepted %s, whose timestamp is not an ISO 8601 time: %.40q", calledIn(r), r.Timestamp))
	}
	r.Payload = nil
	if turn, ok := r.Body.(*activity.Turn); ok { // it holds only now, and is not recorded
		c.turn.Store(turn)
		return true
	}
	c.inputs = append(c.inputs, handlers.Input{At: now, From: c.actor, Message: r})
	return true
}

// Turn returns the agent's current activity, or nil if it does not report that.
func (c *Channel) Turn() *activity.Turn { return c.turn.Load() }

// Spoke implements output.Messages.
func (c *Channel) Spoke() bool { return c.logged }

// LimitBytes sets how many bytes of messages the run may send a second, and the length of a line, which it
// may send at once. A rate of 0 means any number.
func (c *Channel) LimitBytes(rate int64, maxLine int) {
	c.maxLine = maxLine
	c.rates.bytes = bucket{rate: float64(rate), burst: float64(maxLine)}
}

// admit counts a message against the limits and returns an error if one is exceeded. The first message of a
// chunk waits for its turn instead: an agent that waits for each answer sends one message in each chunk.
func (c *Channel) admit(now time.Time, vital bool) *wire.Error {
	if !c.piled {
		c.piled = true
		c.rates.pace(now)
		c.rates.count(c.size)
		return nil
	}
	return c.rates.admit(now, c.size, vital)
}

// refuse answers a malformed request, and reports it in the log and in the audit.
func (c *Channel) refuse(request bool, form dialect.Dialect, id []byte, kind string, err *wire.Error, now time.Time) {
	if request {
		c.answer(form, id, err, now)
	}
	c.dispatcher.refused(now, c.actor, kind, id, err)
	c.refusals.add("refused " + inLog(form, kind, id) + ": " + err.Message)
}

// inLog returns the name of a refused message for the log. Mail has no type, so its key names it.
func inLog(form dialect.Dialect, kind string, id []byte) string {
	switch {
	case form != dialect.Mail:
		return kind
	case len(id) == 0:
		return "mail without an idempotency_key"
	}
	return "mail with the idempotency_key " + string(id)
}

// answer appends a refusal to the answers that the next sendRefusals puts into the mailbox.
func (c *Channel) answer(form dialect.Dialect, id []byte, err *wire.Error, now time.Time) {
	envelope := stdio.Envelope{ID: messageID(), At: now}
	c.refused.Text = envelope.AppendRefused(c.refused.Text, form, id, err)
	c.refused.Lines++
}

// Send submits the messages that Take has gathered. It blocks while the agent's mailbox is
// full, because that agent sends requests without reading the answers. It also blocks while too
// many records wait to be written.
func (c *Channel) Send(now time.Time) {
	c.piled = false
	c.send(now)
}

func (c *Channel) send(now time.Time) {
	c.sendRefusals()
	c.submit()
	c.sendRefusals() // refusals from the decisions
	c.refusals.report(now, c.complainOfRefusal)
}

// sendRefusals puts the answers that need no decision into the mailbox.
func (c *Channel) sendRefusals() {
	if c.refused.Lines == 0 {
		return
	}
	c.mail.Await()
	c.refused.Answers = c.refused.Lines
	c.mail.Reserve(c.refused.Answers)
	c.dispatcher.put(c.mail, c.refused, c.actor)
	c.refused = stdin.Entry{Text: c.refused.Text[:0]}
}

// submit submits the inputs to the dispatcher.
func (c *Channel) submit() {
	if len(c.inputs) == 0 {
		return
	}
	c.mail.Await()
	c.mail.Reserve(c.requests)
	c.dispatcher.submit(c.inputs, &c.work)
	c.mail.Reserve(-c.work.waiting)
	c.requests, c.takes = 0, false
	c.note()
	clear(c.inputs)
	c.inputs = c.inputs[:0]
	if c.work.waiting == 0 {
		c.reader.Answered()
	}
	c.dispatcher.yield()
}

// given reports whether a task is or was assigned to the agent. It first submits inputs that
// may assign a task, because the agent may have taken the task one line before.
func (c *Channel) given(id string) (so bool) {
	if c.takes {
		c.submit()
	}
	c.dispatcher.Look(func(state *handlers.State) { so = state.Given(c.actor.Name, id) })
	return so
}

// note reports the inputs that were refused. The agent also gets an answer when a response was
// refused, for it may wait for one. A message about a task that is over, or in another state,
// is only reported.
func (c *Channel) note() {
	for i := range c.inputs {
		in, err := &c.inputs[i], c.work.verdicts[i]
		if err == nil {
			continue
		}
		if r, ok := in.Message.(*wire.Request); ok { // its agent gets an answer; this is for the log
			if c.harmless(r, err) {
				continue
			}
			c.refusals.add("refused " + inLog(r.Form, calledOf(r).String(), r.RawID()) + ": " + err.Message)
			continue
		}
		r, ok := in.Message.(*wire.AgentEvent)
		if !ok {
			continue
		}
		what, id := calledIn(r), object.Quote(r.ID)
		c.dispatcher.audit.note(in.At, c.actor, what.String(), id, err)
		switch {
		case what.class != classTask:
			c.refusals.add("ignored " + what.String() + ": " + err.Message + saidIn(r))
		case err.Details["reason"] == "wrong_state":
			c.refusals.add("ignored task " + what.name + ": " + err.Message)
		default:
			c.answer(dialect.TaskAct, id, err, in.At)
			c.refusals.add("refused " + what.String() + ": " + err.Message)
		}
	}
}

// harmless reports whether a refusal shows no mistake of the agent: it has no task, or it is a coding agent
// that was not seen to begin before its tool had ended the task.
func (c *Channel) harmless(r *wire.Request, err *wire.Error) bool {
	switch r.Operation {
	case "current-task":
		return err.Code == wire.CodeNotFound
	case "start-task":
		return err.Details["reason"] == "wrong_state" && c.Turn() != nil
	}
	return false
}

// saidIn returns the text of an error that an agent reports, for the log.
func saidIn(r *wire.AgentEvent) string {
	e, ok := r.Body.(*activity.Trouble)
	if !ok {
		return ""
	}
	const most = 500
	if text := []rune(e.Error); len(text) > most {
		return "; its error: " + string(text[:most]) + "..."
	}
	return "; its error: " + e.Error
}

// End submits the remaining messages and reports the remaining texts.
func (c *Channel) End(now time.Time) {
	c.Send(now)
	c.refusals.flush(now, c.complainOfRefusal)
}

func (c *Channel) complainOfRefusal(text string, count int64) {
	c.complain(events.AgentRefused, text, count)
}

// Finish waits until the run has received all replies to its requests, or until over is closed,
// and then closes its stdin. The run must not send further requests.
func (c *Channel) Finish(over <-chan struct{}) {
	c.awaitReplies(over)
	c.mail.CloseWhenEmpty()
}

func (c *Channel) awaitReplies(over <-chan struct{}) {
	d, run := c.dispatcher, c.actor.Run
	for {
		moved, taking := c.mail.Moved()
		waits := false
		d.Look(func(state *handlers.State) { waits = state.HasPendingReply(run) })
		if !waits || !taking {
			d.Settle() // wait until all decided records and letters are out
			select {
			case <-d.mail.caughtUp(run):
			case <-over:
			}
			return
		}
		select {
		case <-moved: // it may have received its reply
		case <-over:
			return
		}
	}
}
