package api

import (
	"context"
	"fmt"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/identity"
)

// Access is the kind of callers that may use a route.
type Access uint8

// The kinds of Access. A credential of the wrong kind counts as none.
const (
	Operators Access = iota // an operator's token, or the operators' socket
	Agents                  // an agent's key, token or socket, or the operators' socket
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
func (a Access) allows(c identity.Caller) *wire.Error {
	switch {
	case a == Public:
		return nil
	case c.Kind == identity.Unknown:
		return noCredential(a.hint())
	case a == Operators && c.Kind != identity.Operator:
		return unauthenticated("this needs an operator's token, and the caller is "+displayName(c), a.hint())
	case a == Agents && c.Kind != identity.Agent && !c.Wide:
		return unauthenticated("this needs an agent's key, and the caller is "+displayName(c), a.hint())
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
	}
	return showAny
}

func noCredential(hint string) *wire.Error {
	return unauthenticated("this needs a credential, and the request has none", hint)
}

func unauthenticated(message, hint string) *wire.Error {
	return &wire.Error{Code: wire.CodeUnauthenticated, Message: message, Hint: hint}
}

func denied(message string) *wire.Error {
	return &wire.Error{Code: wire.CodeDenied, Message: message}
}

// admission returns an error if a caller may not make a request.
type admission func(identity.Caller, *http.Request) *wire.Error

// admission returns the check of a route. It is nil for a public route. Viewers may only use routes
// that read.
func (a Access) admission() admission {
	if a == Public {
		return nil
	}
	return func(c identity.Caller, r *http.Request) *wire.Error {
		if err := a.allows(c); err != nil {
			return err
		}
		return looks(c, r.Method == http.MethodGet || r.Method == http.MethodHead)
	}
}

// known refuses only callers of kind Unknown.
func known(c identity.Caller) *wire.Error {
	if c.Kind == identity.Unknown {
		return noCredential(showOne)
	}
	return nil
}

// toOperation admits agents and external actors only to the operations open to them.
func toOperation(name string) admission {
	o := declared(name)
	return func(c identity.Caller, _ *http.Request) *wire.Error {
		if err := known(c); err != nil {
			return err
		}
		if c.Kind == identity.Agent && !o.OpenToAgents() {
			return denied(name + " is for operators, and this is " + displayName(c))
		}
		if c.Kind == identity.Outsider && !o.OpenToActors() {
			return denied(name + " is not for actors from elsewhere, and this is " + displayName(c))
		}
		return looks(c, !o.IsWrite())
	}
}

// declared returns the declaration of an operation. An undeclared one is for operators, and counts
// as one that writes.
func declared(name string) *wire.Operation {
	if o := wire.OperationNamed(name); o != nil {
		return o
	}
	for _, o := range wire.ControlOperations {
		if o.Name == name {
			return o
		}
	}
	return &wire.Operation{Name: name, Audience: wire.ForOperators, Writes: true}
}

// toLook admits operators to lists, toJoin to pipes.
func toLook(c identity.Caller, r *http.Request) *wire.Error { return operatorsOnly(c, r, true) }
func toJoin(c identity.Caller, r *http.Request) *wire.Error {
	if c.Kind == identity.Operator && !c.Wide {
		return denied("a pipe works only on the orchestrator's machine, because its requests are not authenticated one by one")
	}
	return operatorsOnly(c, r, false)
}

func operatorsOnly(c identity.Caller, r *http.Request, reads bool) *wire.Error {
	if err := known(c); err != nil {
		return err
	}
	if c.Kind != identity.Operator {
		return denied(r.URL.Path + " is for operators, and this is " + displayName(c))
	}
	return looks(c, reads)
}

// looks refuses everything but reads to viewers, and everything to an unknown role.
func looks(c identity.Caller, reads bool) *wire.Error {
	switch {
	case c.Kind != identity.Operator, c.Wide, c.Role == wire.PersonAdmin, c.Role == wire.PersonOperator:
		return nil
	case c.Role == wire.PersonViewer && reads:
		return nil
	}
	return denied("the token of " + displayName(c) + " has the role " + wire.Visible(c.Role) + ", which does not allow this")
}

// authenticated wraps a handler in the checks for all callers, and records each request. Of a refused request
// only the headers have been read.
func (api *API) authenticated(what string, may admission, do http.HandlerFunc) http.HandlerFunc {
	writes := declared(what).IsWrite()
	return func(w http.ResponseWriter, r *http.Request) {
		c, v, err := api.examine(may, w, r)
		c.account = api.open(c.who, what, !writes || r.Method == http.MethodGet || r.Method == http.MethodHead)
		defer c.account.close()
		r = r.WithContext(withCaller(r.Context(), c))
		if err == nil {
			err = api.writable(what, w, r)
		}
		if c.who.Kind == identity.Unknown {
			brief(w, r)
		}
		if err != nil {
			api.refuse(w, r, err)
			return
		}
		ctx := r.Context()
		if !c.until.IsZero() {
			var end context.CancelFunc
			ctx, end = context.WithDeadline(ctx, c.until.Add(leeway))
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

// brief ends the connection of an unknown caller over the network after its request.
func brief(w http.ResponseWriter, r *http.Request) {
	if entranceOf(r.Context()).caller.Kind == identity.Unknown {
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodySilence))
	}
}

// examine identifies the caller and checks the rate limit, the right and the content type. On a
// Public route may is nil, and the caller is not identified.
func (api *API) examine(may admission, w http.ResponseWriter, r *http.Request) (c caller, v *runSocket, err error) {
	e := entranceOf(r.Context())
	if may != nil {
		c, v, err = api.identify(e, r)
	}
	c.who.Via = via(r, c)
	if late := api.tooOften(e, c.who, r); late > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(late.Seconds()))))
		return c, nil, &wire.Error{
			Code:    wire.CodeLimited,
			Message: fmt.Sprintf("too many requests: http.rate = %d a second", api.Rate),
			Details: map[string]any{"setting": "http.rate", "retry_after_ms": int64(math.Ceil(float64(late) / float64(time.Millisecond)))},
			Hint:    "Try again after the time in details.retry_after_ms, or in the header Retry-After",
		}
	}
	if err != nil {
		return c, nil, err
	}
	if c.who.Kind != identity.Unknown && c.hub == "" { // a hub that passes requests on is no caller
		if refusal := visitorOf(r).seat(c.who); refusal != nil {
			w.Header().Set("Connection", "close")
			return c, nil, refusal
		}
	}
	if may != nil {
		if refusal := may(c.who, r); refusal != nil {
			return c, nil, refusal
		}
	}
	if refusal := readable(r); refusal != nil {
		return c, nil, refusal
	}
	return c, v, nil
}

// asOf is the header of an answer that may be behind the record of another hub.
const asOf = "Orchestrator-As-Of"

// NoQuorum is the header of such an answer with the reason why recording is not possible.
const NoQuorum = "Orchestrator-No-Quorum"

// unrecorded are requests that are served while recording is not possible: they stop the team, speak for longer, or
// only look at it with a browser.
var unrecorded = []string{"down", "pipe", "mcp", "open-ui", "sign-in", "sign-out"}

// writable refuses an operation that writes while recording is not possible.
func (api *API) writable(what string, w http.ResponseWriter, r *http.Request) error {
	if api.Writable == nil {
		return nil
	}
	refusal := api.Writable()
	if refusal == nil {
		return nil
	}
	if r.Method != http.MethodGet && declared(what).IsWrite() && !slices.Contains(unrecorded, what) {
		return refusal
	}
	w.Header().Set(NoQuorum, refusal.Message)
	w.Header().Set(asOf, strconv.FormatInt(api.AsOf(), 10))
	return nil
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
			return mediaType("the request's Content-Type is %.80q, and only "+inJSON+" is accepted", value)
		}
	}
	for _, value := range r.Header.Values("Content-Encoding") {
		if !strings.EqualFold(value, "identity") {
			return mediaType("the request's Content-Encoding is %.80q, and only unencoded text is accepted", value)
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
func (api *API) tooOften(e *listenerInfo, c identity.Caller, r *http.Request) time.Duration {
	if c.Kind == identity.Unknown {
		c = e.caller
	}
	local := e.caller.Kind != identity.Unknown || c.Wide // at the socket of this hub or of another
	if api.Rate <= 0 || local && c.Kind == identity.Operator {
		return 0
	}
	return api.limits.take(r.Context(), api.Rate, bucketName(c, r.RemoteAddr))
}

// guard refuses requests for other host names. No browser keeps an answer or guesses its type.
func (api *API) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !entranceOf(r.Context()).answersTo(r) {
			api.refuse(w, r, &wire.Error{
				Code:    wire.CodeDenied,
				Message: fmt.Sprintf("%.80q is not a name of this host", r.Host),
				Hint:    "Ask for it by its address, or add the name to http.hosts",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}
