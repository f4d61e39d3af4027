package handlers

import (
	"fmt"
	"time"

	"orchestrator/handlers/access"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

func issueKey(ad accessDecision, r *wire.IssueKey) (*wire.IssuedKey, *wire.Error) {
	if ad.state.agents.byID[r.Agent] == nil {
		return nil, noAgent(r.Agent)
	}
	key, id, hash := access.NewKey(ad.random)
	ad.fact(agentPrefix+r.Agent, "", &keyIssued{ID: id, Agent: r.Agent, Hash: hash})
	return &wire.IssuedKey{ID: id, Agent: r.Agent, Key: key}, nil
}

func noAgent(name string) *wire.Error {
	return &wire.Error{
		Code: wire.CodeNotFound, Message: fmt.Sprintf("there is no agent %q", name), Details: map[string]any{"agent": name},
	}
}

// AgentOf returns the agent of a key, given by its hash.
func (s *State) AgentOf(hash string, at time.Time) (name string, ok bool) {
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

func (k *keyIssued) apply(s *State, r *wire.Record) {
	s.sweep(r.At)
	s.access.Add(access.KeyOf(k.Agent, k.ID, k.Hash, r.At))
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
	s.access.Shorten(access.Key, k.Agent, k.Until)
	s.sweep(r.At)
	s.access.Add(access.KeyOf(k.Agent, k.ID, k.Hash, r.At))
	s.admit(s.agents.byID[k.Agent])
}

func rotateKey(ad accessDecision, r *wire.IssueKey) (*wire.IssuedKey, *wire.Error) {
	if ad.state.agents.byID[r.Agent] == nil {
		return nil, noAgent(r.Agent)
	}
	key, id, hash := access.NewKey(ad.random)
	until := object.Timestamp(ad.at.Add(time.Duration(r.Overlap) * time.Millisecond))
	ad.fact(agentPrefix+r.Agent, "", &keysRotated{ID: id, Agent: r.Agent, Hash: hash, Until: until})
	return &wire.IssuedKey{ID: id, Agent: r.Agent, Key: key}, nil
}
