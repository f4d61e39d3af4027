package handlers

import (
	"orchestrator/wire"
)

// remembers is how many requests that changed something are remembered of each
// agent, so that a repeat changes nothing.
const remembers = 128

// requestKey is the request that a fact came of, as the fact keeps it.
type requestKey struct {
	ID        string `json:"id"`
	Run       string `json:"run"`
	Timestamp string `json:"timestamp"`
	Sum       uint64 `json:"sum"` // of the operation and the payload
}

// savedReply is a request that was granted. While it waits there is no answer.
type savedReply struct {
	requestKey
	answer any
	err    *wire.Error
	seq    int64 // of the record that it was answered with: what was changed later is not in the answer
}

// replyCache are the latest requests of one agent.
type replyCache struct {
	byID map[string]*savedReply
	ring []*savedReply
	next int
}

func (m *replyCache) keep(mk requestKey) *savedReply {
	if m.byID == nil {
		m.byID = make(map[string]*savedReply)
	}
	kept := &savedReply{requestKey: mk}
	if len(m.ring) < remembers {
		m.ring = append(m.ring, kept)
	} else {
		if old := m.ring[m.next]; m.byID[old.ID] == old {
			delete(m.byID, old.ID)
		}
		m.ring[m.next] = kept
		m.next = (m.next + 1) % remembers
	}
	m.byID[mk.ID] = kept
	return kept
}

// forget lets go of what an agent was told of a task while it had it: when it is
// given the task again, that is another time.
func (m *replyCache) forget(task string) {
	ring := make([]*savedReply, 0, len(m.ring))
	for i := range m.ring {
		kept := m.ring[(m.next+i)%len(m.ring)] // oldest first
		reply, ok := kept.answer.(*wire.TaskReply)
		if !ok || reply.Task.ID != task || reply.Task.AssignedTo == "" {
			ring = append(ring, kept)
		} else if m.byID[kept.ID] == kept {
			delete(m.byID, kept.ID)
		}
	}
	if len(ring) < len(m.ring) {
		m.ring, m.next = ring, 0
	}
}

// mark is what facts of this turn keep of its request; nil when people ask,
// whose doors do not repeat, and in forms where an id is not one request's for
// good.
func (t *decision) mark() *requestKey {
	if t.request == nil || t.from.Kind != Agent || t.request.Form != wire.DialectNative {
		return nil
	}
	return &requestKey{ID: t.request.ID, Run: t.from.Run, Timestamp: t.request.Timestamp, Sum: t.request.Sum}
}

// saveReply files the answer to the request that a fact came of.
func (s *State) saveReply(name string, mk *requestKey, answer any, err *wire.Error) {
	a := s.agents.byID[name]
	if mk == nil || a == nil {
		return
	}
	kept := a.memories.byID[mk.ID]
	if kept == nil || kept.requestKey != *mk {
		kept = a.memories.keep(*mk)
	}
	kept.answer, kept.err, kept.seq = answer, err, s.seq
}

// settle files the answer to a request that has waited. Its id may have been
// used again since, by a later run: then that is what is remembered.
func (s *State) settle(name string, mk *requestKey, answer any, err *wire.Error) {
	a := s.agents.byID[name]
	if mk == nil || a == nil {
		return
	}
	if kept := a.memories.byID[mk.ID]; kept == nil || kept.requestKey == *mk {
		s.saveReply(name, mk, answer, err)
	}
}

// repeated answers a request that was there before: with the first answer when
// it is the same, with a refusal when only its id is. Ids begin anew with each
// run of an agent, unless the whole message is the same: then the run before
// died without having heard the answer.
//
// A request that was refused changed nothing, and is looked at afresh.
func (t *decision) repeated(r *wire.Request) bool {
	a := t.state.agents.byID[t.from.Name]
	if t.from.Kind != Agent || a == nil || r.Form != wire.DialectNative {
		return false
	}
	kept := a.memories.byID[r.ID]
	switch {
	case kept == nil:
		return false
	case kept.Run == t.from.Run && kept.Sum != r.Sum:
		t.refuse(&wire.Error{
			Code:    wire.CodeInvalid,
			Message: "this id was used for another request: take a new one for each",
			Details: map[string]any{"pointer": "/id", "reason": wire.ReasonReused},
		})
	case kept.Run != t.from.Run && (kept.Sum != r.Sum || kept.Timestamp != r.Timestamp):
		return false
	case kept.err != nil:
		t.refuse(kept.err)
	case kept.answer != nil:
		t.until = kept.seq
		t.answer(kept.answer)
	case kept.Run != t.from.Run: // a question that still waits: askUser takes it up again
		return false
	default:
		t.wait() // the answer to the first one answers this one too
	}
	return true
}
