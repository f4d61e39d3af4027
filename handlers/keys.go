package handlers

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"orchestrator/wire"
)

// keyPrefix is what keys of agents begin with, so that a person, and a scanner
// of repositories, knows one when it sees it.
const keyPrefix = "orc_"

func issueKey(t *turn, r *wire.IssueKey) (*wire.IssuedKey, *wire.Error) {
	if t.agents[r.Agent] == nil {
		return nil, &wire.Error{
			Code: wire.CodeNotFound, Message: fmt.Sprintf("there is no agent %q", r.Agent),
			Details: map[string]any{"agent": r.Agent},
		}
	}
	key := keyPrefix + base64.RawURLEncoding.EncodeToString(t.random[:])
	hash := HashKey(key)
	id := "k" + hash[:8]
	t.fact(agentPrefix+r.Agent, "", &keyIssued{ID: id, Agent: r.Agent, Hash: hash})
	return &wire.IssuedKey{ID: id, Agent: r.Agent, Key: key}, nil
}

// HashKey is what is kept of a key.
func HashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// AgentOf finds the agent that a key, given by its hash, speaks for.
func (s *State) AgentOf(hash string) (name string, ok bool) {
	name, ok = s.keys[hash]
	return name, ok && s.agents[name] != nil
}

// keyIssued says that a key speaks for an agent. The key itself is nowhere.
type keyIssued struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	Hash  string `json:"hash"`
}

func (*keyIssued) kind() string { return wire.EventKeyIssued }

func (f *keyIssued) apply(s *State, _ *wire.Record) { s.keys[f.Hash] = f.Agent }
