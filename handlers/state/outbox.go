package state

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
type OutboxItem struct {
	StoredItem
	To *Member
}

// A StoredItem is the part of an OutboxItem that a snapshot copies.
type StoredItem struct {
	Seq     int64     `json:"seq"`  // of its record
	From    string    `json:"from"` // the sender
	Id      string    `json:"id"`   // its message_id
	Kind    string    `json:"kind"`
	Task    string    `json:"task,omitzero"`
	By      string    `json:"by,omitzero"`      // the actor that sent it for the sender
	Line    wire.Raw  `json:"line,omitzero"`    // nil once it was written and is only in the log
	Held    bool      `json:"held,omitzero"`    // it must not be delivered yet
	Out     string    `json:"out,omitzero"`     // the run that it was sent to; "": it waits
	Taken   bool      `json:"taken,omitzero"`   // it was written to that run's stdin
	Given   time.Time `json:"given,omitzero"`   // when that was
	Repeat  bool      `json:"repeat,omitzero"`  // it was written to a run that has ended, and is sent again
	Retries int       `json:"retries,omitzero"` // so far
	Next    time.Time `json:"next,omitzero"`    // when it is retried, or counts as unread
}

// Date implements byTime.
func (oi *OutboxItem) Date() (time.Time, int64) { return oi.Next, oi.Seq }

// lasting reports whether an item stays until its task or review is taken up.
func (oi *OutboxItem) lasting() bool {
	return oi.Kind == session.TypeTaskAssignment || oi.Kind == session.TypeReviewRequest
}

// told reports whether an item was written to a run that may not have read it. Its sender gets
// no further report.
func (oi *OutboxItem) told() bool { return oi.Repeat || oi.Taken && !oi.lasting() }

// Pulls reports whether an agent fetches its messages: it runs on another machine, has no stdin
// for messages, or is not known yet.
func (as *agents) Pulls(name string) bool {
	a := as.ByID[name]
	return a == nil || a.Remote != nil || a.Deaf
}

// Reachable reports whether an agent has a run that can receive messages.
func (a *KnownAgent) Reachable() bool {
	return a.Run != "" && !a.Ended && (a.State == Up || a.State == Leaving)
}

// addItem adds an item.
func (s *State) addItem(p *OutboxItem, at time.Time) {
	p.To.Outbox = append(p.To.Outbox, p)
	s.post(p, at)
}

// post sends an item if its recipient can receive it and no earlier item waits.
func (s *State) post(p *OutboxItem, at time.Time) {
	waits := slices.ContainsFunc(p.To.Outbox, func(o *OutboxItem) bool { return o != p && o.Waits() })
	switch a := s.Agents.ByID[p.To.AgentID]; {
	case p.Held:
	case a != nil && a.Reachable() && !waits:
		s.sendItem(p, at)
	default:
		s.Sessions.deferUntil(p, at.Add(DeliveryRetries[0]))
	}
}

// Unread reports whether an item was sent to a run that has not read it.
func (oi *OutboxItem) Unread() bool { return oi.Out != "" && !oi.Taken && !oi.Repeat }

// Timed reports whether an item has a deadline: for a retry, or for a report to its sender that
// it was not read.
func (oi *OutboxItem) Timed() bool { return oi.Waits() || oi.Unread() }

// Waits reports whether a item is to be tried again.
func (oi *OutboxItem) Waits() bool { return oi.Out == "" && !oi.Held && !oi.Repeat }

// TurnOf returns when an item is retried that is due at a given time: not before earlier items.
func (oi *OutboxItem) TurnOf(at time.Time) time.Time {
	for _, o := range oi.To.Outbox {
		if o == oi {
			break
		}
		if o.Waits() && o.Next.After(at) {
			at = o.Next
		}
	}
	return at
}

// deferUntil makes an item and those after it wait until a time. If this turn has sent the item,
// it is not sent.
func (x *sessions) deferUntil(p *OutboxItem, until time.Time) {
	x.Fresh = slices.DeleteFunc(x.Fresh, func(o *OutboxItem) bool { return o == p })
	x.Posted.Drop(p)
	p.Out, p.Taken, p.Next = "", false, p.TurnOf(until)
	x.Posted.Add(p)
	for _, o := range p.To.Outbox[slices.Index(p.To.Outbox, p)+1:] {
		if o.Waits() && o.Next.Before(p.Next) {
			x.Posted.Drop(o)
			o.Next = p.Next
			x.Posted.Add(o)
		}
	}
}

// sendItem queues an item for the current run of its recipient. Its letter is written when the
// turn ends.
func (s *State) sendItem(p *OutboxItem, at time.Time) {
	s.Sessions.Posted.Drop(p)
	p.Out, p.Taken = s.Agents.ByID[p.To.AgentID].Run, false
	if p.Unread() {
		s.Sessions.askLater(p, at.Add(p.Patience()))
	}
	s.Sessions.Fresh = append(s.Sessions.Fresh, p)
}

// Patience returns the time until the next attempt to deliver an item.
func (oi *OutboxItem) Patience() time.Duration {
	return DeliveryRetries[min(oi.Retries, len(DeliveryRetries)-1)]
}

// askLater sets the time at which an item that was sent is checked again.
func (x *sessions) askLater(p *OutboxItem, at time.Time) {
	x.Posted.Drop(p)
	p.Next = at
	x.Posted.Add(p)
}

// RemoveItem removes an item.
func (x *sessions) RemoveItem(p *OutboxItem) {
	x.Posted.Drop(p)
	p.To.Outbox = slices.DeleteFunc(p.To.Outbox, func(o *OutboxItem) bool { return o == p })
}

// OutboxItem returns the item for an agent with a record number, or nil.
func (x *sessions) OutboxItem(agent string, seq int64) *OutboxItem {
	for _, m := range x.Seats[agent] {
		for _, p := range m.Outbox {
			if p.Seq == seq {
				return p
			}
		}
	}
	return nil
}

// removeItems removes the items about a task that have not been taken up.
func (s *SessionState) removeItems(st *State, task, kind string) {
	for _, m := range s.Members {
		for _, p := range slices.Clone(m.Outbox) {
			if p.Task == task && p.Kind == kind {
				st.Sessions.RemoveItem(p)
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

// Trim removes the oldest delivered item of a member, if there are more than maxKept. A run
// that received so many later ones has read it.
func (s *State) Trim(m *Member) {
	n := 0
	for _, p := range m.Outbox {
		if p.told() {
			n++
		}
	}
	if n > maxKept {
		s.Sessions.RemoveItem(m.Outbox[slices.IndexFunc(m.Outbox, (*OutboxItem).told)])
	}
}

// settleItems removes the delivered items that the run of an agent must have read: the agent
// answers one, or writes any line a while after it. Output from before that may be handled after
// the item was written.
func (x *sessions) settleItems(agent string, in *SessionState, reply string, at time.Time) {
	for _, m := range x.Seats[agent] {
		m.Outbox = slices.DeleteFunc(m.Outbox, func(p *OutboxItem) bool {
			read := m.Of == in && reply != "" && p.Id == reply || !p.Given.Add(readWithin).After(at)
			return p.Taken && p.told() && read
		})
	}
}

// readWithin is the time after which output of an agent proves that it has read an earlier line.
const readWithin = time.Second

// CheckBacklog refuses a message to a member that does not read earlier ones.
func (m *Member) CheckBacklog() *wire.Error {
	n, size := 0, 0
	for _, p := range m.Outbox {
		if !p.Taken && !p.Held && !p.Repeat {
			n, size = n+1, size+len(p.Line)
		}
	}
	if n < maxParcels && size < maxParcelBytes {
		return nil
	}
	return Errorf(wire.CodeTimeout, Details{"to_agent": m.AgentID, "waiting": n},
		"%s has not taken %s yet: send it again when it has", m.AgentID, Counted(n, "message"))
}

// Before returns the record of the previous item that was sent to the same run and has not been
// written, or 0. Items that an earlier run received do not count, since a run without room never
// gets them.
func (oi *OutboxItem) Before() int64 {
	if oi.Repeat {
		return 0
	}
	all := oi.To.Outbox
	at := len(all) - 1
	for at >= 0 && all[at] != oi {
		at--
	}
	for at--; at >= 0; at-- {
		if o := all[at]; o.Out == oi.Out && !o.Taken && !o.Repeat {
			return o.Seq
		}
	}
	return 0
}

// meetRun sends all waiting items of an agent to its new run.
func (s *State) meetRun(a *KnownAgent, at time.Time) {
	for _, m := range s.Sessions.Seats[a.ID] {
		for _, p := range m.Outbox {
			if !p.Held && (p.Out == "" || p.Out != a.Run) {
				s.sendItem(p, at)
			}
		}
	}
}

// loseRun keeps the items that an ended run may not have read for the next one.
func (x *sessions) loseRun(a *KnownAgent, at time.Time) {
	for _, m := range x.Seats[a.ID] {
		for _, p := range m.Outbox {
			switch {
			case p.told():
				p.Out, p.Taken, p.Repeat = "", false, true
			case p.Out != "":
				x.deferUntil(p, at.Add(p.Patience()))
			}
		}
	}
}

// waitAgain restarts the delivery times of an agent's items, since the orchestrator was down.
func (x *sessions) waitAgain(a *KnownAgent, at time.Time) {
	for _, m := range x.Seats[a.ID] {
		for _, p := range m.Outbox {
			switch {
			case p.told():
				p.Out, p.Taken, p.Repeat = "", false, true
			case !p.Held:
				x.deferUntil(p, at.Add(p.Patience()))
			}
		}
	}
}

// SessionDelivered records that a message was written to the stdin of its recipient.
type SessionDelivered struct {
	Session string `json:"session_id"`
	Agent   string `json:"agent"`
	Message int64  `json:"message"` // the number of its record
}

func (*SessionDelivered) kind() string { return events.SessionDelivered }

func (sd *SessionDelivered) apply(s *State, r *wire.Record) {
	p := s.Sessions.OutboxItem(sd.Agent, sd.Message)
	s.Sessions.Posted.Drop(p)
	p.Taken, p.Given = true, r.At
	if p.told() {
		p.Line = nil
		s.Trim(p.To)
	}
}

// SessionDeferred records that a message could not be delivered and when it is retried, or that
// it is retried now.
type SessionDeferred struct {
	Session string `json:"session_id"`
	Agent   string `json:"agent"`
	Message int64  `json:"message"`
	ID      string `json:"message_id"`
	Retries int    `json:"retry_count"`
	Next    string `json:"next_retry_at,omitzero"`
	Again   bool   `json:"again,omitzero"`
	Unread  bool   `json:"unread,omitzero"` // it was sent to a run that does not read
}

func (*SessionDeferred) kind() string { return events.SessionDeferred }

func (sd *SessionDeferred) apply(s *State, r *wire.Record) {
	p := s.Sessions.OutboxItem(sd.Agent, sd.Message)
	p.Retries = sd.Retries
	if sd.Again {
		s.sendItem(p, r.At)
		return
	}
	next, _ := object.ParseTime(sd.Next)
	if sd.Unread {
		s.Sessions.askLater(p, next)
		return
	}
	s.Sessions.deferUntil(p, next)
}

// SessionUndelivered records that the delivery of a message was given up.
type SessionUndelivered struct {
	Session string `json:"session_id"`
	Agent   string `json:"agent"`
	Message int64  `json:"message"`
	ID      string `json:"message_id"`
	Retries int    `json:"retry_count"`
	Why     string `json:"why"`
}

func (*SessionUndelivered) kind() string { return events.SessionUndelivered }

func (su *SessionUndelivered) apply(s *State, _ *wire.Record) {
	s.Sessions.RemoveItem(s.Sessions.OutboxItem(su.Agent, su.Message))
}

func (sd *SessionDelivered) check(s *State) error {
	return s.Sessions.checkOutboxItem(sd.Agent, sd.Message)
}
func (sd *SessionDeferred) check(s *State) error {
	return s.Sessions.checkOutboxItem(sd.Agent, sd.Message)
}
func (su *SessionUndelivered) check(s *State) error {
	return s.Sessions.checkOutboxItem(su.Agent, su.Message)
}

func (x *sessions) checkOutboxItem(agent string, message int64) error {
	if x.OutboxItem(agent, message) == nil {
		return fmt.Errorf("no message %d is on its way to %q", message, agent)
	}
	return nil
}
