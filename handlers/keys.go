package handlers

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// secret returns a secret made of the random bytes of the input.
func (ad accessDecision) secret() string { return base64.RawURLEncoding.EncodeToString(ad.random[:]) }

func issueKey(ad accessDecision, r *wire.IssueKey) (*wire.IssuedKey, *wire.Error) {
	if ad.state.agents.byID[r.Agent] == nil {
		return nil, noAgent(r.Agent)
	}
	key, id, hash := ad.newKey()
	ad.fact(agentPrefix+r.Agent, "", &keyIssued{ID: id, Agent: r.Agent, Hash: hash})
	return &wire.IssuedKey{ID: id, Agent: r.Agent, Key: key}, nil
}

// newKey returns a new key with its id and its hash. Only the latter two are stored.
func (ad accessDecision) newKey() (key, id, hash string) {
	key = wire.KeyPrefix + ad.secret()
	hash = HashKey(key)
	return key, "k" + hash[:8], hash
}

// keyOf returns the credential for a key of an agent.
func keyOf(agent, id, hash string, at time.Time) *credential {
	return &credential{Credential: wire.Credential{ID: id, Kind: credentialKey, For: agent, IssuedAt: object.Timestamp(at)}, hash: hash}
}

func noAgent(name string) *wire.Error {
	return &wire.Error{
		Code: wire.CodeNotFound, Message: fmt.Sprintf("there is no agent %q", name), Details: map[string]any{"agent": name},
	}
}

// HashKey returns the hash under which a key is stored.
func HashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// AgentOf returns the agent of a key, given by its hash.
func (s *State) AgentOf(hash string, at time.Time) (name string, ok bool) {
	c := s.access.find(hash, credentialKey, at)
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

func (k *keyIssued) apply(s *State, r *wire.Record) {
	s.sweep(r.At)
	s.access.keep(keyOf(k.Agent, k.ID, k.Hash, r.At))
	s.admit(s.agents.byID[k.Agent])
}

// admit records that an agent has a key. A server that had none can be assigned tasks again.
func (s *State) admit(a *agent) {
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

func (k *keysRotated) apply(s *State, r *wire.Record) {
	for _, c := range s.access.order {
		if c.Kind == credentialKey && c.For == k.Agent {
			s.access.shorten(c, k.Until)
		}
	}
	s.sweep(r.At)
	s.access.keep(keyOf(k.Agent, k.ID, k.Hash, r.At))
	s.admit(s.agents.byID[k.Agent])
}

// shorten makes a credential expire at a time, unless it expires earlier.
func (a *access) shorten(c *credential, until string) {
	at, _ := object.ParseTime(until)
	if c.until.IsZero() || at.Before(c.until) {
		c.until, c.ExpiresAt = at, until
	}
}

func rotateKey(ad accessDecision, r *wire.IssueKey) (*wire.IssuedKey, *wire.Error) {
	if ad.state.agents.byID[r.Agent] == nil {
		return nil, noAgent(r.Agent)
	}
	key, id, hash := ad.newKey()
	until := object.Timestamp(ad.at.Add(time.Duration(r.Overlap) * time.Millisecond))
	ad.fact(agentPrefix+r.Agent, "", &keysRotated{ID: id, Agent: r.Agent, Hash: hash, Until: until})
	return &wire.IssuedKey{ID: id, Agent: r.Agent, Key: key}, nil
}
