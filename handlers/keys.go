package handlers

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// secret is what this turn's chance makes of a credential.
func (t *decision) secret() string { return base64.RawURLEncoding.EncodeToString(t.random[:]) }

func issueKey(t *decision, r *wire.IssueKey) (*wire.IssuedKey, *wire.Error) {
	if t.state.agents.byID[r.Agent] == nil {
		return nil, noAgent(r.Agent)
	}
	key, id, hash := t.newKey()
	t.fact(agentPrefix+r.Agent, "", &keyIssued{ID: id, Agent: r.Agent, Hash: hash})
	return &wire.IssuedKey{ID: id, Agent: r.Agent, Key: key}, nil
}

// newKey is a key, and what is kept of it.
func (t *decision) newKey() (key, id, hash string) {
	key = wire.KeyPrefix + t.secret()
	hash = HashKey(key)
	return key, "k" + hash[:8], hash
}

// keyOf is the key of an agent as it is kept.
func keyOf(agent, id, hash string, at time.Time) *credential {
	return &credential{Credential: wire.Credential{ID: id, Kind: credentialKey, For: agent, IssuedAt: wire.Timestamp(at)}, hash: hash}
}

func noAgent(name string) *wire.Error {
	return &wire.Error{
		Code: wire.CodeNotFound, Message: fmt.Sprintf("there is no agent %q", name), Details: map[string]any{"agent": name},
	}
}

// HashKey is what is kept of a key.
func HashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// AgentOf finds the agent that a key, given by its hash, speaks for.
func (s *State) AgentOf(hash string, at time.Time) (name string, ok bool) {
	c := s.access.find(hash, credentialKey, at)
	if c == nil {
		return "", false
	}
	return c.For, s.agents.byID[c.For] != nil
}

// keyIssued says that a key speaks for an agent. The key itself is nowhere.
type keyIssued struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	Hash  string `json:"hash"`
}

func (*keyIssued) kind() string { return wire.EventKeyIssued }

func (f *keyIssued) apply(s *State, r *wire.Record) {
	s.sweep(r.At)
	s.access.keep(keyOf(f.Agent, f.ID, f.Hash, r.At))
	s.admit(s.agents.byID[f.Agent])
}

// admit notes that an agent has a key. A server that had none left can be given
// something again.
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

// keysRotated says that an agent has a new key, and until when its old ones
// hold.
type keysRotated struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	Hash  string `json:"hash"`
	Until string `json:"until"`
}

func (*keysRotated) kind() string { return wire.EventKeysRotated }

func (f *keysRotated) apply(s *State, r *wire.Record) {
	for _, c := range s.access.order {
		if c.Kind == credentialKey && c.For == f.Agent {
			s.access.shorten(c, f.Until)
		}
	}
	s.sweep(r.At)
	s.access.keep(keyOf(f.Agent, f.ID, f.Hash, r.At))
	s.admit(s.agents.byID[f.Agent])
}

// shorten lets a credential run out at a time, unless it does so before.
func (x *access) shorten(c *credential, until string) {
	at, _ := object.ParseTime(until)
	if c.until.IsZero() || at.Before(c.until) {
		c.until, c.ExpiresAt = at, until
	}
}

func rotateKey(t *decision, r *wire.IssueKey) (*wire.IssuedKey, *wire.Error) {
	if t.state.agents.byID[r.Agent] == nil {
		return nil, noAgent(r.Agent)
	}
	key, id, hash := t.newKey()
	until := wire.Timestamp(t.at.Add(time.Duration(r.Overlap) * time.Millisecond))
	t.fact(agentPrefix+r.Agent, "", &keysRotated{ID: id, Agent: r.Agent, Hash: hash, Until: until})
	return &wire.IssuedKey{ID: id, Agent: r.Agent, Key: key}, nil
}
