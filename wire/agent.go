package wire

import (
	"github.com/go-json-experiment/json/jsontext"
	"orchestrator/wire/activity"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
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

// InterruptAgent is the payload of interrupt-agent.
type InterruptAgent struct {
	Agent   string `json:"agent"`
	Message string `json:"message,omitzero"`
}

func (i *InterruptAgent) fields(f *fields) {
	f.need(&i.Agent, "agent", "The name of the agent.")
	f.text(&i.Message, "message", "What the agent is to do now; optional.")
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
	request[InterruptAgent](Operation{
		Name: "interrupt-agent", Answer: answerInterrupt, Audience: ForOperators, Writes: true,
		Summary:  "Interrupt what an agent does, without ending its task",
		About:    "The agent is notified with notify:interrupt. A coding agent ends its turn and begins the next with the message.",
		Examples: []string{`{"agent": "coder", "message": "Keep the old page working."}`, `{"agent": "coder"}`},
	}),
	request[Register](Operation{
		Name: "register-agent", Answer: answerRegistered, Audience: ForUnregistered, Writes: true,
		Summary: "Register a server as an agent with a registration token",
		About:   "The answer has the key that the server authenticates with from then on.",
		Examples: []string{
			`{"name": "attic", "hostname": "attic.example.com", "ip": "192.0.2.7", "os": "linux", "registration_token": "orcreg_Zm9yIGFuIGV4YW1wbGU", "repos": {"shop": "/srv/shop"}, "capabilities": {"repos": {"shop": {"path": "/srv/shop"}}, "languages": ["go"]}}`,
			`{"name": "attic", "registration_token": "orcreg_Zm9yIGFuIGV4YW1wbGU"}`,
		},
	}),
}

// QueryAgents is the payload of query-agents.
type QueryAgents struct {
	Role         string   `json:"role,omitzero"`
	Status       string   `json:"status,omitzero"`
	Capabilities []string `json:"capabilities,omitzero"` // agents that have all of them
}

var onlyStatus = "Only agents with this status: " + object.Choices(AgentStatuses) + ". With any other status the list is empty."

func (q *QueryAgents) fields(f *fields) {
	const role = "Only agents with this role: worker, planner, reviewer, or one that the file gives an agent. Any other is refused."
	if !f.describe("role", role, schemaText+`, "minLength": 1`, false) {
		q.Role = f.in.Text("role")
	}
	f.text(&q.Status, "status", onlyStatus)
	f.texts(&q.Capabilities, "capabilities", "Only agents that have all of these.")
	if o := f.in; o != nil && o.Find("role") != nil && q.Role == "" && o.Err() == nil {
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
	// The role: worker, planner, reviewer, or one that the file gives an agent.
	Role string `json:"role"`
	// The status of the agent. Only an idle agent gets a task from the queue.
	Status string `json:"status" schema:"enum=wire.AgentStatuses"`
	// The capabilities of the agent.
	Capabilities []string `json:"capabilities"`
	// The id of the first task that the agent has; null if it has none.
	CurrentTask string `json:"currentTask" schema:"null"`
	// Whether its capacity is 0, as that of a pipe without a role.
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
