package wire

// Feedback is the payload of feedback: what any agent may say to any other.
type Feedback struct {
	Type           string // Feedback… above
	Subject        string
	Content        string
	ActionRequired bool
	TaskID         string // what it is about; "" by default
}

func (p *decoder) feedback() *Feedback {
	return &Feedback{
		Type: p.word("feedback_type", needed, feedbackTypes), Subject: p.text("subject", needed), Content: p.text("content", needed),
		ActionRequired: p.truth("action_required", needed), TaskID: p.id("related_task_id", optional),
	}
}

// StatusQuery is the payload of status_query: any object.
type StatusQuery struct {
	TaskID string // "": of everything
}

// StatusResponse is the payload of status_response: any object, which is for
// the caller.
type StatusResponse struct{}

// Abort is the payload of abort.
type Abort struct {
	Scope           string // AbortTask or AbortSession
	TargetID        string // of the task or the session
	Reason          string
	CleanupRequired bool // passed on: the agent of the work knows what there is to clean up
}

func (p *decoder) abort() *Abort {
	return &Abort{
		Scope: p.word("scope", needed, abortScopes), TargetID: p.id("target_id", needed), Reason: p.text("reason", needed),
		CleanupRequired: p.truth("cleanup_required", needed),
	}
}

// Acknowledgment is the payload of acknowledgment: any object.
type Acknowledgment struct{}
