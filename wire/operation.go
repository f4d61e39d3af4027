package wire

import (
	"iter"
	"reflect"

	"orchestrator/wire/object"
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
	Writes    bool     // it can change the state, so its repeats are recognized
	Stable    bool     // its answer depends only on the state and the caller, and not on the time
	OfTask    bool     // it is answered with one task, or with its task response
	Answer    *Answer  // the declaration of its answers
	Examples  []string // payloads; "" for a request without one
	HTTP      []string // its routes beside its default route: methods and paths
	NoSDK     string   // why the SDKs have no method for it, if agents may request it

	// Rules are rules between members, for its schema: each the inside of a JSON object.
	Rules []string
	// Document is the schema of the payload if it is a document.
	Document string

	payload *payload // nil: the payload is a document
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

// request completes the declaration of an operation with a payload of the type T.
func request[T any](o Operation) Operation {
	o.payload = &payload{kind: reflect.TypeFor[T](), make: func() any { return new(T) }}
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
	{Name: "list-hubs", Audience: ForOperators, Summary: "List the machines that share the event log, as this one knows them"},
	{Name: "drain-host", Audience: ForOperators, Writes: true, Summary: "Stop the agents on a host and start no new ones there"},
	{Name: "explain", Audience: ForOperators, Summary: "Explain the state of a task or an agent"},
	{Name: "diff-task", Audience: ForOperators, Summary: "Show the changes of a task in its workspace"},
	{Name: "merge-task", Audience: ForOperators, Writes: true, Summary: "Merge the branch of a task, after its verify commands have succeeded on the result"},
	{Name: "list-workspaces", Audience: ForOperators, Summary: "List the workspaces of tasks"},
	{Name: "prune-workspaces", Audience: ForOperators, Writes: true, Summary: "Remove the workspaces of merged tasks"},
	{Name: "open-ui", Audience: ForOperators, Writes: true, Summary: "Open the web view: returns its address and a code that signs a person in once"},
	{Name: "upgrade", Audience: ForOperators, Writes: true, Summary: "Replace the running program by another version, and keep the agents running"},
	{Name: "reload", Audience: ForOperators, Writes: true, Summary: "Read the configuration again and apply the changes"},
	{Name: "down", Audience: ForOperators, Writes: true, Summary: "Stop everything and report the progress"},
}

var operationsByName = func() map[string]*Operation {
	found := make(map[string]*Operation, len(Operations))
	for _, o := range Operations {
		found[o.Name] = o
	}
	return found
}()

// OperationNamed returns the operation with a name, or nil.
func OperationNamed(name string) *Operation { return operationsByName[name] }

// IsWrite reports whether the operation can change the state. A nil Operation cannot.
func (o *Operation) IsWrite() bool {
	return o != nil && o.Writes
}

// IsStable reports whether the answer depends only on the state and the caller. A nil Operation's does not.
func (o *Operation) IsStable() bool { return o != nil && o.Stable }

// OpenToAgents reports whether agents may request the operation.
func (o *Operation) OpenToAgents() bool {
	return o != nil && (o.Audience <= ForAgents || o.Audience == ForActors)
}

// OpenToActors reports whether external actors, which have only mail here, may request the
// operation.
func (o *Operation) OpenToActors() bool {
	return o != nil && o.Audience == ForActors
}

// Payload returns the Go type that declares the payload, or nil if the payload is a document.
func (o *Operation) Payload() reflect.Type {
	if o.payload == nil {
		return nil
	}
	return o.payload.kind
}

// Read reads a payload. The first error is in in.Err.
func (o *Operation) Read(in *object.Reader) any {
	return o.payload.read(o.payload.made(&o.payload.plan, func(key string) string { return key }), in, nil)
}

// ReadBody reads a payload with the keys of protocol A. The ids are the members that are in the path.
func (o *Operation) ReadBody(in *object.Reader, ids map[string]string) any {
	return o.payload.read(o.payload.made(&o.payload.hub, object.SnakeCase), in, ids)
}

// Body returns the members that ReadBody reads, and whether each must be there.
func (o *Operation) Body() iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		for _, m := range o.payload.made(&o.payload.hub, object.SnakeCase).members {
			if !yield(m.key, m.needed) {
				return
			}
		}
	}
}
