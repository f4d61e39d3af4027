package stdio

import (
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
)

// A Reader parses the lines of one agent into messages. A line may be in any dialect, which its keys
// decide (dialect.Keys.Classify). A line that is not one JSON object is log.
//
//	dialect.Native                      Request, AgentEvent
//	dialect.ToolCall                    Request, Answered
//	dialect.Session                     Session
//	dialect.Mail                        Request
//	dialect.TaskRequest, TaskAct        Request
//	dialect.TaskResponse                AgentEvent
//	dialect.None                        Refused: a type and an id, or with a payload a type that is
//	                                    not a string; otherwise Log
//
// An agent may print the lines that it receives, so the Reader checks whether the agent has the task
// of delegated work. If it has, a response is an AgentEvent, and a request or an act is an echo. If it
// has not, a request or an act is a Request, and a response is log.
//
// Keys are exact, and a key that decides the dialect must not be duplicated: readers that take the
// first and readers that take the last would see different messages. A Reader must be used by
// one goroutine at a time. A Message is valid as long as its line. Bodies that are already
// decoded, of sessions and of delegated work, live longer.
type Reader struct {
	Agent string // the sender of the lines: they must not name another
	Depth int    // levels of nesting
	// Capability reports whether an agent offers a task type; nil means that none does.
	Capability func(name string) bool
	// Given reports whether this agent has, or had, the task with an id; nil means that it has
	// none.
	Given func(id string) bool

	room, inside []object.Member // of the line and of its payload
	known        dialect.Keys
	reads        reads
	shapes       shapes
}
