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
	// Refusal is why a request cannot be decided about, if it cannot: what had to
	// be looked up for it could not be.
	Refusal *wire.Error
	Took    time.Duration // since it came, of a session message: its log says so
}

// Actor is who speaks. Its fields are what the pipe or the credential says,
// never what a message claims.
type Actor struct {
	Kind ActorKind
	Name string // of an agent; of a person, if there is one to tell; the id of a actor
	Run  string // of an agent: the process that speaks
	Only string // of an agent at a door: the run that its credential is for; "": any
	// Strict is a door where each step is said by itself: nothing ends there that
	// was not started.
	ExplicitSteps bool
	ActsForOthers bool // an agent that came by a door where agents see to the tasks of others
}

// ActorKind tells actors apart.
type ActorKind uint8

// The kinds of Actor.
const (
	Orchestrator ActorKind = iota
	Operator
	Agent
	Anonymous // a caller that has not registered yet
	External  // an actor on another machine, with mail here and nothing else
)

// String spells an actor as the log has it.
func (a Actor) String() string {
	switch a.Kind {
	case Operator:
		if a.Name != "" {
			return "operator:" + a.Name
		}
		return "operator"
	case Agent:
		return agentPrefix + a.Name
	case Anonymous:
		return "stranger"
	case External:
		return "actor:" + a.Name
	}
	return "orchestrator"
}

const agentPrefix = "agent:"

// Outcome is what was decided. It is valid until the next call of Handle, and
// its records and letters must be copied by a caller that keeps the slices longer.
type Outcome struct {
	Records []wire.Record
	Letters []Letter
	// Refused is the verdict on a request or a report, for the audit: nil when
	// it was granted. Waits says that the answer comes later.
	Refused *wire.Error
	Waits   bool
	// Again says that nothing was decided: what was looked up for the request is
	// too old. It is to be looked up again, and handed in again.
	Again bool
	// Fault is what went wrong in here, if something did. It is for the log of
	// the orchestrator, not for the caller.
	Fault error
}

// Letter is something to be told, once the records are durable: the answer to a
// request, or a notice to an agent.
type Letter struct {
	To      Actor
	Request string       // of an answer: the id of what it answers
	Form    wire.Dialect // of an answer: how that was asked
	Notice  string       // of a notice: its name
	Payload any          // of either
	Refusal *wire.Error  // of an answer: instead of a payload
	Task    string       // of a notice: a wire.Delivered reports that it was written
	Pages   []Page       // of an answer: what is only in the log
	Line    wire.Raw     // instead of all that: a line as it is, a session message
	Said    int64        // of a Line: the number of its record, for the wire.Told that it was written
	Kept    int64        // instead of a Line: the record that has it, see LineOf
	After   int64        // of a session message: the one before it that is on its way too

	Metadata *wire.TaskMetadata // of the task, for the members that the line lacks
}

// Rules are what the configuration decides.
type Rules struct {
	RequestTimeout      time.Duration // of questions without one of their own
	OnDependencyFailure string        // auto | block | cancel
	LenientResults      bool          // a structured result that breaks its format is taken all the same
	MatchOnCreate       bool          // tasks with requirements are matched when they are created
	IgnoreArrivals      bool          // and not when an agent comes online or has room again
	OnlineOnly          bool          // they are given to agents that are online alone
	CountAssigned       bool          // what an agent has not started counts against its capacity
	MaxAttempts         int           // of a task whose agents end
	DelegationRetries   int           // of one that was handed on and has failed, if its agent says that it may go better
	Silence             time.Duration // of a server that has registered: then it is offline
	Heartbeat           time.Duration // apart: how often actors are asked for one
	Stale               time.Duration // without a heartbeat: then GO is told
	Topics              []string      // that are registered, besides the standard ones
	Depth               int           // how deep a payload may nest
	KeepFinished        int           // finished tasks that are kept whole
	KeepClosed          int           // closed sessions, and servers without a key, that are kept
}
