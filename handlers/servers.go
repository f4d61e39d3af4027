package handlers

import (
	"cmp"
	"fmt"
	"slices"

	"orchestrator/handlers/access"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

var serverOperations = []Operation{
	bind("query-servers", (*decision).agents, queryServers),
	bind("register-agent", (*decision).agents, registerAgent),
}

// seenEach is the number of signs of life that are recorded within the time that a server may be
// silent. Not every request needs a record.
const seenEach = 3

// seen records a sign of life of a server, unless the last one is recent.
func (ad agentDecision) seen(a *state.KnownAgent) {
	if a == nil || a.Remote == nil || a.State == state.Up && ad.at.Sub(a.Remote.Seen) < ad.state.Rules.Silence/seenEach {
		return
	}
	ad.fact(a.ActorID, "", &state.ServerSeen{Agent: a.ID})
}

// silence marks servers as offline that were silent for too long. Their tasks go to other
// agents.
func (ad agentDecision) silence() {
	for len(ad.state.Agents.Online) > 0 && !ad.state.LostAt().After(ad.at) {
		ad.part(ad.state.Agents.Online[0], "it was silent for "+ad.state.Rules.Silence.String())
	}
}

// part marks a server as offline. Its tasks go to other agents.
func (ad agentDecision) part(a *state.KnownAgent, why string) {
	ad.fact(a.ActorID, "", &state.ServerLost{Agent: a.ID})
	for _, t := range slices.Clone(a.Holds) {
		ad.tasks().requeueLost(t, a, why, 0, false)
	}
	ad.works().runEnded(a, why, false)
}

// trimServers removes servers without a key until at most KeepClosed are left. The servers that
// lost their key first are removed first.
func (ad agentDecision) trimServers() {
	var keyless []*state.KnownAgent
	for _, a := range ad.state.Agents.Order {
		if a.Remote != nil && a.State != state.Up && !ad.state.Access.HasKey(a.ID) {
			keyless = append(keyless, a)
		}
	}
	slices.SortStableFunc(keyless, func(a, b *state.KnownAgent) int { return cmp.Compare(a.Remote.Keyless, b.Remote.Keyless) })
	if len(keyless) <= ad.state.Rules.KeepClosed {
		return
	}
	for _, a := range keyless[:len(keyless)-ad.state.Rules.KeepClosed] {
		ad.forgetAgent(a)
	}
	ad.sessions().dropMembers()
}

func registerAgent(ad agentDecision, r *wire.Register) (*hub.Registered, *wire.Error) {
	c := ad.state.Access.Find(access.Hash(r.Token), access.Registration, ad.at)
	switch {
	case c == nil:
		return nil, &wire.Error{
			Code: wire.CodeUnauthenticated, Message: "the registration token is unknown, used or expired",
			Details: map[string]any{"pointer": "/payload/registration_token"}, Hint: "An operator can create one: orchestrator key register",
		}
	case c.Name != "" && c.Name != r.Name:
		return nil, state.Errorf(wire.CodeUnauthenticated, state.Details{"pointer": "/payload/name"}, "the registration token is for another server")
	}
	if a := ad.state.Agents.ByID[r.Name]; a != nil && a.Remote != nil && c.Name == "" {
		return nil, &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("server %q already exists, and this token is not for it", r.Name),
			Details: map[string]any{"name": r.Name, "reason": "name_taken", "pointer": "/payload/name"},
			Hint:    "To take its place: orchestrator key register --name " + r.Name,
		}
	}
	if a := ad.state.Agents.ByID[r.Name]; a != nil && a.Remote == nil {
		return nil, state.Errorf(wire.CodeConflict, state.Details{"name": r.Name, "reason": "name_taken", "pointer": "/payload/name"},
			"%q is the name of an agent that runs here", r.Name)
	}
	if why := hub.CheckName(r.Name); why != "" {
		return nil, &wire.Error{Code: wire.CodeInvalid, Message: "name " + why, Details: map[string]any{"pointer": "/payload/name"}}
	}
	key, id, hash := access.NewKey(ad.random)
	f := &state.ServerRegistered{
		Agent: r.Name, Hostname: r.Hostname, IP: r.IP, OS: r.OS, Repos: r.Repos, Registration: c.ID, KeyID: id, Hash: hash,
	}
	if r.Capabilities != nil {
		f.Capabilities = r.Capabilities.Document
	}
	ad = ad.by(Actor{Kind: Agent, Name: r.Name}).agents() // from now on the caller is this agent
	ad.fact(state.AgentPrefix+r.Name, "", f)
	if r.Capabilities != nil {
		ad.oddCapabilities(ad.state.Agents.ByID[r.Name], r.Capabilities)
	}
	return &hub.Registered{ServerID: ad.state.Agents.ByID[r.Name].ServerID, Name: r.Name, Key: key}, nil
}

func queryServers(ad agentDecision, _ *wire.Nothing) (*hub.ServerList, *wire.Error) {
	answer := &hub.ServerList{Servers: make([]hub.Server, 0, len(ad.state.Agents.Order))}
	for _, a := range ad.state.Agents.Order {
		answer.Servers = append(answer.Servers, *ad.state.Server(a))
	}
	return answer, nil
}
