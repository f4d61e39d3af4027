package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// Delegated is a job that was delegated to the agent and is done by a Skill. Its methods may be
// called concurrently. After the end of the job they send no messages.
type Delegated struct {
	*delegation.Request // the request as it came

	serving *serving
	stop    context.CancelCauseFunc
	leaving <-chan struct{} // closed when the skill is to return
	before  *Delegated      // the previous job of the same task; its skill returns first
	done    chan struct{}   // closed when the skill has returned
	asking  chan struct{}   // held by the goroutine that asks

	// Guarded by serving.mu.
	status    string // of the latest response
	started   time.Time
	question  question
	artifacts []delegation.Artifact
	closed    bool   // only a final response may follow
	over      bool   // the final response is sent
	place     ticket // nil: holds no place and waits for none
	waiting   int    // calls that wait and have given up the place
	returned  bool
	tries     int // how often its question was refused for the rate limit; used by the serving goroutine
}

// question is a question of a job.
type question struct {
	text    string
	options []wire.Option
	input   chan<- reply // nil: no question is open
}

// Progress reports that the job is running, with a message unless it is "". While the job waits for
// input, it sends no message.
func (d *Delegated) Progress(message string) error {
	err := d.saying(func() ([]byte, error) {
		if d.question.input != nil {
			return nil, errAsking
		}
		line := delegation.AppendResponse(nil, &delegation.Response{ID: d.ID, Status: delegation.InProgress, Metadata: d.metadata()})
		if message != "" {
			line = append(line[:len(line)-len("}\n")], `,"message":`...)
			line = append(object.AppendText(line, message), "}\n"...)
		}
		return checked(line)
	})
	if errors.Is(err, errAsking) {
		return nil
	}
	return err
}

var errAsking = errors.New("it asks for input")

// Ask asks the delegating agent for input and waits for it. The answer may be any JSON value,
// whatever the options are, or nil. Questions are asked one at a time.
//
// When ctx ends, Ask reports that the job goes on without the input. Input that arrives before
// that report is returned all the same.
func (d *Delegated) Ask(ctx context.Context, text string, options ...wire.Option) (wire.Raw, error) {
	select {
	case d.asking <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.asking }()
	input := make(chan reply, 1)
	if err := d.ask(question{text: text, options: options, input: input}); err != nil {
		return nil, fmt.Errorf("asking for input: %w", err)
	}
	defer d.aside()(ctx)
	select {
	case r := <-input:
		return r.payload, r.err
	case <-ctx.Done():
	}
	err := d.withdraw()
	select {
	case r := <-input:
		return r.payload, r.err
	default:
		return nil, errors.Join(context.Cause(ctx), err)
	}
}

// ask sends a question.
func (d *Delegated) ask(q question) error {
	return d.saying(func() ([]byte, error) {
		line, err := checked(delegation.AppendResponse(nil, &delegation.Response{
			ID: d.ID, Status: delegation.InputRequired, Question: q.text, Options: q.options, Metadata: d.metadata(),
		}))
		if read, wrong := wire.ReadTaskResponse(line, depth); err == nil && wrong == nil && (read.Question != q.text || len(read.Options) != len(q.options)) {
			err = fmt.Errorf("%w: %w", errUnsaid, errNoQuestion)
		}
		if err == nil {
			d.status, d.question = delegation.InputRequired, q
		}
		return line, err
	})
}

var errNoQuestion = errors.New("a question needs words, and options that differ")

// withdraw reports that a job goes on without the input that it asked for.
func (d *Delegated) withdraw() error {
	select {
	case <-d.leaving:
		return nil // it does not go on
	default:
	}
	err := d.serving.say(d, func() ([]byte, error) {
		if d.question.input == nil {
			return nil, errOver // the answer came all the same
		}
		d.status, d.question = delegation.InProgress, question{}
		return d.standing()
	})
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

// answered passes input to the job's open question, if there is one, and spells the new status.
// The caller holds the lock of serving, as for every function that spells.
func (d *Delegated) answered(input wire.Raw) ([]byte, error) {
	if d.question.input != nil {
		d.question.input <- reply{payload: input}
		d.status, d.question = delegation.InProgress, question{}
	}
	return d.standing()
}

// standing spells the current status of a job.
func (d *Delegated) standing() ([]byte, error) {
	return checked(delegation.AppendResponse(nil, &delegation.Response{
		ID: d.ID, Status: d.status, Question: d.question.text, Options: d.question.options, Metadata: d.metadata(),
	}))
}

// saying sends a response of the skill about its job.
func (d *Delegated) saying(spell func() ([]byte, error)) error { return d.serving.say(d, spell) }

// Artifact keeps a named text of a MIME type for the final response.
func (d *Delegated) Artifact(name, kind, content string) error {
	made := delegation.Artifact{Name: name, Type: kind, Content: content}
	probe := delegation.Response{ID: d.ID, Status: delegation.InProgress, Artifacts: []delegation.Artifact{{Name: name, Type: kind}}}
	if _, err := checked(delegation.AppendResponse(nil, &probe)); err != nil {
		return fmt.Errorf("artifact %s: %w", name, err)
	}
	d.serving.mu.Lock()
	defer d.serving.mu.Unlock()
	if d.closed {
		return fmt.Errorf("artifact %s: %w", name, errOver)
	}
	d.artifacts = append(d.artifacts, made)
	return nil
}

// Delegate delegates a part of the job to another agent, as Conn.Delegate does. The request
// takes over the job's trace, baggage, conversation, user and routing chain.
func (d *Delegated) Delegate(ctx context.Context, request delegation.Request) (*Delegation, error) {
	about, trace := &request.Context, &request.Observability
	about.ParentTaskID = d.ID
	about.ConversationID = cmp.Or(d.Context.ConversationID, about.ConversationID)
	about.User = cmp.Or(d.Context.User, about.User)
	request.Routing.Chain = d.Routing.Chain
	trace.TraceID = cmp.Or(d.Observability.TraceID, trace.TraceID)
	trace.SpanID = cmp.Or(d.Observability.SpanID, trace.SpanID)
	if d.Observability.Baggage != nil {
		trace.Baggage = d.Observability.Baggage
	}
	return d.serving.conn.delegate(ctx, request, d.aside)
}

// outcome returns the final response for the result of a skill.
func outcome(result any, failed error) *delegation.Response {
	if failed == nil {
		text, err := value(result)
		if err == nil {
			if text == nil {
				text = wire.Raw("{}")
			}
			return &delegation.Response{Status: delegation.Completed, Result: text}
		}
		failed = fmt.Errorf("what came of it cannot be told: %w", err)
	}
	fault := delegation.Fault{Code: delegation.FaultInternal, Message: failed.Error()}
	if own := new(Fault); errors.As(failed, &own) {
		fault = delegation.Fault(*own)
	}
	if strings.TrimSpace(fault.Code) == "" {
		fault.Code = delegation.FaultInternal
	}
	if strings.TrimSpace(fault.Message) == "" {
		fault.Message = "it failed without a word"
	}
	return &delegation.Response{Status: delegation.Failed, Fault: &fault}
}

// last spells the final response of a job.
func (d *Delegated) last(r *delegation.Response, now time.Time) ([]byte, error) {
	if d.started.IsZero() {
		d.started = now
	}
	took := now.Sub(d.started).Milliseconds()
	r.ID, r.Artifacts, r.Metadata = d.ID, d.artifacts, d.metadata()
	r.Metadata.CompletedAt, r.Metadata.DurationMS = object.Timestamp(now), &took
	return checked(delegation.AppendResponse(nil, r))
}

func (d *Delegated) metadata() delegation.Metadata {
	m := delegation.Metadata{Agent: d.serving.Agent}
	if !d.started.IsZero() {
		m.StartedAt = object.Timestamp(d.started)
	}
	return m
}

// checked validates a response as the orchestrator will.
func checked(line []byte) ([]byte, error) {
	_, wrong := wire.ReadTaskResponse(line, depth)
	switch {
	case wrong != nil:
		return nil, fmt.Errorf("%w: %w", errUnsaid, wrong)
	case len(line) > maxLine:
		return nil, fmt.Errorf("%w: %w", errUnsaid, errTooLong)
	}
	return line, nil
}

// asked is one thing that the orchestrator asks of an agent that serves.
type asked struct {
	request *delegation.Request // a task to do
	act     *delegation.Act     // an act on a task that the agent was given
	refused *Refusal            // a refusal of a message of the agent, perhaps of a response
	id      string              // the id of the refused message
	leave   bool                // a request to shut down
	size    int                 // of the line; set for requests and acts
}

// like reports whether a only repeats the message before, just ahead of it.
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
	_ = c.Log("warn", fmt.Sprintf("%d of the messages that ask this agent for work were dropped: the agent does not serve", dropped), nil) // a broken stream shows in the next message
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
	return a, ok, c.ending() != nil
}
