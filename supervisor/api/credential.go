package api

import (
	"net/http"
	"strings"
	"time"

	"orchestrator/wire"
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
			return "", unauthenticated("X-API-Key is empty, or no key", showKey)
		}
		shown = append(shown, key)
	}
	for _, value := range header.Values("Authorization") {
		scheme, text, _ := strings.Cut(strings.TrimSpace(value), " ")
		text = strings.TrimSpace(text)
		if !strings.EqualFold(scheme, "Bearer") || text == "" || strings.HasPrefix(text, KeyPrefix) && !isKey(text) {
			return "", unauthenticated("Authorization is empty, or of no kind that is known here", showOne)
		}
		shown = append(shown, text)
	}
	if len(shown) == 0 {
		return "", nil
	}
	for _, other := range shown[1:] {
		if other != shown[0] {
			return "", unauthenticated("the request came with two credentials that differ", "Send one")
		}
	}
	return shown[0], nil
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

var errNoTokens = unauthenticated("operators' tokens are not taken here", "")

// bearer returns the caller of a credential. For a run it also returns the runSocket, because
// its requests end with the run.
func (api *API) bearer(credential string) (Caller, *runSocket, error) {
	if strings.HasPrefix(credential, KeyPrefix) {
		if v := api.Runs.visit(credential); v != nil {
			return v.caller, v, nil
		}
		c, ok := api.holder(credential)
		if !ok {
			return Caller{}, nil, unauthenticated("the key or token is not known, or holds no more", showOne)
		}
		return c, nil, nil
	}
	if api.Signer == nil {
		return Caller{}, nil, errNoTokens
	}
	claims, err := api.Signer.Verify(credential, time.Now())
	if err != nil {
		return Caller{}, nil, err
	}
	return Caller{
		Kind: Operator, Name: claims.Subject, Role: claims.Role, until: claims.ExpiresAt, token: claims.ID,
	}, nil, nil
}

// holder returns the agent or external actor that has a key.
func (api *API) holder(key string) (Caller, bool) {
	if api.Agent != nil {
		if name, run, ok := api.Agent(key); ok {
			return Caller{Kind: Agent, Name: name, Run: run, key: &key}, true
		}
	}
	if api.Actor != nil {
		if id, ok := api.Actor(key); ok {
			return Caller{Kind: Outsider, Name: id, key: &key}, true
		}
	}
	return Caller{}, false
}

var errLapsed = unauthenticated("the credential does not hold any more", "")

// lapsed reports whether a caller's credential was revoked. Other ends need no check: runs end
// with their socket, and expired tokens with the context of the request.
func (api *API) lapsed(c Caller) bool {
	switch {
	case c.token != "":
		return api.Signer.Revoked != nil && api.Signer.Revoked(c.token)
	case c.key != nil:
		now, ok := api.holder(*c.key)
		return !ok || now.Kind != c.Kind || now.Name != c.Name || now.Run != c.Run
	}
	return false
}

// identify returns the caller of a request, by its credential or else by its listener. A
// credential replaces the listener's caller; rights are not combined.
func (api *API) identify(e *listenerInfo, r *http.Request) (Caller, *runSocket, error) {
	credential, refusal := credentialOf(r.Header)
	if refusal != nil {
		return Caller{}, nil, refusal
	}
	if credential == "" {
		return e.caller, e.visit, nil
	}
	caller, v, err := api.bearer(credential)
	if err != nil || e.visit == nil {
		return caller, v, err
	}
	if !e.visit.is(caller) {
		return Caller{}, nil, denied("this is the socket of " + e.caller.String() + ", and the credential is that of another")
	}
	return e.caller, e.visit, nil
}
