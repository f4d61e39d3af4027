package handlers

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// missive is a session message to be delivered.
type missive struct {
	*state.SessionSaid
	seq     int64
	held    bool
	out     string // the run that it was sent to, written or not
	taken   bool   // written to that run
	given   time.Time
	repeat  bool // written to a run that has ended
	retries int
	again   bool // out of order
}

func (m *missive) lasting() bool {
	return m.Type == session.TypeTaskAssignment || m.Type == session.TypeReviewRequest
}

// wait takes a message back from a run.
func (m *missive) wait() {
	m.repeat = m.repeat || m.taken && !m.lasting()
	m.out, m.taken = "", false
}

// settle drops messages that were written to an agent that sends a line now.
func (m *minutes) settle(f *state.SessionSaid, at time.Time) {
	m.posts = slices.DeleteFunc(m.posts, func(p *missive) bool {
		answered := f.ReplyTo != "" && f.ReplyTo == p.ID && f.Session == p.Session
		return p.To == f.From && p.taken && (p.repeat || !p.lasting()) && (answered || at.Sub(p.given) >= time.Second)
	})
}

// lodge adds a message to be delivered.
func (m *minutes) lodge(f *state.SessionSaid, r *wire.Record) {
	if f.By == "" {
		m.settle(f, r.At)
	}
	switch f.Fate {
	case state.FateKept:
		return
	case state.FatePulled:
		m.w.must(m.w.state.Agents.Pulls(f.To), "%s does not ask for its messages", f.To)
		return
	}
	m.posts = append(m.posts, &missive{SessionSaid: f, seq: r.Seq, held: f.Fate == state.FateHeld})
}

// leave drops messages that are not to be delivered.
func (m *minutes) leave(which func(p *missive) bool) {
	m.posts = slices.DeleteFunc(m.posts, func(p *missive) bool {
		if which(p) {
			m.turn.late[p.seq] = p
			return true
		}
		return false
	})
}

// overtake drops the assignments or review requests of a task.
func (m *minutes) overtake(task, kind string) {
	m.leave(func(p *missive) bool { return p.Task == task && p.Type == kind })
}

func (m *minutes) post(seq int64) *missive {
	i, there := slices.BinarySearchFunc(m.posts, seq, func(p *missive, seq int64) int { return int(p.seq - seq) })
	if !there {
		return nil
	}
	return m.posts[i]
}

// hearPost follows the delivery of messages.
func (m *minutes) hearPost(f state.Fact, at time.Time) {
	switch f := f.(type) {
	case *state.SessionDelivered:
		p := m.post(f.Message)
		m.w.must(p != nil && p.To == f.Agent && p.out != "" && !p.taken, "%d is delivered: %+v", f.Message, p)
		p.taken, p.given = true, at
	case *state.SessionDeferred:
		p := m.post(f.Message)
		m.w.must(p != nil && !p.held, "%d is deferred: %+v", f.Message, p)
		if f.Unread {
			m.w.must(p.out != "" && !p.taken && f.Retries <= p.retries+1 && f.Retries <= session.DeliveryRetries, "%d is not read for the %d. time: %+v", f.Message, f.Retries, p)
			if f.Retries > p.retries {
				p.retries = f.Retries
				m.announce(p, f.Next)
			}
			m.w.saw["unread"]++
			return
		}
		p.again = true
		if f.Again {
			m.w.must(f.Retries == p.retries+1 && f.Retries <= session.DeliveryRetries && p.out == "", "%d is tried for the %d. time: %+v", f.Message, f.Retries, p)
			p.retries = f.Retries
			m.turn.errands = append(m.turn.errands, p)
			return
		}
		m.w.must(f.Retries >= p.retries && f.Retries < session.DeliveryRetries, "%d is deferred for the %d. time: %+v", f.Message, f.Retries, p)
		p.retries = f.Retries
		p.wait()
		m.announce(p, f.Next)
	case *state.SessionUndelivered:
		p := m.post(f.Message)
		m.w.must(p != nil && !p.held && !p.taken && f.Retries <= session.DeliveryRetries, "%d is given up: %+v", f.Message, p)
		p.retries = f.Retries
		m.announce(p, "")
		m.forget(p)
	case *state.AgentForgotten:
		m.posts = slices.DeleteFunc(m.posts, func(p *missive) bool { return p.To == f.ID && (p.repeat || p.taken && !p.lasting()) })
	case *state.LifecycleEvent:
		m.hearRun(f)
	}
}

// forget drops a message that is delivered or given up.
func (m *minutes) forget(p *missive) {
	m.posts = slices.DeleteFunc(m.posts, func(o *missive) bool { return o == p })
}

// announce notes that the sender of a message must hear of its failed delivery, if it can be
// reached.
func (m *minutes) announce(p *missive, next string) {
	a := m.w.state.Agents.ByID[p.From]
	if p.By != "" || a == nil || a.Remote != nil || !a.Reachable() {
		return
	}
	m.turn.tidings = append(m.turn.tidings, session.DeliveryError{
		OriginalMessageID: p.ID, ErrorType: session.DeliveryTimeout, RetryCount: p.retries, MaxRetries: session.DeliveryRetries, NextRetryAt: next,
	})
}

// hearRun follows runs. A run that ends has not read its messages, and the next one gets all
// that wait.
func (m *minutes) hearRun(f *state.LifecycleEvent) {
	v := m.w.bus.lives[f.Agent]
	for _, p := range m.posts {
		switch life := m.w.bus.lives[p.To]; {
		case p.held:
		case f.What == events.OrchestratorStarted:
			if life != nil && !life.remote {
				p.wait()
			}
		case p.To != f.Agent || v == nil || v.remote:
		case f.What == events.AgentEnded && v.run == f.Run:
			p.wait()
		case f.What == events.AgentStarted, f.What == events.AgentRecovered && v.run == f.Run && v.runs && !v.exited && p.out == "":
			p.wait()
			m.turn.errands = append(m.turn.errands, p)
		}
	}
}

// hearLine checks that a line goes to its receiver, to the current run, in order and unchanged. It
// comes at most once without an event in between.
func (m *minutes) hearLine(l *Letter) {
	p := m.post(l.Said)
	if p == nil {
		p = m.turn.late[l.Said]
	}
	m.w.must(p != nil, "message %d is told, and is not to be", l.Said)
	v := m.w.bus.lives[l.To.Name]
	m.w.must(l.To.Kind == Agent && l.To.Name == p.To && v != nil && v.runs && v.run == l.To.Run && !v.remote, "%+v is told to %v", p, l.To)
	m.w.must(!m.w.state.Agents.ByID[p.To].Deaf, "%s takes no messages", p.To)
	m.w.must(!p.held && p.out == "", "%+v is told to %v once more", p, l.To)
	if !p.again {
		for _, o := range m.posts {
			early := o.seq > p.seq && o.Session == p.Session && o.To == p.To && o.out == l.To.Run && !o.again
			m.w.must(!early, "message %d is told after %d", p.seq, o.seq)
		}
	}
	p.out = l.To.Run
	line := l.Line
	if l.Kept != 0 {
		m.w.must(l.Kept == p.seq && p.repeat, "%+v is told from the record", p)
		line = p.SessionSaid.Line()
	}
	m.w.voice.Write(line)
	m.lookAtLine(line, p.SessionSaid)
	m.w.sessions.lines = append(m.w.sessions.lines, *l)
	m.w.saw["a line"]++
}

// lookAtLine checks that the delivered line is the message that was sent, with a sequence number
// and a correlation added if it had none.
func (m *minutes) lookAtLine(line wire.Raw, f *state.SessionSaid) {
	body := f.Document[:len(f.Document)-1]
	m.w.must(bytes.HasPrefix(line, body), "%s was said, and %s is delivered", f.Document, line)
	var said, told map[string]any
	m.w.must(json.Unmarshal(f.Document, &said) == nil && json.Unmarshal(line, &told) == nil, "%s", line)
	if !f.Given {
		m.w.must(told["sequence_number"] == float64(f.Sequence), "%d is not in %s", f.Sequence, line)
		delete(told, "sequence_number")
	}
	if !f.Linked && f.Chain != "" {
		m.w.must(told["correlation_id"] == f.Chain, "%s is not in %s", f.Chain, line)
		delete(told, "correlation_id")
	}
	m.w.must(reflect.DeepEqual(said, told), "%s was said, and %s is delivered", f.Document, line)
}

// lookAtPost checks that a turn has all due letters to receivers and senders.
func (m *minutes) lookAtPost(out *Outcome) {
	for _, p := range m.turn.errands {
		m.w.must(p.out != "" || m.post(p.seq) == nil, "%+v is to be told, and is not", p)
	}
	for i, f := range m.turn.said {
		p := m.post(m.turn.seqs[i])
		if p == nil || p.held || p.out != "" {
			continue
		}
		waits := func(o *missive) bool {
			still := o.out == "" || slices.Contains(m.turn.errands, o) // tried again after p was sent
			return o.seq < p.seq && o.Session == p.Session && o.To == p.To && !o.held && still
		}
		first := !slices.ContainsFunc(m.posts, waits)
		for _, o := range m.turn.late {
			first = first && !waits(o)
		}
		a := m.w.state.Agents.ByID[p.To]
		m.w.must(!first || a == nil || !a.Reachable(), "%s is said to %s, who is there, and is not told", f.Type, f.To)
	}
	told := 0
	for i := range out.Letters {
		what, ok := out.Letters[i].Payload.(*session.DeliveryError)
		if !ok {
			continue
		}
		m.w.must(told < len(m.turn.tidings) && *what == m.turn.tidings[told], "%+v", what)
		told++
		m.w.saw["a sender hears of a retry"]++
	}
	m.w.must(told == len(m.turn.tidings), "%d senders are to be told, and %d are", len(m.turn.tidings), told)
}

// lookAtParcels compares the undelivered messages with the State.
func (m *minutes) lookAtParcels() {
	var have []*state.OutboxItem
	for _, s := range m.w.state.Sessions.Order {
		for _, seat := range s.Members {
			have = append(have, seat.Outbox...)
		}
	}
	slices.SortFunc(have, func(a, b *state.OutboxItem) int { return int(a.Seq - b.Seq) })
	m.w.must(len(have) == len(m.posts), "%d messages are to be delivered, not %d", len(m.posts), len(have))
	for i, p := range m.posts {
		h := have[i]
		same := p.seq == h.Seq && p.To == h.To.AgentID && p.Session == h.To.Of.Spec.ID && p.held == h.Held && p.out == h.Out && p.taken == h.Taken &&
			p.retries == h.Retries && p.repeat == h.Repeat && p.Task == h.Task
		m.w.must(same, "%+v is %+v", p, h)
	}
}
