package api

import (
	"context"
	"time"

	"orchestrator/wire"
)

// CallerKind tells callers apart.
type CallerKind uint8

// The kinds of Caller.
const (
	Unknown  CallerKind = iota // unidentified and therefore untrusted
	Operator                   // a person who runs the orchestrator, or such a person's program
	Agent
	Outsider // an external actor with its own token
)

// Caller is the sender of a request, as identified by the listener and the credential. It never
// depends on what a request claims.
type Caller struct {
	Kind CallerKind
	Name string // an agent's name, an actor's id, or the subject of an operator's token; "" at the operators' socket
	Run  string // of an agent: the only run of the credential; "": any
	Role string // of an operator with a token: wire.PersonAdmin and so on
	// Wide marks an operator at the operators' socket, who may use routes of agents and act for
	// them. For an agent, it marks a route on which agents manage the tasks of others.
	Wide bool

	// until is the expiry of an operator's token. Streams end with it.
	until time.Time
	token string // the id of an operator's token
	// key is the key or actor's token of the caller. Streams end when it is revoked. It is a
	// pointer so that printing a Caller does not show it.
	key *string
}

// String returns a description of the caller for people.
func (c Caller) String() string {
	switch c.Kind {
	case Operator:
		if c.Name == "" {
			return "an operator"
		}
		return "operator " + wire.Visible(c.Name)
	case Agent:
		return "agent " + wire.Visible(c.Name)
	case Outsider:
		return "actor " + wire.Visible(c.Name)
	}
	return "unknown"
}

// callerKey is the context key of a Caller.
type callerKey struct{}

func withCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller of the request in a context. On a Public route it is Unknown,
// because credentials are ignored there.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
