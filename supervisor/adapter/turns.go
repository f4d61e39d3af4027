package adapter

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/object"
	"orchestrator/wire/tools"
)

// Begin returns the handshake.
func (m *Machine) Begin(at time.Time) []Effect {
	m.now, m.last = at, at
	return m.take(m.client.Begin(m.o))
}

// Heard takes a line of the client's stdout.
func (m *Machine) Heard(at time.Time, line []byte) []Effect {
	m.now, m.last = at, at
	return m.take(m.client.Heard(object.Replaced(line)))
}

// Cut takes the beginning of a line of the client that was longer than protocol.max_line.
func (m *Machine) Cut(at time.Time, head []byte) []Effect {
	m.now, m.last = at, at
	m.log("a line of the client was longer than protocol.max_line: %s", head)
	return m.take(m.client.Cut(head))
}

// take handles the events of the client and returns the effects.
func (m *Machine) take(from []Effect) []Effect {
	m.handle(from)
	m.advance()
	out := m.out
	m.out = nil
	return out
}

func (m *Machine) handle(from []Effect) {
	for _, e := range from {
		switch e := e.(type) {
		case *Ready:
			m.opened(e)
		case *Begun:
			m.begun()
		case *InContext:
			m.inContext(e.ID)
		case *Unread:
			m.prompts = append(m.prompts, m.taken(e.ID)...) // for the next turn
		case *Doing:
			m.does(e)
		case *Did:
			m.running.Forget(e.ID)
		case *Permission:
			m.asked(e)
		case *Planned:
			m.plans.offered(e.Text)
		case *Withdrawn:
			m.withdrawn(e.ID)
		case *Call:
			m.called(e)
		case *activity.Usage:
			e.TaskID, e.Turn = m.taskID(), m.turns
			m.say("usage", e)
		case *Limited:
			m.limited(e)
		case *Ended:
			m.turnEnded(e)
		case Log:
			if strings.TrimSpace(e.Text) != "" {
				m.out = append(m.out, e)
			}
		default: // Write, Stuck
			m.out = append(m.out, e)
		}
	}
}

// opened handles the end of the handshake.
func (m *Machine) opened(r *Ready) {
	if !m.ready {
		m.ready = true
		m.turn(activity.Idle, "")
	}
	if r.Conversation != "" {
		m.say("session", activity.Conversation{ID: r.Conversation, Kind: m.o.Protocol, Dir: m.o.Dir, Version: r.Version, Model: r.Model})
	}
}

// advance begins a turn if prompts wait and no turn runs. Texts that came during a turn are added to it, if the client
// can do that.
func (m *Machine) advance() {
	if !m.ready || m.closing || m.looking || m.clearing {
		return
	}
	if m.busy {
		if !m.halted {
			m.steer()
		}
		return
	}
	if m.now.Before(m.parked) {
		return
	}
	if m.task == nil && len(m.next) > 0 {
		m.task, m.next = m.next[0], m.next[1:]
		m.prompts = append(m.prompts, text{words: m.task.prompt()})
	}
	if len(m.prompts) == 0 {
		return
	}
	m.plans.switchMode()
	words := make([]string, 0, len(m.prompts))
	for _, t := range m.prompts {
		words = append(words, t.words)
	}
	id := m.id()
	effects := m.client.Prompt(id, strings.Join(words, "\n\n"))
	if effects == nil {
		return
	}
	m.sent = append(m.sent, delivery{id: id, texts: m.prompts})
	m.prompts, m.busy = nil, true
	m.turns++
	m.begins++
	m.doing = ""
	m.last = m.now
	m.handle(effects)
	m.turn(activity.Busy, "")
}

// steer adds the waiting texts to the running turn.
func (m *Machine) steer() {
	for len(m.prompts) > 0 {
		id := m.id()
		effects := m.client.Steer(id, m.prompts[0].words)
		if effects == nil {
			return
		}
		m.sent = append(m.sent, delivery{id: id, texts: m.prompts[:1:1]})
		m.prompts = m.prompts[1:]
		m.handle(effects)
	}
}

// begun starts the task of the turn.
func (m *Machine) begun() {
	if !m.busy { // the client begins it by itself
		m.busy = true
		m.begins++
		m.turn(activity.Busy, "")
	}
	m.warned = false
	if t := m.task; t != nil && !t.started && t.plan == unplanned {
		t.started = true
		if t.work != nil {
			m.beginWork(t)
			return
		}
		m.ask(wire.TaskID{TaskID: t.id}, pending{kind: "start-task", task: t})
	}
}

// taken removes a delivery that the client was given, and returns its texts.
func (m *Machine) taken(id string) []text {
	i := slices.IndexFunc(m.sent, func(d delivery) bool { return d.id == id })
	if i < 0 {
		return nil
	}
	texts := m.sent[i].texts
	m.sent = slices.Delete(m.sent, i, i+1)
	return texts
}

// inContext reports mail as read when the model has it.
func (m *Machine) inContext(id string) {
	for _, t := range m.taken(id) {
		for _, seq := range t.mail {
			m.say("receipt", activity.Receipt{Seq: seq, State: activity.InContext})
			for i := range m.letters {
				if m.letters[i].seq == seq {
					m.letters[i].read = true
				}
			}
		}
	}
	var upTo int64
	for len(m.letters) > 0 && m.letters[0].read {
		upTo, m.letters = m.letters[0].seq, m.letters[1:]
	}
	if upTo > 0 {
		m.ask(wire.AckMessages{Seq: upTo}, pending{kind: "ack-messages"})
	}
}

// quiet is the least time between two reports of progress.
const quiet = 500 * time.Millisecond

// does reports the current action of the client, at once or after a quiet time.
func (m *Machine) does(d *Doing) {
	if !m.busy {
		return
	}
	if d.ID != "" {
		m.running.Put(d.ID, true, 0)
	}
	if d.Text == "" || d.Text == m.doing {
		return
	}
	m.doing, m.late = d.Text, d
	if m.now.Sub(m.told) >= quiet {
		m.progress()
	}
}

// progress reports the latest action of the client.
func (m *Machine) progress() {
	d := m.late
	m.told, m.late = m.now, nil
	m.turn(activity.Busy, d.Text)
	switch t := m.task; {
	case t == nil || t.ended || t.plan != unplanned:
	case t.work != nil:
		m.reportWork(t, d.Text)
	default:
		m.ask(wire.ReportProgress{TaskID: m.task.id, Message: tools.Clip(d.Text, 200), Kind: d.Kind}, pending{kind: "report-progress"})
	}
}

func (m *Machine) limited(l *Limited) {
	if l.Retries {
		m.doing, m.late = "", nil
		m.turn(activity.Busy, "waits for its vendor's limit to end")
		return
	}
	switch {
	case l.Until.After(m.now.Add(activity.MaxLimit)):
		m.parked = m.now.Add(activity.MaxLimit)
	case l.Until.After(m.now):
		m.parked = l.Until
		if last := m.now.Add(maxParked); m.parked.After(last) {
			m.parked = last
		}
	case m.parked.After(m.now): // the time is known from before
		return
	default:
		m.parked = m.now.Add(m.limits.next())
	}
	m.say("limited", activity.Limited{Until: object.Timestamp(m.parked), Scope: l.Scope})
}

// maxParked is the longest time that an agent is parked at once. Then it is tried again.
const maxParked = 7 * 24 * time.Hour

// backOff is how long an agent is parked if its vendor does not say until when: the first time,
// the second, and later ones until a turn has succeeded.
var backOff = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}

// turnEnded handles the end of a turn.
func (m *Machine) turnEnded(e *Ended) {
	cut := m.cut || e.Stopped
	m.busy, m.cut, m.warned, m.halted = false, false, false, false
	m.doing, m.late = "", nil
	m.handle([]Effect{m.running.Clear()})
	m.withdrawAll()
	m.turn(activity.Idle, "")
	if cut && !m.closing {
		m.clearing = true
		m.out = append(m.out, Clear{})
	}
	if e.Failure != "" {
		m.keepUnread(e)
	} else {
		m.limits = 0
	}
	if len(m.o.Door) > 0 && (m.task != nil || len(m.letters) > 0) {
		m.look(e)
		return
	}
	m.settle(e)
}

// Turns returns the number of turns that have begun.
func (m *Machine) Turns() int64 { return m.begins }

// Cleared goes on after a Clear.
func (m *Machine) Cleared(at time.Time) []Effect {
	m.now, m.clearing = at, false
	return m.take(nil)
}

// settle decides about the task of a turn that has ended.
func (m *Machine) settle(e *Ended) {
	t := m.task
	if t == nil {
		return
	}
	if t.ended {
		m.task = nil
		return
	}
	switch {
	case t.plan != unplanned:
		m.plans.settle(t, e)
	case e.Failure == "" && len(m.prompts)+len(m.sent) > 0: // the next texts go on with the task
	case t.work != nil:
		m.settleWork(t, e)
	case e.Failure == FailLimit:
		m.end(pending{kind: "return-task", task: t}, wire.ReturnTask{TaskID: t.id, Reason: orElse(e.Text, "the vendor's usage limit is reached")})
	case e.Failure != "":
		m.end(pending{kind: "fail-task", task: t}, wire.FailTask{
			TaskID: t.id, Error: e.failure(), Class: e.Failure, Retryable: e.Failure == FailTool, // only then another attempt helps
		})
	case m.o.OnTurnEnd == OnTurnEndComplete && !e.Stopped:
		m.end(pending{kind: "complete-task", task: t}, completion{TaskID: t.id, Result: summary{Summary: e.Text}})
	case !t.reminded && (m.o.OnTurnEnd == OnTurnEndRemind || e.Stopped):
		t.reminded = true
		m.prompts = append(m.prompts, text{words: t.reminder()})
	default:
		m.end(pending{kind: "fail-task", task: t}, wire.FailTask{TaskID: t.id, Class: "stuck", Error: e.unreported()})
	}
}

// refused goes on when the end of a task was refused: the task is failed, then given back. If that is refused, too, the
// program is ended, which gives back its tasks. A task that is gone needs no further step.
func (m *Machine) refused(p *pending, err *orderError) {
	why := err.Message
	m.log("%s was refused: %s", p.kind, why)
	if err.gone() {
		return
	}
	switch p.kind {
	case "complete-task":
		m.ask(wire.FailTask{TaskID: p.task.id, Error: tools.Clip("its result was refused: "+why, 2000)}, pending{kind: "fail-task", task: p.task})
	case "fail-task":
		m.ask(wire.ReturnTask{TaskID: p.task.id, Reason: tools.Clip(why, 2000)}, pending{kind: "return-task", task: p.task})
	case "return-task":
		m.out = append(m.out, Stuck{Why: "task " + p.task.id + " cannot be given back"})
	}
}

// keepUnread keeps texts that the model did not get for the next turn: its mail, and all texts if the task goes on
// after a limit. The next turn may fail in the same way, so it does not begin at once.
func (m *Machine) keepUnread(e *Ended) {
	k := m.task
	all := e.Failure == FailLimit && k != nil && (k.work != nil || k.plan != unplanned)
	kept := len(m.prompts)
	for _, d := range m.sent {
		for _, t := range d.texts {
			if all || len(t.mail) > 0 {
				m.prompts = append(m.prompts, t)
			}
		}
	}
	m.sent = nil
	if len(m.prompts) > kept && e.Failure != FailLimit {
		m.parked = m.now.Add(m.limits.next())
		m.say("limited", activity.Limited{Until: object.Timestamp(m.parked), Scope: "its turn failed: " + tools.Clip(e.Text, 500)})
	}
}

// Next returns when Due is to be called.
func (m *Machine) Next() (time.Time, bool) {
	if !m.busy && len(m.prompts)+len(m.next) > 0 && m.now.Before(m.parked) {
		return m.parked, true
	}
	if m.lateNow() {
		return m.told.Add(quiet), true
	}
	if !m.busy && m.ready && len(m.sent) == 0 || len(m.granting)+len(m.calls)+m.running.Len() > 0 || m.o.Patience <= 0 {
		return time.Time{}, false
	}
	return m.last.Add(m.o.Patience), true
}

// lateNow reports whether a report of progress is to be made up for. While the client waits for a person, its state
// shows that instead.
func (m *Machine) lateNow() bool {
	if m.late == nil || !m.busy || len(m.granting) > 0 {
		return false
	}
	for _, p := range m.waiting {
		if p.kind == "ask-user" {
			return false
		}
	}
	return true
}

// Due makes up for a report of progress, begins a turn when the agent is parked no longer, or
// handles a client that has been silent for too long: its turn is interrupted, then it is ended.
func (m *Machine) Due(at time.Time) []Effect {
	when, ok := m.Next()
	m.now = at
	if !ok || at.Before(when) {
		return nil
	}
	if m.lateNow() {
		m.progress()
		return m.take(nil)
	}
	m.last = at
	if when.Equal(m.parked) {
		return m.take(nil)
	}
	if effects := m.client.Interrupt(); m.busy && !m.warned && effects != nil {
		m.warned, m.cut = true, true
		m.log("no output for %v: the turn is interrupted", m.o.Patience)
		return m.take(effects)
	}
	m.out = append(m.out, Stuck{Why: fmt.Sprintf("no output for %v", m.o.Patience)})
	return m.take(nil)
}
