// Package replies keeps the answers to the latest requests of an agent, so that a repeated request gets
// the first answer.
package replies

import (
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
	"orchestrator/wire/session"
)

// Kept is the number of requests with effects that are remembered of each agent.
const Kept = 128

// A Key identifies a request.
type Key struct {
	ID        string `json:"id"`
	Run       string `json:"run"`
	Timestamp string `json:"timestamp"`
	Sum       uint64 `json:"sum"` // of the operation and the payload
}

// A Reply is the answer to a request. It is empty while the request waits.
type Reply struct {
	Key
	Answer any
	Err    *wire.Error
	Seq    int64 // the last record at the time of the answer
}

// A Cache holds the latest requests of one agent.
type Cache struct {
	byID map[string]*Reply
	ring []*Reply
	next int
}

// Find returns the reply to the request with an id, or nil.
func (c *Cache) Find(id string) *Reply { return c.byID[id] }

// All returns copies of all replies, oldest first.
func (c *Cache) All() []Reply {
	all := make([]Reply, 0, len(c.ring))
	for i := range c.ring {
		all = append(all, *c.ring[(c.next+i)%len(c.ring)])
	}
	return all
}

// Keep adds an empty reply. If there are too many, the oldest is dropped.
func (c *Cache) Keep(key Key) *Reply {
	if c.byID == nil {
		c.byID = make(map[string]*Reply)
	}
	kept := &Reply{Key: key}
	if len(c.ring) < Kept {
		c.ring = append(c.ring, kept)
	} else {
		if old := c.ring[c.next]; c.byID[old.ID] == old {
			delete(c.byID, old.ID)
		}
		c.ring[c.next] = kept
		c.next = (c.next + 1) % Kept
	}
	c.byID[key.ID] = kept
	return kept
}

// Forget removes the answers that show a task as assigned to the agent. They do not apply if the
// agent gets the task again.
func (c *Cache) Forget(task string) {
	ring := make([]*Reply, 0, len(c.ring))
	for i := range c.ring {
		kept := c.ring[(c.next+i)%len(c.ring)] // oldest first
		reply, ok := kept.Answer.(*wire.TaskReply)
		if !ok || reply.Task.ID != task || reply.Task.AssignedTo == "" {
			ring = append(ring, kept)
		} else if c.byID[kept.ID] == kept {
			delete(c.byID, kept.ID)
		}
	}
	if len(ring) < len(c.ring) {
		c.ring, c.next = ring, 0
	}
}

// A Stored is a Reply as a snapshot has it. At most one member of all answers is set.
type Stored struct {
	Key
	Task   *wire.TaskReply  `json:"task,omitzero"`
	Answer *wire.UserAnswer `json:"answer,omitzero"`
	Link   *wire.LinkReply  `json:"link,omitzero"`
	Acked  *mail.Acked      `json:"acked,omitzero"`
	Note   *wire.NoteReply  `json:"note,omitzero"`
	Given  *wire.Assignment `json:"given,omitzero"`
	Server *hub.Server      `json:"server,omitzero"`
	Sent   *mail.Sent       `json:"sent,omitzero"`
	Said   *session.Said    `json:"said,omitzero"`
	Stands *wire.TaskAnswer `json:"stands,omitzero"`
	Err    *wire.Error      `json:"error,omitzero"`
	Seq    int64            `json:"seq,omitzero"`
}

// Stored returns a reply for a snapshot.
func (r *Reply) Stored() Stored {
	kept := Stored{Key: r.Key, Err: r.Err, Seq: r.Seq}
	switch answer := r.Answer.(type) {
	case *wire.TaskReply:
		kept.Task = answer
	case *wire.UserAnswer:
		kept.Answer = answer
	case *mail.Acked:
		kept.Acked = answer
	case *wire.LinkReply:
		kept.Link = answer
	case *wire.NoteReply:
		kept.Note = answer
	case *wire.Assignment:
		kept.Given = answer
	case *hub.Server:
		kept.Server = answer
	case *mail.Sent:
		kept.Sent = answer
	case *session.Said:
		kept.Said = answer
	case *wire.TaskAnswer:
		kept.Stands = answer
	}
	return kept
}

// Reply returns the stored answer, or nil if there is none.
func (s *Stored) Reply() any {
	switch {
	case s.Task != nil:
		return s.Task
	case s.Answer != nil:
		return s.Answer
	case s.Link != nil:
		return s.Link
	case s.Note != nil:
		return s.Note
	case s.Given != nil:
		return s.Given
	case s.Server != nil:
		return s.Server
	case s.Said != nil:
		return s.Said
	case s.Stands != nil:
		return s.Stands
	case s.Acked != nil:
		return s.Acked
	case s.Sent != nil:
		s.Sent.Payload = nil // the encoding has null
		return s.Sent
	}
	return nil
}
