package session

import (
	"orchestrator/wire/object"
)

// Feedback is the payload of feedback, which any agent may send to any other.
type Feedback struct {
	Type           string // Feedback… above
	Subject        string
	Content        string
	ActionRequired bool
	TaskID         string // the task of the message; "" by default
}

func readFeedback(p *object.Decoder) *Feedback {
	return &Feedback{
		Type: p.OneOf("feedback_type", object.Required, FeedbackTypes), Subject: p.Text("subject", object.Required), Content: p.Text("content", object.Required),
		ActionRequired: p.Bool("action_required", object.Required), TaskID: p.ID("related_task_id", object.Optional),
	}
}

// StatusQuery is the payload of status_query: any object.
type StatusQuery struct {
	TaskID string // "": of everything
}

// StatusResponse is the payload of status_response: any object. It is not read here.
type StatusResponse struct{}

// Abort is the payload of abort.
type Abort struct {
	Scope           string // AbortTask or AbortSession
	TargetID        string // of the task or the session
	Reason          string
	CleanupRequired bool // passed on to the developer, who knows what to clean up
}

func readAbort(p *object.Decoder) *Abort {
	return &Abort{
		Scope: p.OneOf("scope", object.Required, AbortScopes), TargetID: p.ID("target_id", object.Required), Reason: p.Text("reason", object.Required),
		CleanupRequired: p.Bool("cleanup_required", object.Required),
	}
}

// Acknowledgment is the payload of acknowledgment: any object.
type Acknowledgment struct{}
