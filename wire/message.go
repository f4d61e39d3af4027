package wire

import (
	"github.com/go-json-experiment/json/jsontext"
)

// Raw is a JSON value that is passed on as it came, digit for digit.
type Raw = jsontext.Value

// Message is what there is to decide about. A line of an agent turns out to be
// a Log, a Request, a Report, a Refused, a Replied or a Session; the orchestrator
// itself says an Event, a Told, a Gone, a Roster or a Due.
type Message interface{ message() }

// Log is a line for people. Why says what kept it from being a message, if it
// looked like one. Nearly says why it is none, if its author probably thinks
// that it is one.
type Log struct{ Why, Nearly string }

// Request asks for an operation and is answered exactly once.
type Request struct {
	ID        string // in the words of its form: see RawID
	Operation string // without its prefix, such as "query-tasks"
	Timestamp string
	Payload   []byte // a JSON object, as long as the line lives
	Body      any    // the payload, read; nil until then
	Sum       uint64 // of what is asked, so that a repeat is recognised; 0 until it is made
	Form      Dialect
}

// AgentEvent tells something and is never answered. On the line it is an event:….
type AgentEvent struct {
	ID        string
	Name      string // without its prefix, such as "progress"
	Timestamp string
	Payload   []byte
	Body      any
}

// Refused is a message that is wrong. A request is answered with Err; an event
// is not.
type Refused struct {
	ID      []byte // as it stood in the line, for the answer; nil where there is none to give back
	Type    string
	Request bool
	Form    Dialect // of the question, and so of the answer
	Err     *Error
}

// Answered is a call that needs no decision: its answer stands in it.
type Answered struct {
	ID     []byte // as it stood in the line
	Method string
	Text   []byte // the answer, a whole line
	Err    *Error // why it was refused; nil when it was not
}

// Delivered says that a notice or a message was written to an agent's stdin, or, with
// Lost, that it never will be.
type Delivered struct {
	Agent, Run string
	Task       string // what it was about
	Said       int64  // which message it was: the number of its record
	Lost       bool
}

// AgentGone says that an agent has ended and is not started again by itself.
type AgentGone struct{ Agent string }

// AgentSet says which agents there are, and which sessions, in order.
type AgentSet struct {
	Agents   []Member
	Sessions []SessionSpec
}

// Member is an agent as the orchestrator knows it before it runs.
type Member struct {
	ID           string   `json:"id"`
	Role         string   `json:"role"`
	Capabilities []string `json:"capabilities"`
	Capacity     int      `json:"capacity"`           // tasks at a time
	OnExit       string   `json:"on_exit"`            // auto | fail | requeue
	Deaf         bool     `json:"deaf,omitzero"`      // it takes no messages
	Actor        string   `json:"actor,omitzero"`     // the actor as which it has mail; see ActorOfRun
	Names        []string `json:"names,omitzero"`     // those of the capabilities that are nothing else
	Abilities    Raw      `json:"abilities,omitzero"` // a capabilities document
}

// Tick says that a deadline has passed.
type Tick struct {
	// Late says that this is found out much later than it should be: the
	// orchestrator has stood still, and has heard nothing meanwhile.
	Late bool
	// Blocked reports whether the disk has not taken the record for a while, so that nothing
	// has left that was decided meanwhile.
	Blocked bool
}

func (*Event) message()      {}
func (*Delivered) message()  {}
func (*AgentGone) message()  {}
func (*AgentSet) message()   {}
func (Tick) message()        {}
func (Log) message()         {}
func (*Request) message()    {}
func (*AgentEvent) message() {}
func (*Refused) message()    {}
func (*Answered) message()   {}
