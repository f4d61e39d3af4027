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
	Unknown  CallerKind = iota // not known, and so not trusted with anything
	Operator                   // a person who runs the orchestrator, or a program of theirs
	Agent
	Outsider // an actor from elsewhere that has a token of its own, and is no agent
)

// Caller is who asks: what the listener and the credential say, and never what
// a request claims.
type Caller struct {
	Kind CallerKind
	Name string // an agent's name; of an operator the subject of the token, "" at the operators' socket; an actor's id
	Run  string // of an agent: the one run that the credential is for; "": it is good for any
	Role string // of an operator with a token: wire.PersonAdmin and so on
	// Wide is an operator at the operators' own socket: the one who owns it all,
	// and so may go where agents go, and speak for them there. Of an agent it says
	// that it came by a route where agents see to the tasks of others.
	Wide bool

	// Of an operator with a token: what is told over a long time is told as long
	// as that holds.
	until time.Time
	token string // its id
	// Of one with a key or an actor's token: that. It is told as long as it is
	// still theirs. No Caller that is printed tells it.
	key *string
}

// String is the caller for people.
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

// callerKey is under what a context has its caller.
type callerKey struct{}

func withCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller of the request in a context. It is Unknown on a Public
// route: credentials are not looked at there.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
