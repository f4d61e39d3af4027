package dispatch

import (
	"context"
	"time"

	"orchestrator/handlers"
	"orchestrator/handlers/access"
	"orchestrator/wire"
	"orchestrator/wire/identity"
	"orchestrator/wire/mail"
)

// Callers performs operations for the callers of the HTTP API, and knows their credentials. It is like Requests, but
// Requests gets its callers as actors.
type Callers struct{ requests Requests }

// Callers returns the Callers that perform operations through r.
func (r Requests) Callers() Callers { return Callers{r} }

// Ask performs an operation for a known caller and returns its answer, as Requests.Ask does.
func (c Callers) Ask(ctx context.Context, from identity.Caller, operation string, payload []byte) (any, error) {
	if from.Kind == identity.Unknown {
		return nil, &wire.Error{Code: wire.CodeUnauthenticated, Message: "the caller is unknown: a credential is missing"}
	}
	return c.requests.Ask(ctx, actorOf(from), operation, payload)
}

// Do performs an operation with a payload that a route has decoded. The routes take each step of
// a task explicitly. A caller without a credential is Anonymous, so that it can register.
func (c Callers) Do(ctx context.Context, from identity.Caller, operation string, body any) (any, error) {
	actor := actorOf(from)
	actor.ExplicitSteps = true
	return c.requests.Do(ctx, actor, operation, body)
}

// Note records a request that no decision was about in the audit, with its outcome.
func (c Callers) Note(r identity.Request, refusal *wire.Error) {
	d, kind := c.requests.dispatcher, "request:"+r.Operation
	from := actorOf(r.From)
	if r.Stage == "" && refusal != nil {
		d.options.Watch.refused(from, kind, refusal)
	}
	d.audit.asked(time.Now(), from, kind, r.Stage, r.Reads, refusal)
}

// OpenMail opens the mail of an actor, as Requests.OpenMail does, and returns the Next of its reader.
func (c Callers) OpenMail(ctx context.Context, from identity.Caller, actor string, cursor *int64) (next func(context.Context) ([]mail.Message, error), err error) {
	reader := actorOf(from)
	reader.Audited = true // by Note, as the stream that it is
	mail, err := c.requests.OpenMail(ctx, reader, actor, cursor)
	if err != nil {
		return nil, err
	}
	return mail.Next, nil
}

// TokenIssued reports whether a person's token was issued, and was not revoked since.
func (c Callers) TokenIssued(id string) (issued bool) {
	c.requests.dispatcher.Look(func(state *handlers.State) { issued = state.TokenIssued(id) })
	return issued
}

// TokenRecorded reports whether a person's token was issued to a subject, in a role and with an end.
func (c Callers) TokenRecorded(id, subject, role string, end time.Time) (recorded bool) {
	c.requests.dispatcher.Look(func(state *handlers.State) { recorded = state.TokenRecorded(id, subject, role, end) })
	return recorded
}

// AgentOf returns the agent that a key belongs to. The key is valid for all runs of the agent.
func (c Callers) AgentOf(key string) (name string, known bool) {
	hash, now := access.Hash(key), time.Now()
	c.requests.dispatcher.Look(func(state *handlers.State) { name, known = state.AgentOf(hash, now) })
	return name, known
}

// ActorOf returns the actor that a token belongs to.
func (c Callers) ActorOf(token string) (actor string, known bool) {
	hash, now := access.Hash(token), time.Now()
	c.requests.dispatcher.Look(func(state *handlers.State) { actor, known = state.ActorOf(hash, now) })
	return actor, known
}

// actorOf returns the actor for a caller.
func actorOf(c identity.Caller) handlers.Actor {
	from := handlers.Actor{Kind: handlers.Anonymous, Via: c.Via}
	switch c.Kind {
	case identity.Operator:
		from.Kind, from.Name = handlers.Operator, c.Name
	case identity.Agent:
		from.Kind, from.Name, from.Only, from.ActsForOthers = handlers.Agent, c.Name, c.Run, c.Wide
	case identity.Outsider:
		from.Kind, from.Name = handlers.External, c.Name
	}
	return from
}
