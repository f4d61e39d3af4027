package handlers

import (
	"fmt"
	"slices"
	"time"

	"orchestrator/wire"
)

// outboxItem is a session message that its addressee may not have read. It was written to
// the stdin of a run, or it waits for one. A task assignment and a review request stay
// items until they are taken up, any other message until its addressee says something
// in a session after it. If the run ends before that, the next run is given it again;
// receivers know duplicates by message_id.
type outboxItem struct {
	seq     int64 // of its record
	to      *member
	from    string // the member that said it
	id      string // its message_id
	kind    string
	task    string
	by      string    // the actor that said it in place of its sender, which does not know it
	line    wire.Raw  // nil once it was written, unless it is lasting: the record has it
	held    bool      // it is not to be delivered yet
	out     string    // the run that it is on the way to; "": it waits
	taken   bool      // it was written to that run's stdin
	given   time.Time // when that was
	repeat  bool      // it was written to a run that has ended: the next run is given it again
	retries int       // so far
	next    time.Time // it is tried again then, or counts as not read
}

// date implements dated.
func (p *outboxItem) date() (time.Time, int64) { return p.next, p.seq }

// lasting reports whether a item stays one until its task or review is taken up.
func (p *outboxItem) lasting() bool {
	return p.kind == wire.TypeTaskAssignment || p.kind == wire.TypeReviewRequest
}

// told reports whether a item was delivered to a run that may not have read it.
// Its sender hears nothing more about it.
func (p *outboxItem) told() bool { return p.repeat || p.taken && !p.lasting() }

// pulls reports whether an agent asks for its messages itself: it runs elsewhere, has
// no stdin for messages, or is not known yet.
func (s *State) pulls(name string) bool {
	a := s.agents.byID[name]
	return a == nil || a.remote != nil || a.Deaf
}

// reachable reports whether an agent has a run that can be told something now.
func (a *agent) reachable() bool {
	return a.run != "" && !a.ended && (a.state == up || a.state == leaving)
}

// addItem takes a item in.
func (s *State) addItem(p *outboxItem, at time.Time) {
	p.to.outbox = append(p.to.outbox, p)
	s.post(p, at)
}

// post sends a item on its way, where nothing is in the way; else it waits.
func (s *State) post(p *outboxItem, at time.Time) {
	waits := slices.ContainsFunc(p.to.outbox, func(o *outboxItem) bool { return o != p && o.waits() })
	switch a := s.agents.byID[p.to.AgentID]; {
	case p.held:
	case a != nil && a.reachable() && !waits:
		s.sendItem(p, at)
	default:
		s.deferUntil(p, at.Add(deliveryRetries[0]))
	}
}

// unread reports whether a item is on its way to a run that has not taken it yet.
func (p *outboxItem) unread() bool { return p.out != "" && !p.taken && !p.repeat }

// timed reports whether something happens to a item at a time: it waits and is tried
// again, or it is not read and its sender hears that.
func (p *outboxItem) timed() bool { return p.waits() || p.unread() }

// waits reports whether a item is to be tried again.
func (p *outboxItem) waits() bool { return p.out == "" && !p.held && !p.repeat }

// turnOf is when a item is tried again that could be at some time: not before those
// that are before it.
func (p *outboxItem) turnOf(at time.Time) time.Time {
	for _, o := range p.to.outbox {
		if o == p {
			break
		}
		if o.waits() && o.next.After(at) {
			at = o.next
		}
	}
	return at
}

// deferUntil lets a item wait until a time, and those behind it. It is not on its way
// then, even if this turn has sent it.
func (s *State) deferUntil(p *outboxItem, until time.Time) {
	s.sessions.fresh = slices.DeleteFunc(s.sessions.fresh, func(o *outboxItem) bool { return o == p })
	s.sessions.posted.drop(p)
	p.out, p.taken, p.next = "", false, p.turnOf(until)
	s.sessions.posted.add(p)
	for _, o := range p.to.outbox[slices.Index(p.to.outbox, p)+1:] {
		if o.waits() && o.next.Before(p.next) {
			s.sessions.posted.drop(o)
			o.next = p.next
			s.sessions.posted.add(o)
		}
	}
}

// sendItem sends a item on its way to the run that its addressee has now. Its letter
// is written when the turn ends.
func (s *State) sendItem(p *outboxItem, at time.Time) {
	s.sessions.posted.drop(p)
	p.out, p.taken = s.agents.byID[p.to.AgentID].run, false
	if p.unread() {
		s.askLater(p, at.Add(p.patience()))
	}
	s.sessions.fresh = append(s.sessions.fresh, p)
}

// patience is how long the next attempt to deliver a item takes.
func (p *outboxItem) patience() time.Duration {
	return deliveryRetries[min(p.retries, len(deliveryRetries)-1)]
}

// askLater has a item that is on its way looked at again at a time.
func (s *State) askLater(p *outboxItem, at time.Time) {
	s.sessions.posted.drop(p)
	p.next = at
	s.sessions.posted.add(p)
}

// removeItem lets go of a item.
func (s *State) removeItem(p *outboxItem) {
	s.sessions.posted.drop(p)
	p.to.outbox = slices.DeleteFunc(p.to.outbox, func(o *outboxItem) bool { return o == p })
}

// outboxItem finds what of a record is still a item for an agent.
func (s *State) outboxItem(agent string, seq int64) *outboxItem {
	for _, m := range s.sessions.seats[agent] {
		for _, p := range m.outbox {
			if p.seq == seq {
				return p
			}
		}
	}
	return nil
}

// removeItems takes back the items about a task that have not been taken up.
func (s *session) removeItems(st *State, task, kind string) {
	for _, m := range s.members {
		for _, p := range slices.Clone(m.outbox) {
			if p.task == task && p.kind == kind {
				st.removeItem(p)
			}
		}
	}
}

// Bounds of what may wait for a member, and of what is kept that was delivered to it.
const (
	mostParcels     = 1000
	mostParcelBytes = 32 << 20
	mostKept        = 1000
)

// trim drops the oldest message that was delivered to a member, if there are more than
// are kept. A run that was written so many since has read it.
func (s *State) trim(m *member) {
	n := 0
	for _, p := range m.outbox {
		if p.told() {
			n++
		}
	}
	if n > mostKept {
		s.removeItem(m.outbox[slices.IndexFunc(m.outbox, (*outboxItem).told)])
	}
}

// settleItems drops what was delivered to the run of an agent that has read it: the agent
// answers it, or says something a while after it was written. What an agent prints
// before it reads a line may be decided after that line was written.
func (s *State) settleItems(agent string, in *session, reply string, at time.Time) {
	for _, m := range s.sessions.seats[agent] {
		m.outbox = slices.DeleteFunc(m.outbox, func(p *outboxItem) bool {
			read := m.of == in && reply != "" && p.id == reply || !p.given.Add(readWithin).After(at)
			return p.taken && p.told() && read
		})
	}
}

// readWithin is how long after a line was written its reader may say something that it
// has printed before.
const readWithin = time.Second

// checkBacklog refuses a message to a member who does not take those before it.
func (m *member) checkBacklog() *wire.Error {
	n, size := 0, 0
	for _, p := range m.outbox {
		if !p.taken && !p.held && !p.repeat {
			n, size = n+1, size+len(p.line)
		}
	}
	if n < mostParcels && size < mostParcelBytes {
		return nil
	}
	return &wire.Error{
		Code: wire.CodeTimeout, Message: fmt.Sprintf("%s has not taken %s yet: say it again when it has", m.AgentID, counted(n, "message")),
		Details: map[string]any{"to_agent": m.AgentID, "waiting": n},
	}
}

// before returns the record of the item before this one that is on its way to the same
// run and has not been written; 0 if there is none. Items that an earlier run was given
// do not count: a run that has no room for them never gets them.
func (p *outboxItem) before() int64 {
	if p.repeat {
		return 0
	}
	all := p.to.outbox
	at := len(all) - 1
	for at >= 0 && all[at] != p {
		at--
	}
	for at--; at >= 0; at-- {
		if o := all[at]; o.out == p.out && !o.taken && !o.repeat {
			return o.seq
		}
	}
	return 0
}

// bring writes the letters of the items that this turn has sent on their way.
func (t *decision) bring() {
	for _, p := range t.state.sessions.fresh {
		l := Letter{To: Actor{Kind: Agent, Name: p.to.AgentID, Run: p.out}, Line: p.line, Said: p.seq, After: p.before()}
		if p.line == nil {
			l.Kept = p.seq
		}
		t.out.Letters = append(t.out.Letters, l)
	}
	clear(t.state.sessions.fresh)
	t.state.sessions.fresh = t.state.sessions.fresh[:0]
}

// meetRun is the start of a run: all that waits for its agent goes to it.
func (s *State) meetRun(a *agent, at time.Time) {
	for _, m := range s.sessions.seats[a.ID] {
		for _, p := range m.outbox {
			if !p.held && (p.out == "" || p.out != a.run) {
				s.sendItem(p, at)
			}
		}
	}
}

// loseRun is the end of one: what it may not have read waits for the next.
func (s *State) loseRun(a *agent, at time.Time) {
	for _, m := range s.sessions.seats[a.ID] {
		for _, p := range m.outbox {
			switch {
			case p.told():
				p.out, p.taken, p.repeat = "", false, true
			case p.out != "":
				s.deferUntil(p, at.Add(p.patience()))
			}
		}
	}
}

// waitAgain gives what waits for an agent its time anew: it could not be brought
// it while there was no orchestrator.
func (s *State) waitAgain(a *agent, at time.Time) {
	for _, m := range s.sessions.seats[a.ID] {
		for _, p := range m.outbox {
			switch {
			case p.told():
				p.out, p.taken, p.repeat = "", false, true
			case !p.held:
				s.deferUntil(p, at.Add(p.patience()))
			}
		}
	}
}
