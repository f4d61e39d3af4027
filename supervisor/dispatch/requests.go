package dispatch

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"orchestrator/handlers"
	"orchestrator/handlers/access"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// ErrOver is the error of requests to an orchestrator that has ended.
var ErrOver = &wire.Error{Code: wire.CodeConflict, Message: "the orchestrator has stopped"}

// Requests performs operations for callers outside the pipes of agents, such as operators.
type Requests struct{ dispatcher *Dispatcher }

// Requests returns the Requests of a Dispatcher.
func (d *Dispatcher) Requests() Requests { return Requests{d} }

// Ask performs an operation and returns its answer. The answer is a document of package wire. A
// refusal is a *wire.Error.
func (r Requests) Ask(ctx context.Context, from handlers.Actor, operation string, payload []byte) (any, error) {
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	request := asking(operation)
	request.Payload = payload
	if err := handlers.Prepare(request, r.dispatcher.options.Protocol.Depth); err != nil {
		return nil, r.Refuse(from, operation, err)
	}
	return r.dispatcher.ask(ctx, from, request)
}

// Do is like Ask, for a payload that was decoded already.
func (r Requests) Do(ctx context.Context, from handlers.Actor, operation string, body any) (any, error) {
	request := asking(operation)
	request.Body = body
	return r.dispatcher.ask(ctx, from, request)
}

func asking(operation string) *wire.Request {
	return &wire.Request{ID: uuid.NewString(), Operation: operation, Timestamp: object.Timestamp(time.Now())}
}

// Refuse records a refusal before a decision in the audit, and returns it.
func (r Requests) Refuse(from handlers.Actor, operation string, err *wire.Error) *wire.Error {
	r.dispatcher.refused(time.Now(), from, "request:"+operation, object.Quote(uuid.NewString()), err)
	return err
}

func (d *Dispatcher) ask(ctx context.Context, from handlers.Actor, r *wire.Request) (any, error) {
	if from.Kind == handlers.Agent && d.options.Spoke != nil {
		d.options.Spoke(from.Name)
	}
	from.Run = callerPrefix + strconv.FormatInt(d.callers.Add(1), 10)
	answer := d.recipients.wait(from.Run)
	defer d.recipients.leave(from.Run)
	d.submit([]handlers.Input{{At: time.Now(), From: from, Message: r, Random: randomBytes()}}, new(work))
	letter, err := Await(ctx, d.options.Done, answer)
	if err != nil {
		return nil, err
	}
	if letter.Refusal != nil {
		return nil, letter.Refusal
	}
	if err := d.complete(&letter); err != nil {
		return nil, err
	}
	return letter.Payload, nil
}

// Await waits for a value until ctx is done or over is closed, after which it returns ErrOver.
func Await[T any](ctx context.Context, over <-chan struct{}, answer <-chan T) (T, error) {
	var none T
	select {
	case v := <-answer:
		return v, nil
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case <-over:
		select {
		case v := <-answer: // answered at the end
			return v, nil
		default:
			return none, ErrOver
		}
	}
}

// TokenRevoked reports whether a person's token was revoked.
func (r Requests) TokenRevoked(id string) (revoked bool) {
	r.dispatcher.Look(func(state *handlers.State) { revoked = state.TokenRevoked(id) })
	return revoked
}

// AgentOf returns the agent that a key belongs to.
func (r Requests) AgentOf(key string) (name string, err error) {
	known := false
	r.dispatcher.Look(func(state *handlers.State) { name, known = state.AgentOf(access.Hash(key), time.Now()) })
	if !known {
		return "", &wire.Error{Code: wire.CodeDenied, Message: "the key is not known"}
	}
	return name, nil
}

// ActorOf returns the actor that a token belongs to.
func (r Requests) ActorOf(token string) (actor string, known bool) {
	r.dispatcher.Look(func(state *handlers.State) { actor, known = state.ActorOf(access.Hash(token), time.Now()) })
	return actor, known
}
