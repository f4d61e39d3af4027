package handlers

import (
	"time"

	"orchestrator/wire"
)

// Input is one thing to decide about.
type Input struct {
	At      time.Time
	From    Actor
	Message wire.Message
	Random  [16]byte // fresh for each input; ids and keys are made of it
}

// Actor is who speaks. Its fields are what the pipe or the credential says,
// never what a message claims.
type Actor struct {
	Kind ActorKind
	Name string // of an agent
	Run  string // of an agent: the process that speaks
}

// ActorKind tells actors apart.
type ActorKind uint8

// The kinds of Actor.
const (
	Orchestrator ActorKind = iota
	Operator
	Agent
)

// String spells an actor as the log has it.
func (a Actor) String() string {
	switch a.Kind {
	case Operator:
		return "operator"
	case Agent:
		return agentPrefix + a.Name
	}
	return "orchestrator"
}

const agentPrefix = "agent:"

// Outcome is what was decided. It is valid until the next call of Handle, and
// its records and letters must be copied by whoever keeps the slices longer.
type Outcome struct {
	Records []wire.Record
	Letters []Letter
	// Refused is the verdict on a request or a report, for the audit: nil when
	// it was granted. Waits says that the answer comes later.
	Refused *wire.Error
	Waits   bool
	// Fault is what went wrong in here, if something did. It is for the log of
	// the orchestrator, not for whoever asked.
	Fault error
}

// Letter is something to be told, once the records are durable: the answer to a
// request, or a notice to an agent.
type Letter struct {
	To      Actor
	Request string      // of an answer: the id of what it answers
	Notice  string      // of a notice: its name
	Payload any         // of either
	Refusal *wire.Error // of an answer: instead of a payload
	Task    string      // of a notice: somebody wants to hear, in a wire.Told, that it was written
	Page    *Page       // of an answer: the task in the payload is completed from the log
}

// Page names the records that complete a task of which only a part is kept.
type Page struct {
	Created, Ended int64 // numbers of its first and its last record; 0: it is not shown as ended
}

// Rules are what the configuration decides.
type Rules struct {
	RequestTimeout      time.Duration // of questions without one of their own
	OnDependencyFailure string        // auto | block | cancel
	Depth               int           // how deep a payload may nest
	KeepFinished        int           // finished tasks that are kept whole
}
