package handlers

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// key is a key of an agent, and the time until which it is valid.
type key struct {
	agent string
	until time.Time // zero: as long as the agent exists
}

// enroll has a member that is not in the configuration register as a server.
func (w *world) enroll(m *inhabitant) {
	out := w.request(Actor{Kind: Operator}, "issue-registration", fmt.Sprintf(`{"name":%q}`, m.ID))
	token := out.Letters[len(out.Letters)-1].Payload.(*wire.IssuedRegistration).Token
	capabilities := ""
	if w.chance.IntN(4) > 0 {
		capabilities = fmt.Sprintf(`,"capabilities":%s`, w.abilities(1+w.chance.IntN(3)))
	}
	payload := fmt.Sprintf(`{"name":%q,"registration_token":%q%s}`, m.ID, token, capabilities)
	out = w.request(Actor{Kind: Anonymous}, "register-agent", payload)
	w.must(out.Refused == nil, "%v", out.Refused)
	m.far, m.up, m.dying, m.run = true, true, false, ""
	require.NotNil(w.t, w.request(Actor{Kind: Anonymous}, "register-agent", payload).Refused, "the token is spent")
}

// administer has a person change keys and tokens.
func (w *world) administer(m *inhabitant) {
	person := Actor{Kind: Operator}
	switch w.chance.IntN(6) {
	case 0:
		w.request(person, "issue-key", fmt.Sprintf(`{"agent":%q}`, m.ID))
	case 1:
		w.request(person, "rotate-key", fmt.Sprintf(`{"agent":%q,"overlap":%d}`, m.ID, w.chance.IntN(3)*60_000))
	case 2:
		out := w.request(person, "list-keys", "{}")
		all := out.Letters[len(out.Letters)-1].Payload.(*wire.CredentialList).Credentials
		if len(all) > 10 {
			w.request(person, "revoke-key", fmt.Sprintf(`{"id":%q}`, all[w.chance.IntN(len(all))].ID))
		}
	case 3:
		out := w.request(person, "issue-token", `{"sub":"ann","ttl":60000}`)
		token := out.Letters[len(out.Letters)-1].Payload.(*wire.IssuedToken)
		w.must(!w.state.TokenRevoked(token.ID), "a token that was issued does not hold")
		if w.chance.IntN(2) == 0 {
			w.request(person, "revoke-token", fmt.Sprintf(`{"id":%q}`, token.ID))
			w.must(w.state.TokenRevoked(token.ID), "a token that was revoked holds")
		}
	case 4:
		if m.far && m.up && w.chance.IntN(2) == 0 {
			w.enroll(m) // registering again revokes its keys
		}
	default:
		w.tryKeys()
	}
}

// hearKey follows the keys.
func (w *world) hearKey(r *wire.Record) {
	switch r.Kind {
	case events.KeyIssued, events.KeyRotated, events.ServerRegistered, events.KeyRevoked, events.AgentKnown:
	default:
		return
	}
	f, err := decode(r)
	w.must(err == nil, "%v", err)
	switch f := f.(type) {
	case *keyIssued:
		w.keys[f.Hash] = &key{agent: f.Agent}
	case *keysRotated:
		until, _ := object.ParseTime(f.Until)
		for _, k := range w.keys {
			if k.agent == f.Agent && (k.until.IsZero() || until.Before(k.until)) {
				k.until = until
			}
		}
		w.keys[f.Hash] = &key{agent: f.Agent}
	case *serverRegistered:
		w.servers[f.Agent] = true
		w.forgetKeys(f.Agent)
		w.keys[f.Hash] = &key{agent: f.Agent}
	case *keyRevoked:
		for hash := range w.keys {
			if "k"+hash[:8] == f.ID {
				delete(w.keys, hash)
			}
		}
	case *agentKnown:
		if w.servers[f.ID] {
			delete(w.servers, f.ID)
			w.forgetKeys(f.ID)
		}
	}
}

func (w *world) forgetKeys(agent string) {
	for hash, k := range w.keys {
		if k.agent == agent {
			delete(w.keys, hash)
		}
	}
}

// tryKeys checks that a key acts for its agent as long as both exist.
func (w *world) tryKeys() {
	for hash, k := range w.keys {
		name, ok := w.state.AgentOf(hash, w.at)
		holds := (k.until.IsZero() || k.until.After(w.at)) && w.state.agents.byID[k.agent] != nil
		w.must(ok == holds && (!ok || name == k.agent), "a key of %s, good until %v, speaks for %q: %t", k.agent, k.until, name, ok)
		w.saw[fmt.Sprintf("a key holds: %t", ok)]++
	}
}
