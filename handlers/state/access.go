package state

import (
	"time"

	"orchestrator/handlers/access"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// sweep removes expired credentials.
func (s *State) sweep(at time.Time) {
	for _, c := range s.Access.Sweep(at) {
		s.updateStanding(s.Agents.ByID[c.For])
	}
}

// TokenIssued reports whether a person's token was issued, and was not revoked since.
func (s *State) TokenIssued(id string) bool {
	c := s.Access.ByID(id)
	return c != nil && c.Kind == access.Token && !c.Revoked
}

// TokenRecorded reports whether a person's token was issued to a subject, in a role and with an end, which
// is compared as a token has it, in whole seconds.
func (s *State) TokenRecorded(id, subject, role string, end time.Time) bool {
	c := s.Access.ByID(id)
	if c == nil || c.Kind != access.Token {
		return false
	}
	recorded, ok := object.ParseTime(c.ExpiresAt)
	return ok && c.For == subject && c.Role == role && recorded.Truncate(time.Second).Equal(end.Truncate(time.Second))
}

// KeyRevoked records that a key or a registration token was revoked.
type KeyRevoked struct {
	ID    string `json:"id"`
	Agent string `json:"agent,omitzero"`
}

func (*KeyRevoked) kind() string { return events.KeyRevoked }

func (k *KeyRevoked) apply(s *State, r *wire.Record) {
	if c := s.Access.ByID(k.ID); c != nil {
		s.Access.Remove(c)
	}
	a := s.Agents.ByID[k.Agent]
	s.updateStanding(a)
	if a != nil && a.Remote != nil && !s.Access.HasKey(a.ID) {
		a.Remote.Keyless = r.Seq
	}
}

// RegistrationIssued records that a server may register with a token.
type RegistrationIssued struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitzero"`
	Hash      string `json:"hash"`
	ExpiresAt string `json:"expires_at"`
}

func (*RegistrationIssued) kind() string { return events.RegistrationIssued }

func (ri *RegistrationIssued) apply(s *State, r *wire.Record) {
	s.sweep(r.At)
	s.Access.Add(&access.Credential{Credential: wire.Credential{
		ID: ri.ID, Kind: access.Registration, Name: ri.Name, IssuedAt: object.Timestamp(r.At), ExpiresAt: ri.ExpiresAt,
	}, Hash: ri.Hash})
}

// TokenIssued records that a person has a token.
type TokenIssued struct {
	ID        string `json:"id"`
	Subject   string `json:"subject"`
	Role      string `json:"role"`
	ExpiresAt string `json:"expires_at"`
}

func (*TokenIssued) kind() string { return events.TokenIssued }

func (t *TokenIssued) apply(s *State, r *wire.Record) {
	s.sweep(r.At)
	s.Access.Add(&access.Credential{Credential: wire.Credential{
		ID: t.ID, Kind: access.Token, For: t.Subject, Role: t.Role, IssuedAt: object.Timestamp(r.At), ExpiresAt: t.ExpiresAt,
	}})
}

// TokenRevoked records that the token of a person or of an actor was revoked.
type TokenRevoked struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
}

func (*TokenRevoked) kind() string { return events.TokenRevoked }

func (t *TokenRevoked) apply(s *State, r *wire.Record) {
	switch c := s.Access.ByID(t.ID); {
	case c == nil:
	case c.Kind == access.Token:
		c.Revoked = true
	default: // it is not signed, so it is invalid without a record here
		s.Access.Remove(c)
		if !s.Access.HasOther(c, r.At) && s.Bus.Remote(c.For) {
			s.Bus.Drop(c.For)
		}
	}
}

// AgentOf returns the agent of a key, given by its hash.
func (s *State) AgentOf(hash string, at time.Time) (name string, ok bool) {
	c := s.Access.Find(hash, access.Key, at)
	if c == nil {
		return "", false
	}
	return c.For, s.Agents.ByID[c.For] != nil
}

// KeyIssued records that a key authenticates an agent. The key itself is not stored.
type KeyIssued struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	Hash  string `json:"hash"`
}

func (*KeyIssued) kind() string { return events.KeyIssued }

func (k *KeyIssued) apply(s *State, r *wire.Record) {
	s.sweep(r.At)
	s.Access.Add(access.KeyOf(k.Agent, k.ID, k.Hash, r.At))
	s.admit(s.Agents.ByID[k.Agent])
}

// admit records that an agent has a key. A server that had none can be assigned tasks again.
func (s *State) admit(a *KnownAgent) {
	if a != nil {
		if a.Remote != nil {
			a.Remote.Keyless = 0
		}
		s.Tasks.Queue.removeIdle(a)
		s.AddIdle(a)
		s.Tasks.Required.markChanged(a)
	}
}

// KeysRotated records that an agent has a new key, and when its old ones expire.
type KeysRotated struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	Hash  string `json:"hash"`
	Until string `json:"until"`
}

func (*KeysRotated) kind() string { return events.KeyRotated }

func (k *KeysRotated) apply(s *State, r *wire.Record) {
	s.Access.Shorten(access.Key, k.Agent, k.Until)
	s.sweep(r.At)
	s.Access.Add(access.KeyOf(k.Agent, k.ID, k.Hash, r.At))
	s.admit(s.Agents.ByID[k.Agent])
}

// ActorTokenIssued records that an actor has a new token, and when its old ones expire.
type ActorTokenIssued struct {
	ID        string `json:"id"`
	Actor     string `json:"actor"`
	Hash      string `json:"hash"`
	Until     string `json:"until"`
	ExpiresAt string `json:"expires_at,omitzero"`
}

func (*ActorTokenIssued) kind() string { return events.ActorTokenIssued }

func (a *ActorTokenIssued) apply(s *State, r *wire.Record) {
	s.Access.Shorten(access.Actor, a.Actor, a.Until)
	s.sweep(r.At)
	s.Access.Add(&access.Credential{Credential: wire.Credential{
		ID: a.ID, Kind: access.Actor, For: a.Actor, IssuedAt: object.Timestamp(r.At), ExpiresAt: a.ExpiresAt,
	}, Hash: a.Hash})
	s.Bus.Enter(a.Actor, r.Seq)
}

// ActorOf returns the actor of a token, given by its hash. It reports false if the token is not
// valid.
func (s *State) ActorOf(hash string, at time.Time) (actor string, ok bool) {
	c := s.Access.Find(hash, access.Actor, at)
	if c == nil {
		return "", false
	}
	return c.For, true
}
