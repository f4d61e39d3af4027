package handlers

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"orchestrator/handlers/access"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

var serverOperations = []Operation{
	bind("query-servers", (*decision).agents, queryServers),
	bind("register-agent", (*decision).agents, registerAgent),
}

// A remote holds what is known of a registered server. A server is an agent that runs on another
// machine and fetches its tasks. It is online as long as it sends requests.
type remote struct {
	hostname, ip, os string
	repos            wire.Raw
	seen             time.Time // the latest recorded sign of life
	keyless          int64     // the record that took its last key away; 0 while it has one
}

// seenEach is the number of signs of life that are recorded within the time that a server may be
// silent. Not every request needs a record.
const seenEach = 3

// serverRegistered records that a server has registered with a token, and has a key.
type serverRegistered struct {
	Agent        string   `json:"agent"`
	Hostname     string   `json:"hostname,omitzero"`
	IP           string   `json:"ip,omitzero"`
	OS           string   `json:"os,omitzero"`
	Repos        wire.Raw `json:"repos,omitzero"`
	Capabilities wire.Raw `json:"capabilities,omitzero"`
	Registration string   `json:"registration"` // id of the token
	KeyID        string   `json:"key"`
	Hash         string   `json:"hash"`
}

func (*serverRegistered) kind() string { return events.ServerRegistered }

func (sr *serverRegistered) apply(s *core, r *wire.Record) {
	a := s.agents.byID[sr.Agent]
	if a == nil {
		a = newAgent(sr.Agent)
		a.Role, a.OnExit, a.Capacity, a.Deaf = wire.RoleWorker, "requeue", 1, true
		s.meet(a)
	}
	s.tasks.queue.removeIdle(a)
	s.agents.unhear(a)
	a.remote = &remote{hostname: sr.Hostname, ip: sr.IP, os: sr.OS, repos: sr.Repos}
	if c := hub.ReadCapabilities(sr.Capabilities); c != nil {
		a.setCapabilities(c)
	}
	if c := s.access.ByID(sr.Registration); c != nil {
		s.access.Remove(c)
	}
	s.access.RemoveAll(access.Key, sr.Agent)
	s.access.Add(access.KeyOf(sr.Agent, sr.KeyID, sr.Hash, r.At))
	s.indexCapabilities(a, a.said)
	s.attachAgent(a, r.Seq)
	s.agents.hear(a, r.At)
	s.addIdle(a)
	s.tasks.required.gain(a)
}

// hear marks a server as online.
func (as *agents) hear(a *agent, at time.Time) {
	a.state, a.stale = up, false
	a.remote.seen = at
	as.online.Add(a)
}

// unhear removes a server from the online agents.
func (as *agents) unhear(a *agent) {
	if a.remote != nil {
		as.online.Drop(a)
	}
}

// Date implements byTime. It returns the last sign of life of a server.
func (a *agent) Date() (time.Time, int64) { return a.remote.seen, a.number }

// serverSeen records a sign of life of a server.
type serverSeen struct {
	Agent string `json:"agent"`
}

func (*serverSeen) kind() string { return events.ServerSeen }

func (ss *serverSeen) apply(s *core, r *wire.Record) {
	a := s.agents.byID[ss.Agent]
	came := a.state != up
	s.tasks.queue.removeIdle(a)
	s.agents.unhear(a)
	s.agents.hear(a, r.At)
	s.addIdle(a)
	if came {
		s.tasks.required.gain(a)
	}
}

// serverLost records that a server was silent for too long.
type serverLost struct {
	Agent string `json:"agent"`
}

func (*serverLost) kind() string { return events.ServerLost }

func (sl *serverLost) apply(s *core, _ *wire.Record) {
	a := s.agents.byID[sl.Agent]
	s.tasks.queue.removeIdle(a)
	s.agents.unhear(a)
	a.state = offline
	s.addIdle(a)
}

// seen records a sign of life of a server, unless the last one is recent.
func (ad agentDecision) seen(a *agent) {
	if a == nil || a.remote == nil || a.state == up && ad.at.Sub(a.remote.seen) < ad.state.rules.Silence/seenEach {
		return
	}
	ad.fact(a.actor, "", &serverSeen{Agent: a.ID})
}

// silence marks servers as offline that were silent for too long. Their tasks go to other
// agents.
func (ad agentDecision) silence() {
	for len(ad.state.agents.online) > 0 && !ad.state.lostAt().After(ad.at) {
		ad.part(ad.state.agents.online[0], "it was not heard of for "+ad.state.rules.Silence.String())
	}
}

// part marks a server as offline. Its tasks go to other agents.
func (ad agentDecision) part(a *agent, why string) {
	ad.fact(a.actor, "", &serverLost{Agent: a.ID})
	for _, k := range slices.Clone(a.holds) {
		ad.tasks().requeueLost(k, a, why, 0, false)
	}
	ad.works().bereaveWorks(a, why, false)
}

// trimServers removes servers without a key until at most KeepClosed are left. Those that lost
// their key first are removed first.
func (ad agentDecision) trimServers() {
	var keyless []*agent
	for _, a := range ad.state.agents.order {
		if a.remote != nil && a.state != up && !ad.state.access.HasKey(a.ID) {
			keyless = append(keyless, a)
		}
	}
	slices.SortStableFunc(keyless, func(a, b *agent) int { return cmp.Compare(a.remote.keyless, b.remote.keyless) })
	if len(keyless) <= ad.state.rules.KeepClosed {
		return
	}
	for _, a := range keyless[:len(keyless)-ad.state.rules.KeepClosed] {
		ad.forgetAgent(a)
	}
	ad.sessions().leaveBehind()
}

func registerAgent(ad agentDecision, r *wire.Register) (*hub.Registered, *wire.Error) {
	c := ad.state.access.Find(access.Hash(r.Token), access.Registration, ad.at)
	switch {
	case c == nil:
		return nil, &wire.Error{
			Code: wire.CodeUnauthenticated, Message: "the registration token is not known, has been used or has run out",
			Details: map[string]any{"pointer": "/payload/registration_token"}, Hint: "An operator makes one: orchestrator key register",
		}
	case c.Name != "" && c.Name != r.Name:
		return nil, errorf(wire.CodeUnauthenticated, details{"pointer": "/payload/name"}, "the registration token is for another server")
	}
	if a := ad.state.agents.byID[r.Name]; a != nil && a.remote != nil && c.Name == "" {
		return nil, &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("there is a server %q, and this token is not for it", r.Name),
			Details: map[string]any{"name": r.Name, "reason": "name_taken", "pointer": "/payload/name"},
			Hint:    "To take its place: orchestrator key register --name " + r.Name,
		}
	}
	if a := ad.state.agents.byID[r.Name]; a != nil && a.remote == nil {
		return nil, errorf(wire.CodeConflict, details{"name": r.Name, "reason": "name_taken", "pointer": "/payload/name"},
			"%q is the name of an agent that runs here", r.Name)
	}
	if why := hub.CheckName(r.Name); why != "" {
		return nil, &wire.Error{Code: wire.CodeInvalid, Message: "name " + why, Details: map[string]any{"pointer": "/payload/name"}}
	}
	key, id, hash := access.NewKey(ad.random)
	f := &serverRegistered{
		Agent: r.Name, Hostname: r.Hostname, IP: r.IP, OS: r.OS, Repos: r.Repos, Registration: c.ID, KeyID: id, Hash: hash,
	}
	if r.Capabilities != nil {
		f.Capabilities = r.Capabilities.Document
	}
	ad = ad.by(Actor{Kind: Agent, Name: r.Name}).agents() // from now on the caller is this agent
	ad.fact(agentPrefix+r.Name, "", f)
	if r.Capabilities != nil {
		ad.oddCapabilities(ad.state.agents.byID[r.Name], r.Capabilities)
	}
	return &hub.Registered{ServerID: ad.state.agents.byID[r.Name].serverID, Name: r.Name, Key: key}, nil
}

func queryServers(ad agentDecision, _ *wire.Nothing) (*hub.ServerList, *wire.Error) {
	answer := &hub.ServerList{Servers: make([]hub.Server, 0, len(ad.state.agents.order))}
	for _, a := range ad.state.agents.order {
		answer.Servers = append(answer.Servers, *ad.state.server(a))
	}
	return answer, nil
}

var noRepos = wire.Raw("{}")

// server returns an agent in the terms of the hub.
func (s *core) server(a *agent) *hub.Server {
	v := &hub.Server{
		ServerID: a.serverID, Name: a.ID, Status: onlineWord(a.online()), Role: a.Role, System: a.system, Running: a.running,
		Repos: noRepos, Capabilities: a.Abilities,
	}
	if a.said != nil {
		v.Capabilities = a.said.Document
	}
	if repos := object.MemberOf(v.Capabilities, "repos"); repos != nil {
		v.Repos = repos
	}
	if m := a.remote; m != nil {
		v.Remote, v.Hostname, v.IP, v.OS, v.LastSeen = true, m.hostname, m.ip, m.os, object.Timestamp(m.seen)
		if m.repos != nil {
			v.Repos = m.repos
		}
	}
	return v
}
