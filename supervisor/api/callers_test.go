package api

import (
	"context"

	"orchestrator/wire"
	"orchestrator/wire/identity"
	"orchestrator/wire/mail"
)

// fakeCallers answer by functions. Without one, keys are not known, and requests get an empty answer.
type fakeCallers struct {
	agent, actor func(key string) (string, bool)
	ask          func(ctx context.Context, from identity.Caller, operation string, request []byte) (any, error)
	do           func(ctx context.Context, from identity.Caller, operation string, body any) (any, error)
	note         func(r identity.Request, refusal *wire.Error)
	mail         func(ctx context.Context, from identity.Caller, actor string, cursor *int64) (func(context.Context) ([]mail.Message, error), error)
}

func (f *fakeCallers) AgentOf(key string) (name string, ok bool) {
	if f.agent == nil {
		return "", false
	}
	return f.agent(key)
}

func (f *fakeCallers) ActorOf(token string) (id string, ok bool) {
	if f.actor == nil {
		return "", false
	}
	return f.actor(token)
}

func (f *fakeCallers) Ask(ctx context.Context, from identity.Caller, operation string, request []byte) (any, error) {
	if f.ask == nil {
		return nil, nil
	}
	return f.ask(ctx, from, operation, request)
}

func (f *fakeCallers) Do(ctx context.Context, from identity.Caller, operation string, body any) (any, error) {
	if f.do == nil {
		return nil, nil
	}
	return f.do(ctx, from, operation, body)
}

func (f *fakeCallers) Note(r identity.Request, refusal *wire.Error) {
	if f.note != nil {
		f.note(r, refusal)
	}
}

func (f *fakeCallers) OpenMail(ctx context.Context, from identity.Caller, actor string, cursor *int64) (func(context.Context) ([]mail.Message, error), error) {
	return f.mail(ctx, from, actor, cursor)
}

// fakeOf returns the callers of an API in a test.
func fakeOf(d *API) *fakeCallers { return d.Callers.(*fakeCallers) }
