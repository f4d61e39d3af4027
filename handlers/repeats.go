package handlers

import "orchestrator/wire"

// remembers is the number of requests with effects that are remembered of each agent, to
// recognize repeats.
const remembers = 128

// A requestKey identifies the request that caused a fact.
type requestKey struct {
	ID        string `json:"id"`
	Run       string `json:"run"`
	Timestamp string `json:"timestamp"`
	Sum       uint64 `json:"sum"` // of the operation and the payload
}

// A savedReply is the answer to a request. It is empty while the request waits.
type savedReply struct {
	requestKey
	answer any
	err    *wire.Error
	seq    int64 // the last record at the time of the answer
}

// A replyCache holds the latest requests of one agent.
type replyCache struct {
	byID map[string]*savedReply
	ring []*savedReply
	next int
}

func (r *replyCache) keep(mk requestKey) *savedReply {
	if r.byID == nil {
		r.byID = make(map[string]*savedReply)
	}
	kept := &savedReply{requestKey: mk}
	if len(r.ring) < remembers {
		r.ring = append(r.ring, kept)
	} else {
		if old := r.ring[r.next]; r.byID[old.ID] == old {
			delete(r.byID, old.ID)
		}
		r.ring[r.next] = kept
		r.next = (r.next + 1) % remembers
	}
	r.byID[mk.ID] = kept
	return kept
}

// forget removes the answers that show a task as assigned to the agent. They do not apply if the
// agent gets the task again.
func (r *replyCache) forget(task string) {
	ring := make([]*savedReply, 0, len(r.ring))
	for i := range r.ring {
		kept := r.ring[(r.next+i)%len(r.ring)] // oldest first
		reply, ok := kept.answer.(*wire.TaskReply)
		if !ok || reply.Task.ID != task || reply.Task.AssignedTo == "" {
			ring = append(ring, kept)
		} else if r.byID[kept.ID] == kept {
			delete(r.byID, kept.ID)
		}
	}
	if len(ring) < len(r.ring) {
		r.ring, r.next = ring, 0
	}
}

// mark returns the requestKey for the facts of this turn. It returns nil for callers other than
// agents, which do not repeat requests, and for dialects without unique ids.
func (d *decision) mark() *requestKey {
	if d.request == nil || d.from.Kind != Agent || d.request.Form != wire.DialectNative {
		return nil
	}
	return &requestKey{ID: d.request.ID, Run: d.from.Run, Timestamp: d.request.Timestamp, Sum: d.request.Sum}
}

// saveReply stores the answer to the request that caused a fact.
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

// settle stores the answer to a request that has waited. If a later run has used its id again,
// it does nothing.
func (s *State) settle(name string, mk *requestKey, answer any, err *wire.Error) {
	a := s.agents.byID[name]
	if mk == nil || a == nil {
		return
	}
	if kept := a.memories.byID[mk.ID]; kept == nil || kept.requestKey == *mk {
		s.saveReply(name, mk, answer, err)
	}
}

// repeated answers a request whose id was used before, and reports whether it did. The same
// request gets the first answer; another request is refused. Each run of an agent has its own
// ids. But if a run repeats a whole message of the previous run, that run ended before it got
// the answer.
//
// A request that was refused had no effect, and is handled again.
func (d *decision) repeated(r *wire.Request) bool {
	a := d.state.agents.byID[d.from.Name]
	if d.from.Kind != Agent || a == nil || r.Form != wire.DialectNative {
		return false
	}
	kept := a.memories.byID[r.ID]
	switch {
	case kept == nil:
		return false
	case kept.Run == d.from.Run && kept.Sum != r.Sum:
		d.refuse(errorf(wire.CodeInvalid, details{"pointer": "/id", "reason": wire.ReasonReused},
			"this id was used for another request: take a new one for each"))
	case kept.Run != d.from.Run && (kept.Sum != r.Sum || kept.Timestamp != r.Timestamp):
		return false
	case kept.err != nil:
		d.refuse(kept.err)
	case kept.answer != nil:
		d.until = kept.seq
		d.answer(kept.answer)
	case kept.Run != d.from.Run: // a question that is still open: askUser resumes it
		return false
	default:
		d.wait() // the answer to the first one answers this one too
	}
	return true
}
