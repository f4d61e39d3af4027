package documents

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
	"orchestrator/wire/schema"
	"orchestrator/wire/session"
)

// All returns the declarations of all documents and messages but requests, which wire.Operations
// declares.
func All() []schema.Document { return append(slices.Clone(all), answers()) }

// Ends of descriptions.
const (
	eventLine = " One JSON object on one line of stdout. Events have no answer, even if they are invalid. " +
		"Keys are case-sensitive and unique. Unknown keys are ignored. " + nullsMissing
	kept          = " Keys are case-sensitive and unique. Unknown keys are kept and passed on. " + nullsMissing
	stored        = "The document is stored unchanged, digit for digit and with unknown keys. "
	nullsMissing  = "Where null is allowed, it counts as missing."
	nullIsMissing = "A member that is null counts as missing."
	versioned     = " This is version 1. A document of another version, such as v2, is accepted with a warning; only members that match this schema are read."
	noticeLine    = " One JSON object on one line of stdin. Notifications have no answer."
)

// given returns the schema of a text that is not blank.
func given(about string) schema.Node {
	return schema.About(about, schema.And(schema.Type("string"), schema.Pattern(schema.Nonblank)))
}

// unfinished are the statuses of delegated work without a result.
var unfinished = slices.DeleteFunc(slices.Clone(delegation.Statuses), func(status string) bool { return status == delegation.Completed })

// ofOneKind is the rule that delegated work is not ambiguous.
var ofOneKind = schema.About("No member may make it a message of another kind: a tool call, a session message or mail.", schema.Not(schema.AnyOf(
	schema.And(schema.May("jsonrpc", schema.Const("2.0")), schema.Need("jsonrpc", "method")),
	schema.And(schema.Has("message_type", schema.Type("string")), schema.AnyOf(
		schema.Need("message_id"), schema.Need("from_agent"), schema.Need("to_agent"), schema.May("message_type", schema.Enum(session.Types...)),
	)),
	schema.And(schema.Need("from_actor"), schema.AnyOf(schema.Need("topic"), schema.Need("to_actor"), schema.Need("seq", "created_at"))),
)))

// all declares all schemas except requests and response:success.
var all = []schema.Document{
	{Name: "task", Of: wire.Task{}, Title: "A task", About: "A task in answers. A list leaves out the members that can be large: description, payload, " +
		"structured_spec, requirements, plan, help, context, routing and observability. The result is null there.", Members: traceShown},
	{Name: "hub-task", Of: wire.HubTask{}, Title: "A task as the hub shows it",
		About: "A task in the answers of the HTTP routes, in the terms of the hub.", Members: traceShown},
	{Name: "link", Of: wire.Link{}, Title: "A dependency of a task, in its current state", About: "A dependency of a task in answers."},
	{Name: "note", Of: wire.Note{}, Title: "A note on a task", About: "A note on a task, in the answers to add-note and list-notes."},
	{Name: "agent", Of: wire.Agent{}, Title: "An agent, as other agents see it", About: "An agent in the answer to query-agents."},
	{Name: "match", Of: hub.Match{}, Title: "The fit of an agent for a task",
		About: "The fit of an agent for the requirements of a task, in the answer to match-agents."},
	{Name: "server", Of: hub.Server{}, Title: "An agent in the terms of the hub: a server",
		About: "An agent with its capabilities, in the answers to query-servers and update-capabilities."},
	{Name: "question", Of: wire.Question{}, Title: "An open question to a person", About: "A question in the answer to list-questions."},
	{Name: "credential", Of: wire.Credential{}, Title: "A key or a token, without its secret",
		About: "A key of an agent, a registration token of a server, or a token of a person or an actor. " +
			"Listed by list-keys and list-tokens, and returned by revoke-key and revoke-token."},
	{Name: "mail", Of: mail.Message{}, Title: "A message from one actor to another",
		About: "A stored message, in the answers to poll-messages and send-message and in notify:message. It never changes."},
	{Name: "actor", Of: mail.ActorView{}, Title: "An actor: a person or a program that has mail",
		About: "An actor in the answer to list-actors: an agent here, or an actor on another machine."},
	{Name: "topic", Of: mail.TopicView{}, Title: "A topic of mail", About: "A topic of mail in the answer to list-topics."},

	{Name: "session-message", Of: session.Message{}, Title: "A message between the agents of a session",
		About: "A message between an architect, developers and reviewers. One JSON object on one line of stdout. The recipient gets it as one line, " +
			"unchanged and with unknown keys. Only a missing sequence_number and a missing correlation_id are filled in. Keys are case-sensitive and unique. " +
			"A null member does not count as missing. An invalid message is not delivered: you get a response:error with the message_id as its correlationId.",
		Formats: []string{"id", "nonblank", "time"}, Parts: sessionParts, As: map[string]any{"task_completion.error": saidError{}}, Rules: payloadsByType(),
	},
	{Name: "session", Of: wire.SessionView{}, Title: "A session", About: "A session with a page of its log, in the answers to get-session and create-session."},
	{Name: "session-task", Of: wire.SessionTask{}, Title: "A task of a session",
		About: "A task as the members of its session see it, in the answer to get-session."},
	{Name: "session-entry", Of: session.Entry{}, Title: "A message in the log of a session",
		About: "A message as received, with all its members (see session-message), and the members that the log adds. " +
			"The members of a refused message may have any values. A message that could not be read completely has at most its " +
			"message_id, message_type and from_agent. A missing sequence_number or correlation_id is replaced by the one that was assigned at delivery."},
	{Name: "review", Of: session.ReviewView{}, Title: "A review of a task", About: "A review of a task of a session, in the answers to get-session and list-reviews."},

	{Name: "task-spec", Of: hub.SpecDocument{}, Lenient: true, Title: "The specification of a task",
		About: "The work to do, in a form for programs. It supplements the description for people. " + stored + nullsMissing + versioned,
		Parts: []schema.Part{{Of: hub.SpecReference{}, Rules: append(
			schema.If(schema.May("type", schema.Const("url")), schema.Has("url", given("The URL."))),
			schema.Member{Key: "else", Value: schema.Has("id", given("The id of the task, or the name of the file."))},
		)}}},
	{Name: "task-result", Of: hub.ResultDocument{}, Lenient: true, Title: "The result of a task",
		About: "A result in a form for programs. Its contracts go to the tasks that need them. " + stored + nullsMissing + versioned +
			" A result can also be any value except an object with $schema. Such a result delivers no contracts.",
		Parts: []schema.Part{{Of: hub.ResultContract{}, Rules: schema.If(
			schema.Has("status", schema.Const(hub.ContractSkipped)),
			schema.Has("data", schema.About("Why the contract was skipped.", schema.And(schema.Type("object"), schema.Has("reason", given("The reason, in words."))))),
		)}}},
	{Name: "requirements", Of: hub.RequirementsDocument{}, Lenient: true, Title: "The requirements of a task",
		About: "The demands of a task on its agent, and the preferred agents. " + stored + nullIsMissing + versioned},
	{Name: "capabilities", Of: hub.CapabilitiesDocument{}, Lenient: true, Title: "The capabilities of an agent",
		About: "The skills and tools of an agent, for matching with the requirements of tasks. " + stored + nullIsMissing + versioned},
	{Name: "dependency", Of: hub.Dependency{}, Lenient: true, Title: "A dependency of a new task",
		About: "The id of a task that must be done first, or an object with more members. Unknown keys are ignored. " + nullsMissing,
		Rules: schema.And(
			schema.Type("object", "string"), schema.Pattern(schema.Nonblank),
			schema.If(schema.Has("dependency_type", schema.Const(hub.DependsInput)),
				schema.Has("contract_key", schema.About("The part of the result that the input needs.", schema.And(schema.Type("string"), schema.Formats["word"])))),
		)},

	{Name: "task-request", Of: delegation.Request{}, Lenient: true, Title: "Work that is delegated to an agent",
		About: "Asks an agent to do work. It is answered with task responses that have the same id. One JSON object on one line: " +
			"of stdout if you ask, of stdin if you are asked. It is passed on unchanged, digit for digit, except for its route and its span." + kept,
		Rules: schema.AllOf(
			schema.May("type", schema.Not(schema.AnyOf(schema.Enum(delegation.Acts...), schema.Pattern("^(request|event|response|notify):")))), ofOneKind,
		)},
	{Name: "task-act", Of: delegation.Act{}, Lenient: true, Title: "An act on delegated work",
		About: "Asks for the status of a task, delivers the input that it needs, or cancels it. It has the id of the task and is answered " +
			"with a task response. One JSON object on one line: of stdout if you requested the task, of stdin if you work on it." + kept +
			" An extension of the published protocol.",
		As: map[string]any{"payload": actPayload{}},
		Rules: schema.AllOf(
			schema.If(schema.Has("type", schema.Const(delegation.ActUpdate)), schema.May("payload", schema.Need("input"))),
			schema.If(schema.Has("type", schema.Const(delegation.ActCancel)),
				schema.May("payload", schema.May("reason", schema.Type("string", "null")))),
			ofOneKind,
		)},
	{Name: "task-response", Of: delegation.Response{}, Lenient: true, Title: "The status or the result of delegated work",
		About: "Reports the status of a task, or its result. A task may have several responses; the last one has the status completed, failed " +
			"or cancelled. One JSON object on one line: of stdout if you work on the task, of stdin if you requested it." + kept,
		Parts: []schema.Part{{Of: delegation.Artifact{}, Rules: schema.AnyOf(
			schema.Has("content", schema.Type("string")),
			schema.Has("ref", schema.And(schema.Type("string"), schema.Node{{Key: "minLength", Value: schema.Literal("1")}})),
		)}},
		Rules: schema.And(schema.Not(schema.Need("type")), schema.AllOf(
			schema.If(schema.Has("status", schema.Enum(unfinished...)), schema.May("result", schema.Type("null"))), ofOneKind,
		))},

	{Name: "event:progress", Head: eventHead{}, Of: activity.Progress{}, Lenient: true, Title: "Report the progress of a task",
		About: "Report the progress of your task. The task does not end, even with a progress of 1." + eventLine},
	{Name: "event:log", Head: eventHead{}, Of: activity.LogEntry{}, Lenient: true, Title: "Write to your log", About: "Write a message to your log." + eventLine},
	{Name: "event:error", Head: eventHead{}, Of: activity.Trouble{}, Lenient: true, Title: "Report an error",
		About: "Report an error. If you cannot continue with a task, name it and set recoverable to false; the task then fails." + eventLine},
	{Name: "event:question", Head: eventHead{}, Of: activity.OpenQuestion{}, Lenient: true, Title: "Show a question to people without waiting",
		About: "Show a question to people. You get no answer; use ask-user to get one." + eventLine},
	{Name: "event:usage", Head: eventHead{}, Of: activity.Usage{}, Lenient: true, Title: "Report your usage",
		About: "Report the usage of a turn, or of one request to a model. Usage is added up by agent and by task." + eventLine},
	{Name: "event:session", Head: eventHead{}, Of: activity.Conversation{}, Lenient: true, Title: "Report your conversation",
		About: "Report the conversation of your program. Your next run gets its id in ORC_CONVERSATION." + eventLine},
	{Name: "event:turn", Head: eventHead{}, Of: activity.Turn{}, Lenient: true, Title: "Report your current activity",
		About: "Report your current activity, for people. It is not recorded. While you wait for a person, your silence does not count." + eventLine},
	{Name: "event:limited", Head: eventHead{}, Of: activity.Limited{}, Lenient: true, Title: "Report a limit of your vendor",
		About: "Report that you cannot work for a time, usually because of a limit of your vendor. You get no task until then. Give your current task back with return-task." + eventLine},
	{Name: "event:receipt", Head: eventHead{}, Of: activity.Receipt{}, Lenient: true, Title: "Report the state of a bus message",
		About: "Report that your model has a bus message, or that your program refused it." + eventLine},

	{Name: "notify:task-assigned", Head: noticeHead{}, Of: assignedNotice{}, Title: "A task is assigned to you",
		About: "Announces that a task is assigned to you. get-task shows it." + noticeLine},
	{Name: "notify:task-cancelled", Head: noticeHead{}, Of: cancelledNotice{}, Title: "Your task is cancelled",
		About: "Announces that a task that was assigned to you is cancelled. Stop working on it." + noticeLine},
	{Name: "notify:task-updated", Head: noticeHead{}, Of: updatedNotice{}, Title: "Your task has changed",
		About: "Announces that your task has changed. For example, its plan is approved or sent back, a person has answered, " +
			"or there is an urgent note. get-task and list-notes show more." + noticeLine},
	{Name: "notify:message", Head: noticeHead{}, Of: mail.Message{}, Title: "A message has arrived for you",
		About: "Delivers a message that was sent to you as an actor, or to all. It is only a hint: " +
			"poll-messages returns the message until you acknowledge it." + noticeLine},
	{Name: "notify:interrupt", Head: noticeHead{}, Of: interruptNotice{}, Title: "A person interrupts you",
		About: "Announces that a person interrupts you. Follow the message, if it has one, and continue with your task." + noticeLine},
	{Name: "notify:shutdown", Head: noticeHead{}, Of: wire.ShutdownNotice{}, Title: "You are about to be stopped",
		About: "Announces that you are about to be stopped. Finish your work and exit." + noticeLine},

	{Name: "response:error", Head: errorHead{}, Title: "A refusal of a request",
		About: "Refuses the request whose id is the correlationId. It also reports that a session message was not delivered; " +
			"the correlationId is then its message_id. One JSON object on one line of stdin."},
}

// sessionParts are the payloads of session messages, and their shared parts.
var sessionParts = []schema.Part{
	{Name: session.TypeTaskAssignment, About: "An architect assigns a task to a developer.", Of: session.Assignment{}},
	{Name: session.TypeTaskProgress, About: "A developer reports the progress of a task.", Of: session.Progress{}},
	{Name: session.TypeTaskCompletion, About: "A developer reports the end of the work on a task, even if it failed.", Of: session.Completion{}},
	{Name: session.TypeReviewRequest, About: "An architect asks a reviewer to review the work on a task.", Of: session.ReviewRequest{}},
	{Name: session.TypeReviewResult, About: "A reviewer reports the result of a review.", Of: session.ReviewResult{}},
	{Name: session.TypeFeedback, About: "An agent gives feedback to another agent.", Of: session.Feedback{}},
	{Name: session.TypeStatusQuery, About: "Asks an agent for its status. Other members are not read.", Of: session.StatusQuery{}},
	{
		Name: session.TypeStatusResponse, About: "Reports a status, in any object. reply_to is the message_id of the query.",
		Of: session.StatusResponse{},
	},
	{Name: session.TypeAbort, About: "Ends a task or the session.", Of: session.Abort{}},
	{
		Name: session.TypeAcknowledgment, Of: session.Acknowledgment{},
		About: "Confirms the receipt of a message, with any object, which may be empty. reply_to is the message_id of the message.",
	},
	{Name: "agent", About: "An agent of the session.", Of: session.Agent{}},
	{Name: "context_file", About: "A file to read.", Of: session.ContextFile{}},
	{Name: "file_change", About: "A changed file.", Of: session.FileChange{}},
	{Name: "execution_error", About: "The failure of the work on a task.", Of: saidError{}},
	{Name: "verification", About: "The result of a check.", Of: session.CheckResult{}},
	{Name: "finding", About: "A defect that the reviewer found.", Of: session.Finding{}},
	{Name: "required_change", About: "A change that the reviewer requires.", Of: session.RequiredChange{}},
}

// payloadsByType is the rule that the type of a session message determines its payload.
func payloadsByType() schema.Node {
	rules := make([]schema.Node, 0, len(session.Types))
	for _, kind := range session.Types {
		rules = append(rules, schema.If(schema.Has("message_type", schema.Const(kind)), schema.May("payload", schema.Ref("#/$defs/"+kind))))
	}
	return schema.AllOf(rules...)
}

// traceShown describes members that a task has from its request, without the rules for the author
// of a request.
var traceShown = map[string]string{
	"context.timestamp":       "When the task was requested: an ISO 8601 time.",
	"routing":                 "The route of the task request.",
	"routing.source":          "The sender of the task request.",
	"routing.delegationChain": "Every agent that has had the task, the latest one last.",
	"observability.traceId":   "The id of the trace.",
	"observability.baggage":   "Values that travel with the trace, digit for digit.",
}

// answers declares the schema of response:success: the answers of all operations.
func answers() schema.Document {
	d := schema.Document{
		Name: "response:success", Head: successHead{}, Title: "The answer to a request",
		About: "Answers the request whose id is the correlationId. The payload depends on the operation. Documents that several payloads " +
			"contain have their own schemas, such as task, agent and question. One JSON object on one line of stdin.",
	}
	asked := make(map[*wire.Answer][]string)
	var declared []*wire.Answer
	for _, o := range wire.Operations {
		if asked[o.Answer] == nil {
			declared = append(declared, o.Answer)
		}
		asked[o.Answer] = append(asked[o.Answer], o.Name)
	}
	words, refs, others := "One of these, depending on the operation.", []schema.Node(nil), []schema.Node(nil)
	for _, a := range declared {
		if i := slices.IndexFunc(all, func(d schema.Document) bool { return d.Head == nil && reflect.TypeOf(d.Of) == reflect.TypeOf(a.Of) }); i >= 0 {
			words += " A " + strings.ReplaceAll(a.Name, "-", " ") + " answers " + listed(asked[a]) + "."
			others = append(others, schema.Ref(a.Name))
			continue
		}
		refs = append(refs, schema.Ref("#/$defs/"+a.Name))
		d.Parts = append(d.Parts, schema.Part{Name: a.Name, About: "Answers " + cmp.Or(a.Asked, listed(asked[a])) + a.About + ".", Of: a.Of})
	}
	d.Payload = schema.About(words, schema.AnyOf(append(refs, others...)...))
	return d
}

// listed joins words: a, b and c.
func listed(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
