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

// Notice is an unsolicited message from the orchestrator.
type Notice struct {
	Name      string // without its prefix, such as TaskAssigned
	ID        string
	Timestamp string
	Payload   wire.Raw // as it came; nil when there was none
}

// Read decodes the payload: a wire.TaskNotice for those about tasks, a wire.Mail
// for Message, a wire.ShutdownNotice for Shutdown.
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
	return notice, left, c.over != nil
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

// ring says that there is news.
func (c *Conn) ring() { ring(c.fresh) }
