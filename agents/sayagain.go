package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// A lane repeats session messages that were refused because of a rate limit or a full queue. A
// refused message had no effect, so the same line is sent again. Until then, later messages
// wait in the same lane:
//
//	""        rate limit of the agent: all its session messages wait
//	an agent  full queue of that agent: messages to it wait
//
// Delivered messages are not confirmed. So a lane sends a round of messages and pauses. If none
// is refused, the next round is larger and sooner, otherwise smaller and later. The lane ends
// when all messages are sent and none came back.
type lane struct {
	name string
	held []held        // ordered by place
	open chan struct{} // closed when the lane ends

	wait    time.Duration // from one round to the next
	most    int           // messages in a round
	begun   bool
	refused bool // a message of the last round was refused
}

// held is a message that waits to be said again.
type held struct {
	sent *Sent
	line []byte
}

const (
	maxAgain   = 64               // messages in a round, at most
	longPause  = 16 * time.Second // the longest pause between rounds, before jitter
	triesAgain = 10               // how often a message is sent again
)

// laneOf returns the lane of a refused message, or false if it is not to be sent again.
func laneOf(sent *Sent, why *Undelivered) (name string, ok bool) {
	if why.Reason() == ReasonLimited {
		return "", true
	}
	var crowd struct {
		Waiting float64 `json:"waiting"`
	}
	ok = why.ErrorType == session.DeliveryTimeout && object.DecodeOwn(why.Details, &crowd) == nil && crowd.Waiting > 0
	return sent.to, ok
}

// sayLater queues a refused message in its lane and reports whether it will be sent again. It
// starts the lane's goroutine; Wait waits for it. Only the reading goroutine calls it.
func (c *Conn) sayLater(sent *Sent, why *Undelivered) bool {
	name, ok := laneOf(sent, why)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	line := c.lines.take(sent)
	if sent.held {
		return true // refused twice, as it was sent twice
	}
	if line == nil || sent.tries == triesAgain {
		return false
	}
	l := c.lanes[name]
	if l == nil {
		l = &lane{name: name, open: make(chan struct{}), wait: pause, most: maxAgain}
		c.lanes[name] = l
		c.telling.Go(func() { c.sayAgain(l) })
	}
	at, _ := slices.BinarySearchFunc(l.held, sent.place, func(h held, place int64) int { return cmp.Compare(h.sent.place, place) })
	l.held = slices.Insert(l.held, at, held{sent: sent, line: line})
	l.refused, sent.held = true, true
	return true
}

// sayAgain sends the messages of a lane in rounds until none is left. After the end of the
// stream no refusals arrive, so the rest is sent in one round.
func (c *Conn) sayAgain(l *lane) {
	defer close(l.open)
	defer c.abandon(l)
	for over := false; !over; {
		over = c.rest(pause) // by then, all refused lines are back
		if more := c.slower(l); more > 0 && !over {
			over = c.rest(more)
		}
		round := c.round(l, over)
		for _, h := range round {
			if c.write(context.Background(), h.line) != nil {
				return // and no other line can be sent
			}
		}
		if len(round) == 0 {
			return
		}
	}
}

// rest waits for the given time plus some jitter, so that agents refused together do not return
// together. It reports whether the stream has ended; it then returns soon.
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

// slower slows a lane down after a refusal and speeds it up otherwise. It returns the extra
// pause.
func (c *Conn) slower(l *lane) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !l.begun:
		return 0
	case l.refused:
		l.wait, l.most = min(2*l.wait, longPause), max(l.most/2, 1)
	default:
		l.wait, l.most = pause, min(2*l.most, maxAgain)
	}
	return l.wait - pause
}

// round takes the next messages of a lane. It removes an empty lane.
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

// abandon removes a lane, unless another one has replaced it.
func (c *Conn) abandon(l *lane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lanes[l.name] == l {
		delete(c.lanes, l.name)
	}
}

// ahead returns the channel that a message to an agent has to wait for, or nil.
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

// writeBehind is writeNext for a message that must not overtake messages to be sent again.
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

// allSaid waits until every lane is empty or ctx ends. Messages still waiting when the agent
// exits are lost.
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

// maxLately bounds the bytes of lines kept for sending again.
const maxLately = 8 << 20

// resendBuffer holds the latest written lines of session messages. Refusals arrive soon, so the
// oldest lines are dropped first. A message without a line in the buffer is not sent again.
type resendBuffer struct {
	order []*written
	size  int
}

// written is a line, and its message.
type written struct {
	sent *Sent
	line []byte
}

// add keeps the line of a message that is about to be written.
func (r *resendBuffer) add(sent *Sent, line []byte) {
	w := &written{sent: sent, line: line}
	sent.written = w
	r.order = append(r.order, w)
	r.size += len(line)
	for len(r.order) > 1 && (r.size > maxLately || len(r.order) > remembered) {
		oldest := r.order[0]
		r.order[0], r.order = nil, r.order[1:]
		r.size -= len(oldest.line)
		if oldest.sent.written == oldest { // it was not written again since
			oldest.sent.written = nil
		}
	}
}

// take removes and returns the line of a message, or returns nil if it is gone.
func (r *resendBuffer) take(sent *Sent) []byte {
	w := sent.written
	if w == nil {
		return nil
	}
	sent.written = nil
	return w.line
}

// Undelivered is the error of a session message that was not delivered.
type Undelivered struct {
	Refusal
	session.DeliveryError
}

// Error returns the refusal and the number of attempts.
func (u *Undelivered) Error() string {
	if u.RetryCount > 0 {
		return fmt.Sprintf("not delivered after %d attempts: %s", u.RetryCount+1, u.Refusal.Error())
	}
	return "not delivered: " + u.Refusal.Error()
}

// Unwrap returns the refusal.
func (u *Undelivered) Unwrap() error { return &u.Refusal }

// Scope returns the patterns of the files that a task may change. It returns false if the
// message was refused for another reason.
func (u *Undelivered) Scope() (patterns []string, outside bool) {
	var details struct {
		Scope []string `json:"scope"`
	}
	if object.DecodeOwn(u.Details, &details) != nil {
		return nil, false
	}
	return details.Scope, details.Scope != nil
}

// Sent is a session message that the agent has sent. Delivery is never confirmed; a failure is
// reported sooner or later.
type Sent struct {
	MessageID      string
	CorrelationID  string
	SequenceNumber int64

	kind string // its message_type
	to   string // its addressee
	lost chan struct{}
	why  *Undelivered // set before lost is closed

	// Guarded by Conn.mu.
	place   int64    // among the messages of the connection
	written *written // its line, while buffered
	held    bool     // it waits in a lane
	tries   int      // how often it was sent again
}

// Refused returns a channel that is closed when the message will not be delivered; Err then
// returns why. It stays open while delivery is retried.
func (s *Sent) Refused() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.lost
}

// Err returns an *Undelivered once the message is known not to be delivered, otherwise nil.
func (s *Sent) Err() error {
	if why := s.undelivered(); why != nil {
		return why
	}
	return nil
}

func (s *Sent) undelivered() *Undelivered {
	select {
	case <-s.Refused():
		return s.why
	default:
		return nil
	}
}

// undelivered reports whether a refusal concerns a session message, and records it there. Only
// the reading goroutine calls it.
func (c *Conn) undelivered(id string, why *Refusal) bool {
	c.mu.Lock()
	sent := c.said.byKey[id]
	c.mu.Unlock()
	if sent == nil {
		return false
	}
	u := &Undelivered{Refusal: *why}
	_ = object.DecodeOwn(why.Details, &u.DeliveryError) // missing details stay empty
	if u.NextRetryAt == "" && sent.undelivered() == nil && !c.sayLater(sent, u) {
		sent.why = u
		close(sent.lost)
		c.keep(heard{lost: sent})
	}
	return true
}
