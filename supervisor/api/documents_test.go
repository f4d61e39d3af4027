package api

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/hub"
	"orchestrator/wire/schema"
	shared "orchestrator/wire/schema/documents"
	"orchestrator/wire/schema/generator"
)

var update = flag.Bool("update", false, "write the schemas anew")

// TestSchemaFile compares the file of the schemas of the API with their declarations.
func TestSchemaFile(t *testing.T) {
	words := shared.Words
	words["api.codes"] = []string{
		string(wire.CodeMalformed), string(wire.CodeInvalid), string(wire.CodeUnauthenticated), string(wire.CodeDenied), string(wire.CodeNotFound),
		string(wire.CodeUnknownType), string(codeMethod), string(wire.CodeConflict), string(wire.CodeTooLarge), string(wire.CodeMediaType),
		string(wire.CodeLimited), string(wire.CodeTimeout), string(wire.CodeInternal), string(CodeNoQuorum),
	}
	documents := slices.Concat(documents, declaredBodies())
	g := generator.Generator{Root: "../..", Documents: slices.Concat(documents, shared.All()), Words: words}
	var all schema.Node
	for i := range documents {
		node, err := g.Document(&documents[i])
		require.NoError(t, err)
		all = append(all, schema.Member{Key: documents[i].Name, Value: node})
	}
	const file = "schemas/api.json"
	if *update {
		require.NoError(t, os.WriteFile(file, generator.Format(all), 0o644))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(generator.Format(all)), string(text), "%s is not as it is declared: go test ./supervisor/api -run TestSchemaFile -update", file)
	files, err := os.ReadDir("schemas")
	require.NoError(t, err)
	require.Len(t, files, 1, "each file but api.json is declared nowhere")
}

// declaredBodies returns the documents of the bodies that are as their operation declares them, and that
// have no other name.
func declaredBodies() (all []schema.Document) {
	for i := range hubRoutes() {
		o := declared(hubRoutes()[i].operation)
		named := func(d schema.Document) bool { return d.Name == "hub."+o.Name }
		if hubRoutes()[i].read.schema == "hub."+o.Name && !slices.ContainsFunc(all, named) {
			all = append(all, schema.Document{Name: "hub." + o.Name, Title: o.Summary, Of: reflect.Zero(o.Payload()).Interface(), Lenient: true, Body: true})
		}
	}
	return all
}

// TestMembersAreInSnakeCase checks the names of the members in the documents of the hub and the
// bus. An answer of an agents' operation has names such as taskId, so it needs a separate type
// here.
func TestMembersAreInSnakeCase(t *testing.T) {
	text, err := os.ReadFile("schemas/api.json")
	require.NoError(t, err)
	var all map[string]any
	require.NoError(t, json.Unmarshal(text, &all))
	names := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	checked := 0
	var walk func(document string, node any)
	walk = func(document string, node any) {
		switch n := node.(type) {
		case []any:
			for _, item := range n {
				walk(document, item)
			}
		case map[string]any:
			properties, _ := n["properties"].(map[string]any)
			for name := range properties {
				require.True(t, names.MatchString(name) || name == "$schema", "%s spells its member %s unlike the others: task_id, not taskId", document, name)
				checked++
			}
			for _, part := range n {
				walk(document, part)
			}
		}
	}
	for document, node := range all {
		if strings.HasPrefix(document, "hub.") || strings.HasPrefix(document, "bus.") {
			walk(document, node)
		}
	}
	require.Greater(t, checked, 100)
}

// closed is the rule that a document has no other members.
var closed = schema.Limit("additionalProperties", "false")

// mostWhole is the largest whole number that every program can represent.
const mostWhole = "9007199254740991"

// topicWord matches a word of a topic.
const topicWord = "[^.*\u0000-\u0020\u007f]+"

// versioned returns the schema of a document of the hub that may have another version.
func versioned(name string) schema.Node {
	return schema.AnyOf(schema.Ref(name), schema.And(schema.Type("object"), schema.Has("$schema", schema.Ref("hub.other-version"))), schema.Type("null"))
}

// named returns the rule that a member names an agent.
func named(key string) schema.Node {
	return schema.Has(key, schema.And(schema.Type("string"), schema.Pattern(schema.Nonblank)))
}

// documents declares the schemas of the description of the API that no agent needs. A row with a Go
// type has its members; a row without one is a text, a list, or a choice.
var documents = []schema.Document{
	{Name: "hub.state", Title: "The state of a task",
		Rules: schema.Enum(hubStates()...)},
	{Name: "hub.time", Title: "A time",
		Rules: schema.And(schema.Type("string"), schema.Limit("format", `"date-time"`), schema.Formats["stamp"])},
	{Name: "hub.time-or-null", Title: "A time or null",
		Rules: schema.AnyOf(schema.Ref("hub.time"), schema.Type("null"))},
	{Name: "hub.task-brief", Title: "A short description of a task", Of: taskBrief{}},
	{Name: "hub.help", Title: "A task whose agent waits for a person", Of: helpShown{}},
	{Name: "hub.assigned", Title: "A task that is assigned to an agent", Of: assignedShown{}},
	{Name: "hub.ok", Title: "Success", Of: okReply{},
		Rules: closed},
	{Name: "hub.task-line", Title: "A task in a list", Of: taskLine{},
		About: "The members that can be large are left out: spec, documents, plan and result."},
	{Name: "hub.tasks", Title: "Tasks",
		Rules: schema.ListOf(schema.Ref("hub-task"))},
	{Name: "hub.task-lines", Title: "A page of tasks, oldest first", Of: taskPage{}},
	{Name: "hub.checked", Title: "Tasks that are assigned to a session and not started", Of: checkedShown{}},
	{Name: "hub.notes", Title: "The notes of a task, oldest first",
		Rules: schema.ListOf(schema.Ref("note"))},
	{Name: "hub.matched", Title: "The result of an automatic assignment",
		Parts: []schema.Part{{Name: "assigned", Of: matchedShown{}}, {Name: "no_match", Of: unmatchedShown{}, Rules: closed}},
		Rules: schema.OneOf(schema.Ref("#/$defs/assigned"), schema.Ref("#/$defs/no_match"))},
	{Name: "hub.matches", Title: "The fit of each agent for a task, best first", Of: hub.Matches{}},
	{Name: "hub.servers", Title: "All agents", Of: hub.ServerList{}},
	{Name: "hub.registered", Title: "A registered server", Of: registeredShown{}},
	{Name: "hub.alive", Title: "The answer to a heartbeat of a server", Of: aliveReply{}},
	{Name: "hub.refusal", Title: "A refusal by the hub or the bus", Of: hubRefusal{},
		As: map[string]any{"error.details": refusalDetails{}}},
	{Name: "hub.other-version", Title: "A document version other than v1",
		Rules: schema.And(schema.Type("string"), schema.Pattern("^orchestratia/[a-z-]+/v[0-9]+$"), schema.Not(schema.Pattern("/v1$")))},
	{Name: "hub.new-task", Title: "A new task", Of: newTask{}, Lenient: true,
		About: "Unknown keys are ignored. Where null is allowed, it counts as missing.",
		Nodes: map[string]schema.Node{"structured_spec": versioned("task-spec"), "requirements": versioned("requirements")}},
	{Name: "hub.changes", Title: "Changes to a task", Of: taskChanges{}, Lenient: true,
		About: "Members that are missing keep their values. Other routes change the dependencies, the result and the status.",
		Nodes: map[string]schema.Node{"structured_spec": versioned("task-spec"), "requirements": versioned("requirements")}},
	{Name: "hub.completion", Title: "The completion of a task", Of: completionBody{}, Lenient: true,
		Nodes: map[string]schema.Node{
			"result": schema.AnyOf(schema.Ref("task-result"),
				schema.And(schema.Type("object"), schema.May("$schema", schema.AnyOf(schema.Ref("hub.other-version"), schema.Type("null")))),
				schema.Type("string")),
		}},
	{Name: "hub.failure", Title: "The failure of a task", Of: failureBody{}, Lenient: true},
	{Name: "hub.cancellation", Title: "The cancellation of a task", Of: wire.CancelTask{}, Lenient: true, Body: true},
	{Name: "hub.call-for-help", Title: "A question to a person", Of: helpBody{}, Lenient: true},
	{Name: "hub.new-note", Title: "A new note", Of: noteBody{}, Lenient: true},
	{Name: "hub.plan", Title: "A plan", Of: planBody{}, Lenient: true},
	{Name: "hub.feedback", Title: "Feedback on a plan", Of: wire.RevisePlan{}, Lenient: true, Body: true},
	{Name: "hub.assignee", Title: "The agent that a task is assigned to", Of: assigneeBody{}, Lenient: true,
		About: "At least one of the four names is required. If there are several, the first of them in this order counts: " +
			"session_name, server_name, session_id, server_id.",
		Rules: schema.AnyOf(named("session_name"), named("server_name"), named("session_id"), named("server_id"))},
	{Name: "hub.new-dependency", Title: "A new dependency",
		Rules: schema.AllOf(schema.Ref("dependency"), schema.Type("object"))},
	{Name: "hub.heartbeat", Title: "A heartbeat of a server", Of: heartbeatBody{}, Lenient: true,
		About: "The other members describe the machine. They are stored unchanged and shown to people.",
		Nodes: map[string]schema.Node{"capabilities": versioned("capabilities")}},
	{Name: "hub.registration", Title: "The registration of a server as an agent", Of: registrationBody{}, Lenient: true,
		Nodes: map[string]schema.Node{"capabilities": versioned("capabilities")}},
	{Name: "bus.actor", Title: "The id of an actor",
		About: "GO, HO:host, PO:project, IO:person, W:id or S:kind:id.",
		Rules: schema.And(schema.Type("string"), schema.Pattern(`^(GO|(HO|PO|IO|W):[^:\s]+|S:[^:\s]+:[^:\s]+)$`), schema.Limit("maxLength", "200"))},
	{Name: "bus.addressee", Title: "The recipient of a message",
		Rules: schema.AnyOf(schema.Ref("bus.actor"), schema.Enum("broadcast", "Bus", "Governor"))},
	{Name: "bus.mailbox", Title: "The owner of a mailbox",
		About: "The caller when it is missing.",
		Rules: schema.AnyOf(schema.Ref("bus.addressee"), schema.Type("null"))},
	{Name: "bus.seq", Title: "The number of a message",
		About: "The id of the message. It is greater than those of all earlier messages.",
		Rules: schema.And(schema.Type("integer"), schema.Limit("minimum", "1"), schema.Limit("maximum", mostWhole))},
	{Name: "bus.cursor", Title: "The number of the last acknowledged message",
		About: "0 if no message is acknowledged.",
		Rules: schema.And(schema.Type("integer"), schema.Limit("minimum", "0"), schema.Limit("maximum", mostWhole))},
	{Name: "bus.new-message", Title: "A new message", Of: mailBody{}, Lenient: true,
		About: "Unknown keys are ignored and not kept.",
		Nodes: map[string]schema.Node{
			"reply_to": schema.AnyOf(schema.Ref("bus.seq"), schema.And(schema.Type("string"), schema.Pattern("^[0-9]+$")), schema.Type("null")),
			"topic":    schema.And(schema.Type("string"), schema.Pattern("^"+topicWord+"(\\."+topicWord+")*$"), schema.Limit("maxLength", "200")),
		}},
	{Name: "bus.message", Title: "A stored message", Of: messageShown{}},
	{Name: "bus.sent", Title: "A sent message", Of: sentShown{}},
	{Name: "bus.messages", Title: "Messages, oldest first",
		Rules: schema.ListOf(schema.Ref("bus.message"))},
	{Name: "bus.ack", Title: "An acknowledgment of messages", Of: ackBody{}},
	{Name: "bus.acked", Title: "The answer to an acknowledgment", Of: ackedShown{}},
	{Name: "bus.sign-of-life", Title: "A heartbeat", Of: beatBody{}, Lenient: true},
	{Name: "bus.beat", Title: "The answer to a heartbeat", Of: beatShown{}},
	{Name: "bus.new-token", Title: "A request for a token", Of: tokenBody{}, Lenient: true},
	{Name: "bus.token", Title: "A created token", Of: tokenShown{}},
	{Name: "bus.health", Title: "The version of the bus", Of: healthReply{},
		Rules: closed},
	{Name: "sign-in", Title: "A sign-in to the web view", Of: signInBody{}},
	{Name: "signed-in", Title: "The person who is signed in to the web view", Of: signedIn{}},
	{Name: "refusal", Title: "A refusal of a request", Of: doorRefusal{}},
	{Name: "event", Title: "An event", Of: wire.Event{}},
	{Name: "log-line", Title: "A line of an agent's output", Of: control.LogLine{}},
}

// The types of this file declare schemas of the description of the API. A body is read by the
// functions of package wire, and these documents have other limits than those for agents.

// newTask is the body of a new task.
type newTask struct {
	// The title of the task.
	Title string `json:"title" schema:"nonblank"`
	// The work to do, for people.
	Spec string `json:"spec" schema:"nonblank"`
	// The kind of task, in words of the submitter; feature when it is missing.
	Type string `json:"type,omitzero"`
	// critical, high, normal or low, or a number. 1 is the most urgent; the default is normal.
	Priority wire.Raw `json:"priority,omitzero" schema:"type=string|number,nonblank,min=-1.7976931348623157e+308,max=1.7976931348623157e+308"`
	// The repository that the task is about.
	TargetRepo string `json:"target_repo,omitzero"`
	// The conditions under which the task counts as done.
	AcceptanceCriteria []string `json:"acceptance_criteria,omitzero" schema:"each:nonblank"`
	// The project that the task belongs to.
	ProjectID string `json:"project_id,omitzero"`
	// The session that the task came from.
	SessionID string `json:"session_id,omitzero"`
	// The specification in a form for programs. Another version is accepted with a warning.
	StructuredSpec wire.Raw `json:"structured_spec,omitzero"`
	// The requirements of the task for its agent. A task without requirements is assigned only by
	// hand.
	Requirements wire.Raw `json:"requirements,omitzero"`
	// The dependencies of the task.
	Dependencies []string `json:"dependencies,omitzero" schema:"each:ref=dependency"`
	// Ids of tasks that must be done first: an older form of dependencies.
	DependencyIDs []string `json:"dependency_ids,omitzero" schema:"each:nonblank"`
}

// taskChanges is the body of changes to a task.
type taskChanges struct {
	// The new title.
	Title string `json:"title,omitzero" schema:"nonblank"`
	// The work to do, for people.
	Spec string `json:"spec,omitzero" schema:"nonblank"`
	// The new type.
	Type string `json:"type,omitzero" schema:"nonblank"`
	// The new priority, as for a new task.
	Priority wire.Raw `json:"priority,omitzero" schema:"type=string|number,nonblank,min=-1.7976931348623157e+308,max=1.7976931348623157e+308"`
	// The repository that the task is about.
	TargetRepo string `json:"target_repo,omitzero"`
	// The new conditions under which the task counts as done.
	AcceptanceCriteria []string `json:"acceptance_criteria,omitzero" schema:"each:nonblank"`
	// The project that the task belongs to.
	ProjectID string `json:"project_id,omitzero"`
	// The new specification in a form for programs; null removes it.
	StructuredSpec wire.Raw `json:"structured_spec,omitzero"`
	// The new requirements; null removes them.
	Requirements wire.Raw `json:"requirements,omitzero"`
	// Cannot be set.
	ID string `json:"id,omitzero" schema:"type=null,strict"`
	// Cannot be set.
	Status string `json:"status,omitzero" schema:"type=null,strict"`
	// Cannot be set.
	Dependencies string `json:"dependencies,omitzero" schema:"type=null,strict"`
	// Cannot be set.
	DependencyIDs string `json:"dependency_ids,omitzero" schema:"type=null,strict"`
	// Cannot be set.
	Result string `json:"result,omitzero" schema:"type=null,strict"`
	// Cannot be set.
	ResolvedInputs string `json:"resolved_inputs,omitzero" schema:"type=null,strict"`
}

// completionBody completes a task.
type completionBody struct {
	// The result: any value. An object with a $schema must be a valid task-result document.
	Result wire.Raw `json:"result"`
	// Other products. Each has a name, and one of content, path and ref, as in complete-task.
	Artifacts []completedArtifact `json:"artifacts,omitzero"`
}

// completedArtifact is a product of a task.
type completedArtifact struct {
	// The name, such as a file name; the path when it is missing.
	Name string `json:"name,omitzero"`
	// The MIME type; text/plain when it is missing.
	Type string `json:"type,omitzero"`
	// The content, as text.
	Content string `json:"content,omitzero"`
	// The path of a text file in the folder of the agent, if the orchestrator has started it.
	Path string `json:"path,omitzero"`
	// The place of the content, if it is stored elsewhere.
	Ref string `json:"ref,omitzero"`
}

// failureBody fails a task.
type failureBody struct {
	// The reason.
	Error string `json:"error,omitzero"`
}

// helpBody is a question to a person.
type helpBody struct {
	// The question.
	Question string `json:"question,omitzero"`
	// Further facts about the question: any value.
	Context wire.Raw `json:"context,omitzero" schema:"strict"`
}

// noteBody is a new note.
type noteBody struct {
	// The text of the note.
	Content string `json:"content" schema:"nonblank"`
	// Whether the agent of the task is notified at once.
	Urgent bool `json:"urgent,omitzero"`
}

// planBody is the plan of a task.
type planBody struct {
	// The plan: an object or a text.
	Plan wire.Raw `json:"plan" schema:"type=string|object,nonblank"`
}

// assigneeBody names an agent.
type assigneeBody struct {
	// The name of an agent.
	SessionName string `json:"session_name,omitzero"`
	// The name of an agent.
	ServerName string `json:"server_name,omitzero"`
	// The id of the run of an agent.
	SessionID string `json:"session_id,omitzero"`
	// The server_id of an agent.
	ServerID string `json:"server_id,omitzero"`
	// Whether the agent must submit a plan first.
	RequirePlan bool `json:"require_plan,omitzero"`
}

// heartbeatBody is a heartbeat of a server.
type heartbeatBody struct {
	// The new capabilities, which replace all earlier ones; no change when they are missing.
	Capabilities wire.Raw `json:"capabilities,omitzero"`
}

// registrationBody registers a server.
type registrationBody struct {
	// The name of the new agent. A server that registers again with this name is the same agent.
	Name string `json:"name" schema:"nonblank"`
	// The name of the machine.
	Hostname string `json:"hostname,omitzero"`
	// The address of the machine.
	IP string `json:"ip,omitzero"`
	// The operating system, such as linux.
	OS string `json:"os,omitzero"`
	// The registration token. It works once.
	RegistrationToken string `json:"registration_token" schema:"nonblank"`
	// Repositories by name, in an older form without capabilities. They are only shown, not used for
	// matching.
	Repos wire.Raw `json:"repos,omitzero" schema:"type=object"`
	// The capabilities of the server: a capabilities document.
	Capabilities wire.Raw `json:"capabilities,omitzero"`
}

// mailBody is a new message.
type mailBody struct {
	// The sender. Any actor other than that of the token is denied.
	FromActor string `json:"from_actor" schema:"minlen=1"`
	ToActor   string `json:"to_actor" schema:"ref=bus.addressee"`
	// The topic: words with dots between them, such as task.assigned.
	Topic string `json:"topic" schema:"maxlen=200"`
	// The content, at most 1 MiB. It is delivered unchanged, digit for digit.
	Payload wire.Raw `json:"payload" schema:"type=object"`
	// The number of the message that this one answers.
	ReplyTo wire.Raw `json:"reply_to,omitzero" schema:"strict"`
	// A text that differs for each message of an actor. A message with a used key is not stored; the
	// answer is the earlier message.
	IdempotencyKey string `json:"idempotency_key,omitzero" schema:"minlen=1,maxlen=200"`
}

// ackBody acknowledges messages.
type ackBody struct {
	Actor string `json:"actor,omitzero" schema:"ref=bus.mailbox"`
	Seq   int64  `json:"seq" schema:"ref=bus.cursor"`
}

// beatBody is a heartbeat of an actor.
type beatBody struct {
	// The actor that is present; the caller when it is missing.
	Actor wire.Raw `json:"actor,omitzero" schema:"ref=bus.actor"`
}

// tokenBody asks for a token.
type tokenBody struct {
	Actor string `json:"actor" schema:"ref=bus.actor"`
	// How long the token is valid, in milliseconds; no limit when it is missing.
	TTL int64 `json:"ttl,omitzero" schema:"min=1,max=31536000000"`
	// How long the other tokens of the actor stay valid, in milliseconds; 0 when it is missing.
	Overlap int64 `json:"overlap,omitzero" schema:"min=0,max=31536000000"`
	// Not allowed: tokens of people are created elsewhere.
	Sub string `json:"sub,omitzero" schema:"type=null,strict"`
	// Not allowed, as sub.
	Role string `json:"role,omitzero" schema:"type=null,strict"`
}

// checkedShown lists tasks that are assigned and not started.
type checkedShown struct {
	// The number of tasks.
	Count int64  `json:"count" schema:"min=0"`
	Tasks string `json:"tasks" schema:"ref=hub.tasks"`
}

// registeredShown answers a registration.
type registeredShown struct {
	// The id of the server, derived from its name.
	ServerID string `json:"server_id" schema:"minlen=1"`
	// The name of the server.
	Name string `json:"name" schema:"minlen=1"`
	// The key of the server. It is not shown again.
	APIKey string `json:"api_key" schema:"secret"`
}

// refusalDetails are the details of a refusal.
type refusalDetails struct {
	// The place of the error in the body: a JSON pointer, such as /title.
	Pointer string `json:"pointer,omitzero"`
	// The query parameter that is wrong.
	Parameter string `json:"parameter,omitzero"`
	// The kind of conflict.
	Reason string `json:"reason,omitzero"`
	// TASK_GRAPH_CYCLE if the dependencies would form a cycle.
	Code string `json:"code,omitzero"`
}

// messageShown is a stored message.
type messageShown struct {
	Seq int64 `json:"seq" schema:"ref=bus.seq"`
	// The sender.
	FromActor string `json:"from_actor" schema:"minlen=1"`
	// The recipient.
	ToActor string `json:"to_actor" schema:"minlen=1"`
	// The topic.
	Topic string `json:"topic" schema:"minlen=1"`
	// The content, digit for digit. It is untrusted: escape it before you show it.
	Payload wire.Raw `json:"payload" schema:"type=object"`
	// The number of the message that this one answers; null if it answers none.
	ReplyTo   wire.Raw `json:"reply_to" schema:"ref=bus.seq,null"`
	CreatedAt string   `json:"created_at" schema:"ref=hub.time"`
}

// sentShown answers a new message.
type sentShown struct {
	messageShown
	// Whether the message had been sent before, with the same key.
	Duplicate bool `json:"duplicate,omitzero"`
	// Warnings about the message. It is stored anyway.
	Warnings []string `json:"warnings,omitzero"`
}

// ackedShown answers an acknowledgment.
type ackedShown struct {
	// The recipient of the messages.
	Actor  string `json:"actor" schema:"minlen=1"`
	Cursor int64  `json:"cursor" schema:"ref=bus.cursor"`
}

// beatShown answers a heartbeat.
type beatShown struct {
	// The actor that sent the heartbeat.
	Actor    string `json:"actor" schema:"minlen=1"`
	LastSeen string `json:"last_seen" schema:"ref=hub.time"`
	// The expected time between heartbeats, in milliseconds.
	HeartbeatMS int64 `json:"heartbeat_ms" schema:"min=1"`
}

// doorRefusal is a refusal of the API.
type doorRefusal struct {
	// The major number changes with incompatible changes.
	FormatVersion string    `json:"format_version"`
	Error         doorError `json:"error"`
}

// doorError is the error of a doorRefusal.
type doorError struct {
	// The kind of refusal, for programs.
	Code string `json:"code" schema:"minlen=1"`
	// The error, for people.
	Message string `json:"message" schema:"minlen=1"`
	// Details, which depend on the error.
	Details wire.Raw `json:"details,omitzero" schema:"type=object"`
	// A suggestion for the next step.
	Hint string `json:"hint,omitzero"`
}

// matchedShown is the result of an automatic assignment to an agent.
type matchedShown struct {
	Status string `json:"status" schema:"const=assigned"`
	// The server_id of the agent that has the task now.
	ServerID string `json:"server_id" schema:"minlen=1"`
	// The name of the agent.
	ServerName string `json:"server_name" schema:"minlen=1"`
	// The score of the agent; a higher score is a better fit.
	MatchScore int64 `json:"match_score"`
}

// unmatchedShown is the result of an automatic assignment that finds no agent.
type unmatchedShown struct {
	Status string `json:"status" schema:"const=no_match"`
}
