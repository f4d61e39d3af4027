package mail

import "slices"

// Status answers message-status.
type Status struct {
	// The number of the message.
	Seq int64 `json:"seq" schema:"min=1"`
	// The sender.
	From string `json:"from_actor"`
	// The recipient, or broadcast.
	To string `json:"to_actor"`
	// The topic.
	Topic  string  `json:"topic"`
	States []State `json:"states"` // The states of the message, oldest first; kept is the first.
}

// Has reports whether the message has reached a state.
func (s *Status) Has(state string) bool {
	return slices.ContainsFunc(s.States, func(o State) bool { return o.State == state })
}

// A State is a state that a message has reached.
type State struct {
	// kept: it is stored. written: it was written to the stdin of an agent. in_context: a model has
	// it. refused: the program of the agent did not take it. acked: its recipient has handled it.
	State string `json:"state" schema:"enum=mail.states"`
	// When the state was reached; missing if it was too long ago to be found.
	At string `json:"at,omitzero" schema:"stamp"`
	// The agent that read it.
	Agent string `json:"agent,omitzero"`
	// The actor that acknowledged it.
	Actor string `json:"actor,omitzero"`
}

// The states of a message. Two of them are reported with event:receipt.
const (
	StateKept      = "kept"
	StateWritten   = "written" // known as long as the orchestrator runs
	StateInContext = "in_context"
	StateRefused   = "refused"
	StateAcked     = "acked"
)
