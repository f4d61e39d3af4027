package wire

import (
	"github.com/go-json-experiment/json/jsontext"
)

// QueryAgents is the payload of query-agents.
type QueryAgents struct {
	Role         string   `json:"role,omitzero"`
	Status       string   `json:"status,omitzero"`
	Capabilities []string `json:"capabilities,omitzero"` // those that have all of them
}

var onlyStatus = "Only agents with this status: " + list(AgentStatuses) + ". A status that no agent has finds none."

func (q *QueryAgents) fields(f *fields) {
	const role = "Only agents with this role: worker, planner, reviewer, or one that the file gives an agent. Any other is refused."
	if !f.describe("role", role, schemaText+`, "minLength": 1`, false) {
		q.Role = f.in.Text("role")
	}
	f.text(&q.Status, "status", onlyStatus)
	f.texts(&q.Capabilities, "capabilities", "Only agents that have all of these.")
	if o := f.in; o != nil && o.find("role") != nil && q.Role == "" && o.Err() == nil {
		o.take(UnknownRole("", o.pointer+"/role", Roles))
	}
}

// UnknownRole refuses to find agents of a role that no agent can have. The roles are those
// of a team.
func UnknownRole(role, pointer string, roles []string) *Error {
	return &Error{
		Code:    CodeInvalid,
		Message: "Invalid role specified",
		Details: map[string]any{"role": role, "pointer": pointer},
		Hint:    "roles are " + list(roles),
	}
}

// Agent is an agent as other agents see it.
type Agent struct {
	ID           string   `json:"id"`
	Role         string   `json:"role"`
	Status       string   `json:"status"` // one of AgentStatuses
	Capabilities []string `json:"capabilities"`
	CurrentTask  string   `json:"currentTask"` // an id; null: none
}

// AgentStatuses are what an agent may be doing.
var AgentStatuses = []string{"idle", "busy", "starting", "stopping", "stale", "offline", "crashed"}

// MarshalJSONTo implements the encoder's interface.
func (a *Agent) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(a.append(nil)) }

func (a *Agent) append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = appendText(b, a.ID)
	b = appendMember(b, "role", a.Role)
	b = appendMember(b, "status", a.Status)
	b = appendTexts(b, "capabilities", a.Capabilities)
	b = appendOrNull(b, "currentTask", a.CurrentTask)
	return append(b, '}')
}

// AgentList answers query-agents.
type AgentList struct {
	Agents []Agent `json:"agents"`
}
