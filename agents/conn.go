package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/line"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

const (
	// longest bounds a line, so that a broken stream cannot take all memory. No
	// answer comes near it.
	longest = 1 << 30
	// depth is the maximal nesting of a line. No orchestrator can be configured to accept more.
	depth = 10_000
)

// A Conn is an agent's connection to its orchestrator. Its methods may be called concurrently.
type Conn struct {
	reporter

	done  chan struct{} // closed when in has ended
	fresh chan struct{} // rings when there is news
	post  chan struct{} // rings when there is mail
	talk  chan struct{} // rings when there is a session message
	hatch chan struct{} // rings when a request for the agent arrives

	mu     sync.Mutex
	news   []Notice         // not taken yet
	told   int64            // how many there have been
	mail   []mail.Message   // not yet dealt with, ordered by number
	dealt  int64            // the highest number dealt with
	heard  []heard          // session messages, not taken yet
	known  recent[struct{}] // session messages received
	said   recent[*Sent]    // session messages that the agent sent
	places int64            // how many there have been
	lines  resendBuffer     // the lines of said
	lanes  map[string]*lane // queues of session messages to send again

	delegations map[string]*Delegation // that are not over, by the id of the task
	asks        []asked                // items asked of the agent, not taken yet
	asksSize    int                    // of the lines of asks
	dropped     int                    // items dropped from asks and not yet logged
	finals      finalResponses         // final responses that the agent sent
	serving     int                    // goroutines that serve
	served      bool                   // a goroutine has served
	looked      bool                   // a caller has looked for notices

	telling sync.WaitGroup // goroutines that send again or log drops
}

// Connect returns a Conn that reads from in, the stream that the orchestrator writes, and
// writes to out.
//
// It starts a goroutine that reads in until it ends. More goroutines run while session messages
// have to be sent again, or dropped requests have to be logged; Wait waits for them. A blocked
// read cannot be interrupted, so the first goroutine lives as long as in. An agent's stdin ends
// at shutdown at the latest; the caller has to close any other stream.
func Connect(in io.Reader, out io.Writer) *Conn {
	c := &Conn{
		reporter: reporter{sender: sender{out: out, turn: make(chan struct{}, 1), waiting: make(map[string]chan<- reply)}},

		done:  make(chan struct{}),
		fresh: make(chan struct{}, 1),
		post:  make(chan struct{}, 1),
		talk:  make(chan struct{}, 1),
		hatch: make(chan struct{}, 1),
		lanes: make(map[string]*lane),

		delegations: make(map[string]*Delegation),
	}
	go c.listen(in)
	return c
}

// Stdio connects an agent to the orchestrator that started it. It must be called only once,
// because two readers would share the lines.
func Stdio() *Conn { return Connect(os.Stdin, os.Stdout) }

// Wait waits until in has ended and all messages that had to be sent again are sent. It returns
// nil at the end of the stream, or the read error.
func (c *Conn) Wait() error {
	<-c.done
	c.telling.Wait()
	if err := c.ending(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// listen reads lines until in ends. Only in blocks it.
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

// hear dispatches a line by its kind. Keys are case-sensitive. A line with a duplicate relevant
// key is ignored. Payloads are not checked here.
func (c *Conn) hear(line line.Line) {
	var o object.Reader
	if line.Cut || o.Read(line.Text, depth, "") != nil {
		return
	}
	switch kind := o.Text("type"); {
	case kind == "response:success":
		c.answered(o.Text("correlationId"), reply{payload: documentIn(&o, "payload")}, o.Err())
	case kind == "response:error":
		c.refused(o.Text("correlationId"), refusal(documentIn(&o, "error")), o.Err())
	case strings.HasPrefix(kind, noticePrefix):
		notice := Notice{
			Name:      kind[len(noticePrefix):],
			ID:        o.Text("id"),
			Timestamp: o.Text("timestamp"),
			Payload:   documentIn(&o, "payload"),
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

// refused passes a refusal to the caller whose message was refused: a request, a session
// message or an act on delegated work. All have unique ids of one kind.
func (c *Conn) refused(id string, why *Refusal, wrong *wire.Error) {
	if wrong == nil && !c.undelivered(id, why) && !c.declined(id, why) && !c.answered(id, reply{err: why}, nil) {
		c.protested(id, why)
	}
}

// end fails every waiting call: no more lines will be read.
func (c *Conn) end(err error) {
	over := fmt.Errorf("the orchestrator has closed the stream: %w", err)
	if !errors.Is(err, io.EOF) {
		over = fmt.Errorf("reading what the orchestrator says: %w", err)
	}
	unanswered := c.lose(over)
	c.mu.Lock()
	delegations := c.delegations
	c.delegations = nil
	c.mu.Unlock()
	for _, d := range delegations {
		d.lose(unanswered)
	}
}

// Error handling of the loops that call functions of the agent's author.

// troubled logs an error, if there is one. It stops the loop only if writing has failed.
func (s *sender) troubled(stop context.CancelCauseFunc, err error) {
	if err != nil && !errors.Is(err, errTorn) {
		err = s.Log("warn", err.Error(), nil)
	}
	if errors.Is(err, errTorn) {
		stop(err)
	}
}

// panicked reports a panic, with the task if there is one, and returns it as an error.
func (s *sender) panicked(what, task string, reason any) error {
	err := fmt.Errorf("%s panicked: %v", what, reason)
	_ = s.Tell("error", activity.Trouble{ // a broken stream shows in the next message
		TaskID: task, Error: err.Error(), Stack: string(debug.Stack()), Recoverable: true,
	})
	return err
}

// parting returns the result of a loop whose context has ended. It is nil after a shutdown without
// unfinished work.
func parting(ctx context.Context, unfinished int) error {
	switch cause := context.Cause(ctx); {
	case !errors.Is(cause, ErrShutdown) && !errors.Is(cause, io.EOF):
		return cause
	case unfinished > 0:
		return fmt.Errorf("%d of the tasks left unfinished: %w", unfinished, cause)
	}
	return nil
}
