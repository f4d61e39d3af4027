package handlers

import (
	"fmt"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// An outboxItem is a session message that its recipient may not have read. It waits for a run,
// or was written to the stdin of one. A task assignment and a review request stay until they are
// taken up, any other message until its recipient sends a later one. If the run ends before
// that, the next run gets it again; receivers recognize duplicates by message_id.
type outboxItem struct {
	seq     int64 // of its record
	to      *member
	from    string // the sender
	id      string // its message_id
	kind    string
	task    string
	by      string    // the actor that sent it for the sender
	line    wire.Raw  // nil once it was written and is only in the log
	held    bool      // it must not be delivered yet
	out     string    // the run that it was sent to; "": it waits
	taken   bool      // it was written to that run's stdin
	given   time.Time // when that was
	repeat  bool      // it was written to a run that has ended, and is sent again
	retries int       // so far
	next    time.Time // when it is retried, or counts as unread
}

// Date implements byTime.
func (oi *outboxItem) Date() (time.Time, int64) { return oi.next, oi.seq }

// lasting reports whether an item stays until its task or review is taken up.
func (oi *outboxItem) lasting() bool {
	return oi.kind == session.TypeTaskAssignment || oi.kind == session.TypeReviewRequest
}

// told reports whether an item was written to a run that may not have read it. Its sender gets
// no further report.
func (oi *outboxItem) told() bool { return oi.repeat || oi.taken && !oi.lasting() }

// pulls reports whether an agent fetches its messages: it runs on another machine, has no stdin
// for messages, or is not known yet.
func (as *agents) pulls(name string) bool {
	a := as.byID[name]
	return a == nil || a.remote != nil || a.Deaf
}

// reachable reports whether an agent has a run that can receive messages.
func (a *agent) reachable() bool {
	return a.run != "" && !a.ended && (a.state == up || a.state == leaving)
}

// addItem adds an item.
func (s *core) addItem(p *outboxItem, at time.Time) {
	p.to.outbox = append(p.to.outbox, p)
	s.post(p, at)
}

// post sends an item if its recipient can receive it and no earlier item waits.
func (s *core) post(p *outboxItem, at time.Time) {
	waits := slices.ContainsFunc(p.to.outbox, func(o *outboxItem) bool { return o != p && o.waits() })
	switch a := s.agents.byID[p.to.AgentID]; {
	case p.held:
	case a != nil && a.reachable() && !waits:
		s.sendItem(p, at)
	default:
		s.sessions.deferUntil(p, at.Add(deliveryRetries[0]))
	}
}

// unread reports whether an item was sent to a run that has not read it.
func (oi *outboxItem) unread() bool { return oi.out != "" && !oi.taken && !oi.repeat }

// timed reports whether an item has a deadline: for a retry, or for a report to its sender that
// it was not read.
func (oi *outboxItem) timed() bool { return oi.waits() || oi.unread() }

// waits reports whether a item is to be tried again.
func (oi *outboxItem) waits() bool { return oi.out == "" && !oi.held && !oi.repeat }

// turnOf returns when an item is retried that is due at a given time: not before earlier items.
func (oi *outboxItem) turnOf(at time.Time) time.Time {
	for _, o := range oi.to.outbox {
		if o == oi {
			break
		}
		if o.waits() && o.next.After(at) {
			at = o.next
		}
	}
	return at
}

// deferUntil makes an item and those after it wait until a time. If this turn has sent the item,
// it is not sent.
func (x *sessions) deferUntil(p *outboxItem, until time.Time) {
	x.fresh = slices.DeleteFunc(x.fresh, func(o *outboxItem) bool { return o == p })
	x.posted.Drop(p)
	p.out, p.taken, p.next = "", false, p.turnOf(until)
	x.posted.Add(p)
	for _, o := range p.to.outbox[slices.Index(p.to.outbox, p)+1:] {
		if o.waits() && o.next.Before(p.next) {
			x.posted.Drop(o)
			o.next = p.next
			x.posted.Add(o)
		}
	}
}

// sendItem queues an item for the current run of its recipient. Its letter is written when the
// turn ends.
func (s *core) sendItem(p *outboxItem, at time.Time) {
	s.sessions.posted.Drop(p)
	p.out, p.taken = s.agents.byID[p.to.AgentID].run, false
	if p.unread() {
		s.sessions.askLater(p, at.Add(p.patience()))
	}
	s.sessions.fresh = append(s.sessions.fresh, p)
}

// patience returns the time until the next attempt to deliver an item.
func (oi *outboxItem) patience() time.Duration {
	return deliveryRetries[min(oi.retries, len(deliveryRetries)-1)]
}

// askLater sets the time at which an item that was sent is checked again.
func (x *sessions) askLater(p *outboxItem, at time.Time) {
	x.posted.Drop(p)
	p.next = at
	x.posted.Add(p)
}

// removeItem removes an item.
func (x *sessions) removeItem(p *outboxItem) {
	x.posted.Drop(p)
	p.to.outbox = slices.DeleteFunc(p.to.outbox, func(o *outboxItem) bool { return o == p })
}

// outboxItem returns the item for an agent with a record number, or nil.
func (x *sessions) outboxItem(agent string, seq int64) *outboxItem {
	for _, m := range x.seats[agent] {
		for _, p := range m.outbox {
			if p.seq == seq {
				return p
			}
		}
	}
	return nil
}

// removeItems removes the items about a task that have not been taken up.
func (s *sessionState) removeItems(st *core, task, kind string) {
	for _, m := range s.members {
		for _, p := range slices.Clone(m.outbox) {
			if p.task == task && p.kind == kind {
				st.sessions.removeItem(p)
			}
		}
	}
}

// The maximum number and size of the items that wait for a member, and the number of delivered
// items that are kept.
const (
	maxParcels     = 1000
	maxParcelBytes = 32 << 20
	maxKept        = 1000
)

// trim removes the oldest delivered item of a member, if there are more than maxKept. A run
// that received so many later ones has read it.
func (s *core) trim(m *member) {
	n := 0
	for _, p := range m.outbox {
		if p.told() {
			n++
		}
	}
	if n > maxKept {
		s.sessions.removeItem(m.outbox[slices.IndexFunc(m.outbox, (*outboxItem).told)])
	}
}

// settleItems removes the delivered items that the run of an agent must have read: the agent
// answers one, or writes something a while after it. Output from before that may be handled
// after the item was written.
func (x *sessions) settleItems(agent string, in *sessionState, reply string, at time.Time) {
	for _, m := range x.seats[agent] {
		m.outbox = slices.DeleteFunc(m.outbox, func(p *outboxItem) bool {
			read := m.of == in && reply != "" && p.id == reply || !p.given.Add(readWithin).After(at)
			return p.taken && p.told() && read
		})
	}
}

// readWithin is the time after which output of an agent proves that it has read an earlier line.
const readWithin = time.Second

// checkBacklog refuses a message to a member that does not read earlier ones.
func (m *member) checkBacklog() *wire.Error {
	n, size := 0, 0
	for _, p := range m.outbox {
		if !p.taken && !p.held && !p.repeat {
			n, size = n+1, size+len(p.line)
		}
	}
	if n < maxParcels && size < maxParcelBytes {
		return nil
	}
	return errorf(wire.CodeTimeout, details{"to_agent": m.AgentID, "waiting": n},
		"%s has not taken %s yet: say it again when it has", m.AgentID, counted(n, "message"))
}

// before returns the record of the previous item that was sent to the same run and has not been
// written, or 0. Items that an earlier run received do not count, since a run without room never
// gets them.
func (oi *outboxItem) before() int64 {
	if oi.repeat {
		return 0
	}
	all := oi.to.outbox
	at := len(all) - 1
	for at >= 0 && all[at] != oi {
		at--
	}
	for at--; at >= 0; at-- {
		if o := all[at]; o.out == oi.out && !o.taken && !o.repeat {
			return o.seq
		}
	}
	return 0
}

// bring writes the letters of the items that this turn sends.
func (sd sessionDecision) bring() {
	for _, p := range sd.state.sessions.fresh {
		l := Letter{To: Actor{Kind: Agent, Name: p.to.AgentID, Run: p.out}, Line: p.line, Said: p.seq, After: p.before()}
		if p.line == nil {
			l.Kept = p.seq
		}
		sd.out.Letters = append(sd.out.Letters, l)
	}
	sd.state.sessions.looked()
}

// meetRun sends all waiting items of an agent to its new run.
func (s *core) meetRun(a *agent, at time.Time) {
	for _, m := range s.sessions.seats[a.ID] {
		for _, p := range m.outbox {
			if !p.held && (p.out == "" || p.out != a.run) {
				s.sendItem(p, at)
			}
		}
	}
}

// loseRun keeps the items that an ended run may not have read for the next one.
func (x *sessions) loseRun(a *agent, at time.Time) {
	for _, m := range x.seats[a.ID] {
		for _, p := range m.outbox {
			switch {
			case p.told():
				p.out, p.taken, p.repeat = "", false, true
			case p.out != "":
				x.deferUntil(p, at.Add(p.patience()))
			}
		}
	}
}

// waitAgain restarts the delivery times of an agent's items, since the orchestrator was down.
func (x *sessions) waitAgain(a *agent, at time.Time) {
	for _, m := range x.seats[a.ID] {
		for _, p := range m.outbox {
			switch {
			case p.told():
				p.out, p.taken, p.repeat = "", false, true
			case !p.held:
				x.deferUntil(p, at.Add(p.patience()))
			}
		}
	}
}

// This file handles session messages that their recipients do not read.

// handed handles the delivery of a session message: written, or lost.
func (sd sessionDecision) handed(m *wire.Delivered) {
	p := sd.state.sessions.outboxItem(m.Agent, m.Said)
	if p == nil || p.out != m.Run || p.taken {
		return // its task is over, or that run is
	}
	switch a := sd.state.agents.byID[m.Agent]; {
	case !m.Lost:
		sd.fact(agentPrefix+m.Agent, p.task, &sessionDelivered{Session: p.to.of.spec.ID, Agent: m.Agent, Message: m.Said})
	case a != nil && a.runs(m.Run) && a.state == up && !p.repeat: // otherwise it waits for the next run
		sd.deliveryFailed(p)
	}
}

// deliveryFailed handles a failed delivery. It is retried a few times, and its sender is
// notified each time.
func (sd sessionDecision) deliveryFailed(p *outboxItem) {
	if p.retries == len(deliveryRetries) {
		sd.abandonItem(p, p.retries, "it was tried again and again")
		return
	}
	sd.deferItem(p, p.retries)
}

func (sd sessionDecision) deferItem(p *outboxItem, retries int) {
	next := object.Timestamp(p.turnOf(sd.at.Add(deliveryRetries[retries])))
	sd.fact(agentPrefix+p.from, p.task, &sessionDeferred{
		Session: p.to.of.spec.ID, Agent: p.to.AgentID, Message: p.seq, ID: p.id, Retries: retries, Next: next,
	})
	sd.tellUndelivered(p, retries, next, "does not take its messages now: it is tried again")
}

// noteUnread handles an item that a run has not read in time. The item stays in its place, and
// its sender is notified as of a retry. Time in which the run could not read does not count.
func (sd sessionDecision) noteUnread(p *outboxItem, excused bool) {
	retries, patience := p.retries, p.patience()
	if !excused {
		if retries++; retries >= len(deliveryRetries) {
			sd.abandonItem(p, len(deliveryRetries), "it runs and does not read")
			return
		}
		patience = deliveryRetries[retries]
	}
	next := object.Timestamp(sd.at.Add(patience))
	sd.fact(agentPrefix+p.from, p.task, &sessionDeferred{
		Session: p.to.of.spec.ID, Agent: p.to.AgentID, Message: p.seq, ID: p.id, Retries: retries, Next: next, Unread: true,
	})
	if excused {
		return
	}
	sd.tellUndelivered(p, retries, next, "runs and does not read its messages: they wait")
}

// tellUndelivered notifies the sender of an item about its delivery.
func (sd sessionDecision) tellUndelivered(p *outboxItem, retries int, next, why string) {
	a := sd.state.agents.byID[p.from]
	if p.by != "" || a == nil || a.remote != nil || !a.reachable() {
		return
	}
	text := p.to.AgentID + " " + why
	if next == "" {
		text = fmt.Sprintf("%s has not taken the message: %s", p.to.AgentID, why)
	}
	sd.out.Letters = append(sd.out.Letters, Letter{
		To: Actor{Kind: Agent, Name: a.ID, Run: a.run}, Request: p.id, Form: wire.DialectSession,
		Payload: &session.DeliveryError{
			OriginalMessageID: p.id, ErrorType: session.DeliveryTimeout, RetryCount: retries, MaxRetries: session.DeliveryRetries, NextRetryAt: next,
		},
		Refusal: &wire.Error{Code: wire.CodeTimeout, Message: text, Details: map[string]any{"to_agent": p.to.AgentID}},
	})
}

// retryItems retries the items that are due.
func (sd sessionDecision) retryItems(excused bool) {
	for len(sd.state.sessions.posted) > 0 && !sd.state.sessions.posted[0].next.After(sd.at) && !sd.state.stopping {
		p := sd.state.sessions.posted[0]
		retries := p.retries + 1
		switch a := sd.state.agents.byID[p.to.AgentID]; {
		case p.out != "":
			sd.noteUnread(p, excused)
		case a != nil && a.reachable() && retries <= len(deliveryRetries):
			sd.fact(agentPrefix+p.from, p.task, &sessionDeferred{
				Session: p.to.of.spec.ID, Agent: p.to.AgentID, Message: p.seq, ID: p.id, Retries: retries, Again: true,
			})
		default:
			sd.missAll(p.to)
		}
	}
}

// missAll counts a failed attempt for all waiting items of a member that does not run. Otherwise
// the last item would be given up long after the first.
func (sd sessionDecision) missAll(m *member) {
	for _, p := range slices.Clone(m.outbox) {
		switch retries := p.retries + 1; {
		case !p.waits() || !slices.Contains(m.outbox, p): // it went with one before it
		case retries >= len(deliveryRetries):
			sd.abandonItem(p, len(deliveryRetries), "it does not run")
		default:
			sd.deferItem(p, retries)
		}
	}
}

// abandonItem gives up an item, and the work or review that depends on it.
func (sd sessionDecision) abandonItem(p *outboxItem, retries int, why string) {
	s := p.to.of
	sd.fact(agentPrefix+p.from, p.task, &sessionUndelivered{
		Session: s.spec.ID, Agent: p.to.AgentID, Message: p.seq, ID: p.id, Retries: retries, Why: why,
	})
	sd.tellUndelivered(p, retries, "", why)
	w := sd.state.tasks.workOn(s, p.task)
	switch {
	case w == nil:
	case p.kind == session.TypeTaskAssignment && w.phase == session.PhaseAssigned:
		sd.works().loseWork(w, &session.ExecutionError{
			ErrorType: session.ExecutionException, SuggestedAction: session.SuggestReassign,
			ErrorMessage: fmt.Sprintf("%s could not be given the task: %s", p.to.AgentID, why),
		})
	case (p.kind == session.TypeTaskCompletion || p.kind == session.TypeReviewResult) && w.stands():
		sd.reviews().askPerson(w, fmt.Sprintf("%s, who should say how it goes on, has not heard: %s", p.to.AgentID, why))
	case p.kind == session.TypeReviewRequest:
		sd.reviews().loseReview(w, fmt.Sprintf("%s could not be given the review: %s", p.to.AgentID, why))
	}
}

// abandonItems gives up all items for an agent that is not restarted.
func (sd sessionDecision) abandonItems(name, why string) {
	for _, m := range sd.state.sessions.seats[name] {
		for _, p := range slices.Clone(m.outbox) {
			if p.waits() {
				sd.abandonItem(p, p.retries, why)
			}
		}
	}
}

// sessionDelivered records that a message was written to the stdin of its recipient.
type sessionDelivered struct {
	Session string `json:"session_id"`
	Agent   string `json:"agent"`
	Message int64  `json:"message"` // the number of its record
}

func (*sessionDelivered) kind() string { return events.SessionDelivered }

func (sd *sessionDelivered) apply(s *core, r *wire.Record) {
	p := s.sessions.outboxItem(sd.Agent, sd.Message)
	s.sessions.posted.Drop(p)
	p.taken, p.given = true, r.At
	if p.told() {
		p.line = nil
		s.trim(p.to)
	}
}

// sessionDeferred records that a message could not be delivered and when it is retried, or that
// it is retried now.
type sessionDeferred struct {
	Session string `json:"session_id"`
	Agent   string `json:"agent"`
	Message int64  `json:"message"`
	ID      string `json:"message_id"`
	Retries int    `json:"retry_count"`
	Next    string `json:"next_retry_at,omitzero"`
	Again   bool   `json:"again,omitzero"`
	Unread  bool   `json:"unread,omitzero"` // it was sent to a run that does not read
}

func (*sessionDeferred) kind() string { return events.SessionDeferred }

func (sd *sessionDeferred) apply(s *core, r *wire.Record) {
	p := s.sessions.outboxItem(sd.Agent, sd.Message)
	p.retries = sd.Retries
	if sd.Again {
		s.sendItem(p, r.At)
		return
	}
	next, _ := object.ParseTime(sd.Next)
	if sd.Unread {
		s.sessions.askLater(p, next)
		return
	}
	s.sessions.deferUntil(p, next)
}

// sessionUndelivered records that the delivery of a message was given up.
type sessionUndelivered struct {
	Session string `json:"session_id"`
	Agent   string `json:"agent"`
	Message int64  `json:"message"`
	ID      string `json:"message_id"`
	Retries int    `json:"retry_count"`
	Why     string `json:"why"`
}

func (*sessionUndelivered) kind() string { return events.SessionUndelivered }

func (su *sessionUndelivered) apply(s *core, _ *wire.Record) {
	s.sessions.removeItem(s.sessions.outboxItem(su.Agent, su.Message))
}

func (sd *sessionDelivered) check(s *core) error {
	return s.sessions.checkParcel(sd.Agent, sd.Message)
}
func (sd *sessionDeferred) check(s *core) error { return s.sessions.checkParcel(sd.Agent, sd.Message) }
func (su *sessionUndelivered) check(s *core) error {
	return s.sessions.checkParcel(su.Agent, su.Message)
}

func (x *sessions) checkParcel(agent string, message int64) error {
	if x.outboxItem(agent, message) == nil {
		return fmt.Errorf("no message %d is on its way to %q", message, agent)
	}
	return nil
}
