package handlers

import (
	"time"

	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// An Input is one message to decide about.
type Input struct {
	At      time.Time
	From    Actor
	Message wire.Message
	Random  [16]byte // new for each input; source of ids and keys
	// Refusal is set if a request cannot be decided, because a required lookup failed.
	Refusal *wire.Error
	Took    time.Duration // time since a session message arrived, for its log
}

// An Actor is the sender of an input. Its fields come from the connection or the credential,
// never from the message.
type Actor struct {
	Kind ActorKind
	Name string // of an agent; of a person, if known; the id of an external actor
	Run  string // of an agent: the process that speaks
	Only string // of an agent over HTTP: the run that its credential is for; "": any
	// ExplicitSteps is set for callers that report each step of a task. A task that was not
	// started cannot be ended then.
	ExplicitSteps bool
	ActsForOthers bool // an agent on a route that manages tasks of others
}

// ActorKind is the kind of an Actor.
type ActorKind uint8

// The kinds of Actor.
const (
	Orchestrator ActorKind = iota
	Operator
	Agent
	Anonymous // a caller that has not registered yet
	External  // an actor on another machine, which has only mail here
)

// String returns the actor as recorded in the log.
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

// An Outcome is the result of Handle. It is valid until the next call; a caller that needs its
// slices longer must copy them.
type Outcome struct {
	Records []wire.Record
	Letters []Letter
	// Refused is the error of a request or an event, for the audit; nil if it was accepted.
	// Waits reports whether the answer comes later.
	Refused *wire.Error
	Waits   bool
	// Again reports that nothing was decided, because the Lookup of the request is too old. The
	// caller must repeat the search and call Handle again.
	Again bool
	// Fault is an internal error, if there was one. It is for the log of the orchestrator and
	// not for the caller.
	Fault error
}

// A Letter is a message to send once the records are durable: the answer to a request, or a
// notice to an agent.
type Letter struct {
	To      Actor
	Request string         // of an answer: the id of the request
	Form    wire.Dialect   // of an answer: the form of the request
	Notice  string         // of a notice: its name
	Payload any            // of either
	Refusal *wire.Error    // of an answer: instead of a payload
	Task    string         // of a notice: a wire.Delivered reports that it was written
	Pages   []history.Page // of an answer: the parts that are only in the log
	Line    wire.Raw       // a complete line, instead of the fields above
	Said    int64          // of a Line: its record, for the wire.Delivered that reports it
	Kept    int64          // instead of a Line: the record that holds it; see LineOf
	After   int64          // of a session message: the previous one that is on its way

	Metadata *delegation.Metadata // of the task, for the members that the line lacks
}

// Rules holds the settings from the configuration.
type Rules struct {
	RequestTimeout      time.Duration // default timeout of questions
	OnDependencyFailure string        // auto | block | cancel
	LenientResults      bool          // a result that does not conform to its $schema is accepted
	MatchOnCreate       bool          // tasks with requirements are matched when they are created
	IgnoreArrivals      bool          // do not match them when an agent becomes available
	OnlineOnly          bool          // match them only with agents that are online
	CountAssigned       bool          // tasks that are not started count against capacity
	MaxAttempts         int           // maximum attempts of a task whose agents end
	DelegationRetries   int           // retries of a failed delegated task with a recoverable fault
	Silence             time.Duration // of a server that has registered: then it is offline
	Heartbeat           time.Duration // interval of heartbeats
	Stale               time.Duration // time without a heartbeat after which GO is notified
	Topics              []string      // registered topics besides the standard ones
	Depth               int           // how deep a payload may nest
	KeepFinished        int           // finished tasks that are kept whole
	KeepClosed          int           // closed sessions, and servers without a key, that are kept
}
