package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"strconv"
	"time"

	"orchestrator/supervisor/api/signin"
	"orchestrator/wire"
	"orchestrator/wire/identity"
	"orchestrator/wire/object"
)

// caller is the sender of a request with its credential.
type caller struct {
	who identity.Caller
	// until is the expiry of an operator's token. Streams end with it.
	until time.Time
	token string // the id of an operator's token
	// key is the key or actor's token of the caller. Streams end when it is revoked. It is a
	// pointer so that printing a caller does not show it.
	key     *string
	browser *signin.SignIn // of a person who has signed in; streams end when it does
	hub     string         // the hub that has passed the request on, or ""
	account *account       // of the request
}

// displayName returns a description of a caller for people.
func displayName(c identity.Caller) string {
	switch {
	case c.Kind == identity.Unknown:
		return c.Kind.String()
	case c.Kind == identity.Operator && c.Name == "":
		return "an operator"
	}
	return c.Kind.String() + " " + wire.Visible(c.Name)
}

// callerKey is the context key of a caller.
type callerKey struct{}

func withCaller(ctx context.Context, c caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// CallerOf returns the caller of the request in a context. On a Public route it is Unknown,
// because credentials are ignored there.
func CallerOf(ctx context.Context) identity.Caller { return callerOf(ctx).who }

// via returns the Via of a request.
func via(r *http.Request, c caller) string {
	b := make([]byte, 0, 96)
	if p, _ := r.Context().Value(peerKey{}).(*peer); p != nil && p.PID != 0 {
		b = strconv.AppendInt(append(b, `,"pid":`...), int64(p.PID), 10)
		b = object.AppendText(append(b, `,"program":`...), p.Program)
	} else if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil && host != "" {
		b = object.AppendText(append(b, `,"address":`...), r.RemoteAddr)
	}
	if c.hub != "" {
		b = object.AppendText(append(b, `,"hub":`...), c.hub)
	}
	id := c.token
	switch {
	case c.key != nil:
		id = keyID(c)
	case c.browser != nil:
		id = c.browser.ID()
	}
	if id != "" {
		b = object.AppendText(append(b, `,"credential":`...), id)
	}
	return string(b)
}

// keyID returns the id of a caller's key or token, as the operation that issued it gave it.
func keyID(c caller) string {
	sum := sha256.Sum256([]byte(*c.key))
	id := hex.EncodeToString(sum[:4])
	if c.who.Kind == identity.Outsider {
		return "a" + id
	}
	return "k" + id
}
