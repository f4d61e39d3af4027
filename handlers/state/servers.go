package state

import (
	"time"

	"orchestrator/handlers/access"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// A Remote holds the facts about a registered server. A server is an agent that runs on another
// machine and fetches its tasks. It is online as long as it sends requests.
type Remote struct {
	Hostname string    `json:"hostname,omitzero"`
	Ip       string    `json:"ip,omitzero"`
	Os       string    `json:"os,omitzero"`
	Repos    wire.Raw  `json:"repos,omitzero"`
	Seen     time.Time `json:"seen"`             // the latest recorded sign of life
	Keyless  int64     `json:"keyless,omitzero"` // the record that took its last key away; 0 while it has one
}

// ServerRegistered records that a server has registered with a token, and has a key.
type ServerRegistered struct {
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

func (*ServerRegistered) kind() string { return events.ServerRegistered }

func (sr *ServerRegistered) apply(s *State, r *wire.Record) {
	a := s.Agents.ByID[sr.Agent]
	if a == nil {
		a = NewAgent(sr.Agent)
		a.Role, a.OnExit, a.Capacity, a.Deaf = wire.RoleWorker, "requeue", 1, true
		s.Meet(a)
	}
	s.Tasks.Queue.removeIdle(a)
	s.Agents.unhear(a)
	a.Remote = &Remote{Hostname: sr.Hostname, Ip: sr.IP, Os: sr.OS, Repos: sr.Repos}
	if c := hub.ReadCapabilities(sr.Capabilities); c != nil {
		a.SetCapabilities(c)
	}
	if c := s.Access.ByID(sr.Registration); c != nil {
		s.Access.Remove(c)
	}
	s.Access.RemoveAll(access.Key, sr.Agent)
	s.Access.Add(access.KeyOf(sr.Agent, sr.KeyID, sr.Hash, r.At))
	s.IndexCapabilities(a, a.Said)
	s.attachAgent(a, r.Seq)
	s.Agents.Hear(a, r.At)
	s.AddIdle(a)
	s.Tasks.Required.markChanged(a)
}

// Hear marks a server as online.
func (as *agents) Hear(a *KnownAgent, at time.Time) {
	a.State, a.Stale = Up, false
	a.Remote.Seen = at
	as.Online.Add(a)
}

// unhear removes a server from the online agents.
func (as *agents) unhear(a *KnownAgent) {
	if a.Remote != nil {
		as.Online.Drop(a)
	}
}

// Date implements byTime. It returns the last sign of life of a server.
func (a *KnownAgent) Date() (time.Time, int64) { return a.Remote.Seen, a.number }

// ServerSeen records a sign of life of a server.
type ServerSeen struct {
	Agent string `json:"agent"`
}

func (*ServerSeen) kind() string { return events.ServerSeen }

func (ss *ServerSeen) apply(s *State, r *wire.Record) {
	a := s.Agents.ByID[ss.Agent]
	came := a.State != Up
	s.Tasks.Queue.removeIdle(a)
	s.Agents.unhear(a)
	s.Agents.Hear(a, r.At)
	s.AddIdle(a)
	if came {
		s.Tasks.Required.markChanged(a)
	}
}

// ServerLost records that a server was silent for too long.
type ServerLost struct {
	Agent string `json:"agent"`
}

func (*ServerLost) kind() string { return events.ServerLost }

func (sl *ServerLost) apply(s *State, _ *wire.Record) {
	a := s.Agents.ByID[sl.Agent]
	s.Tasks.Queue.removeIdle(a)
	s.Agents.unhear(a)
	a.State = offline
	s.AddIdle(a)
}

var noRepos = wire.Raw("{}")

// Server returns an agent in the terms of the hub.
func (s *State) Server(a *KnownAgent) *hub.Server {
	v := &hub.Server{
		ServerID: a.ServerID, Name: a.ID, Status: OnlineWord(a.Online()), Role: a.Role, System: a.System, Running: a.Running,
		Repos: noRepos, Capabilities: a.Abilities,
	}
	if a.Said != nil {
		v.Capabilities = a.Said.Document
	}
	if repos := object.MemberOf(v.Capabilities, "repos"); repos != nil {
		v.Repos = repos
	}
	if m := a.Remote; m != nil {
		v.Remote, v.Hostname, v.IP, v.OS, v.LastSeen = true, m.Hostname, m.Ip, m.Os, object.Timestamp(m.Seen)
		if m.Repos != nil {
			v.Repos = m.Repos
		}
	}
	return v
}
