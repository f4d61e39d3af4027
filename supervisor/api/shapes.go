package api

import (
	"orchestrator/wire"
)

// The types of this file declare schemas of the description of the API. A body is read by the
// functions of package wire, and these documents have other limits than those for agents.

// newTask is the body of a new task.
type newTask struct {
	// The title of the task.
	Title string `json:"title" schema:"nonblank"`
	// What is to be done, for people.
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
	// What the task requires of an agent. A task without requirements is assigned only by hand.
	Requirements wire.Raw `json:"requirements,omitzero"`
	// What the task depends on.
	Dependencies []string `json:"dependencies,omitzero" schema:"each:ref=dependency"`
	// Ids of tasks that must be done first: an older form of dependencies.
	DependencyIDs []string `json:"dependency_ids,omitzero" schema:"each:nonblank"`
}

// taskChanges is the body of changes to a task.
type taskChanges struct {
	// The new title.
	Title string `json:"title,omitzero" schema:"nonblank"`
	// What is to be done, for people.
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
	// The result: an object or a text. An object with a $schema must be a valid task-result document.
	Result wire.Raw `json:"result"`
}

// failureBody fails a task.
type failureBody struct {
	// The reason.
	Error string `json:"error,omitzero"`
}

// cancellationBody cancels a task.
type cancellationBody struct {
	// The reason, for the agent of the task.
	Reason string `json:"reason,omitzero"`
}

// helpBody is a question to a person.
type helpBody struct {
	// The question.
	Question string `json:"question,omitzero"`
	// What belongs to the question: any value.
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

// feedbackBody is feedback on a plan.
type feedbackBody struct {
	// What is wrong with the plan.
	Feedback string `json:"feedback" schema:"nonblank"`
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
	// Repositories by name, in the form from before there were capabilities. They are shown; no task
	// is matched by them.
	Repos wire.Raw `json:"repos,omitzero" schema:"type=object"`
	// What the server can do: a capabilities document.
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
	// What was wrong, for people.
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
