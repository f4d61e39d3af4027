package wire

import (
	"github.com/go-json-experiment/json/jsontext"
	"orchestrator/wire/activity"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// UpdateCapabilities is the payload of update-capabilities.
type UpdateCapabilities struct {
	// Your skills: a capabilities document.
	Capabilities *hub.Capabilities `json:"capabilities,omitzero" schema:"type=object,ref=capabilities"`
	// Information about the machine that you run on, such as its load. It is shown to people.
	System Raw `json:"system,omitzero" schema:"type=object"`
}

// Register is the payload of register-agent, for servers on other machines.
type Register struct {
	// The name of the new agent: one word of at most 128 characters. A server that registers again
	// with a new token is the same agent.
	Name string `json:"name" schema:"nonblank"`
	// The name of its machine.
	Hostname string `json:"hostname,omitzero"`
	// Its address.
	IP string `json:"ip,omitzero"`
	// Its operating system, such as linux.
	OS string `json:"os,omitzero"`
	// The registration token that an operator created. It works once.
	Token string `json:"registration_token" schema:"nonblank"`
	// Its repositories, in an older form without capabilities. They are only shown, not used for
	// matching.
	Repos Raw `json:"repos,omitzero" schema:"type=object"`
	// Its skills: a capabilities document.
	Capabilities *hub.Capabilities `json:"capabilities,omitzero" schema:"type=object,ref=capabilities"`
}

// InterruptAgent is the payload of interrupt-agent.
type InterruptAgent struct {
	// The name of the agent.
	Agent string `json:"agent" schema:"nonblank"`
	// An instruction for the agent; optional.
	Message string `json:"message,omitzero"`
}

// The answers.
var (
	answerServers    = &Answer{Name: "servers", Of: hub.ServerList{}}
	answerRegistered = &Answer{Name: "registered", Of: hub.Registered{}}
	answerInterrupt  = &Answer{Name: "interrupted", Of: activity.Interrupted{}}
	answerServer     = &Answer{Name: "server", Of: hub.Server{}}
)

// serverOperations are the operations on agents as servers.
var serverOperations = []Operation{
	request[UpdateCapabilities](Operation{
		Name: "update-capabilities", Answer: answerServer, Audience: ForAgents, Writes: true,
		Summary: "Replace your advertised capabilities and refresh your presence",
		About:   "Members that are missing keep their values. Without any member, the request only refreshes your presence.",
		HTTP:    []string{"POST /api/v1/servers/heartbeat"},
		Examples: []string{
			`{"capabilities": {"$schema": "orchestratia/capabilities/v1", "languages": ["go"], "max_concurrent_tasks": 2}, "system": {"load": 0.5}}`,
			"",
		},
	}),
	request[Nothing](Operation{
		Name: "query-servers", Answer: answerServers,
		Summary:  "List all agents with their capabilities and presence",
		About:    "The list is in the terms of the hub, where agents are servers.",
		HTTP:     []string{"GET /api/v1/server/servers"},
		Examples: []string{`{}`, ""},
	}),
	request[InterruptAgent](Operation{
		Name: "interrupt-agent", Answer: answerInterrupt, Audience: ForOperators, Writes: true,
		Summary:  "Interrupt an agent without ending its task",
		About:    "The agent is notified with notify:interrupt. A coding agent ends its turn and begins the next with the message.",
		Examples: []string{`{"agent": "coder", "message": "Keep the old page working."}`, `{"agent": "coder"}`},
	}),
	request[Register](Operation{
		Name: "register-agent", Answer: answerRegistered, Audience: ForUnregistered, Writes: true,
		Summary: "Register a server as an agent with a registration token",
		About:   "The answer has the key of the server.",
		HTTP:    []string{"POST /api/v1/servers/register"},
		Examples: []string{
			`{"name": "attic", "hostname": "attic.example.com", "ip": "192.0.2.7", "os": "linux", "registration_token": "orcreg_Zm9yIGFuIGV4YW1wbGU", "repos": {"shop": "/srv/shop"}, "capabilities": {"repos": {"shop": {"path": "/srv/shop"}}, "languages": ["go"]}}`,
			`{"name": "attic", "registration_token": "orcreg_Zm9yIGFuIGV4YW1wbGU"}`,
		},
	}),
}

// QueryAgents is the payload of query-agents.
type QueryAgents struct {
	// Only agents with this role: worker, planner, reviewer, or a role from the configuration. Any
	// other is refused.
	Role string `json:"role,omitzero" schema:"minlen=1"`
	// Only agents with this status: idle, busy, starting, stopping, stale, offline or crashed. With any
	// other status the list is empty.
	Status string `json:"status,omitzero"`
	// Only agents that have all of these.
	Capabilities []string `json:"capabilities,omitzero" schema:"each:nonblank"`
}

func (q *QueryAgents) read(o *object.Reader) {
	if o.Find("role") != nil && q.Role == "" && o.Err() == nil {
		o.Fail(UnknownRole("", o.Pointer+"/role", Roles))
	}
}

// UnknownRole returns the refusal of a role that no agent can have, with the roles of the team.
func UnknownRole(role, pointer string, roles []string) *Error {
	return &Error{
		Code:    CodeInvalid,
		Message: "Invalid role specified",
		Details: map[string]any{"role": role, "pointer": pointer},
		Hint:    "roles are " + object.Choices(roles),
	}
}

// An Agent is an agent as other agents see it.
type Agent struct {
	// The name of the agent.
	ID string `json:"id"`
	// The role: worker, planner, reviewer, or a role from the configuration.
	Role string `json:"role"`
	// The status of the agent. Only an idle agent gets a task from the queue.
	Status string `json:"status" schema:"enum=wire.AgentStatuses"`
	// The capabilities of the agent.
	Capabilities []string `json:"capabilities"`
	// The id of the first task that the agent has; null if it has none.
	CurrentTask string `json:"currentTask" schema:"null"`
	// Whether its capacity is 0, as for a pipe without a role.
	TakesNoTasks bool `json:"takesNoTasks,omitzero"`
}

// AgentStatuses lists the statuses of an agent.
var AgentStatuses = []string{"idle", "busy", "starting", "stopping", "stale", "offline", "crashed"}

// MarshalJSONTo implements json.MarshalerTo.
func (a *Agent) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(a.append(nil)) }

func (a *Agent) append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = object.AppendText(b, a.ID)
	b = object.AppendMember(b, "role", a.Role)
	b = object.AppendMember(b, "status", a.Status)
	b = object.AppendTexts(b, "capabilities", a.Capabilities)
	b = object.AppendOrNull(b, "currentTask", a.CurrentTask)
	if a.TakesNoTasks {
		b = append(b, `,"takesNoTasks":true`...)
	}
	return append(b, '}')
}

// AgentList answers query-agents.
type AgentList struct {
	Agents []Agent `json:"agents"`
}
