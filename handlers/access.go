package handlers

import (
	"cmp"
	"time"

	"orchestrator/handlers/access"
	"orchestrator/handlers/state"
	"orchestrator/wire"
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

func listKeys(ad accessDecision, _ *wire.Nothing) (*wire.CredentialList, *wire.Error) {
	return ad.state.Access.List(ad.at, access.Key, access.Registration), nil
}

func listTokens(ad accessDecision, _ *wire.Nothing) (*wire.CredentialList, *wire.Error) {
	return ad.state.Access.List(ad.at, access.Token, access.Actor), nil
}

func revokeKey(ad accessDecision, r *wire.Revoke) (*wire.Credential, *wire.Error) {
	c, err := ad.state.Access.Named(r.ID, access.Key, access.Registration)
	if err != nil {
		return nil, err
	}
	ad.fact("", "", &state.KeyRevoked{ID: c.ID, Agent: c.For})
	if a := ad.state.Agents.ByID[c.For]; a != nil && a.Remote != nil && a.State == state.Up && !ad.state.Access.HasKey(a.ID) {
		ad.agents().part(a, "its key was revoked")
	}
	ad.agents().trimServers()
	return &c.Credential, nil
}

// registrationLasts is the default validity of a registration token.
const registrationLasts = 24 * time.Hour

func issueRegistration(ad accessDecision, r *wire.IssueRegistration) (*wire.IssuedRegistration, *wire.Error) {
	if err := ad.state.Access.Full(ad.at); err != nil {
		return nil, err
	}
	token, id, hash := access.NewRegistration(ad.random)
	f := &state.RegistrationIssued{ID: id, Name: r.Name, Hash: hash, ExpiresAt: access.Expiry(ad.at, r.TTL, registrationLasts)}
	ad.fact("", "", f)
	return &wire.IssuedRegistration{ID: f.ID, Token: token, ExpiresAt: f.ExpiresAt}, nil
}

// tokenLasts is the default validity of a person's token: a working day.
const tokenLasts = 8 * time.Hour

func issueToken(ad accessDecision, r *wire.IssueToken) (*wire.IssuedToken, *wire.Error) {
	if r.Actor != "" {
		return ad.issueActorToken(r)
	}
	if ad.from.Kind != Operator {
		return nil, &wire.Error{Code: wire.CodeDenied, Message: "only operators can issue tokens for people"}
	}
	if err := ad.state.Access.Full(ad.at); err != nil {
		return nil, err
	}
	f := &state.TokenIssued{ID: "t" + ad.uuid()[:18], Subject: r.Subject, Role: cmp.Or(r.Role, wire.PersonOperator), ExpiresAt: access.Expiry(ad.at, r.TTL, tokenLasts)}
	ad.fact("", "", f)
	return &wire.IssuedToken{ID: f.ID, Subject: f.Subject, Role: f.Role, IssuedAt: object.Timestamp(ad.at), ExpiresAt: f.ExpiresAt}, nil
}

func revokeToken(ad accessDecision, r *wire.Revoke) (*wire.Credential, *wire.Error) {
	c, err := ad.state.Access.Named(r.ID, access.Token, access.Actor)
	if err != nil {
		return nil, err
	}
	if c.Kind == access.Actor && !ad.state.Access.HasOther(c, ad.at) && ad.state.Bus.Remote(c.For) {
		ad.mail().resolveStale(ad.state.Bus.Actor(c.For), "its token was revoked")
	}
	ad.fact("", "", &state.TokenRevoked{ID: c.ID, Subject: c.For})
	return &c.Credential, nil
}

func issueKey(ad accessDecision, r *wire.IssueKey) (*wire.IssuedKey, *wire.Error) {
	if ad.state.Agents.ByID[r.Agent] == nil {
		return nil, noAgent(r.Agent)
	}
	if err := ad.state.Access.Full(ad.at); err != nil {
		return nil, err
	}
	key, id, hash := access.NewKey(ad.random)
	ad.fact(state.AgentPrefix+r.Agent, "", &state.KeyIssued{ID: id, Agent: r.Agent, Hash: hash})
	return &wire.IssuedKey{ID: id, Agent: r.Agent, Key: key}, nil
}

func noAgent(name string) *wire.Error {
	return state.Errorf(wire.CodeNotFound, state.Details{"agent": name}, "agent %q does not exist", name)
}

func rotateKey(ad accessDecision, r *wire.IssueKey) (*wire.IssuedKey, *wire.Error) {
	if ad.state.Agents.ByID[r.Agent] == nil {
		return nil, noAgent(r.Agent)
	}
	if err := ad.state.Access.Full(ad.at); err != nil {
		return nil, err
	}
	key, id, hash := access.NewKey(ad.random)
	until := object.Timestamp(ad.at.Add(time.Duration(r.Overlap) * time.Millisecond))
	ad.fact(state.AgentPrefix+r.Agent, "", &state.KeysRotated{ID: id, Agent: r.Agent, Hash: hash, Until: until})
	return &wire.IssuedKey{ID: id, Agent: r.Agent, Key: key}, nil
}

// issueActorToken creates a token for an actor on another machine. The existing tokens of the
// actor stay valid for the overlap. The actor of an agent gets no token: the agent receives one
// at its start, and tokens issued before then are void.
func (ad accessDecision) issueActorToken(r *wire.IssueToken) (*wire.IssuedToken, *wire.Error) {
	if ad.from.Kind != Operator {
		if from, err := ad.state.Agents.Writer(ad.from, "", "actor"); err != nil {
			return nil, err
		} else if from != mail.Global {
			return nil, state.Errorf(wire.CodeDenied, state.Details{"actor": from}, "only %s can issue tokens, and you are %s", mail.Global, from)
		}
	}
	if c := ad.state.Bus.Actor(r.Actor); c != nil && c.Agent != nil {
		return nil, state.Errorf(wire.CodeConflict, state.Details{"actor": r.Actor, "agent": c.Agent.ID, "reason": "actor_taken"},
			"%s is the agent %q, which has a token from its start", r.Actor, c.Agent.ID)
	}
	if err := ad.state.Access.Full(ad.at); err != nil {
		return nil, err
	}
	token, id, hash := access.NewToken(ad.random)
	f := &state.ActorTokenIssued{
		ID: id, Actor: r.Actor, Hash: hash, Until: object.Timestamp(ad.at.Add(time.Duration(r.Overlap) * time.Millisecond)),
	}
	if r.TTL != 0 {
		f.ExpiresAt = access.Expiry(ad.at, r.TTL, 0)
	}
	ad.fact("", "", f)
	return &wire.IssuedToken{ID: f.ID, Actor: f.Actor, IssuedAt: object.Timestamp(ad.at), ExpiresAt: f.ExpiresAt, Token: token}, nil
}
