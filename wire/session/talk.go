package session

import (
	"orchestrator/wire/object"
)

// Feedback is the payload of feedback, which any agent may send to any other.
type Feedback struct {
	// The kind of feedback.
	Type string `json:"feedback_type" schema:"enum=session.FeedbackTypes"`
	// The subject.
	Subject string `json:"subject"`
	// The text of the feedback.
	Content string `json:"content"`
	// Whether an action is required.
	ActionRequired bool `json:"action_required"`
	// The id of the task that the feedback is about.
	TaskID string `json:"related_task_id,omitzero" schema:"id"`
}

func readFeedback(p *object.Decoder) *Feedback {
	return &Feedback{
		Type: p.OneOf("feedback_type", object.Required, FeedbackTypes), Subject: p.Text("subject", object.Required), Content: p.Text("content", object.Required),
		ActionRequired: p.Bool("action_required", object.Required), TaskID: p.ID("related_task_id", object.Optional),
	}
}

// StatusQuery is the payload of status_query.
type StatusQuery struct {
	// The id of the task; all tasks when it is missing.
	TaskID string `json:"task_id,omitzero" schema:"id"`
}

// StatusResponse is the payload of status_response: any object. It is not read here.
type StatusResponse struct{}

// Abort is the payload of abort.
type Abort struct {
	// Whether it ends a task or the session.
	Scope string `json:"scope" schema:"enum=session.AbortScopes"`
	// The id of the task, or of the session.
	TargetID string `json:"target_id" schema:"id"`
	// The reason.
	Reason string `json:"reason"`
	// Whether the agent that did the work must clean up.
	CleanupRequired bool `json:"cleanup_required"`
}

func readAbort(p *object.Decoder) *Abort {
	return &Abort{
		Scope: p.OneOf("scope", object.Required, AbortScopes), TargetID: p.ID("target_id", object.Required), Reason: p.Text("reason", object.Required),
		CleanupRequired: p.Bool("cleanup_required", object.Required),
	}
}

// Acknowledgment is the payload of acknowledgment: any object.
type Acknowledgment struct{}
