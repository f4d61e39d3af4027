package wire

import (
	"github.com/go-json-experiment/json/jsontext"

	"orchestrator/wire/object"
)

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
	return append(b, '}')
}

// AgentList answers query-agents.
type AgentList struct {
	Agents []Agent `json:"agents"`
}
