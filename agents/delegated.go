package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// Delegated is a job that was delegated to the agent and is done by a Skill. Its methods may be
// called concurrently. They send nothing after the job is over.
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

// question is what a job asks.
type question struct {
	text    string
	options []wire.Option
	input   chan<- reply // nil: no question is open
}

// Progress reports that the job is running, with a message unless it is "". It sends nothing
// while the job waits for input.
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

// outcome returns the final response for what a skill returned.
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
