package agents

import (
	"context"
	"iter"

	"orchestrator/wire"
)

// Names of notices. There may be others.
const (
	TaskAssigned  = wire.NoticeAssigned
	TaskCancelled = wire.NoticeCancelled
	TaskUpdated   = wire.NoticeUpdated // something is new about a task that the agent has
	Message       = wire.NoticeMessage // there is mail for the agent
	Shutdown      = wire.NoticeShutdown
)

const noticePrefix = "notify:"

// Notice is what the orchestrator says without having been asked.
type Notice struct {
	Name      string // without its prefix, such as TaskAssigned
	ID        string
	Timestamp string
	Payload   wire.Raw // as it came; nil when there was none
}

// Read decodes the payload: a wire.TaskNotice for those about tasks, a wire.Mail
// for Message, a wire.ShutdownNotice for Shutdown.
func (n Notice) Read(into any) error { return reply{payload: n.Payload}.into(into) }

// News are the notices, in order, from the first one on: none is lost because it
// came before the first caller looked, but by an agent that serves and has not looked so far,
// which keeps the latest few thousand. It ends when ctx does, or when the stream has
// ended and all is taken. Each notice goes to one taker, and Work is one.
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

// next waits for a notice; false when there will be none.
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

// take takes the oldest notice, if any was left.
func (c *Conn) take() (notice Notice, left int, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looked = true
	if left = len(c.news); left > 0 {
		notice = c.news[0]
		c.news[0] = Notice{}
		c.news = c.news[1:]
	}
	return notice, left, c.over != nil
}

// noticed keeps a notice for the caller that takes it.
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

// ring says that there is news.
func (c *Conn) ring() { ring(c.fresh) }
