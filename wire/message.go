package wire

// Message is what a line of an agent turns out to be. It is a Log, a Request,
// a Report, a Refused or a Foreign.
type Message interface{ message() }

// Log is a line for people. Why says what kept it from being a message, if it
// looked like one.
type Log struct{ Why string }

// Request asks for an operation and is answered exactly once.
type Request struct {
	ID        string
	Operation string // without its prefix, such as "query-tasks"
	Timestamp string
	Payload   []byte // a JSON object
}

// Report tells something and is never answered. On the line it is an event:….
type Report struct {
	ID        string
	Name      string // without its prefix, such as "progress"
	Timestamp string
	Payload   []byte
}

// Refused is a message that is wrong. A request is answered with Err; an event
// is not.
type Refused struct {
	ID      []byte // as it stood in the line, for the answer; nil where there is none to give back
	Type    string
	Request bool
	Err     *Error
}

// Foreign is a message of a dialect that other parts of the language read.
type Foreign struct {
	Dialect Dialect
	Line    []byte
}

func (Log) message()      {}
func (*Request) message() {}
func (*Report) message()  {}
func (*Refused) message() {}
func (*Foreign) message() {}

// Dialect is one of the protocols that meet on a line.
type Dialect string

// The dialects besides requests and events.
const (
	DialectSession      Dialect = "session"       // between architect, developer and reviewer
	DialectTaskRequest  Dialect = "task-request"  // delegated work
	DialectTaskResponse Dialect = "task-response" // what became of it
	DialectMail         Dialect = "mail"          // to another actor
	DialectTool         Dialect = "tool"          // mail, called as tools
)
