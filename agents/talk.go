package agents

import (
	"context"
	"fmt"
	"iter"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Said is a message of a session: what one agent of it has said to another.
type Said struct {
	*wire.SessionMessage
	Payload wire.Raw // as it came
}

// Read decodes the payload, such as into an Assignment for a task_assignment.
func (s *Said) Read(into any) error {
	if object.DecodeOwn(s.Payload, into) == nil {
		return nil
	}
	if err := object.DecodeOwn(plainNumbers(s.Payload), into); err != nil {
		return fmt.Errorf("understanding a %s: %w", s.MessageType, err)
	}
	return nil
}

// plainNumbers spells numbers anew: 3.0 is a whole number to a check of a
// message, and not to a reader that fills one.
func plainNumbers(text wire.Raw) wire.Raw {
	var anything any
	if object.DecodeOwn(text, &anything) != nil {
		return text
	}
	plain, err := object.Encode(anything)
	if err != nil {
		return text
	}
	return plain
}

// readSaid reads a message of a session as the orchestrator does, no matter who says it.
func readSaid(line []byte) (*Said, error) {
	message, wrong := wire.ReadSessionMessage(line, depth)
	if wrong != nil {
		return nil, wrong
	}
	var whole object.Reader
	if wrong := whole.Read(message.Document, depth, ""); wrong != nil {
		return nil, wrong
	}
	return &Said{SessionMessage: message, Payload: whole.Document("payload")}, nil
}

// heard is what a session brings: a message for the agent, or one of its own that
// was not delivered.
type heard struct {
	said   *Said
	lost   *Sent
	before int64 // how many notices there had been
}

// event is what a role listens to: what a session brings, or a notice.
type event struct {
	heard
	notice *Notice
}

// overheard keeps a message for the caller that takes it, unless it was there before: it
// is delivered again when it is not certain that it arrived.
func (c *Conn) overheard(line []byte) {
	said, err := readSaid(line)
	if err != nil {
		return
	}
	c.mu.Lock()
	fresh := c.known.add(said.From.AgentID+"\n"+said.MessageID, struct{}{})
	c.mu.Unlock()
	if fresh {
		c.keep(heard{said: said})
	}
}

func (c *Conn) keep(h heard) {
	c.mu.Lock()
	h.before = c.told
	c.heard = append(c.heard, h)
	c.mu.Unlock()
	ring(c.talk)
}

// ring rings a bell. One that has not been heard yet need not ring twice.
func ring(bell chan<- struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// Talk is what the others of a session say to the agent, in order, from the first
// message on and each once. It ends when ctx does, or when the stream has ended
// and all is taken. Each message goes to one taker: the roles of a Session take
// them, too.
func (c *Conn) Talk(ctx context.Context) iter.Seq[*Said] {
	return func(yield func(*Said) bool) {
		for e := range c.events(ctx, false) {
			if e.said != nil && !yield(e.said) {
				return
			}
		}
	}
}

// events are what a session brings and, if a caller wants them, the notices, in
// the order in which they came: that a task is cancelled must not be heard before
// it is assigned.
func (c *Conn) events(ctx context.Context, notices bool) iter.Seq[event] {
	return func(yield func(event) bool) {
		for {
			e, ok := c.nextEvent(ctx, notices)
			if !ok || !yield(e) {
				return
			}
		}
	}
}

func (c *Conn) nextEvent(ctx context.Context, notices bool) (event, bool) {
	news := c.fresh
	if !notices {
		news = nil
	}
	for ctx.Err() == nil {
		e, ok, over := c.takeEvent(notices)
		if ok || over {
			return e, ok
		}
		select {
		case <-c.talk:
		case <-news:
		case <-c.done:
		case <-ctx.Done():
		}
	}
	return event{}, false
}

// takeEvent takes the oldest. Whatever it leaves belongs to another caller, whose bell it
// may have heard.
func (c *Conn) takeEvent(notices bool) (e event, ok, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looked = c.looked || notices
	taken := c.told - int64(len(c.news))
	switch {
	case len(c.heard) > 0 && (!notices || c.heard[0].before <= taken):
		e.heard, c.heard[0] = c.heard[0], heard{}
		c.heard, ok = c.heard[1:], true
	case notices && len(c.news) > 0:
		notice := c.news[0]
		c.news[0] = Notice{}
		c.news, e.notice, ok = c.news[1:], &notice, true
	}
	if len(c.heard) > 0 {
		ring(c.talk)
	}
	if notices && len(c.news) > 0 {
		ring(c.fresh)
	}
	return e, ok, c.over != nil
}
