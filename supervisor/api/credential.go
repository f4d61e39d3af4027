package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/identity"
	"orchestrator/wire/object"
)

// KeyPrefix starts the keys of agents and the tokens of actors. It distinguishes them from the
// tokens of operators.
const KeyPrefix = wire.KeyPrefix

// maxKeyLength bounds the length of a key; real keys have a quarter of it.
const maxKeyLength = 256

// credentialOf returns the credential of a request, or "". It refuses an empty credential,
// because a script with an unset variable must not become an operator. It also refuses a
// request with two different credentials.
func credentialOf(header http.Header) (string, *wire.Error) {
	var shown []string
	for _, value := range header.Values("X-API-Key") {
		key := strings.TrimSpace(value)
		if !isKey(key) {
			return "", unauthenticated("X-API-Key is empty, or is not a key", showKey)
		}
		shown = append(shown, key)
	}
	for _, value := range header.Values("Authorization") {
		scheme, text, _ := strings.Cut(strings.TrimSpace(value), " ")
		text = strings.TrimSpace(text)
		if !strings.EqualFold(scheme, "Bearer") || text == "" || strings.HasPrefix(text, KeyPrefix) && !isKey(text) {
			return "", unauthenticated("Authorization is empty, or of an unknown kind", showOne)
		}
		shown = append(shown, text)
	}
	switch shown = slices.Compact(shown); len(shown) {
	case 0:
		return "", nil
	case 1:
		return shown[0], nil
	}
	return "", unauthenticated("the request has two different credentials", "Send one")
}

// isKey reports whether a text can be a key.
func isKey(text string) bool {
	rest, ok := strings.CutPrefix(text, KeyPrefix)
	if !ok || rest == "" || len(text) > maxKeyLength {
		return false
	}
	return !strings.ContainsFunc(rest, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
	})
}

var errNoTokens = unauthenticated("operators' tokens are not accepted here", "")

// bearer returns the caller of a credential. For a run it also returns the runSocket, because
// its requests end with the run.
func (api *API) bearer(credential string) (caller, *runSocket, error) {
	if strings.HasPrefix(credential, KeyPrefix) {
		if v := api.Runs.visit(credential); v != nil {
			return caller{who: v.caller}, v, nil
		}
		c, ok := api.holder(credential)
		if !ok {
			return caller{}, nil, unauthenticated("the key or token is unknown, expired or revoked", showOne)
		}
		return c, nil, nil
	}
	if api.Signer == nil {
		return caller{}, nil, errNoTokens
	}
	claims, err := api.Signer.Verify(credential, time.Now())
	if err != nil {
		return caller{}, nil, err
	}
	who := identity.Caller{Kind: identity.Operator, Name: claims.Subject, Role: claims.Role}
	return caller{who: who, until: claims.ExpiresAt, token: claims.ID}, nil, nil
}

// holder returns the agent or external actor that has a key.
func (api *API) holder(key string) (caller, bool) {
	if api.Callers == nil {
		return caller{}, false
	}
	if name, ok := api.Callers.AgentOf(key); ok {
		return caller{who: identity.Caller{Kind: identity.Agent, Name: name}, key: &key}, true
	}
	if id, ok := api.Callers.ActorOf(key); ok {
		return caller{who: identity.Caller{Kind: identity.Outsider, Name: id}, key: &key}, true
	}
	return caller{}, false
}

var errLapsed = unauthenticated("the credential is no longer valid", "")

// lapsed reports whether a caller's credential was revoked. Other ends need no check: runs end
// with their socket, and expired tokens with the context of the request.
func (api *API) lapsed(c caller) bool {
	if c.browser != nil && !api.SignIns.kept.Holds(c.browser) {
		return true
	}
	switch {
	case c.token != "":
		return api.Signer.Tokens != nil && !api.Signer.Tokens.TokenIssued(c.token)
	case c.key != nil:
		now, ok := api.holder(*c.key)
		return !ok || now.who.Kind != c.who.Kind || now.who.Name != c.who.Name
	}
	return false
}

// identify returns the caller of a request, by its credential or else by its cookie or its listener. A
// credential replaces the listener's caller; rights are not combined.
func (api *API) identify(e *listenerInfo, r *http.Request) (caller, *runSocket, error) {
	if c, is, err := api.identifyForwarded(r); is {
		return c, nil, err
	}
	credential, refusal := credentialOf(r.Header)
	if refusal != nil {
		return caller{}, nil, refusal
	}
	if credential == "" {
		if c, is, err := api.identifyBrowser(e, r); is {
			return c, nil, err
		}
	}
	if credential == "" || e.visit != nil {
		own, err := api.descends(e, r)
		if err != nil || credential == "" {
			return caller{who: own}, e.visit, err
		}
	}
	c, v, err := api.bearer(credential)
	if err != nil || e.visit == nil {
		return c, v, err
	}
	if !e.visit.is(c.who) {
		return caller{}, nil, denied("this is the socket of " + displayName(e.caller) + ", and the credential belongs to another agent")
	}
	return caller{who: e.caller}, e.visit, nil
}

// granting are the operations that grant or revoke access. Over the network they require an
// administrator.
var granting = []string{"issue-key", "rotate-key", "revoke-key", "issue-registration", "issue-token", "revoke-token"}

// mayAsk returns an error if an operation grants access and the caller may not do that. Only
// administrators and the owner of the socket may.
func mayAsk(c identity.Caller, operation string) *wire.Error {
	if c.Role == "" || c.Role == wire.PersonAdmin || !slices.Contains(granting, operation) {
		return nil
	}
	return &wire.Error{
		Code: wire.CodeDenied, Message: "this is for administrators, and the role of the token is " + wire.Visible(c.Role),
		Hint: "orchestrator token issue --sub NAME --role admin",
	}
}

// ask performs an operation for a caller that may use it.
func (api *API) ask(ctx context.Context, name string, request []byte) (any, error) {
	from := CallerOf(ctx)
	if err := mayAsk(from, name); err != nil {
		return nil, err
	}
	do := api.Operations[name]
	if do == nil {
		accountOf(ctx).decide()
		do = func(ctx context.Context, request []byte) (any, error) {
			return api.Callers.Ask(ctx, from, name, request)
		}
	}
	answer, err := do(ctx, request)
	if err != nil || name != "issue-token" {
		return answer, err
	}
	return api.withToken(answer)
}

// do performs an operation with a decoded body for a caller that may use it.
func (api *API) do(ctx context.Context, from identity.Caller, operation string, body any) (any, error) {
	if err := mayAsk(from, operation); err != nil {
		return nil, err
	}
	accountOf(ctx).decide()
	return api.Callers.Do(ctx, from, operation, body)
}

// withToken adds the signed token to the answer of an operation that issues one. The fact that
// it was issued is recorded, but the token itself is not stored.
func (api *API) withToken(answer any) (any, error) {
	issued, ok := answer.(*wire.IssuedToken)
	if !ok || issued.Actor != "" { // the token of an actor is not signed
		return answer, nil
	}
	from, _ := object.ParseTime(issued.IssuedAt)
	until, _ := object.ParseTime(issued.ExpiresAt)
	whole := *issued
	var err error
	whole.Token, err = api.Signer.Sign(Claims{
		ID: issued.ID, Subject: issued.Subject, Role: issued.Role, IssuedAt: from, ExpiresAt: until,
	})
	if err != nil {
		return nil, fmt.Errorf("signing a token: %w", err)
	}
	return &whole, nil
}
