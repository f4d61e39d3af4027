package documents

import (
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// The types of this file only declare schemas. Messages are written member by member.

// The heads of messages.
type (
	eventHead struct {
		// An id that differs for every event.
		ID string `json:"id" schema:"minlen=1"`
		// When the event was sent: an ISO 8601 time, such as 2026-11-20T09:15:00Z; optional. It is not
		// checked.
		Timestamp object.Raw `json:"timestamp,omitzero" schema:"strict,example=2026-11-20T09:15:00Z"`
		// The name of the sender; optional. A message with the name of another agent is refused.
		AgentID string `json:"agentId,omitzero" schema:"strict"`
	}
	noticeHead struct {
		// The id of this message.
		ID string `json:"id" schema:"minlen=1"`
		// When the message was sent: UTC, with milliseconds.
		Timestamp string `json:"timestamp" schema:"stamp"`
	}
	successHead struct {
		// The id of this message.
		ID string `json:"id" schema:"minlen=1"`
		// The id of the request, letter for letter.
		CorrelationID string `json:"correlationId"`
		// When the message was sent: UTC, with milliseconds.
		Timestamp string `json:"timestamp" schema:"stamp"`
	}
	errorHead struct {
		// The id of this message.
		ID string `json:"id" schema:"minlen=1"`
		// The id of the request as it was written; null if it had none that can be returned.
		CorrelationID string `json:"correlationId" schema:"type=string|number|null"`
		// When the message was sent: UTC, with milliseconds.
		Timestamp string       `json:"timestamp" schema:"stamp"`
		Error     refusalShown `json:"error"`
	}
)

// refusalShown is an Error as agents receive it.
type refusalShown struct {
	// The kind of refusal, for programs.
	Code string `json:"code" schema:"enum=wire.spokenCodes"`
	// The error, for people.
	Message string `json:"message"`
	// Details, which depend on the error.
	Details detailsShown `json:"details"`
}

// detailsShown are the details of an Error that all agents may receive.
type detailsShown struct {
	// The place of the error in the request: a JSON pointer, such as /payload/name.
	Pointer string `json:"pointer,omitzero"`
	// The kind of refusal, where the code is too general. For example, conflict: the current state
	// does not allow the request; rate_limited: there were too many requests.
	Reason string `json:"reason,omitzero"`
	// A suggestion for the next step.
	Hint string `json:"hint,omitzero"`
	// All errors in a session message, as far as it was read. The first one is also the message.
	Errors []object.Problem `json:"errors,omitzero"`
	session.DeliveryError
}

// The payloads of notices about tasks: a TaskNotice has the members of all.
type (
	assignedNotice struct {
		// The id of the task.
		TaskID string `json:"taskId"`
		// A fixed text for people. It differs only if a plan is required first.
		Message string `json:"message" schema:"enum=wire.assignedNotices"`
	}
	cancelledNotice struct {
		// The id of the task.
		TaskID string `json:"taskId"`
		// The reason.
		Reason string `json:"reason"`
	}
	interruptNotice struct {
		// The id of the task that you work on.
		TaskID string `json:"taskId,omitzero"`
		// The instruction, in the words of the person.
		Message string `json:"message,omitzero"`
	}
	updatedNotice struct {
		// The id of the task.
		TaskID string `json:"taskId"`
		// The change, for people and models.
		Message string `json:"message"`
	}
)

// actPayload is the payload of a delegation.Act.
type actPayload struct {
	// For task.update, where it is required: any value, also null. Answers of people are texts.
	Input object.Raw `json:"input,omitzero"`
	// For task.cancel: the reason, as text; optional.
	Reason string `json:"reason,omitzero" schema:"any"`
}

// saidError is an ExecutionError in a completion, which has the task.
type saidError struct {
	// timeout: the work took too long. exception: an unexpected error. scope_violation: a file
	// outside the scope was changed. resource_limit: a resource ran out.
	ErrorType string `json:"error_type" schema:"enum=session.ExecutionErrors"`
	// The error in words.
	ErrorMessage string `json:"error_message"`
	// Whether another try may succeed; false when it is missing.
	Recoverable bool `json:"recoverable,omitzero"`
	// The suggested action: try again, reassign the task, abort it, or ask a person.
	SuggestedAction string `json:"suggested_action,omitzero" schema:"enum=session.Suggestions"`
}

// dependencySaid has the members of a wire.AddDependency that make a hub.Dependency.
type dependencySaid struct {
	// The id of the other task.
	On string `json:"dependsOnTaskId" schema:"nonblank"`
	// blocks: the other task must be done first; the default. input: part of its result is needed as
	// well. related: for information only.
	Type string `json:"dependencyType,omitzero" schema:"enum=hub.DependencyTypes"`
	// The part of the result that an input needs. With another type it has no meaning and causes a
	// warning.
	Contract string `json:"contractKey,omitzero"`
}

// The items of lists in requests.
type (
	optionSaid struct {
		// The text that the person sees; the value when it is missing.
		Label string `json:"label,omitzero"`
		// The answer that you get when the person chooses this option.
		Value string `json:"value" schema:"nonblank"`
	}
	choiceSaid struct {
		// The answer that you get when the person chooses this.
		ID string `json:"id" schema:"nonblank"`
		// The meaning of the answer.
		Kind string `json:"kind" schema:"enum=allow_once|allow_session|allow_always|deny"`
		// The text that the person sees.
		Label string `json:"label,omitzero"`
	}
	memberSaid struct {
		// The name of an agent, at most 200 bytes. Each member has a different name.
		AgentID string `json:"agent_id" schema:"id"`
		// The role of the agent: it plans and assigns, works, or reviews.
		AgentType string `json:"agent_type" schema:"enum=session.AgentTypes"`
	}
	artifactSaid struct {
		// The name, such as a file name; the path when it is missing.
		Name string `json:"name,omitzero" schema:"nonblank"`
		// The MIME type, such as text/markdown; text/plain when it is missing.
		Type string `json:"type,omitzero"`
		// The content, as text.
		Content string `json:"content,omitzero"`
		// The path of a text file in your working folder, which is read now. Only for a run that the
		// orchestrator has started.
		Path string `json:"path,omitzero" schema:"nonblank"`
		// The place of the content, if it is stored elsewhere.
		Ref string `json:"ref,omitzero" schema:"nonblank"`
	}
)
