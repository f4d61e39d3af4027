package handlers

import (
	"cmp"
	"time"

	"orchestrator/handlers/access"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

var accessOperations = []Operation{
	bind("issue-key", (*decision).access, issueKey),
	bind("rotate-key", (*decision).access, rotateKey),
	bind("revoke-key", (*decision).access, revokeKey),
	bind("list-keys", (*decision).access, listKeys),
	bind("issue-registration", (*decision).access, issueRegistration),
	bind("issue-token", (*decision).access, issueToken),
	bind("revoke-token", (*decision).access, revokeToken),
	bind("list-tokens", (*decision).access, listTokens),
}

// sweep removes expired credentials.
func (s *core) sweep(at time.Time) {
	for _, c := range s.access.Sweep(at) {
		s.updateStanding(s.agents.byID[c.For])
	}
}

func listKeys(ad accessDecision, _ *wire.Nothing) (*wire.CredentialList, *wire.Error) {
	return ad.state.access.List(ad.at, access.Key, access.Registration), nil
}

func listTokens(ad accessDecision, _ *wire.Nothing) (*wire.CredentialList, *wire.Error) {
	return ad.state.access.List(ad.at, access.Token, access.Actor), nil
}

// TokenIssued reports whether a person's token was issued, and was not revoked since.
func (s *core) TokenIssued(id string) bool {
	c := s.access.ByID(id)
	return c != nil && c.Kind == access.Token && !c.Revoked
}

// TokenRecorded reports whether a person's token was issued to a subject, in a role and with an end, which
// is compared as a token has it, in whole seconds.
func (s *core) TokenRecorded(id, subject, role string, end time.Time) bool {
	c := s.access.ByID(id)
	if c == nil || c.Kind != access.Token {
		return false
	}
	recorded, ok := object.ParseTime(c.ExpiresAt)
	return ok && c.For == subject && c.Role == role && recorded.Truncate(time.Second).Equal(end.Truncate(time.Second))
}

func revokeKey(ad accessDecision, r *wire.Revoke) (*wire.Credential, *wire.Error) {
	c, err := ad.state.access.Named(r.ID, access.Key, access.Registration)
	if err != nil {
		return nil, err
	}
	ad.fact("", "", &keyRevoked{ID: c.ID, Agent: c.For})
	if a := ad.state.agents.byID[c.For]; a != nil && a.remote != nil && a.state == up && !ad.state.access.HasKey(a.ID) {
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

func (k *keyRevoked) apply(s *core, r *wire.Record) {
	if c := s.access.ByID(k.ID); c != nil {
		s.access.Remove(c)
	}
	a := s.agents.byID[k.Agent]
	s.updateStanding(a)
	if a != nil && a.remote != nil && !s.access.HasKey(a.ID) {
		a.remote.keyless = r.Seq
	}
}

// registrationLasts is the default validity of a registration token.
const registrationLasts = 24 * time.Hour

func issueRegistration(ad accessDecision, r *wire.IssueRegistration) (*wire.IssuedRegistration, *wire.Error) {
	if err := ad.state.access.Full(ad.at); err != nil {
		return nil, err
	}
	token, id, hash := access.NewRegistration(ad.random)
	f := &registrationIssued{ID: id, Name: r.Name, Hash: hash, ExpiresAt: access.Expiry(ad.at, r.TTL, registrationLasts)}
	ad.fact("", "", f)
	return &wire.IssuedRegistration{ID: f.ID, Token: token, ExpiresAt: f.ExpiresAt}, nil
}

// registrationIssued records that a server may register with a token.
type registrationIssued struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitzero"`
	Hash      string `json:"hash"`
	ExpiresAt string `json:"expires_at"`
}

func (*registrationIssued) kind() string { return events.RegistrationIssued }

func (ri *registrationIssued) apply(s *core, r *wire.Record) {
	s.sweep(r.At)
	s.access.Add(&access.Credential{Credential: wire.Credential{
		ID: ri.ID, Kind: access.Registration, Name: ri.Name, IssuedAt: object.Timestamp(r.At), ExpiresAt: ri.ExpiresAt,
	}, Hash: ri.Hash})
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
	if err := ad.state.access.Full(ad.at); err != nil {
		return nil, err
	}
	f := &tokenIssued{ID: "t" + ad.uuid()[:18], Subject: r.Subject, Role: cmp.Or(r.Role, wire.PersonOperator), ExpiresAt: access.Expiry(ad.at, r.TTL, tokenLasts)}
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

func (t *tokenIssued) apply(s *core, r *wire.Record) {
	s.sweep(r.At)
	s.access.Add(&access.Credential{Credential: wire.Credential{
		ID: t.ID, Kind: access.Token, For: t.Subject, Role: t.Role, IssuedAt: object.Timestamp(r.At), ExpiresAt: t.ExpiresAt,
	}})
}

func revokeToken(ad accessDecision, r *wire.Revoke) (*wire.Credential, *wire.Error) {
	c, err := ad.state.access.Named(r.ID, access.Token, access.Actor)
	if err != nil {
		return nil, err
	}
	if c.Kind == access.Actor && !ad.state.access.HasOther(c, ad.at) && ad.state.bus.Remote(c.For) {
		ad.mail().resolveStale(ad.state.bus.Actor(c.For), "its token was revoked")
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

func (t *tokenRevoked) apply(s *core, r *wire.Record) {
	switch c := s.access.ByID(t.ID); {
	case c == nil:
	case c.Kind == access.Token:
		c.Revoked = true
	default: // it is not signed, so it is invalid without a record here
		s.access.Remove(c)
		if !s.access.HasOther(c, r.At) && s.bus.Remote(c.For) {
			s.bus.Drop(c.For)
		}
	}
}

func issueKey(ad accessDecision, r *wire.IssueKey) (*wire.IssuedKey, *wire.Error) {
	if ad.state.agents.byID[r.Agent] == nil {
		return nil, noAgent(r.Agent)
	}
	if err := ad.state.access.Full(ad.at); err != nil {
		return nil, err
	}
	key, id, hash := access.NewKey(ad.random)
	ad.fact(agentPrefix+r.Agent, "", &keyIssued{ID: id, Agent: r.Agent, Hash: hash})
	return &wire.IssuedKey{ID: id, Agent: r.Agent, Key: key}, nil
}

func noAgent(name string) *wire.Error {
	return errorf(wire.CodeNotFound, details{"agent": name}, "there is no agent %q", name)
}

// AgentOf returns the agent of a key, given by its hash.
func (s *core) AgentOf(hash string, at time.Time) (name string, ok bool) {
	c := s.access.Find(hash, access.Key, at)
	if c == nil {
		return "", false
	}
	return c.For, s.agents.byID[c.For] != nil
}

// keyIssued records that a key authenticates an agent. The key itself is not stored.
type keyIssued struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	Hash  string `json:"hash"`
}

func (*keyIssued) kind() string { return events.KeyIssued }

func (k *keyIssued) apply(s *core, r *wire.Record) {
	s.sweep(r.At)
	s.access.Add(access.KeyOf(k.Agent, k.ID, k.Hash, r.At))
	s.admit(s.agents.byID[k.Agent])
}

// admit records that an agent has a key. A server that had none can be assigned tasks again.
func (s *core) admit(a *agent) {
	if a != nil {
		if a.remote != nil {
			a.remote.keyless = 0
		}
		s.tasks.queue.removeIdle(a)
		s.addIdle(a)
		s.tasks.required.gain(a)
	}
}

// keysRotated records that an agent has a new key, and when its old ones expire.
type keysRotated struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	Hash  string `json:"hash"`
	Until string `json:"until"`
}

func (*keysRotated) kind() string { return events.KeyRotated }

func (k *keysRotated) apply(s *core, r *wire.Record) {
	s.access.Shorten(access.Key, k.Agent, k.Until)
	s.sweep(r.At)
	s.access.Add(access.KeyOf(k.Agent, k.ID, k.Hash, r.At))
	s.admit(s.agents.byID[k.Agent])
}

func rotateKey(ad accessDecision, r *wire.IssueKey) (*wire.IssuedKey, *wire.Error) {
	if ad.state.agents.byID[r.Agent] == nil {
		return nil, noAgent(r.Agent)
	}
	if err := ad.state.access.Full(ad.at); err != nil {
		return nil, err
	}
	key, id, hash := access.NewKey(ad.random)
	until := object.Timestamp(ad.at.Add(time.Duration(r.Overlap) * time.Millisecond))
	ad.fact(agentPrefix+r.Agent, "", &keysRotated{ID: id, Agent: r.Agent, Hash: hash, Until: until})
	return &wire.IssuedKey{ID: id, Agent: r.Agent, Key: key}, nil
}

// issueActorToken creates a token for an actor on another machine. The existing tokens of the
// actor stay valid for the overlap. The actor of an agent gets no token: the agent receives one
// at its start, and tokens issued before then are void.
func (ad accessDecision) issueActorToken(r *wire.IssueToken) (*wire.IssuedToken, *wire.Error) {
	if ad.from.Kind != Operator {
		if from, err := ad.state.agents.writer(ad.from, "", "actor"); err != nil {
			return nil, err
		} else if from != mail.Global {
			return nil, errorf(wire.CodeDenied, details{"actor": from}, "tokens are for %s to issue, and you are %s", mail.Global, from)
		}
	}
	if c := ad.state.bus.Actor(r.Actor); c != nil && c.Agent != nil {
		return nil, errorf(wire.CodeConflict, details{"actor": r.Actor, "agent": c.Agent.ID, "reason": "actor_taken"},
			"%s is the agent %q, which has a token from its start", r.Actor, c.Agent.ID)
	}
	if err := ad.state.access.Full(ad.at); err != nil {
		return nil, err
	}
	token, id, hash := access.NewToken(ad.random)
	f := &actorTokenIssued{
		ID: id, Actor: r.Actor, Hash: hash, Until: object.Timestamp(ad.at.Add(time.Duration(r.Overlap) * time.Millisecond)),
	}
	if r.TTL != 0 {
		f.ExpiresAt = access.Expiry(ad.at, r.TTL, 0)
	}
	ad.fact("", "", f)
	return &wire.IssuedToken{ID: f.ID, Actor: f.Actor, IssuedAt: object.Timestamp(ad.at), ExpiresAt: f.ExpiresAt, Token: token}, nil
}

// actorTokenIssued records that an actor has a new token, and when its old ones expire.
type actorTokenIssued struct {
	ID        string `json:"id"`
	Actor     string `json:"actor"`
	Hash      string `json:"hash"`
	Until     string `json:"until"`
	ExpiresAt string `json:"expires_at,omitzero"`
}

func (*actorTokenIssued) kind() string { return events.ActorTokenIssued }

func (a *actorTokenIssued) apply(s *core, r *wire.Record) {
	s.access.Shorten(access.Actor, a.Actor, a.Until)
	s.sweep(r.At)
	s.access.Add(&access.Credential{Credential: wire.Credential{
		ID: a.ID, Kind: access.Actor, For: a.Actor, IssuedAt: object.Timestamp(r.At), ExpiresAt: a.ExpiresAt,
	}, Hash: a.Hash})
	s.bus.Enter(a.Actor, r.Seq)
}

// ActorOf returns the actor of a token, given by its hash. It reports false if the token is not
// valid.
func (s *core) ActorOf(hash string, at time.Time) (actor string, ok bool) {
	c := s.access.Find(hash, access.Actor, at)
	if c == nil {
		return "", false
	}
	return c.For, true
}
