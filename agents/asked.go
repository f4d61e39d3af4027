package agents

import (
	"context"
	"fmt"
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// asked is one thing that the orchestrator asks of an agent that serves.
type asked struct {
	request *delegation.Request // a task to do
	act     *delegation.Act     // an act on a task that the agent was given
	refused *Refusal            // a refusal of a message of the agent, perhaps of a response
	id      string              // the id of the refused message
	leave   bool                // a request to shut down
	size    int                 // of the line; set for requests and acts
}

// like reports whether a asks for nothing beyond what before, just ahead of it, asked.
func (a asked) like(before asked) bool {
	return a.kind() == before.kind() && a.refused == nil && (a.act == nil || a.act.Type == delegation.ActStatus)
}

// kind returns a key that is equal for items of the same kind and subject.
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

// task returns the id of the task that a is about.
func (a asked) task() string {
	switch {
	case a.request != nil:
		return a.request.ID
	case a.act != nil:
		return a.act.ID
	}
	return a.id
}

// handedOver queues a line that is a task request or an act on one.
func (c *Conn) handedOver(kind string, line []byte) {
	if delegation.IsAct(kind) {
		if act, wrong := wire.ReadTaskAct(line, depth); wrong == nil {
			c.wanted(asked{act: act, size: len(line)})
		}
	} else if request, wrong := wire.ReadTaskRequest(line, depth); wrong == nil {
		c.wanted(asked{request: request, size: len(line)})
	}
}

// wanted queues an item for the goroutine that serves. The agent never has more requests than
// tasks that it may hold, and repeated status queries are queued once. While no goroutine
// serves, the oldest items are dropped to bound the queue.
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
	for c.serving == 0 && len(c.asks) > 1 && (len(c.asks) > maxAsked || c.asksSize > maxLately) {
		c.dropAsked()
	}
	ring(c.hatch)
}

// maxAsked bounds the items kept while no goroutine serves.
const maxAsked = 1000

// dropAsked drops the oldest item that is not a shutdown. The first drop starts a goroutine
// that logs the count; Wait waits for it. The caller holds c.mu.
func (c *Conn) dropAsked() {
	at := slices.IndexFunc(c.asks, func(a asked) bool { return !a.leave })
	c.asksSize -= c.asks[at].size
	c.asks = slices.Delete(c.asks, at, at+1)
	if c.dropped++; c.dropped == 1 {
		c.telling.Go(c.tellDropped)
	}
}

// tellDropped logs, after a pause, how many items were dropped.
func (c *Conn) tellDropped() {
	c.rest(pause)
	c.mu.Lock()
	dropped := c.dropped
	c.dropped = 0
	c.mu.Unlock()
	_ = c.Log("warn", fmt.Sprintf("%d of the messages that ask this agent for work were dropped: the agent does not serve", dropped), nil) // a broken stream shows in what is said next
}

// protested queues a refusal that no caller waits for, if a goroutine serves. The refusal may
// be about a response.
func (c *Conn) protested(id string, why *Refusal) {
	c.mu.Lock()
	serving := c.serving > 0
	c.mu.Unlock()
	if serving {
		c.wanted(asked{refused: why, id: id})
	}
}

// serves counts the goroutines that serve: change is 1 at the start of one, -1 at its end.
func (c *Conn) serves(change int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving += change
	c.served = true
}

// nextAsked waits for the next item. It returns false if there will be none.
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
