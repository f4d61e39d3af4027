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

// behind puts a handler behind the checks for all callers. Nothing of a request
// that is refused has been read but its headers; that what was asked for was
// refused is noted.
func (d *API) behind(what string, may admission, do http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		caller, v, err := d.examine(may, w, r)
		if err != nil {
			if refusal, ok := errors.AsType[*wire.Error](err); ok {
				d.noteRefused(caller, what, refusal)
			}
			d.refuse(w, r, err)
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
				d.refuse(w, r, errRunEnded)
				return
			}
			defer leave()
		}
		do(w, r.WithContext(ctx))
	}
}

// examine asks who it is, that it is not too often, whether they may, and
// whether what they send can be read. On a Public route, where may is nil, it
// does not ask who.
func (d *API) examine(may admission, w http.ResponseWriter, r *http.Request) (caller Caller, v *runSocket, err error) {
	e := entranceOf(r.Context())
	if may != nil {
		caller, v, err = d.identify(e, r)
	}
	if late := d.tooOften(e, caller, r); late > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(late.Seconds()))))
		return caller, nil, &wire.Error{
			Code:    wire.CodeLimited,
			Message: fmt.Sprintf("more than %d requests a second", d.Rate),
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

// readable returns why a body cannot be read: it says that it is no JSON.
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

// tooOften says how long a caller should wait before it is served again; 0: it
// need not. A caller that is not known, or whose credential is worth nothing, counts by
// where they come from. Operators at a socket of their own wait for nothing:
// they could as well stop it all.
func (d *API) tooOften(e *listenerInfo, c Caller, r *http.Request) time.Duration {
	if c.Kind == Unknown {
		c = e.caller
	}
	local := e.caller.Kind != Unknown
	if d.Rate <= 0 || local && c.Kind == Operator {
		return 0
	}
	return d.limits.take(d.Rate, bucketName(c, r.RemoteAddr), time.Now())
}

// outside refuses what was not meant for this door.
func (d *API) outside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !entranceOf(r.Context()).answersTo(r) {
			d.refuse(w, r, &wire.Error{
				Code:    wire.CodeDenied,
				Message: fmt.Sprintf("%.80q is no name of this host", r.Host),
				Hint:    "Ask for it by its address, or add the name to http.hosts",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}
