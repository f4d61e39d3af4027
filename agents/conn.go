package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"orchestrator/wire"
	"orchestrator/wire/line"
	"orchestrator/wire/object"
)

const (
	// longest bounds a line, so that a broken stream cannot take all memory. No
	// answer comes near it.
	longest = 1 << 30
	// depth is how deep a line may nest; no orchestrator can be told to take more.
	depth = 10_000
)

// Conn is an agent's connection with its orchestrator. All its methods may be
// called at the same time.
type Conn struct {
	out  io.Writer
	turn chan struct{} // has room for the one who writes
	torn error         // why out takes nothing more; for the one whose turn it is

	done  chan struct{} // closed when in has ended
	fresh chan struct{} // rings when there is news
	post  chan struct{} // rings when there is mail
	talk  chan struct{} // rings when there is something of a session
	hatch chan struct{} // rings when something is asked of the agent

	mu      sync.Mutex
	waiting map[string]chan<- reply // by the id of the request
	news    []Notice                // not taken yet
	told    int64                   // how many there have been
	mail    []wire.Mail             // not dealt with, in order of the numbers
	dealt   int64                   // the number of the last that was
	heard   []heard                 // of a session, not taken yet
	known   recent[struct{}]        // the session messages that were heard
	said    recent[*Sent]           // those that the agent said
	places  int64                   // how many there have been
	lines   resendBuffer            // their lines
	lanes   map[string]*lane        // those that are said again
	over    error                   // why in has ended

	delegations map[string]*Delegation // that are not over, by the id of the task
	asks        []asked                // of the agent, not taken yet
	asksSize    int                    // of their lines
	dropped     int                    // of them, and not told
	finals      finalResponses         // of what it was asked
	serving     int                    // how many serve
	served      bool                   // a goroutine has served
	looked      bool                   // a caller has looked for notices

	telling sync.WaitGroup // what has to be said again, or is to be told
}

// Connect makes a connection of the stream that the orchestrator writes and the
// one that it reads.
//
// It starts one goroutine, which reads in until it ends, and others for as long as
// there are messages of a session to be said again, or it is to be told that what was
// asked of an agent that does not serve was dropped; Wait waits for them.
// A blocked read cannot be called back, so the goroutine lives as long as in:
// an agent's stdin ends when the orchestrator wants the agent to go, or with the
// process; any other stream is for the caller to close.
func Connect(in io.Reader, out io.Writer) *Conn {
	c := &Conn{
		out:     out,
		turn:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		fresh:   make(chan struct{}, 1),
		post:    make(chan struct{}, 1),
		talk:    make(chan struct{}, 1),
		hatch:   make(chan struct{}, 1),
		waiting: make(map[string]chan<- reply),
		lanes:   make(map[string]*lane),

		delegations: make(map[string]*Delegation),
	}
	go c.listen(in)
	return c
}

// Stdio connects an agent that the orchestrator has started. It is called once:
// two readers would share the lines.
func Stdio() *Conn { return Connect(os.Stdin, os.Stdout) }

// Wait waits until the orchestrator will say nothing more, and until what has to be
// said again is said. It returns nil when the stream has ended, or what kept it from
// being read.
func (c *Conn) Wait() error {
	<-c.done
	c.telling.Wait()
	if err := c.ending(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// ending is why in has ended, nil as long as it has not.
func (c *Conn) ending() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// listen reads until in ends. It waits for nothing else.
func (c *Conn) listen(in io.Reader) {
	defer close(c.done)
	lines := line.NewSplitter(longest)
	chunk := make([]byte, 32<<10)
	for {
		n, err := in.Read(chunk)
		lines.Feed(chunk[:n])
		for line, ok := lines.Next(); ok; line, ok = lines.Next() {
			c.hear(line)
		}
		if err != nil {
			if line, ok := lines.Rest(); ok {
				c.hear(line)
			}
			c.end(err)
			return
		}
	}
}

// hear takes a line for what it is. Keys are exact, and a line in which one that
// matters stands twice is not believed at all; what stands in a payload is
// not checked here.
func (c *Conn) hear(line line.Line) {
	var o object.Reader
	if line.Cut || o.Read(line.Text, depth, "") != nil {
		return
	}
	switch kind := o.Text("type"); {
	case kind == "response:success":
		c.answered(o.Text("correlationId"), reply{payload: o.Document("payload")}, o.Err())
	case kind == "response:error":
		c.refused(o.Text("correlationId"), refusal(o.Document("error")), o.Err())
	case strings.HasPrefix(kind, noticePrefix):
		notice := Notice{
			Name:      kind[len(noticePrefix):],
			ID:        o.Text("id"),
			Timestamp: o.Text("timestamp"),
			Payload:   o.Document("payload"),
		}
		if o.Err() == nil {
			c.noticed(notice)
		}
	case o.Text("message_type") != "":
		c.overheard(line.Text)
	case kind != "":
		c.handedOver(kind, line.Text)
	case o.Text("status") != "":
		c.responded(line.Text)
	}
}

// refused brings a no to the caller that said what is refused: a request, a message of a
// session, or something about delegated work. Their ids are of one kind, and no two
// are the same.
func (c *Conn) refused(id string, why *Refusal, wrong *wire.Error) {
	if wrong == nil && !c.undelivered(id, why) && !c.declined(id, why) && !c.answered(id, reply{err: why}, nil) {
		c.protested(id, why)
	}
}

// end tells every caller that waits that nothing more will come.
func (c *Conn) end(err error) {
	over := fmt.Errorf("the orchestrator has closed the stream: %w", err)
	if !errors.Is(err, io.EOF) {
		over = fmt.Errorf("reading what the orchestrator says: %w", err)
	}
	c.mu.Lock()
	waiting, delegations := c.waiting, c.delegations
	c.waiting, c.delegations, c.over = nil, nil, over
	c.mu.Unlock()
	unanswered := fmt.Errorf("%w: %w", errUnanswered, over)
	for _, call := range waiting {
		call <- reply{err: unanswered}
	}
	for _, d := range delegations {
		d.lose(unanswered)
	}
}

var errTorn = errors.New("writing to the orchestrator")

// write writes a line when it is its turn. The write itself is not called back:
// half a line would spoil the next one. For the same reason nothing is written
// after a write that failed.
func (c *Conn) write(ctx context.Context, line []byte) error {
	return c.writeNext(ctx, func() ([]byte, error) { return line, nil })
}

// writeNext is write for a line that is spelled when it is its turn, because its
// place is said in it.
func (c *Conn) writeNext(ctx context.Context, spell func() ([]byte, error)) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-c.turn }()
	if c.torn != nil {
		return c.torn
	}
	line, err := spell()
	if err != nil {
		return err
	}
	if _, err := c.out.Write(line); err != nil {
		c.torn = fmt.Errorf("%w: %w", errTorn, err)
	}
	return c.torn
}
