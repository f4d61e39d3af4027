package agents

import (
	"context"
	"fmt"
	"slices"

	"orchestrator/wire"
)

// asked is what is asked of an agent that serves: one of these.
type asked struct {
	request *wire.TaskRequest // to do something
	act     *wire.TaskAct     // about something that it was asked to do
	refused *Refusal          // of what it has said, perhaps of such a thing
	id      string            // which that is
	leave   bool              // to shut down
	size    int               // of the line, if it is one of the first two
}

// like reports whether one that comes right after another asks for nothing more.
func (a asked) like(before asked) bool {
	return a.kind() == before.kind() && a.refused == nil && (a.act == nil || a.act.Type == wire.ActStatus)
}

// kind is the same for all that are about the same in the same way.
func (a asked) kind() string {
	switch {
	case a.request != nil:
		return "request\n" + a.request.ID
	case a.act != nil:
		return a.act.Type + "\n" + a.act.ID
	case a.refused != nil:
		return "refused\n" + a.id
	}
	return Shutdown
}

// task is the task that it is about.
func (a asked) task() string {
	switch {
	case a.request != nil:
		return a.request.ID
	case a.act != nil:
		return a.act.ID
	}
	return a.id
}

// handedOver takes a line for a request for work, or for what is said about one.
func (c *Conn) handedOver(kind string, line []byte) {
	if wire.IsTaskAct(kind) {
		if act, wrong := wire.ReadTaskAct(line, depth); wrong == nil {
			c.wanted(asked{act: act, size: len(line)})
		}
	} else if request, wrong := wire.ReadTaskRequest(line, depth); wrong == nil {
		c.wanted(asked{request: request, size: len(line)})
	}
}

// wanted keeps it for the goroutine that serves. There are no more requests than tasks that the
// agent may have, and one that is asked again and again how it does says it once. As
// long as no goroutine serves, what is asked makes room for what comes after it.
func (c *Conn) wanted(a asked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.asks) - 1; i >= 0; i-- {
		if before := c.asks[i]; before.task() == a.task() {
			if a.like(before) {
				return
			}
			break
		}
	}
	c.asks = append(c.asks, a)
	c.asksSize += a.size
	for c.serving == 0 && len(c.asks) > 1 && (len(c.asks) > mostAsked || c.asksSize > mostLately) {
		c.dropAsked()
	}
	ring(c.hatch)
}

// mostAsked is how much of what is asked is kept while no goroutine serves.
const mostAsked = 1000

// dropAsked forgets the oldest of what is asked, but not that the agent is to go. It
// starts the goroutine that tells of it, for which Wait waits. The caller holds the lock.
func (c *Conn) dropAsked() {
	at := slices.IndexFunc(c.asks, func(a asked) bool { return !a.leave })
	c.asksSize -= c.asks[at].size
	c.asks = slices.Delete(c.asks, at, at+1)
	if c.dropped++; c.dropped == 1 {
		c.telling.Go(c.tellDropped)
	}
}

// tellDropped tells after a while how much was dropped by then.
func (c *Conn) tellDropped() {
	c.rest(pause)
	c.mu.Lock()
	dropped := c.dropped
	c.dropped = 0
	c.mu.Unlock()
	_ = c.Log("warn", fmt.Sprintf("%d of the messages that ask this agent for work were dropped: the agent does not serve", dropped), nil) // a broken stream shows in what is said next
}

// protested keeps a refusal that no caller waits for, while a goroutine serves. It
// may be about a response.
func (c *Conn) protested(id string, why *Refusal) {
	c.mu.Lock()
	serving := c.serving > 0
	c.mu.Unlock()
	if serving {
		c.wanted(asked{refused: why, id: id})
	}
}

// serves notes that a goroutine begins to serve, or ends.
func (c *Conn) serves(change int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving += change
	c.served = true
}

// nextAsked waits for what is asked next; false when there will be nothing.
func (c *Conn) nextAsked(ctx context.Context) (asked, bool) {
	for ctx.Err() == nil {
		a, ok, over := c.takeAsked()
		if ok || over {
			return a, ok
		}
		select {
		case <-c.hatch:
		case <-c.done:
		case <-ctx.Done():
		}
	}
	return asked{}, false
}

func (c *Conn) takeAsked() (a asked, ok, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok = len(c.asks) > 0; ok {
		a, c.asks[0] = c.asks[0], asked{}
		c.asks = c.asks[1:]
		c.asksSize -= a.size
	}
	if len(c.asks) > 0 {
		ring(c.hatch) // for another taker: the bell rang once
	}
	return a, ok, c.over != nil
}
