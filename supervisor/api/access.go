package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

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
	via   string // see Via
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

// behind wraps a handler in the checks for all callers. Of a refused request only the headers
// have been read. The refusal is recorded.
func (api *API) behind(what string, may admission, do http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		caller, v, err := api.examine(may, w, r)
		if caller.Kind == Unknown {
			brief(w, r)
		}
		if err != nil {
			if refusal, ok := errors.AsType[*wire.Error](err); ok {
				api.noteRefused(caller, what, refusal)
			}
			api.refuse(w, r, err)
			return
		}
		ctx := withCaller(r.Context(), caller)
		if !caller.until.IsZero() {
			var end context.CancelFunc
			ctx, end = context.WithDeadline(ctx, caller.until.Add(leeway))
			defer end()
		}
		if v != nil {
			var leave func()
			if ctx, leave = v.ask(ctx); leave == nil {
				api.refuse(w, r, errRunEnded)
				return
			}
			defer leave()
		}
		do(w, r.WithContext(ctx))
	}
}

// strangersTime is how long the body of a request of an unknown caller may take.
const strangersTime = 10 * time.Second

// brief ends the connection of an unknown caller over the network after its request.
func brief(w http.ResponseWriter, r *http.Request) {
	if entranceOf(r.Context()).caller.Kind == Unknown {
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(strangersTime))
	}
}

// examine identifies the caller and checks the rate limit, the right and the content type. On a
// Public route may is nil, and the caller is not identified.
func (api *API) examine(may admission, w http.ResponseWriter, r *http.Request) (caller Caller, v *runSocket, err error) {
	e := entranceOf(r.Context())
	if may != nil {
		caller, v, err = api.identify(e, r)
	}
	caller.via = via(r, caller)
	if late := api.tooOften(e, caller, r); late > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(late.Seconds()))))
		return caller, nil, &wire.Error{
			Code:    wire.CodeLimited,
			Message: fmt.Sprintf("more than %d requests a second", api.Rate),
			Hint:    "Try again when the header Retry-After says",
		}
	}
	if err != nil {
		return caller, nil, err
	}
	if may != nil {
		if refusal := may(caller, r); refusal != nil {
			return caller, nil, refusal
		}
	}
	if refusal := readable(r); refusal != nil {
		return caller, nil, refusal
	}
	return caller, v, nil
}

var errRunEnded = unauthenticated("the run that this credential was for has ended", "")

// readable returns an error if the Content-Type of a body is not JSON.
func readable(r *http.Request) *wire.Error {
	if r.ContentLength == 0 {
		return nil
	}
	for _, value := range r.Header.Values("Content-Type") {
		kind, parameters, err := mime.ParseMediaType(value)
		charset, given := parameters["charset"]
		if err != nil || kind != inJSON || given && !strings.EqualFold(charset, "utf-8") {
			return mediaType("the request's Content-Type is %.80q, and only "+inJSON+" is read here", value)
		}
	}
	for _, value := range r.Header.Values("Content-Encoding") {
		if !strings.EqualFold(value, "identity") {
			return mediaType("the request's Content-Encoding is %.80q, and only text as it is is read here", value)
		}
	}
	return nil
}

func mediaType(format, value string) *wire.Error {
	return &wire.Error{Code: wire.CodeMediaType, Message: fmt.Sprintf(format, value), Hint: "Send Content-Type: " + inJSON}
}

// tooOften returns how long a caller has to wait because of the rate limit, or 0. Unknown
// callers and those with invalid credentials are counted by address. Operators at their own
// socket have no limit.
func (api *API) tooOften(e *listenerInfo, c Caller, r *http.Request) time.Duration {
	if c.Kind == Unknown {
		c = e.caller
	}
	local := e.caller.Kind != Unknown
	if api.Rate <= 0 || local && c.Kind == Operator {
		return 0
	}
	return api.limits.take(api.Rate, bucketName(c, r.RemoteAddr), time.Now())
}

// outside refuses requests for other host names. No browser keeps an answer or guesses its type.
func (api *API) outside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !entranceOf(r.Context()).answersTo(r) {
			api.refuse(w, r, &wire.Error{
				Code:    wire.CodeDenied,
				Message: fmt.Sprintf("%.80q is no name of this host", r.Host),
				Hint:    "Ask for it by its address, or add the name to http.hosts",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}
