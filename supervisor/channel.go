package supervisor

import (
	"cmp"
	"fmt"
	"time"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// channel takes the messages out of what one run of an agent prints. It is used
// by the goroutine that reads the agent's stdout: parsing, checking and limiting
// cost the agent itself, and when its mailbox is full it is the one that waits.
type channel struct {
	dispatcher *dispatcher
	actor      handlers.Actor
	mail       *mailbox
	reader     wire.Reader
	payloads   wire.Payloads
	bucket     handlers.Bucket
	complain   func(kind string, text string, count int64)

	inputs   []handlers.Input // since the last send
	requests int              // among them
	refused  entry            // answers that nobody decides about, most of them to what makes no sense
	work     work

	refusals, foreign complaints
}

// complaints gathers what is said at most once a second.
type complaints struct {
	told  time.Time
	count int64
	first string
}

// Protocol is what the configuration says about messages.
type Protocol struct {
	Depth int // how deep a line may nest
	Rate  int // messages a second
	Burst int // messages at once
}

// orDefault is what holds where nothing is said.
func (p Protocol) orDefault() Protocol {
	return Protocol{Depth: cmp.Or(p.Depth, 64), Rate: cmp.Or(p.Rate, 100), Burst: cmp.Or(p.Burst, 100)}
}

func (p Protocol) bucket() handlers.Bucket {
	return handlers.Bucket{Rate: float64(p.Rate), Burst: float64(p.Burst)}
}

// take takes a line, if it is a message. What it returns false for is log.
func (c *channel) take(line wire.Line, now time.Time) bool {
	var message wire.Message
	if line.Cut {
		message = c.reader.ParseHead(line.Text, fmt.Sprintf("its line is %s long, which is over the limit", size(line.Size)))
	} else {
		message = c.reader.Parse(line.Text)
	}
	switch m := message.(type) {
	case *wire.Request:
		c.request(m, now)
		return true
	case *wire.Report:
		return c.report(m, now)
	case *wire.Refused:
		if err := c.admit(now); err != nil {
			m.Err = err
		}
		c.refuse(m.Request, m.Form, m.ID, m.Type, m.Err, now)
		return !line.Cut && (m.Request || m.Err.Code == wire.CodeLimited)
	case *wire.Replied:
		c.reply(m, now)
		return true
	case *wire.Session:
		c.session(m, now)
		return !line.Cut
	case *wire.Foreign:
		c.foreign.add(fmt.Sprintf("speaks a dialect that is not served (%s); it is kept as log", m.Dialect))
	}
	return false
}

// reply answers what nobody has to decide about.
func (c *channel) reply(m *wire.Replied, now time.Time) {
	err := c.admit(now)
	if err != nil {
		c.refuse(true, wire.FormTool, m.ID, m.Method, err, now)
		return
	}
	c.refused.text = append(c.refused.text, m.Text...)
	c.refused.lines++
	c.dispatcher.refused(now, c.actor, m.Method, m.ID, m.Err)
}

// request puts a request among the inputs, or refuses it.
func (c *channel) request(r *wire.Request, now time.Time) {
	err := c.admit(now)
	if err == nil {
		err = handlers.PrepareIn(&c.payloads, r)
	}
	if err != nil {
		c.refuse(true, r.Form, r.RawID(), "request:"+r.Operation, err, now)
		return
	}
	r.Payload = nil // it lives as long as the line
	in := handlers.Input{At: now, From: c.actor, Message: r}
	if handlers.Writes(r.Operation) {
		in.Random = chance()
	}
	c.inputs = append(c.inputs, in)
	c.requests++
}

// session puts a message of a session among the inputs, or refuses it. One that
// makes no sense is decided about like any other: the log of its session has it.
func (c *channel) session(s *wire.Session, now time.Time) {
	if err := c.admit(now); err != nil {
		c.refuse(true, wire.FormSession, s.RawID(), sessionKind(s.Type), err, now)
		return
	}
	c.inputs = append(c.inputs, handlers.Input{At: now, From: c.actor, Random: chance(), Message: &wire.Request{
		ID: s.ID, Operation: sayOperation, Form: wire.FormSession, Body: &wire.SaySession{Session: *s},
	}})
	c.requests++
}

// report puts an event among the inputs. One that is log is log, and so is one
// that makes no sense: the agent is not told, and its author should find it.
func (c *channel) report(r *wire.Report, now time.Time) bool {
	err := c.admit(now)
	switch {
	case err != nil:
	case r.Name == "log":
		err = c.payloads.CheckLog(r.Payload)
	default:
		r.Body, err = c.payloads.Report(r.Name, r.Payload)
	}
	if err != nil {
		c.refuse(false, wire.FormOwn, wire.Quote(r.ID), "event:"+r.Name, err, now)
		return err.Code == wire.CodeLimited
	}
	if r.Name == "log" {
		return false
	}
	r.Payload = nil
	c.inputs = append(c.inputs, handlers.Input{At: now, From: c.actor, Message: r})
	return true
}

// admit counts a message against the limit.
func (c *channel) admit(now time.Time) *wire.Error {
	if c.bucket.Take(now) {
		return nil
	}
	return &wire.Error{
		Code:    wire.CodeLimited,
		Message: fmt.Sprintf("more than %.0f messages a second", c.bucket.Rate),
		Details: map[string]any{"rate": c.bucket.Rate, "burst": c.bucket.Burst},
	}
}

// refuse answers what makes no sense, if it is a request, and notes it for
// people and for the audit.
func (c *channel) refuse(request bool, form wire.Form, id []byte, kind string, err *wire.Error, now time.Time) {
	if request {
		envelope := wire.Envelope{ID: messageID(), At: now}
		c.refused.text = envelope.AppendRefused(c.refused.text, form, id, err)
		c.refused.lines++
	}
	c.dispatcher.refused(now, c.actor, kind, id, err)
	c.refusals.add("refused " + kind + ": " + err.Message)
}

func (c *complaints) add(text string) {
	if c.count == 0 {
		c.first = text
	}
	c.count++
}

// send passes on what was taken. The agent waits here while its own mailbox is
// full, for it asks without reading the answers, and while too much waits to be
// recorded.
func (c *channel) send(now time.Time) {
	if c.refused.lines > 0 {
		c.mail.await()
		c.refused.answers = c.refused.lines
		c.mail.owe(c.refused.answers)
		c.dispatcher.put(c.mail, c.refused, c.actor)
		c.refused = entry{text: c.refused.text[:0]}
	}
	if len(c.inputs) > 0 {
		c.mail.await()
		c.mail.owe(c.requests)
		c.dispatcher.submit(c.inputs, &c.work)
		c.mail.owe(-c.work.waiting)
		c.requests = 0
		c.note()
		clear(c.inputs)
		c.inputs = c.inputs[:0]
		c.dispatcher.yield()
	}
	c.say(wire.EventRefused, &c.refusals, now)
	c.say(wire.EventNotServed, &c.foreign, now)
}

// note tells people of events that were not heeded.
func (c *channel) note() {
	for i := range c.inputs {
		if r, ok := c.inputs[i].Message.(*wire.Report); ok && c.work.verdicts[i] != nil {
			c.dispatcher.audit.note(c.inputs[i].At, c.actor, "event:"+r.Name, wire.Quote(r.ID), c.work.verdicts[i])
			c.refusals.add("ignored event:" + r.Name + ": " + c.work.verdicts[i].Message)
		}
	}
}

// say tells people what came together since the last time, at most once a
// second.
func (c *channel) say(kind string, what *complaints, now time.Time) {
	if what.count == 0 || now.Sub(what.told) < time.Second {
		return
	}
	text := what.first
	if what.count > 1 {
		text += fmt.Sprintf(" (and %d more)", what.count-1)
	}
	c.complain(kind, text, what.count)
	*what = complaints{told: now}
}

// end says what has not been said yet.
func (c *channel) end(now time.Time) {
	c.refusals.told, c.foreign.told = time.Time{}, time.Time{}
	c.send(now)
}
