package wire

import (
	"time"

	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// Raw is a JSON value that is not decoded. It is passed on unchanged, digit for digit.
type Raw = object.Raw

// A Message is an input of the orchestrator. A line of an agent is a Log, a Request, an
// AgentEvent, a Refused, an Answered or a Session. The orchestrator itself produces a Delivered,
// a TaskChecked, an AgentGone, an AgentSet, a Tick or a ClockSet.
type Message interface{ message() }

// A Log is a line for people. Why is the reason that a line that looked like a message is not
// one. Nearly is set if the author of the line probably meant a message.
type Log struct{ Why, Nearly string }

// Request asks for an operation and is answered exactly once.
type Request struct {
	ID        string // in the words of its form: see RawID
	Operation string // without its prefix, such as "query-tasks"
	Timestamp string
	Payload   []byte // a JSON object, as long as the line lives
	Body      any    // the payload, read; nil until then
	Sum       uint64 // of the content, to recognize a repeat; 0 until it is computed
	Form      dialect.Dialect

	Declared *Operation      // the declaration of Operation, or nil if it is not looked up yet
	Repeat   *Repeat         // what it has in common with requests before and after it; may be nil
	Members  []object.Member // of the payload, as long as the line lives; nil if it is not taken apart yet
}

// A Repeat is what requests of an agent have in common that differ only in their ids and times. Their operation is
// Stable. One goroutine at a time may use it.
type Repeat struct {
	Body   any    // the payload, read; nil until then
	Seen   uint64 // the version of the state that decided about the latest of them
	Answer any    // a Spelled, of that version; nil: it is not kept
}

// Spelled is the payload of an answer as JSON.
type Spelled []byte

// Declaration returns the declaration of the operation, or nil if it is unknown.
func (r *Request) Declaration() *Operation {
	if r.Declared != nil && r.Declared.Name == r.Operation {
		return r.Declared
	}
	return OperationNamed(r.Operation)
}

// AppendRawID appends the id of a request as JSON, or null if it has none.
func (r *Request) AppendRawID(b []byte) []byte {
	switch {
	case r.Form == dialect.Native, r.ID != "" && r.Form != dialect.ToolCall:
		return object.AppendText(b, r.ID)
	case r.ID == "":
		return append(b, "null"...)
	}
	return append(b, r.ID...)
}

// RawID returns the id of a request as JSON, or nil if it has none.
func (r *Request) RawID() []byte { return r.Form.RawID(r.ID) }

// An AgentEvent is a report, and is never answered. Its line has the type event:….
type AgentEvent struct {
	ID        string
	Name      string // without its prefix, such as "progress"
	Timestamp string
	Payload   []byte
	Body      any

	Members []object.Member // as in a Request
}

// A Refused is a message with an error. A request is answered with Err; an event is not.
type Refused struct {
	ID      []byte // as written in the line, for the answer; nil if it cannot be repeated
	Type    string
	Request bool
	Form    dialect.Dialect // of the question, and so of the answer
	Err     *Error
}

// An Answered is a call that needs no decision: Text is its answer.
type Answered struct {
	ID     []byte // as it stood in the line
	Method string
	Text   []byte // the answer, a whole line
	Err    *Error // why it was refused; nil when it was not
}

// Delivered reports that a notice or a message was written to an agent's stdin. With Lost set,
// it never will be.
type Delivered struct {
	Agent, Run string
	Task       string // the task that it concerns
	Said       int64  // which message it was: the number of its record
	Lost       bool
}

// TaskChecked reports a step of the orchestrator for a task of an agent. The kind is one of the
// events task.workspace, task.verifying, task.verified, task.unverified, task.merged and
// task.unmerged.
type TaskChecked struct {
	Kind        string
	Agent, Task string
	Text        string
	Workspace   *Workspace
	Name        string // of the task, which may have ended long ago: of task.merged, task.unmerged and task.unchanged
	Failed      bool   // the verification has failed, and was not interrupted
}

// TaskHeld reports that a task of an agent cannot begin yet: it waits for another task, which merges
// the work that it needs.
type TaskHeld struct {
	Agent, Task string
	On          string // the other task
	Text        string // why
}

// AgentGone reports that an agent has ended and is not restarted automatically.
type AgentGone struct{ Agent string }

// AgentSet lists the agents and the sessions, in order.
type AgentSet struct {
	Agents   []Member
	Sessions []session.Spec
}

// A Member is an agent as configured, before it runs.
type Member struct {
	ID           string   `json:"id"`
	Role         string   `json:"role"`
	Capabilities []string `json:"capabilities"`
	Capacity     int      `json:"capacity"`            // tasks at a time
	OpenTasks    int      `json:"open_tasks,omitzero"` // how many tasks that it submitted may be open; 0: any number
	OnExit       string   `json:"on_exit"`             // auto | fail | requeue
	Deaf         bool     `json:"deaf,omitzero"`       // it receives no messages
	Actor        string   `json:"actor,omitzero"`      // the actor as which it has mail; see ActorOfRun
	Names        []string `json:"names,omitzero"`      // capabilities that are only names
	Abilities    Raw      `json:"abilities,omitzero"`  // a capabilities document
	Fixed        bool     `json:"fixed,omitzero"`      // it can report less than Abilities and Capacity, but not more
	Manual       bool     `json:"manual,omitzero"`     // it starts only on request
	Manage       bool     `json:"manage,omitzero"`     // it manages all tasks over protocol A, as a planner does
}

// Tick reports that a deadline has passed.
type Tick struct {
	// Late reports whether the tick comes much later than it should. The orchestrator was then
	// suspended, and has received no message in that time.
	Late bool
	// Blocked reports whether the log has not been written for a while. Decisions of that time have
	// not been sent.
	Blocked bool
}

// ClockSet reports that the clock of the machine was set, by an amount.
type ClockSet struct{ By time.Duration }

func (*Event) message()       {}
func (*Delivered) message()   {}
func (*TaskChecked) message() {}
func (*TaskHeld) message()    {}
func (*AgentGone) message()   {}
func (*AgentSet) message()    {}
func (Tick) message()         {}
func (ClockSet) message()     {}
func (Log) message()          {}
func (*Request) message()     {}
func (*AgentEvent) message()  {}
func (*Refused) message()     {}
func (*Answered) message()    {}

// ShutdownNotice is the payload of notify:shutdown.
type ShutdownNotice struct {
	// The time before the first signal, in milliseconds.
	GracePeriod int64 `json:"gracePeriod" schema:"min=0"`
	// The reason.
	Reason string `json:"reason"`
}

// Farewell is the last line that the orchestrator sends to an agent on a connection. It is the
// control character EOT, which begins no message. A connection that ends without it was
// interrupted, and messages may be missing.
const Farewell = "\x04\n"
