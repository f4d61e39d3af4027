package api

import (
	"net/http"

	"orchestrator/wire"
)

// Access is the kind of callers that may use a route.
type Access uint8

// The kinds of Access. A credential of the wrong kind counts as none.
const (
	Operators Access = iota // an operator's token, or the operators' socket
	Agents                  // an agent's key, token or socket, or the operators' socket
	Known                   // operators and agents
	Public                  // every caller; credentials are ignored
	Actors                  // operators, agents and external actors
)

// Hints for a missing credential or one of the wrong kind.
const (
	showToken = "Send Authorization: Bearer TOKEN, with an operator's token: orchestrator token issue --sub NAME"
	showKey   = "Send X-API-Key: orc_…, an agent's key: orchestrator key issue AGENT"
	showOne   = "Send Authorization: Bearer TOKEN as an operator, or X-API-Key: orc_… as an agent"
	showAny   = "Send Authorization: Bearer TOKEN, with the token of an actor, an agent's key, or an operator's token"
)

// allows returns an error if a caller may not use a route.
func (a Access) allows(c Caller) *wire.Error {
	switch {
	case a == Public:
		return nil
	case c.Kind == Unknown:
		return unauthenticated("this needs a credential, and none came with the request", a.hint())
	case a == Operators && c.Kind != Operator:
		return unauthenticated("this needs an operator's token, and the caller is "+c.String(), a.hint())
	case a == Agents && c.Kind != Agent && !c.Wide:
		return unauthenticated("this needs an agent's key, and the caller is "+c.String(), a.hint())
	case a == Known && c.Kind == Outsider:
		return unauthenticated("this needs the credential of an operator or an agent, and the caller is "+c.String(), a.hint())
	}
	return nil
}

// hint returns the hint for a missing credential.
func (a Access) hint() string {
	switch a {
	case Operators:
		return showToken
	case Agents:
		return showKey
	case Actors:
		return showAny
	}
	return showOne
}

func unauthenticated(message, hint string) *wire.Error {
	return &wire.Error{Code: wire.CodeUnauthenticated, Message: message, Hint: hint}
}

func denied(message string) *wire.Error {
	return &wire.Error{Code: wire.CodeDenied, Message: message}
}

// admission returns an error if a caller may not make a request.
type admission func(Caller, *http.Request) *wire.Error

// admission returns nil for a public route. Viewers may only use routes that read.
func (t *Route) admission() admission {
	if t.Access == Public {
		return nil
	}
	return func(c Caller, r *http.Request) *wire.Error {
		if err := t.Access.allows(c); err != nil {
			return err
		}
		return looks(c, r.Method == http.MethodGet || r.Method == http.MethodHead)
	}
}

// known refuses only callers of kind Unknown.
func known(c Caller) *wire.Error {
	if c.Kind == Unknown {
		return Known.allows(c)
	}
	return nil
}

// toOperation admits agents and external actors only to the operations open to them.
func (api *API) toOperation(name string) admission {
	return func(c Caller, _ *http.Request) *wire.Error {
		if err := known(c); err != nil {
			return err
		}
		if c.Kind == Agent && (api.WithKey == nil || !api.WithKey(name)) {
			return denied(name + " is for operators, and this is " + c.String())
		}
		if c.Kind == Outsider && (api.WithActor == nil || !api.WithActor(name)) {
			return denied(name + " is not for actors from elsewhere, and this is " + c.String())
		}
		return looks(c, api.Writes != nil && !api.Writes(name))
	}
}

// toLook admits operators to lists, toJoin to pipes.
func toLook(c Caller, r *http.Request) *wire.Error { return operatorsOnly(c, r, true) }
func toJoin(c Caller, r *http.Request) *wire.Error {
	if c.Kind == Operator && !c.Wide {
		return denied("a pipe is for the machine that the orchestrator runs on: what comes through one is never asked for its token again")
	}
	return operatorsOnly(c, r, false)
}

func operatorsOnly(c Caller, r *http.Request, reads bool) *wire.Error {
	if err := known(c); err != nil {
		return err
	}
	if c.Kind != Operator {
		return denied(r.URL.Path + " is for operators, and this is " + c.String())
	}
	return looks(c, reads)
}

// looks refuses everything but reads to viewers, and everything to an unknown role.
func looks(c Caller, reads bool) *wire.Error {
	switch {
	case c.Kind != Operator, c.Wide, c.Role == wire.PersonAdmin, c.Role == wire.PersonOperator:
		return nil
	case c.Role == wire.PersonViewer && reads:
		return nil
	}
	return denied("the token of " + c.String() + " has the role " + wire.Visible(c.Role) + ", and that is not enough for this")
}
