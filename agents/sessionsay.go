package agents

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"orchestrator/wire/session"
)

// Assign assigns a task to a developer. It starts a new correlation_id, unless the Session
// comes from Chain.
func (s *Session) Assign(ctx context.Context, developer string, work Assignment) (*Sent, error) {
	m := s.to(DeveloperID(developer), session.TypeTaskAssignment)
	m.CorrelationID = cmp.Or(m.CorrelationID, uuid.NewString())
	work.Priority = cmp.Or(work.Priority, session.PriorityMedium)
	return s.say(ctx, m, work)
}

// Acknowledge says that an assignment has arrived.
func (s *Session) Acknowledge(ctx context.Context, assignment *Said) (*Sent, error) {
	return s.say(ctx, s.answering(assignment, session.TypeAcknowledgment), nil)
}

// Report tells the agent that assigned a task how far it is.
func (s *Session) Report(ctx context.Context, assignment *Said, how Progress) (*Sent, error) {
	how.TaskID = cmp.Or(how.TaskID, taskOf(assignment))
	return s.say(ctx, s.answering(assignment, session.TypeTaskProgress), how)
}

// Complete reports the outcome of a task to the agent that assigned it.
func (s *Session) Complete(ctx context.Context, assignment *Said, what Completion) (*Sent, error) {
	what.TaskID = cmp.Or(what.TaskID, taskOf(assignment))
	what.Status = cmp.Or(what.Status, session.OutcomeCompleted)
	what.Changes = withTypes(what.Changes)
	return s.say(ctx, s.answering(assignment, session.TypeTaskCompletion), what)
}

// RequestReview asks a reviewer to look at a task.
func (s *Session) RequestReview(ctx context.Context, reviewer string, what ReviewRequest) (*Sent, error) {
	what.ReviewID = cmp.Or(what.ReviewID, uuid.NewString())
	return s.say(ctx, s.to(ReviewerID(reviewer), session.TypeReviewRequest), what)
}

// Judge sends the result of a review to the agent that asked for it.
func (s *Session) Judge(ctx context.Context, request *Said, result ReviewResult) (*Sent, error) {
	if asked, ok := request.Body.(*session.ReviewRequest); ok {
		result.ReviewID, result.TaskID = cmp.Or(result.ReviewID, asked.ReviewID), cmp.Or(result.TaskID, asked.TaskID)
	}
	return s.say(ctx, s.answering(request, session.TypeReviewResult), result)
}

// GiveFeedback sends feedback to an agent.
func (s *Session) GiveFeedback(ctx context.Context, to session.Agent, feedback Feedback) (*Sent, error) {
	return s.say(ctx, s.to(to, session.TypeFeedback), feedback)
}

// Answer sends feedback to the sender of a message.
func (s *Session) Answer(ctx context.Context, said *Said, feedback Feedback) (*Sent, error) {
	return s.say(ctx, s.answering(said, session.TypeFeedback), feedback)
}

// AskStatus asks another agent for its status.
func (s *Session) AskStatus(ctx context.Context, to session.Agent, about StatusQuery) (*Sent, error) {
	return s.say(ctx, s.to(to, session.TypeStatusQuery), about)
}

// TellStatus answers a status query with any object. The roles answer by themselves, with a
// Status.
func (s *Session) TellStatus(ctx context.Context, query *Said, status any) (*Sent, error) {
	return s.say(ctx, s.answering(query, session.TypeStatusResponse), status)
}

// Abort tells an agent that a task or the session is aborted.
func (s *Session) Abort(ctx context.Context, to session.Agent, what Abort) (*Sent, error) {
	if what.Scope == session.AbortSession {
		what.TargetID = cmp.Or(what.TargetID, s.me.Session)
	}
	return s.say(ctx, s.to(to, session.TypeAbort), what)
}

// taskOf returns the id of the assigned task.
func taskOf(assignment *Said) string {
	if body, ok := assignment.Body.(*session.Assignment); ok {
		return body.Task.TaskID
	}
	return ""
}
