package agents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// reply is the outcome of a request.
type reply struct {
	payload wire.Raw
	err     error
}

// A sender writes the requests and events of an agent, and passes each answer to the call that
// waits for it.
type sender struct {
	out  io.Writer
	turn chan struct{} // held by the goroutine that writes
	torn error         // why out accepts no more lines; guarded by turn

	mu      sync.Mutex              // guards the fields below
	waiting map[string]chan<- reply // by the id of the request
	over    error                   // why no more answers come
}

// Errors of a request that was waiting when the stream ended. A request that was not sent has
// no effect; one that was sent may have been carried out.
var (
	errUnasked    = errors.New("not asked")
	errUnanswered = errors.New("asked, but there will be no answer")
)

// Ask sends a request for an operation, such as "get-task", and waits for the answer. The
// payload must encode to a JSON object; nil means an empty one. The answer is decoded into the
// value that answer points to. A *wire.Raw receives the undecoded payload; nil discards it.
//
// The error is a *Refusal if the orchestrator refuses the request. If ctx ends first, a late
// answer is discarded, but the operation may have been carried out; a question to a person is
// withdrawn, unless the agent has to shut down. If the stream ends first,
// the error wraps io.EOF and reports whether the request was sent.
//
// The orchestrator answers every line that it can read as a request. Ask itself rejects invalid
// JSON and lines of more than 16 MiB. If the orchestrator's max_line or max_depth is lower, a
// request may stay unanswered until ctx ends.
func (s *sender) Ask(ctx context.Context, operation string, payload, answer any) error {
	if err := s.ask(ctx, operation, payload, answer); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	return nil
}

func (s *sender) ask(ctx context.Context, operation string, payload, answer any) error {
	id, line, err := spell("request:"+operation, payload)
	if err != nil {
		return err
	}
	call, err := s.expect(id)
	if err != nil {
		return err
	}
	defer s.forget(id)
	if err := s.write(ctx, line); err != nil {
		return err
	}
	select {
	case r := <-call:
		return r.into(answer)
	case <-ctx.Done():
		err := context.Cause(ctx)
		if operation == "ask-user" || operation == "ask-permission" {
			s.abandon(id, err)
		}
		return err
	}
}

// abandon withdraws the question of a request after its caller stopped waiting. After a shutdown
// the question stays open: the next run that asks the same takes it up.
func (s *sender) abandon(request string, why error) {
	if errors.Is(why, ErrShutdown) || errors.Is(why, io.EOF) {
		return
	}
	if _, line, err := spell("request:withdraw-question", wire.WithdrawQuestion{RequestID: request}); err == nil {
		_ = s.write(context.Background(), line)
	}
}

// expect registers a request and returns the channel of its answer. The channel is buffered, so
// the reader never blocks.
func (s *sender) expect(id string) (<-chan reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return nil, fmt.Errorf("%w: %w", errUnasked, s.over)
	}
	call := make(chan reply, 1)
	s.waiting[id] = call
	return call, nil
}

// forget unregisters a request: its caller no longer waits for the answer.
func (s *sender) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, id)
}

// answered passes an answer to the caller that waits for it. It reports whether there was one:
// duplicate, late and malformed answers have none.
func (s *sender) answered(id string, r reply, wrong *wire.Error) bool {
	if wrong != nil {
		return false
	}
	s.mu.Lock()
	call := s.waiting[id]
	delete(s.waiting, id)
	s.mu.Unlock()
	if call != nil {
		call <- r
	}
	return call != nil
}

// lose fails every waiting call, since no more answers come. It returns their error.
func (s *sender) lose(over error) error {
	s.mu.Lock()
	waiting := s.waiting
	s.waiting, s.over = nil, over
	s.mu.Unlock()
	unanswered := fmt.Errorf("%w: %w", errUnanswered, over)
	for _, call := range waiting {
		call <- reply{err: unanswered}
	}
	return unanswered
}

// ending returns why the stream has ended, or nil while it has not.
func (s *sender) ending() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// into decodes an answer. It accepts duplicate keys, because an answer may contain documents
// written by other agents.
func (r reply) into(answer any) error {
	if r.err != nil || answer == nil {
		return r.err
	}
	payload := r.payload
	if payload == nil {
		payload = wire.Raw("{}")
	}
	if raw, ok := answer.(*wire.Raw); ok {
		*raw = bytes.Clone(payload)
		return nil
	}
	if err := object.DecodeOwn(payload, answer); err != nil {
		return fmt.Errorf("understanding the answer: %w", err)
	}
	return nil
}

var errTorn = errors.New("writing to the orchestrator")

// write waits for its turn and writes a line. A write is never interrupted, because half a line
// would corrupt the next one. After a failed write, all later writes fail.
func (s *sender) write(ctx context.Context, line []byte) error {
	return s.writeNext(ctx, func() ([]byte, error) { return line, nil })
}

// writeNext is write for a line that must be spelled when its turn comes, because it contains
// its own position.
func (s *sender) writeNext(ctx context.Context, spell func() ([]byte, error)) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.turn }()
	if s.torn != nil {
		return s.torn
	}
	line, err := spell()
	if err != nil {
		return err
	}
	if _, err := s.out.Write(line); err != nil {
		s.torn = fmt.Errorf("%w: %w", errTorn, err)
	}
	return s.torn
}

// pause is the wait before a request over the rate limit is repeated, if the refusal does not say after which time.
const pause = time.Second

// askPatiently is Ask for requests that must not be lost to the rate limit. A request over the
// limit has had no effect, so it is repeated.
func (s *sender) askPatiently(ctx context.Context, operation string, payload, answer any) error {
	for tries := 0; ; tries++ {
		err := s.Ask(ctx, operation, payload, answer)
		if !refusedFor(ReasonLimited, err) {
			return err
		}
		select {
		case <-time.After(backoff(err, tries)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// backoff returns the wait before a limited request is repeated: the time in the refusal, doubled after each
// try up to pause, with some jitter. Without a time in the refusal it is pause.
func backoff(err error, tries int) time.Duration {
	var refused *Refusal
	if !errors.As(err, &refused) || refused.RetryAfter() == 0 {
		return pause
	}
	after := refused.RetryAfter()
	after = max(after, min(after<<min(tries, 10), pause))
	return after + rand.N(after/4+1)
}

// settle asks for an operation even if the stream has ended. The orchestrator still reads the
// agent's output then, until its time to stop is up, but sends no answers.
func (s *sender) settle(ctx context.Context, operation string, payload any) error {
	ctx = context.WithoutCancel(ctx) // the work is done, but its result is not reported yet
	err := s.askPatiently(ctx, operation, payload, nil)
	switch {
	case errors.Is(err, errUnasked):
		_, line, err := spell("request:"+operation, payload)
		if err != nil {
			return err
		}
		return s.write(ctx, line)
	case errors.Is(err, errUnanswered):
		return nil
	}
	return err
}

// Code is a refusal code for programs.
type Code string

// The codes. The list is complete.
const (
	InvalidRequest     Code = "INVALID_REQUEST"
	InvalidMessageType Code = "INVALID_MESSAGE_TYPE"
	Unauthorized       Code = "UNAUTHORIZED"
	NotFound           Code = "NOT_FOUND"
	Timeout            Code = "TIMEOUT"
	InternalError      Code = "INTERNAL_ERROR"
)

// Reasons for refusals that share a code.
const (
	ReasonLimited    = "rate_limited" // too many messages; retry later
	ReasonConflict   = "conflict"     // conflicts with the current state
	ReasonWrongState = "wrong_state"  // the task is in the wrong state, for example ended
	ReasonBlocked    = "blocked"      // the task waits for other tasks
)

// Reasons for refusing a completion.
const (
	reasonNotVerified = "not_verified" // a verify command has failed
	reasonResult      = "result"       // the result does not match its schema
	reasonNoWorkspace = "no_workspace" // the work is not in the task's workspace, or that cannot be used
	reasonNeedsHuman  = "needs_human"  // it has failed too often: a person is asked
	reasonInterrupted = "interrupted"  // the verification could not run to its end
)

// Refusal is the error of a refused request.
type Refusal struct {
	Code    Code     `json:"code"`
	Message string   `json:"message"`
	Details wire.Raw `json:"details,omitzero"` // an object
}

// Error returns the message and the code.
func (r *Refusal) Error() string { return fmt.Sprintf("%s (%s)", r.Message, r.Code) }

// Reason returns the reason in the details, or "".
func (r *Refusal) Reason() string {
	var details object.Reader
	if details.Read(r.Details, depth, "") != nil {
		return ""
	}
	return details.Text("reason")
}

// RetryAfter returns how long to wait before the same is sent again, or 0 if the refusal does not say. A refusal
// with ReasonLimited has it.
func (r *Refusal) RetryAfter() time.Duration {
	var details struct {
		RetryAfter int64 `json:"retry_after_ms"`
	}
	if object.DecodeOwn(r.Details, &details) != nil || details.RetryAfter < 0 || details.RetryAfter > maxRetryAfter.Milliseconds() {
		return 0
	}
	return time.Duration(details.RetryAfter) * time.Millisecond
}

// maxRetryAfter is the longest time that a refusal may name. A longer one is not believed.
const maxRetryAfter = 48 * time.Hour

// refusedFor reports whether an error is a refusal with a reason.
func refusedFor(reason string, err error) bool {
	var refused *Refusal
	return errors.As(err, &refused) && refused.Reason() == reason
}

// refusal decodes the error of an answer. A malformed error is still a refusal.
func refusal(text wire.Raw) *Refusal {
	r := new(Refusal)
	if text == nil || object.DecodeOwn(text, r) != nil || r.Code == "" {
		return &Refusal{Code: InternalError, Message: "refused, without a word that could be understood", Details: text}
	}
	return r
}

// envelope surrounds every message of an agent. It has no agentId, because the orchestrator
// knows the sender by its pipe.
type envelope struct {
	Type      string   `json:"type"`
	ID        string   `json:"id"`
	Timestamp string   `json:"timestamp"`
	Payload   wire.Raw `json:"payload"`
}

// maxLine is the orchestrator's default limit for the length of a line.
const maxLine = 16 << 20

var (
	errUnsaid   = errors.New("it cannot be said")
	errNoObject = errors.New("a payload must be an object")
	errTooLong  = fmt.Errorf("it takes more than %d MiB", maxLine>>20)
)

// spell encodes a message as a line and returns its id. It rejects a line that the orchestrator
// would take for log, because such a line is never answered.
func spell(kind string, payload any) (id string, line []byte, err error) {
	id = uuid.NewString()
	body, err := asObject(payload)
	if err == nil {
		line, err = object.Encode(envelope{Type: kind, ID: id, Timestamp: object.Timestamp(time.Now()), Payload: body})
	}
	if err == nil {
		err = readable(line)
	}
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", errUnsaid, err)
	}
	return id, append(line, '\n'), nil
}

// readable validates a line as the orchestrator will. Raw documents were copied into it
// unchecked.
func readable(line []byte) error {
	var o object.Reader
	if wrong := o.Read(line, depth, ""); wrong != nil {
		return wrong
	}
	if len(line) > maxLine {
		return errTooLong
	}
	return nil
}

// asObject spells a payload; none is an empty one.
func asObject(payload any) (wire.Raw, error) {
	if payload == nil {
		return wire.Raw("{}"), nil
	}
	body, err := value(payload)
	if err != nil {
		return nil, err
	}
	if body == nil || body[0] != '{' {
		return nil, errNoObject
	}
	return body, nil
}

// value encodes an optional value. It returns nil for nil and null.
func value(v any) (wire.Raw, error) {
	if v == nil {
		return nil, nil
	}
	text, err := object.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("spelling %T: %w", v, err)
	}
	if string(text) == "null" {
		return nil, nil
	}
	return text, nil
}
