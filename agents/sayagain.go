package agents

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A message of a session that was refused because there is too much of it just now
// had no effect, and may be taken later: it is said again, the same line. Until it
// is, what comes after it waits in the same lane:
//
//	""        the agent has said too much, so everything that it says in sessions waits
//	an agent  that one has not taken what it was sent before, so what is for it waits
//
// No answer says that a message was taken. So a lane says some, and is silent for a
// while: if none of them was refused by then, more of them follow sooner, otherwise
// fewer, later. It is there until all are said and none comes back.
type lane struct {
	name string
	held []held        // in the order in which they were said first
	open chan struct{} // closed when nothing waits any more

	wait    time.Duration // from one round to the next
	most    int           // in a round
	begun   bool
	refused bool // one of the last round
}

// held is a message that waits to be said again.
type held struct {
	sent *Sent
	line []byte
}

const (
	mostAgain  = 64               // how many are said again at a time
	longPause  = 16 * time.Second // the longest between two rounds, but for a spread
	triesAgain = 10               // how often one is said again
)

// laneOf is where a refused message waits; false for one that is not to be said
// again.
func laneOf(sent *Sent, why *Undelivered) (name string, ok bool) {
	if why.Reason() == ReasonLimited {
		return "", true
	}
	var crowd struct {
		Waiting float64 `json:"waiting"`
	}
	ok = why.ErrorType == wire.DeliveryTimeout && object.DecodeOwn(why.Details, &crowd) == nil && crowd.Waiting > 0
	return sent.to, ok
}

// sayLater puts a refused message into its lane, and reports whether it will be said
// again. It starts the goroutine of a lane, for which Wait waits. It is called by
// the one that reads.
func (c *Conn) sayLater(sent *Sent, why *Undelivered) bool {
	name, ok := laneOf(sent, why)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	line := c.lines.take(sent)
	if sent.held {
		return true // it was refused twice, as it was said
	}
	if line == nil || sent.tries == triesAgain {
		return false
	}
	l := c.lanes[name]
	if l == nil {
		l = &lane{name: name, open: make(chan struct{}), wait: pause, most: mostAgain}
		c.lanes[name] = l
		c.telling.Go(func() { c.sayAgain(l) })
	}
	at, _ := slices.BinarySearchFunc(l.held, sent.place, func(h held, place int64) int { return cmp.Compare(h.sent.place, place) })
	l.held = slices.Insert(l.held, at, held{sent: sent, line: line})
	l.refused, sent.held = true, true
	return true
}

// sayAgain tells what is in a lane until there is nothing left. After the end of the
// stream no refusals arrive, so the rest is said once.
func (c *Conn) sayAgain(l *lane) {
	defer close(l.open)
	defer c.abandon(l)
	for over := false; !over; {
		over = c.rest(pause) // by then, what was refused is back
		if more := c.slower(l); more > 0 && !over {
			over = c.rest(more)
		}
		round := c.round(l, over)
		for _, h := range round {
			if c.write(context.Background(), h.line) != nil {
				return // and nothing else can be said
			}
		}
		if len(round) == 0 {
			return
		}
	}
}

// rest waits for a while and a little longer, because agents that were refused
// together need not come back together. It reports whether the stream has ended, after
// which it does not wait long.
func (c *Conn) rest(wait time.Duration) (over bool) {
	wait += rand.N(wait / 4)
	select {
	case <-time.After(wait):
		return false
	case <-c.done:
		<-time.After(min(wait, pause))
		return true
	}
}

// slower lets a lane take its time when something of its last round was refused, and
// says how much more.
func (c *Conn) slower(l *lane) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !l.begun:
		return 0
	case l.refused:
		l.wait, l.most = min(2*l.wait, longPause), max(l.most/2, 1)
	default:
		l.wait, l.most = pause, min(2*l.most, mostAgain)
	}
	return l.wait - pause
}

// round takes what a lane says next. When that is nothing the lane is no more.
func (c *Conn) round(l *lane, all bool) []held {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.begun, l.refused = true, false
	n := min(len(l.held), l.most)
	if all {
		n = len(l.held)
	}
	round := slices.Clone(l.held[:n])
	l.held = slices.Delete(l.held, 0, n)
	for _, h := range round {
		h.sent.held = false
		h.sent.tries++
		c.lines.add(h.sent, h.line)
	}
	if n == 0 {
		delete(c.lanes, l.name)
	}
	return round
}

// abandon forgets a lane, unless there is another one in its place.
func (c *Conn) abandon(l *lane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lanes[l.name] == l {
		delete(c.lanes, l.name)
	}
}

// ahead is what a message for an agent has to wait for, nil for nothing.
func (c *Conn) ahead(to string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range []string{"", to} {
		if l := c.lanes[name]; l != nil {
			return l.open
		}
	}
	return nil
}

var errBehind = errors.New("another message comes first")

// writeBehind is writeNext for a message that must not overtake those which are
// said again.
func (c *Conn) writeBehind(ctx context.Context, to string, spell func() ([]byte, error)) error {
	for {
		var ahead <-chan struct{}
		err := c.writeNext(ctx, func() ([]byte, error) {
			if ahead = c.ahead(to); ahead != nil {
				return nil, errBehind
			}
			return spell()
		})
		if ahead == nil {
			return err
		}
		select {
		case <-ahead:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// allSaid waits until nothing is to be said again, or ctx ends: an agent that goes
// before takes it along.
func (c *Conn) allSaid(ctx context.Context) {
	for {
		var open chan struct{}
		c.mu.Lock()
		for _, l := range c.lanes {
			open = l.open
		}
		c.mu.Unlock()
		if open == nil {
			return
		}
		select {
		case <-open:
		case <-ctx.Done():
			return
		}
	}
}
