package agents

import (
	"context"
	"errors"
	"fmt"

	"orchestrator/wire/session"
)

// Reviewer configures ReviewAs. Agents that need only Do can call Session.Review instead.
type Reviewer struct {
	// Do makes the requested review. Its context ends when the task or the session is aborted, or
	// when the agent has to shut down; Do should then return soon. The request's custom checks are
	// text of the architect: only Do can decide whether to run them. If Do panics or returns an
	// error, the architect gets the reason instead of a result.
	Do func(ctx context.Context, request ReviewRequest) (ReviewResult, error)
	// Correct returns a new result after a refusal, for example because the result approves despite
	// an open critical finding. If Correct is nil or fails, the review has no result.
	Correct func(ctx context.Context, request ReviewRequest, result ReviewResult, refused *Undelivered) (ReviewResult, error)
	// Capacity is the number of reviews done at a time; 0 means 1.
	Capacity int
	// Hear is called with every message, in order, before it is processed. It must not block.
	Hear func(*Said)
	// Work does the agent's tasks outside the session, as WorkAs does. If it is nil, they are
	// not done.
	Work *Worker
}

// Review answers review requests until the agent has to shut down, or the stream or ctx ends. Then
// it waits for running reviews and returns. A repeated request is answered once; a request for an
// aborted task is not answered.
//
// If a review fails, the architect gets feedback instead of a result. It answers the request and
// requires an action.
//
// Reviews given up because of a shutdown are not reported. Review then returns an error, as
// Work does.
func (s *Session) Review(ctx context.Context, do func(ctx context.Context, request ReviewRequest) (ReviewResult, error)) error {
	return s.ReviewAs(ctx, Reviewer{Do: do})
}

// ReviewAs is like Review, with the settings of a Reviewer.
func (s *Session) ReviewAs(ctx context.Context, reviewer Reviewer) error {
	if err := s.opened(session.AgentReviewer); err != nil {
		return err
	}
	r := &judging{inbox: inbox{Session: s, hear: reviewer.Hear}, Reviewer: reviewer}
	r.begin = r.asked
	return r.work(ctx, max(reviewer.Capacity, 1), reviewer.Work)
}

// judging is one call of ReviewAs.
type judging struct {
	inbox
	Reviewer
}

// review is a request and its result.
type review struct {
	said    *Said
	request ReviewRequest
	result  ReviewResult // as sent
}

// asked is the errand of a request.
func (j *judging) asked(said *Said) *errand {
	v := &review{said: said}
	if said.MessageType != session.TypeReviewRequest || said.Read(&v.request) != nil {
		return nil
	}
	return &errand{
		key: v.request.ReviewID, task: v.request.TaskID,
		status: func() TaskStatus { return TaskStatus{TaskID: v.request.TaskID, Step: "review " + v.request.ReviewID} },
		do: func(ctx context.Context, e *errand) error {
			leave, err := j.turn(ctx, e)
			if err != nil {
				return j.tell(ctx, e, v, err)
			}
			defer leave()
			return j.judge(ctx, e, v, func() (ReviewResult, error) { return j.Reviewer.Do(ctx, v.request) })
		},
		correct: func(ctx context.Context, e *errand, why *Undelivered) error { return j.correct(ctx, e, v, why) },
	}
}

// judge calls a function of the reviewer and sends the result. A panic fails only this review.
func (j *judging) judge(ctx context.Context, e *errand, v *review, do func() (ReviewResult, error)) error {
	err := func() (err error) {
		defer func() {
			if reason := recover(); reason != nil {
				err = j.panicked(e.task, reason)
			}
		}()
		v.result, err = do()
		return err
	}()
	return j.tell(ctx, e, v, err)
}

// correct makes a new review after the result was refused.
func (j *judging) correct(ctx context.Context, e *errand, v *review, why *Undelivered) error {
	if j.Correct == nil || e.corrected >= corrections {
		return errors.Join(why, j.tell(ctx, e, v, why))
	}
	return j.judge(ctx, e, v, func() (ReviewResult, error) { return j.Correct(ctx, v.request, v.result, why) })
}

// tell sends a result, or otherwise feedback, unless the review was cancelled.
func (j *judging) tell(ctx context.Context, e *errand, v *review, failed error) error {
	switch {
	case off(ctx):
		return nil
	case gaveUp(ctx, failed):
		return errUnfinished
	}
	ctx = context.WithoutCancel(ctx)
	if failed == nil {
		sent, err := j.Judge(ctx, v.said, v.result)
		if err == nil {
			j.expects(ctx, e, sent)
		}
		if !errors.Is(err, errUnsaid) {
			return err
		}
		failed = fmt.Errorf("its result cannot be told: %w", err)
	}
	_, err := j.Answer(ctx, v.said, Feedback{
		Type: session.FeedbackClarification, Subject: "the review " + v.request.ReviewID + " cannot be made",
		Content: failed.Error(), ActionRequired: true, TaskID: v.request.TaskID,
	})
	return err
}
