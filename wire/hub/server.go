package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	"orchestrator/wire/object"
)

// A Server is an agent as protocol A shows it.
type Server struct {
	// The id of the server, derived from its name.
	ServerID string `json:"server_id"`
	// The name of the agent.
	Name string `json:"name"`
	// Whether the agent is present.
	Status string `json:"status" schema:"enum=hub.serverStatuses"`
	// The role: worker, planner, reviewer, or a role from the configuration.
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
	Repos object.Raw `json:"repos" schema:"type=object"`
	// The reported capabilities: a capabilities document; null if none are reported.
	Capabilities object.Raw `json:"capabilities" schema:"type=object,null"`
	// Information about the machine, as reported.
	System object.Raw `json:"system,omitzero" schema:"type=object"`
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

// Matches answers match-agents, the best first.
type Matches struct {
	Servers []Match `json:"servers"`
	// The number of agents.
	Total int `json:"total" schema:"min=0"`
}

// A Match is the score of an agent for a task.
type Match struct {
	// The server_id of the agent.
	ServerID string `json:"server_id"`
	// The name of the agent.
	ServerName string `json:"server_name"`
	// The score; a higher score is a better fit. -1: the agent does not fit.
	Score int `json:"score" schema:"min=-1"`
	// Whether the agent is present.
	Status string `json:"status" schema:"enum=hub.serverStatuses"`
	// The reasons, for people.
	Reasons []string `json:"reasons"`
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
