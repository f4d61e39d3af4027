package wire

import (
	"fmt"
	"strings"
)

// Operation is one request to an orchestrator. An agent prints it as a line, a tool calls it,
// or a client posts it. This declaration gives the reader of its payload, its JSON Schema,
// and its rows in the manual and in the description of the HTTP API. The package handlers
// has the function that decides about it.
type Operation struct {
	Name      string
	Summary   string // verb and object, no full stop
	About     string // the description in its schema, after the summary
	Audience  Audience
	Published bool     // part of the published stdio protocol; otherwise an extension
	Writes    bool     // it can change something, so its repeats are recognized
	OfTask    bool     // it is answered with one task, or with its task response
	Answer    *Answer  // what it is answered with
	Examples  []string // payloads; "" for a request without one

	payload func() payload // nil: the payload is a document
	ref     string         // the schema of that document
}

// An Answer declares the payload of the responses to some operations.
type Answer struct {
	Name  string // of its definition in the schema of response:success, or of its document
	Of    any    // a value of its type
	Asked string // the operations that it answers, for its description; "": a list of all
	About string // the end of its description
}

// Audience is who may make a request.
type Audience uint8

// The audiences.
const (
	ForAll          Audience = iota
	ForAgents                // only agents: the answer depends on the caller
	ForOperators             // only people
	ForUnregistered          // programs that are not registered yet, and people
	ForActors                // all that have mail: agents, people, and actors without other access
)

// String returns the audience as the manual shows it.
func (a Audience) String() string {
	return [...]string{"all", "agents", "operators", "unregistered", "actors"}[a]
}

// request completes the declaration of an operation whose payload is a T.
func request[T any, P interface {
	*T
	payload
}](o Operation) Operation {
	o.payload = func() payload { return P(new(T)) }
	return o
}

// Operations lists all operations, in the order of the manual.
var Operations = func() (all []*Operation) {
	for _, topic := range [][]Operation{
		taskOperations, activityOperations, workOperations, serverOperations, questionOperations, accessOperations, mailOperations, delegationOperations, sessionOperations,
	} {
		for i := range topic {
			all = append(all, &topic[i])
		}
	}
	return all
}()

// ControlOperations start and stop agents and the orchestrator. They are requested over HTTP and
// performed by the supervisor.
var ControlOperations = []*Operation{
	{Name: "status", Audience: ForOperators, Summary: "Show the orchestrator and its agents"},
	{Name: "start-agent", Audience: ForOperators, Writes: true, Summary: "Start agents, and the agents that they depend on"},
	{Name: "stop-agent", Audience: ForOperators, Writes: true, Summary: "Stop agents"},
	{Name: "restart-agent", Audience: ForOperators, Writes: true, Summary: "Stop agents and start them again"},
	{Name: "list-hosts", Audience: ForOperators, Summary: "List the machines that run agents, and the hubs"},
	{Name: "list-hubs", Audience: ForOperators, Summary: "List the machines that share the record, as far as the asked one knows"},
	{Name: "drain-host", Audience: ForOperators, Writes: true, Summary: "Start no more agents on a host, and stop those that run there"},
	{Name: "explain", Audience: ForOperators, Summary: "Explain the state of a task or an agent, in the words of orchestrator why"},
	{Name: "diff-task", Audience: ForOperators, Summary: "Show what a task has changed in its workspace"},
	{Name: "merge-task", Audience: ForOperators, Writes: true, Summary: "Merge the branch of a task, after its verify commands have succeeded on the result"},
	{Name: "list-workspaces", Audience: ForOperators, Summary: "List the workspaces of tasks"},
	{Name: "prune-workspaces", Audience: ForOperators, Writes: true, Summary: "Remove the workspaces whose work has been merged"},
	{Name: "open-ui", Audience: ForOperators, Writes: true, Summary: "Open the web view: answer with its address and a code that signs a person in once"},
	{Name: "upgrade", Audience: ForOperators, Writes: true, Summary: "Replace the running program by another version, and keep the agents running"},
	{Name: "reload", Audience: ForOperators, Writes: true, Summary: "Read the configuration again and apply what has changed"},
	{Name: "down", Audience: ForOperators, Writes: true, Summary: "Stop everything and report until the end"},
}

var operationsByName = func() map[string]*Operation {
	found := make(map[string]*Operation, len(Operations))
	for _, o := range Operations {
		found[o.Name] = o
	}
	return found
}()

// OperationNamed returns the operation with a name, or nil if there is none.
func OperationNamed(name string) *Operation { return operationsByName[name] }

// IsWrite reports whether the operation can change something. A nil Operation cannot.
func (o *Operation) IsWrite() bool {
	return o != nil && o.Writes
}

// OpenToAgents reports whether agents may request the operation.
func (o *Operation) OpenToAgents() bool {
	return o != nil && (o.Audience <= ForAgents || o.Audience == ForActors)
}

// OpenToActors reports whether external actors, which have only mail here, may request the
// operation.
func (o *Operation) OpenToActors() bool {
	return o != nil && o.Audience == ForActors
}

// Schema returns the JSON Schema of the request.
func (o *Operation) Schema() []byte {
	var f fields
	body, needed := `{"$ref": "urn:orchestrator:`+o.ref+`"}`, true
	if o.payload != nil {
		o.payload().fields(&f)
		body, needed = f.schema.text(4), f.schema.needed != nil || f.schema.rules != nil
	}
	required := `"type", "id", "timestamp"`
	if needed {
		required += `, "payload"`
	}
	var b strings.Builder
	fmt.Fprintf(&b, `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "$id": "urn:orchestrator:request:%[1]s",
  "title": %[2]s,
  "description": %[3]s,
  "type": "object",
  "properties": {
    "type": {"const": "request:%[1]s"},
%[4]s
    "payload": %[5]s
  },
  "required": [%[6]s],
  "examples": [`, o.Name, quoted(o.Summary), quoted(o.description()), envelopeMembers, body, required)
	for i, example := range o.Examples {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n"+`    {"type": "request:%s", "id": "req-7b1c90de-52f4-4c1e-9a60-3d5e8f0a21%02d", "timestamp": "2026-11-20T09:15:00Z"`, o.Name, i)
		if example != "" {
			b.WriteString(`, "payload": ` + example)
		}
		b.WriteString("}")
	}
	b.WriteString("\n  ]\n}\n")
	return []byte(b.String())
}

// description returns the description of the request.
func (o *Operation) description() string {
	words := o.Summary + ". "
	if o.About != "" {
		words += o.About + " "
	}
	switch o.Audience {
	case ForOperators:
		words += "Only for people; an agent gets UNAUTHORIZED. "
	case ForUnregistered:
		words += "Only for programs that are not registered; an agent gets UNAUTHORIZED. "
	}
	if !o.Published {
		words += "An extension of the published protocol. "
	}
	return words + "One JSON object on one line of stdout. Keys are case-sensitive and unique. Unknown keys are ignored. " +
		"Where null is allowed, it counts as missing."
}

// envelopeMembers are the members that all requests share.
const envelopeMembers = `    "id": {
      "type": "string",
      "minLength": 1,
      "description": "An id that differs for every request. The response repeats it, letter for letter, as correlationId. The same request with the same id gets the same response and has no second effect."
    },
    "timestamp": {
      "type": "string",
      ` + timePattern + `,
      "description": "When the request was sent: an ISO 8601 time, such as 2026-11-20T09:15:00Z. Without a zone it is UTC. The day must exist in the calendar, which the pattern cannot express."
    },
    "agentId": {
      "type": "string",
      "description": "The name of the sender; optional. A message with the name of another agent is refused."
    },`

// timePattern is the keyword of a schema for an ISO 8601 time.
const timePattern = `"pattern": "^([0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):[0-5][0-9]((:[0-5][0-9]([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)?)|(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?))?|[0-9]{4}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9]([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3])[0-5][0-9]))$"`
