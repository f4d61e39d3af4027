package handlers

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"time"

	"orchestrator/wire"
)

// keyPrefix is what keys of agents begin with, so that a person, and a scanner
// of repositories, knows one when it sees it.
const keyPrefix = "orc_"

// secret is what this turn's chance makes of a credential.
func (t *turn) secret() string { return base64.RawURLEncoding.EncodeToString(t.random[:]) }

func issueKey(t *turn, r *wire.IssueKey) (*wire.IssuedKey, *wire.Error) {
	key, f, err := t.newKey(r)
	if err != nil {
		return nil, err
	}
	t.fact(agentPrefix+r.Agent, "", f)
	return &wire.IssuedKey{ID: f.ID, Agent: r.Agent, Key: key}, nil
}

func (t *turn) newKey(r *wire.IssueKey) (key string, f *keyIssued, err *wire.Error) {
	if t.agents[r.Agent] == nil {
		return "", nil, &wire.Error{
			Code: wire.CodeNotFound, Message: fmt.Sprintf("there is no agent %q", r.Agent),
			Details: map[string]any{"agent": r.Agent},
		}
	}
	key = keyPrefix + t.secret()
	hash := HashKey(key)
	return key, &keyIssued{ID: "k" + hash[:8], Agent: r.Agent, Hash: hash}, nil
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
	return c.For, s.agents[c.For] != nil
}

// keyIssued says that a key speaks for an agent. The key itself is nowhere.
type keyIssued struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	Hash  string `json:"hash"`
}

func (*keyIssued) kind() string { return wire.EventKeyIssued }

func (f *keyIssued) apply(s *State, r *wire.Record) {
	s.access.sweep(r.At)
	s.access.keep(&credential{Credential: wire.Credential{
		ID: f.ID, Kind: credentialKey, For: f.Agent, IssuedAt: wire.Timestamp(r.At),
	}, hash: f.Hash})
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
	s.access.sweep(r.At)
	for _, c := range s.access.order {
		if c.Kind == credentialKey && c.For == f.Agent {
			s.access.shorten(c, f.Until)
		}
	}
	(&keyIssued{ID: f.ID, Agent: f.Agent, Hash: f.Hash}).apply(s, r)
}

// shorten lets a credential run out at a time, unless it does so before.
func (x *access) shorten(c *credential, until string) {
	at, _ := wire.ParseTime(until)
	if c.until.IsZero() || at.Before(c.until) {
		c.until, c.ExpiresAt = at, until
	}
}

func rotateKey(t *turn, r *wire.IssueKey) (*wire.IssuedKey, *wire.Error) {
	key, f, err := t.newKey(r)
	if err != nil {
		return nil, err
	}
	until := wire.Timestamp(t.at.Add(time.Duration(r.Overlap) * time.Millisecond))
	t.fact(agentPrefix+r.Agent, "", &keysRotated{ID: f.ID, Agent: r.Agent, Hash: f.Hash, Until: until})
	return &wire.IssuedKey{ID: f.ID, Agent: r.Agent, Key: key}, nil
}
