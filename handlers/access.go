package handlers

import (
	"time"

	"orchestrator/handlers/access"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// sweep removes expired credentials.
func (s *State) sweep(at time.Time) {
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

// TokenRevoked reports whether a person's token was revoked before it expires.
func (s *State) TokenRevoked(id string) bool {
	c := s.access.ByID(id)
	return c != nil && c.Revoked
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

func (k *keyRevoked) apply(s *State, r *wire.Record) {
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

func (ri *registrationIssued) apply(s *State, r *wire.Record) {
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
	role := r.Role
	if role == "" {
		role = wire.PersonOperator
	}
	f := &tokenIssued{ID: "t" + ad.uuid()[:18], Subject: r.Subject, Role: role, ExpiresAt: access.Expiry(ad.at, r.TTL, tokenLasts)}
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

func (t *tokenRevoked) apply(s *State, r *wire.Record) {
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
