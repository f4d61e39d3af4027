package session

import (
	"fmt"
	"slices"

	"orchestrator/wire/object"
)

// A Spec is the definition of a session, from the configuration or from create-session.
type Spec struct {
	// The name of the session.
	ID string `json:"session_id"`
	// The members.
	Members []Member `json:"members"`
	// standard tolerates some missing members. strict accepts no deviation from the protocol.
	Validation string `json:"validation" schema:"enum=session.validations"`
	// The maximum number of reviews of a task that does not set its own.
	MaxIterations int64 `json:"max_iterations" schema:"min=1"`
	// The action for a task that still needs changes after its last review.
	OnMax string `json:"on_max" schema:"enum=session.Escalations"`
	// Whether a task is done only after its approval, not when its developer completes it.
	RequireReview bool `json:"require_review"`
	// How long a task may take without a completion, in milliseconds; no limit when it is missing.
	TaskTimeout int64 `json:"task_timeout_ms,omitzero" schema:"min=0"`
	// The time after which a task must report progress, in milliseconds; 120000 when it is missing.
	ProgressAfter int64 `json:"progress_after_ms,omitzero" schema:"min=0"`
	// The time between such reports, in milliseconds; 30000 when it is missing.
	ProgressEvery int64 `json:"progress_every_ms,omitzero" schema:"min=0"`
	// The commands that must succeed before a task is done, besides the commands of its agent.
	Verify [][]string `json:"verify,omitzero"`
}

// Equal reports whether two sessions have the same members and rules.
func (a *Spec) Equal(b *Spec) bool {
	return a.Validation == b.Validation && a.MaxIterations == b.MaxIterations && a.OnMax == b.OnMax &&
		a.RequireReview == b.RequireReview && a.TaskTimeout == b.TaskTimeout && a.ProgressAfter == b.ProgressAfter &&
		a.ProgressEvery == b.ProgressEvery && slices.Equal(a.Members, b.Members) &&
		slices.EqualFunc(a.Verify, b.Verify, slices.Equal[[]string])
}

// When a developer reports progress, by default: in milliseconds.
const (
	ProgressAfter = 120_000
	ProgressEvery = 30_000
)

// The levels of validation of session messages.
const (
	ValidationStandard = "standard"
	ValidationStrict   = "strict"
)

// A Member is a member of a session.
type Member struct {
	// The name of an agent.
	AgentID string `json:"agent_id"`
	// The role of the agent: it plans and assigns, works, or reviews.
	AgentType string `json:"agent_type" schema:"enum=session.AgentTypes"`
}

// MaxIDLength is the maximum length of a session id, in bytes.
const MaxIDLength = 64

// IsID reports whether a text may be the id of a session. People type it, and it is part
// of URLs.
func IsID(id string) bool {
	plain := func(c byte) bool { return object.IsAlphanumeric(c) || c == '.' || c == '-' || c == '_' }
	return len(id) <= MaxIDLength && object.IsRun(id, plain) && object.IsAlphanumeric(id[0])
}

// MembersIn reads a list of members without duplicates.
func MembersIn(o *object.Reader, key string) []Member {
	if o.Find(key) == nil {
		o.Refuse(key, "is missing: it must be a list")
	}
	members := []Member{}
	known := make(map[string]bool)
	o.Objects(key, func(in *object.Reader) {
		m := Member{AgentID: in.NeedText("agent_id"), AgentType: in.NeedOneOf("agent_type", AgentTypes...)}
		in.NoControls("agent_id", m.AgentID)
		switch {
		case len(m.AgentID) > object.MaxIDLength:
			in.Refuse("agent_id", fmt.Sprintf("must not be longer than %d bytes", object.MaxIDLength))
		case known[m.AgentID]:
			in.Refuse("agent_id", "stands twice")
		}
		known[m.AgentID] = true
		members = append(members, m)
	})
	return members
}
