package serve

import (
	"context"
	"net/url"

	"orchestrator/handlers"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/dispatch"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// speaker returns the actor for a caller of the API. Without credentials it is Anonymous.
func speaker(c api.Caller) handlers.Actor {
	from := handlers.Actor{Kind: handlers.Anonymous, Via: c.Via()}
	switch c.Kind {
	case api.Agent:
		from.Kind, from.Name, from.Only, from.ActsForOthers = handlers.Agent, c.Name, c.Run, c.Wide
	case api.Operator:
		from.Kind, from.Name = handlers.Operator, c.Name
	case api.Outsider:
		from.Kind, from.Name = handlers.External, c.Name
	}
	return from
}

// decide handles an operation with a body that the API has decoded. Its routes take each
// step of a task explicitly.
func (t *Instance) decide(ctx context.Context, from api.Caller, operation string, body any) (any, error) {
	actor := speaker(from)
	actor.ExplicitSteps = true
	return t.Super.Requests.Do(ctx, actor, operation, body)
}

// refused records an error that the API returned by itself.
func (t *Instance) refused(from api.Caller, operation string, err *wire.Error) {
	_ = t.Super.Requests.Refuse(speaker(from), operation, err) // the caller already has the error
}

// openMail opens the messages to an actor for an authenticated caller.
func (t *Instance) openMail(ctx context.Context, from api.Caller, actor string, cursor *int64) (api.MailReader, error) {
	reader, err := t.Super.Requests.OpenMail(ctx, speaker(from), actor, cursor)
	if err != nil {
		return nil, err // avoid a nil pointer in the interface
	}
	return reader, nil
}

// messages lists the messages of all actors.
func (t *Instance) messages(ctx context.Context, query url.Values, send func(any) error) error {
	q := dispatch.MailQuery{Topic: query.Get("topic"), Actor: query.Get("actor"), Follow: query.Get("follow") == "true"}
	var err error
	if q.Since, err = number(query, "since", 0); err != nil {
		return err
	}
	last, err := number(query, "n", 0)
	if err != nil {
		return err
	}
	q.Last = int(min(last, maxMessages))
	return t.Super.Requests.Messages(ctx, q, func(m mail.Message) error { return send(m) })
}

// maxMessages is the limit of n. The last messages are found from the end and are all kept
// in memory until the first one is found.
const maxMessages = 100_000
