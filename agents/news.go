package agents

import (
	"context"
	"fmt"
	"iter"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// Names of notices. The list may grow.
const (
	TaskAssigned  = wire.NoticeAssigned
	TaskCancelled = wire.NoticeCancelled
	TaskUpdated   = wire.NoticeUpdated       // a task of the agent has changed
	Message       = wire.NoticeMessage       // there is mail for the agent
	Interrupt     = activity.NoticeInterrupt // a person interrupts the work of the agent
	Shutdown      = wire.NoticeShutdown
)

const noticePrefix = "notify:"

// Notice is an unsolicited message from the orchestrator.
type Notice struct {
	Name      string // without its prefix, such as TaskAssigned
	ID        string
	Timestamp string
	Payload   wire.Raw // as it came; nil when there was none
}

// Read decodes the payload: a wire.TaskNotice for those about tasks and for Interrupt, a
// mail.Message for Message, a wire.ShutdownNotice for Shutdown.
func (n Notice) Read(into any) error { return reply{payload: n.Payload}.into(into) }

// News iterates over all notices in order, including those that arrived before the call. An
// agent that serves, and has never read notices, keeps only the latest few thousand. The
// iteration ends when ctx ends, or when the stream has ended and all notices are taken. Each
// notice goes to one caller; Work is one.
func (c *Conn) News(ctx context.Context) iter.Seq[Notice] {
	return func(yield func(Notice) bool) {
		for {
			notice, ok := c.next(ctx)
			if !ok || !yield(notice) {
				return
			}
		}
	}
}

// next waits for a notice. It returns false if there will be none.
func (c *Conn) next(ctx context.Context) (Notice, bool) {
	for ctx.Err() == nil {
		notice, left, over := c.take()
		if left > 0 {
			if left > 1 {
				c.ring() // for another taker: the bell rang once
			}
			return notice, true
		}
		if over {
			break
		}
		select {
		case <-c.fresh:
		case <-c.done:
		case <-ctx.Done():
		}
	}
	return Notice{}, false
}

// take takes the oldest notice. left counts the notices before that.
func (c *Conn) take() (notice Notice, left int, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looked = true
	if left = len(c.news); left > 0 {
		notice = c.news[0]
		c.news[0] = Notice{}
		c.news = c.news[1:]
	}
	return notice, left, c.ending() != nil
}

// noticed queues a notice.
func (c *Conn) noticed(notice Notice) {
	c.mu.Lock()
	c.news = append(c.news, notice)
	c.told++
	if c.served && !c.looked && len(c.news) > remembered {
		c.news[0], c.news = Notice{}, c.news[1:]
	}
	c.mu.Unlock()
	c.ring()
	if notice.Name == Shutdown {
		c.wanted(asked{leave: true})
	}
}

// ring signals that news has arrived.
func (c *Conn) ring() { ring(c.fresh) }

// Said is a session message from another agent.
type Said struct {
	*session.Message
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

// plainNumbers re-encodes numbers. The protocol accepts 3.0 as an integer, but decoding it into
// an int fails.
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

// readSaid parses a session message as the orchestrator does, from any sender.
func readSaid(line []byte) (*Said, error) {
	message, wrong := session.Read(line, depth)
	if wrong != nil {
		return nil, wrong
	}
	var whole object.Reader
	if wrong := whole.Read(message.Document, depth, ""); wrong != nil {
		return nil, wrong
	}
	return &Said{Message: message, Payload: documentIn(&whole, "payload")}, nil
}

// heard is a session event: a message for the agent, or a message of the agent that was not
// delivered.
type heard struct {
	said   *Said
	lost   *Sent
	before int64 // notices received before it
}

// event is an event for a role: a session event or a notice.
type event struct {
	heard
	notice *Notice
}

// overheard queues a message, unless it is a duplicate. The orchestrator repeats a message if
// its arrival is uncertain.
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

// ring signals a channel. A signal that is still pending is enough.
func ring(bell chan<- struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// Talk iterates over the session messages for the agent, in order, from the first one and each
// once. It ends when ctx ends, or when the stream has ended and all messages are taken. Each
// message goes to one caller; the roles of a Session take them, too.
func (c *Conn) Talk(ctx context.Context) iter.Seq[*Said] {
	return func(yield func(*Said) bool) {
		for e := range c.events(ctx, false) {
			if e.said != nil && !yield(e.said) {
				return
			}
		}
	}
}

// events iterates over session events and, if wanted, notices, in the order of arrival. So a
// cancellation is not seen before its assignment.
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

// takeEvent takes the oldest event. If more events remain, it rings again, because it may have
// consumed another caller's signal.
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
	return e, ok, c.ending() != nil
}

// documentIn returns a copy of an object that the orchestrator has sent. Unlike Document of a Reader it
// does not mind a key that occurs twice: the reader of the object decides.
func documentIn(o *object.Reader, key string) wire.Raw {
	value := o.Find(key)
	if value == nil {
		return nil
	}
	if !object.IsObject(value) {
		o.Refuse(key, "must be an object")
		return nil
	}
	return object.Clone(value)
}
