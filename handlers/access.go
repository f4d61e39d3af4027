package handlers

import (
	"fmt"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// The kinds of credential.
const (
	credentialKey          = "key"          // an agent's
	credentialRegistration = "registration" // of a server that has not registered yet
	credentialToken        = "token"        // a person's; the token itself is signed and not kept
	credentialActor        = "actor"        // of an actor on another machine
)

// A credential authenticates a caller. The secret is not stored: a key is found by its hash, a
// token by its id.
type credential struct {
	wire.Credential
	hash    string    // "" for a person's token
	until   time.Time // it holds; zero: for ever
	revoked bool      // of a signed token, which would stay valid until then
}

// access holds all credentials.
type access struct {
	order  []*credential // as they were issued
	byHash map[string]*credential
	byID   map[string]*credential
	keys   map[string]int // how many each agent has
}

func newAccess() access {
	return access{byHash: make(map[string]*credential), byID: make(map[string]*credential), keys: make(map[string]int)}
}

func (a *access) keep(c *credential) {
	c.until, _ = object.ParseTime(c.ExpiresAt)
	a.order = append(a.order, c)
	a.byID[c.ID] = c
	if c.Kind == credentialKey {
		a.keys[c.For]++
	}
	if c.hash != "" {
		a.byHash[c.hash] = c
	}
}

// drop forgets a credential.
func (a *access) drop(c *credential) {
	if c.Kind == credentialKey {
		if a.keys[c.For]--; a.keys[c.For] == 0 {
			delete(a.keys, c.For)
		}
	}
	delete(a.byID, c.ID)
	delete(a.byHash, c.hash)
	a.order = slices.DeleteFunc(a.order, func(o *credential) bool { return o == c })
}

// find returns the valid credential with a hash, or nil. A map lookup is not constant-time, but
// an attacker could use the time only by finding preimages.
func (a *access) find(hash, kind string, at time.Time) *credential {
	c := a.byHash[hash]
	if c == nil || c.Kind != kind || c.over(at) {
		return nil
	}
	return c
}

func (c *credential) over(at time.Time) bool { return !c.until.IsZero() && !c.until.After(at) }

// letsIn reports whether an agent has a key.
func (a *access) letsIn(agent string) bool { return a.keys[agent] > 0 }

// use spends a registration token.
func (a *access) use(id string) {
	if c := a.byID[id]; c != nil {
		a.drop(c)
	}
}

// revokeOf forgets the keys of an agent.
func (a *access) revokeOf(agent string) {
	for _, c := range slices.Clone(a.order) {
		if c.Kind == credentialKey && c.For == agent {
			a.drop(c)
		}
	}
}

// revokeActor forgets the tokens of an actor.
func (a *access) revokeActor(actor string) {
	for _, c := range slices.Clone(a.order) {
		if c.Kind == credentialActor && c.For == actor {
			a.drop(c)
		}
	}
}

// beyond is how long a revoked token is kept after it has expired, since the check of a token
// tolerates clock skew.
const beyond = time.Minute

// sweep removes expired credentials.
func (s *State) sweep(at time.Time) {
	for _, c := range slices.Clone(s.access.order) {
		if c.over(at) && !(c.revoked && c.until.Add(beyond).After(at)) {
			s.access.drop(c)
			s.updateStanding(s.agents.byID[c.For])
		}
	}
}

// list returns the credentials of some kinds that have not expired.
func (a *access) list(at time.Time, kinds ...string) *wire.CredentialList {
	answer := &wire.CredentialList{Credentials: []wire.Credential{}}
	for _, c := range a.order {
		if slices.Contains(kinds, c.Kind) && !c.over(at) && !c.revoked {
			answer.Credentials = append(answer.Credentials, c.Credential)
		}
	}
	return answer
}

func listKeys(ad accessDecision, _ *wire.Nothing) (*wire.CredentialList, *wire.Error) {
	return ad.state.access.list(ad.at, credentialKey, credentialRegistration), nil
}

func listTokens(ad accessDecision, _ *wire.Nothing) (*wire.CredentialList, *wire.Error) {
	return ad.state.access.list(ad.at, credentialToken, credentialActor), nil
}

// TokenRevoked reports whether a person's token was revoked before it expires.
func (s *State) TokenRevoked(id string) bool {
	c := s.access.byID[id]
	return c != nil && c.revoked
}

// credentialNamed finds a credential to revoke.
func (a *access) credentialNamed(id string, kinds ...string) (*credential, *wire.Error) {
	if c := a.byID[id]; c != nil && slices.Contains(kinds, c.Kind) && !c.revoked {
		return c, nil
	}
	return nil, &wire.Error{
		Code: wire.CodeNotFound, Message: fmt.Sprintf("there is no %s %q", kinds[0], id), Details: map[string]any{"id": id},
	}
}

func revokeKey(ad accessDecision, r *wire.Revoke) (*wire.Credential, *wire.Error) {
	c, err := ad.state.access.credentialNamed(r.ID, credentialKey, credentialRegistration)
	if err != nil {
		return nil, err
	}
	ad.fact("", "", &keyRevoked{ID: c.ID, Agent: c.For})
	if a := ad.state.agents.byID[c.For]; a != nil && a.remote != nil && a.state == up && !ad.state.access.letsIn(a.ID) {
		ad.agents().part(a, "its key was revoked")
	}
	ad.agents().trimServers()
	return &c.Credential, nil
}

// keyRevoked records that a key or a registration token was revoked.
type keyRevoked struct {
	ID    string `json:"id"`
	Agent string `json:"agent,omitzero"`
}

func (*keyRevoked) kind() string { return events.KeyRevoked }

func (k *keyRevoked) apply(s *State, r *wire.Record) {
	s.access.use(k.ID)
	a := s.agents.byID[k.Agent]
	s.updateStanding(a)
	if a != nil && a.remote != nil && !s.access.letsIn(a.ID) {
		a.remote.keyless = r.Seq
	}
}

// registrationLasts is the default validity of a registration token.
const registrationLasts = 24 * time.Hour

// registrationPrefix begins every registration token.
const registrationPrefix = "orcreg_"

func issueRegistration(ad accessDecision, r *wire.IssueRegistration) (*wire.IssuedRegistration, *wire.Error) {
	token := registrationPrefix + ad.secret()
	hash := HashKey(token)
	f := &registrationIssued{ID: "r" + hash[:8], Name: r.Name, Hash: hash, ExpiresAt: ad.expiry(r.TTL, registrationLasts)}
	ad.fact("", "", f)
	return &wire.IssuedRegistration{ID: f.ID, Token: token, ExpiresAt: f.ExpiresAt}, nil
}

// expiry returns the end of a validity of ttl milliseconds, or of the default if ttl is 0.
func (ad accessDecision) expiry(ttl int64, otherwise time.Duration) string {
	if ttl == 0 {
		return object.Timestamp(ad.at.Add(otherwise))
	}
	return object.Timestamp(ad.at.Add(time.Duration(ttl) * time.Millisecond))
}

// registrationIssued records that a server may register with a token.
type registrationIssued struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitzero"`
	Hash      string `json:"hash"`
	ExpiresAt string `json:"expires_at"`
}

func (*registrationIssued) kind() string { return events.RegistrationIssued }

func (ri *registrationIssued) apply(s *State, r *wire.Record) {
	s.sweep(r.At)
	s.access.keep(&credential{Credential: wire.Credential{
		ID: ri.ID, Kind: credentialRegistration, Name: ri.Name, IssuedAt: object.Timestamp(r.At), ExpiresAt: ri.ExpiresAt,
	}, hash: ri.Hash})
}

// tokenLasts is the default validity of a person's token: a working day.
const tokenLasts = 8 * time.Hour

func issueToken(ad accessDecision, r *wire.IssueToken) (*wire.IssuedToken, *wire.Error) {
	if r.Actor != "" {
		return ad.issueActorToken(r)
	}
	if ad.from.Kind != Operator {
		return nil, &wire.Error{Code: wire.CodeDenied, Message: "people's tokens are for operators to issue"}
	}
	role := r.Role
	if role == "" {
		role = wire.PersonOperator
	}
	f := &tokenIssued{ID: "t" + ad.uuid()[:18], Subject: r.Subject, Role: role, ExpiresAt: ad.expiry(r.TTL, tokenLasts)}
	ad.fact("", "", f)
	return &wire.IssuedToken{ID: f.ID, Subject: f.Subject, Role: f.Role, IssuedAt: object.Timestamp(ad.at), ExpiresAt: f.ExpiresAt}, nil
}

// tokenIssued records that a person has a token.
type tokenIssued struct {
	ID        string `json:"id"`
	Subject   string `json:"subject"`
	Role      string `json:"role"`
	ExpiresAt string `json:"expires_at"`
}

func (*tokenIssued) kind() string { return events.TokenIssued }

func (t *tokenIssued) apply(s *State, r *wire.Record) {
	s.sweep(r.At)
	s.access.keep(&credential{Credential: wire.Credential{
		ID: t.ID, Kind: credentialToken, For: t.Subject, Role: t.Role, IssuedAt: object.Timestamp(r.At), ExpiresAt: t.ExpiresAt,
	}})
}

func revokeToken(ad accessDecision, r *wire.Revoke) (*wire.Credential, *wire.Error) {
	c, err := ad.state.access.credentialNamed(r.ID, credentialToken, credentialActor)
	if err != nil {
		return nil, err
	}
	if c.Kind == credentialActor && !ad.state.access.admitsBeside(c, ad.at) && ad.state.bus.remote(c.For) {
		ad.mail().resolveStale(ad.state.bus.actors[c.For], "its token was revoked")
	}
	ad.fact("", "", &tokenRevoked{ID: c.ID, Subject: c.For})
	return &c.Credential, nil
}

// tokenRevoked records that the token of a person or of an actor was revoked.
type tokenRevoked struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
}

func (*tokenRevoked) kind() string { return events.TokenRevoked }

func (t *tokenRevoked) apply(s *State, r *wire.Record) {
	switch c := s.access.byID[t.ID]; {
	case c == nil:
	case c.Kind == credentialToken:
		c.revoked = true
	default: // it is not signed, so it is invalid without a record here
		s.access.drop(c)
		if !s.access.admitsBeside(c, r.At) && s.bus.remote(c.For) {
			s.bus.dropActor(c.For)
		}
	}
}
