package api

import (
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/schema"
)

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

// stateWords returns the states of tasks as the hub calls them.
func stateWords() (words []string) {
	for _, state := range wire.TaskStates {
		if word := state.Hub(); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// named returns the rule that a member names an agent.
func named(key string) schema.Node {
	return schema.Has(key, schema.And(schema.Type("string"), schema.Pattern(schema.Nonblank)))
}

// documents declares the schemas of the description of the API that no agent needs. A row with a Go
// type has its members; a row without one is a text, a list, or a choice.
var documents = []schema.Document{
	{Name: "hub.state", Title: "The state of a task",
		Rules: schema.Enum(stateWords()...)},
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
	{Name: "hub.checked", Title: "The tasks that are assigned to a session and not started", Of: checkedShown{}},
	{Name: "hub.notes", Title: "The notes of a task, oldest first",
		Rules: schema.ListOf(schema.Ref("note"))},
	{Name: "hub.matched", Title: "The result of an automatic assignment",
		Parts: []schema.Part{{Name: "assigned", Of: matchedShown{}}, {Name: "no_match", Of: unmatchedShown{}, Rules: closed}},
		Rules: schema.OneOf(schema.Ref("#/$defs/assigned"), schema.Ref("#/$defs/no_match"))},
	{Name: "hub.matches", Title: "How each agent fits a task, best first", Of: wire.Matches{}},
	{Name: "hub.servers", Title: "All agents", Of: wire.ServerList{}},
	{Name: "hub.registered", Title: "A registered server", Of: registeredShown{}},
	{Name: "hub.alive", Title: "The answer to a heartbeat of a server", Of: aliveReply{}},
	{Name: "hub.refusal", Title: "Why a request to the hub or the bus was refused", Of: hubRefusal{},
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
	{Name: "hub.failure", Title: "Why a task failed", Of: failureBody{}, Lenient: true},
	{Name: "hub.cancellation", Title: "Why a task is cancelled", Of: cancellationBody{}, Lenient: true},
	{Name: "hub.call-for-help", Title: "A question to a person", Of: helpBody{}, Lenient: true},
	{Name: "hub.new-note", Title: "A new note", Of: noteBody{}, Lenient: true},
	{Name: "hub.plan", Title: "A plan", Of: planBody{}, Lenient: true},
	{Name: "hub.feedback", Title: "Feedback on a plan", Of: feedbackBody{}, Lenient: true},
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
	{Name: "refusal", Title: "Why a request was refused", Of: doorRefusal{}},
	{Name: "event", Title: "An event", Of: wire.Event{}},
	{Name: "log-line", Title: "A line of an agent's output", Of: control.LogLine{}},
}
