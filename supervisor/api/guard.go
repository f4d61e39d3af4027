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

// behind wraps a handler in the checks for all callers. Of a refused request only the headers
// have been read. The refusal is recorded.
func (api *API) behind(what string, may admission, do http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		caller, v, err := api.examine(may, w, r)
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

// examine identifies the caller and checks the rate limit, the right and the content type. On a
// Public route may is nil, and the caller is not identified.
func (api *API) examine(may admission, w http.ResponseWriter, r *http.Request) (caller Caller, v *runSocket, err error) {
	e := entranceOf(r.Context())
	if may != nil {
		caller, v, err = api.identify(e, r)
	}
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

// outside refuses requests for other host names.
func (api *API) outside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
