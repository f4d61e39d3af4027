// Package identity has the identity of a caller of the HTTP API. The API finds the identity, the
// decisions depend on it, and the audit names it. The rights of a caller are not decided here.
package identity

// A Kind is the kind of a Caller.
type Kind uint8

// The kinds of Caller. The zero value has no rights.
const (
	Unknown  Kind = iota // unidentified and therefore untrusted
	Operator             // a person who runs the orchestrator, or such a person's program
	Agent
	Outsider // an external actor with its own token
)

// String returns the word for the kind in messages to people.
func (k Kind) String() string {
	switch k {
	case Operator:
		return "operator"
	case Agent:
		return "agent"
	case Outsider:
		return "actor"
	}
	return "unknown"
}

// A Caller is the sender of a request. The listener and the credential of the request identify it.
// It never depends on what a request claims.
type Caller struct {
	Kind Kind
	Name string // an agent's name, an actor's id, or the subject of an operator's token; "" at the operators' socket
	Run  string // of an agent: the only run of the credential; "": any
	Role string // of an operator with a token: wire.PersonAdmin and so on
	// Wide marks an operator at the operators' socket, who may use routes of agents and act for
	// them. For an agent, it marks a route on which agents manage the tasks of other agents.
	Wide bool
	// Via describes how the request came, as members of a JSON object for the audit: the process at
	// the other end of a unix socket, or the address, and the id of the credential. Each member
	// begins with a comma.
	Via string
}

// A Request is a request of a caller, as the audit has it.
type Request struct {
	From      Caller
	Operation string // of the declared ones, or a name for the route
	Stage     Stage
	Reads     bool // it only reads
}

// A Stage tells which line of a stream a line is. All other requests have one line, and the zero value.
type Stage string

// The stages of streams.
const (
	Begin Stage = "begin"
	End   Stage = "end"
)
