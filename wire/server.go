package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	"orchestrator/wire/hub"
)

// UpdateCapabilities is the payload of update-capabilities.
type UpdateCapabilities struct {
	Capabilities *hub.Capabilities `json:"capabilities,omitzero"` // nil: no change
	System       Raw               `json:"system,omitzero"`       // other members, about its machine
}

func (u *UpdateCapabilities) fields(f *fields) {
	if !f.document("capabilities", "What you can do: a capabilities document.", "capabilities") {
		u.Capabilities = hub.CapabilitiesIn(f.in, "capabilities")
	}
	f.object(&u.System, "system", "Information about the machine that you run on, such as its load. It is shown to people.")
}

// A Server is an agent as protocol A shows it.
type Server struct {
	// The id of the server, derived from its name.
	ServerID string `json:"server_id"`
	// The name of the agent.
	Name string `json:"name"`
	// Whether the agent is present.
	Status string `json:"status" schema:"enum=wire.serverStatuses"`
	// The role: worker, planner, reviewer, or one that the file gives an agent.
	Role string `json:"role"`
	// Whether the agent runs on another machine and has registered.
	Remote bool `json:"remote"`
	// The name of the machine.
	Hostname string `json:"hostname,omitzero"`
	// The address of the machine, as reported.
	IP string `json:"ip,omitzero"`
	// The operating system.
	OS string `json:"os,omitzero"`
	// The repositories of the agent, by name.
	Repos Raw `json:"repos" schema:"type=object"`
	// The reported capabilities: a capabilities document; null if none are reported.
	Capabilities Raw `json:"capabilities" schema:"type=object,null"`
	// Information about the machine, as reported.
	System Raw `json:"system,omitzero" schema:"type=object"`
	// The number of tasks that the agent works on.
	Running int `json:"running_tasks" schema:"min=0"`
	// When the agent was last seen, if it runs on another machine.
	LastSeen string `json:"last_seen,omitzero" schema:"stamp"`
}

// The statuses of a server.
const (
	ServerOnline  = "online"
	ServerOffline = "offline"
)

// ServerList answers query-servers.
type ServerList struct {
	Servers []Server `json:"servers"`
}

// Register is the payload of register-agent, for servers on other machines.
type Register struct {
	Name         string            `json:"name"`
	Hostname     string            `json:"hostname,omitzero"`
	IP           string            `json:"ip,omitzero"`
	OS           string            `json:"os,omitzero"`
	Token        string            `json:"registration_token"`
	Repos        Raw               `json:"repos,omitzero"` // from before there were capabilities: shown, and never matched
	Capabilities *hub.Capabilities `json:"capabilities,omitzero"`
}

func (r *Register) fields(f *fields) {
	f.need(&r.Name, "name", "The name of the new agent: one word of at most 128 characters. A server that registers again with a new token is the same agent.")
	f.text(&r.Hostname, "hostname", "The name of its machine.")
	f.text(&r.IP, "ip", "Its address.")
	f.text(&r.OS, "os", "Its operating system, such as linux.")
	f.need(&r.Token, "registration_token", "The registration token that an operator created. It works once.")
	f.object(&r.Repos, "repos", "Its repositories, in the form from before there were capabilities. They are shown; no task is matched by them.")
	if !f.document("capabilities", "What it can do: a capabilities document.", "capabilities") {
		r.Capabilities = hub.CapabilitiesIn(f.in, "capabilities")
	}
}

// Registered answers register-agent. The key is not shown again.
type Registered struct {
	// The server_id of the agent.
	ServerID string `json:"server_id"`
	// The name of the agent.
	Name string `json:"name"`
	// The key of the agent. It is not shown again.
	Key string `json:"api_key"`
}

// ServerID returns the server id of an agent. It is derived from the name, so that a server that
// registers again keeps its id (RFC 9562, version 8).
func ServerID(agent string) string {
	if agent == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("orchestrator agent " + agent))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	text := hex.EncodeToString(sum[:16])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// maxNameLength is the maximum length of an agent's name, in bytes.
const maxNameLength = 128

// CheckName returns why a server cannot have a name, or "" if it can.
func CheckName(name string) string {
	if len(name) > maxNameLength {
		return "is longer than 128 characters"
	}
	for _, c := range name {
		if !unicode.IsPrint(c) || unicode.IsSpace(c) || strings.ContainsRune(`"\\/`, c) {
			return "must be one word of printable characters, without quotes and slashes"
		}
	}
	if name[0] == '-' || name[0] == '.' {
		return "must not begin with - or ."
	}
	return ""
}

// The answers.
var (
	answerServers    = &Answer{Name: "servers", Of: ServerList{}}
	answerRegistered = &Answer{Name: "registered", Of: Registered{}}
	answerServer     = &Answer{Name: "server", Of: Server{}}
)

// serverOperations are the operations on agents as servers.
var serverOperations = []Operation{
	request[UpdateCapabilities](Operation{
		Name: "update-capabilities", Answer: answerServer, Audience: ForAgents, Writes: true,
		Summary: "Replace your advertised capabilities and refresh your presence",
		About:   "Members that are missing keep their values. Without any member, the request only refreshes your presence.",
		Examples: []string{
			`{"capabilities": {"$schema": "orchestratia/capabilities/v1", "languages": ["go"], "max_concurrent_tasks": 2}, "system": {"load": 0.5}}`,
			"",
		},
	}),
	request[Nothing](Operation{
		Name: "query-servers", Answer: answerServers,
		Summary:  "List all agents with their capabilities and presence",
		About:    "The list is in the terms of the hub, where agents are servers.",
		Examples: []string{`{}`, ""},
	}),
	request[Register](Operation{
		Name: "register-agent", Answer: answerRegistered, Audience: ForNewcomers, Writes: true,
		Summary: "Register a server as an agent with a registration token",
		About:   "The answer has the key that the server authenticates with from then on.",
		Examples: []string{
			`{"name": "attic", "hostname": "attic.example.com", "ip": "192.0.2.7", "os": "linux", "registration_token": "orcreg_Zm9yIGFuIGV4YW1wbGU", "repos": {"shop": "/srv/shop"}, "capabilities": {"repos": {"shop": {"path": "/srv/shop"}}, "languages": ["go"]}}`,
			`{"name": "attic", "registration_token": "orcreg_Zm9yIGFuIGV4YW1wbGU"}`,
		},
	}),
}
