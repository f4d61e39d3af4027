package handlers

import (
	"fmt"
	"time"

	"orchestrator/handlers/access"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// issueActorToken creates a token for an actor on another machine. The existing tokens of the
// actor stay valid for the overlap. The actor of an agent gets no token: the agent receives one
// at its start, and tokens issued before then are void.
func (ad accessDecision) issueActorToken(r *wire.IssueToken) (*wire.IssuedToken, *wire.Error) {
	if ad.from.Kind != Operator {
		if from, err := ad.mail().writer("", "actor"); err != nil {
			return nil, err
		} else if from != mail.Global {
			return nil, &wire.Error{
				Code: wire.CodeDenied, Message: fmt.Sprintf("tokens are for %s to issue, and you are %s", mail.Global, from),
				Details: map[string]any{"actor": from},
			}
		}
	}
	if c := ad.state.bus.Actor(r.Actor); c != nil && c.Agent != nil {
		return nil, &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("%s is the agent %q, which has a token from its start", r.Actor, c.Agent.ID),
			Details: map[string]any{"actor": r.Actor, "agent": c.Agent.ID, "reason": "actor_taken"},
		}
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

func (a *actorTokenIssued) apply(s *State, r *wire.Record) {
	s.access.Shorten(access.Actor, a.Actor, a.Until)
	s.sweep(r.At)
	s.access.Add(&access.Credential{Credential: wire.Credential{
		ID: a.ID, Kind: access.Actor, For: a.Actor, IssuedAt: object.Timestamp(r.At), ExpiresAt: a.ExpiresAt,
	}, Hash: a.Hash})
	s.bus.Enter(a.Actor, r.Seq)
}

// ActorOf returns the actor of a token, given by its hash. It reports false if the token is not
// valid.
func (s *State) ActorOf(hash string, at time.Time) (actor string, ok bool) {
	c := s.access.Find(hash, access.Actor, at)
	if c == nil {
		return "", false
	}
	return c.For, true
}
