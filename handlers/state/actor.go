package state

import (
	"fmt"
	"time"

	"orchestrator/wire"
)

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
	ActsForOthers bool   // an agent on a route that manages tasks of other agents
	Via           string // how a request came from outside, as members of its line in the audit
	Audited       bool   // it asks in the course of another request, which has the line in the audit
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
		return AgentPrefix + a.Name
	case Anonymous:
		return "stranger"
	case External:
		return "actor:" + a.Name
	}
	return "orchestrator"
}

const AgentPrefix = "agent:"

// Rules holds the settings from the configuration.
type Rules struct {
	RequestTimeout      time.Duration // default timeout of questions
	OnDependencyFailure string        // auto | block | cancel
	LenientResults      bool          // a result that does not conform to its $schema is accepted
	MatchOnCreate       bool          // tasks with requirements are matched when they are created
	IgnoreArrivals      bool          // do not match them when an agent becomes available
	OnlineOnly          bool          // match them only with agents that are online
	CountAssigned       bool          // tasks that are not started count against capacity
	MergeQueue          bool          // branches of done tasks are merged, and dependents wait for that
	MaxAttempts         int           // maximum attempts of a task when its agents end
	DelegationRetries   int           // retries of a failed delegated task with a recoverable fault
	Silence             time.Duration // of a server that has registered: then it is offline
	Heartbeat           time.Duration // interval of heartbeats
	Stale               time.Duration // time without a heartbeat after which GO is notified
	Topics              []string      // registered topics besides the standard ones
	Depth               int           // how deep a payload may nest
	KeepFinished        int           // finished tasks that are kept whole
	Archive             bool          // finished tasks are archived; there is a log to read them from
	KeepClosed          int           // closed sessions, and servers without a key, that are kept
}

// Details are the members of an error for programs.
type Details = map[string]any

// Errorf returns an error with details and a formatted message.
func Errorf(code wire.Code, about Details, format string, args ...any) *wire.Error {
	return &wire.Error{Code: code, Message: fmt.Sprintf(format, args...), Details: about}
}

// Due returns the earliest deadline, if there is one. At that time the caller handles a
// wire.Tick.
func (s *State) Due() (time.Time, bool) {
	due, some := time.Time{}, false
	if len(s.Questions.Deadlines) > 0 {
		due, some = s.Questions.Deadlines[0].Due(), true
	}
	if len(s.Agents.Online) > 0 {
		if lost := s.LostAt(); !some || lost.Before(due) {
			due, some = lost, true
		}
	}
	if len(s.Bus.Expected()) > 0 {
		if stale := s.StaleAt(); !some || stale.Before(due) {
			due, some = stale, true
		}
	}
	if posted := s.Sessions.Posted; len(posted) > 0 && !s.Stopping && (!some || posted[0].Next.Before(due)) {
		due, some = posted[0].Next, true
	}
	if watched := s.Sessions.Watched; len(watched) > 0 && !s.Stopping && (!some || watched[0].Due.Before(due)) {
		due, some = watched[0].Due, true
	}
	if handed := s.Delegations.Due; len(handed) > 0 && !s.Stopping && (!some || handed[0].Due.Before(due)) {
		due, some = handed[0].Due, true
	}
	if limited := s.Agents.Limited; len(limited) > 0 && (!some || limited[0].Limited.Before(due)) {
		due, some = limited[0].Limited, true
	}
	if later := s.Tasks.Later; len(later) > 0 && !s.Stopping && (!some || later[0].Extra.After.Before(due)) {
		due, some = later[0].Extra.After, true
	}
	return due, some
}

// LostAt returns when the first server will have been silent for too long.
func (s *State) LostAt() time.Time { return s.Agents.Online.First(s.StartedAt).Add(s.Rules.Silence) }

// Due returns the next time of a question: its caller stops waiting, or it expires.
func (q *Question) Due() time.Time {
	if !q.Until.IsZero() {
		return q.Until
	}
	return q.Deadline
}

// Date implements byTime.
func (q *Question) Date() (time.Time, int64) { return q.Due(), q.Number }

// KeepDeadline adds a question to the deadlines, if it has one.
func (qs *questions) KeepDeadline(q *Question) {
	if !q.Due().IsZero() {
		qs.Deadlines.Add(q)
	}
}

func Expired() *wire.Error {
	return &wire.Error{Code: wire.CodeTimeout, Message: "there was no answer in time: ask again, or with a longer timeout"}
}
