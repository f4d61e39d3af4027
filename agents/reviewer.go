package agents

import (
	"context"
	"errors"
	"fmt"

	"orchestrator/wire"
)

// Reviewer is what an agent does that judges the work of a session, for those to
// which one function is not enough.
type Reviewer struct {
	// Do judges what a request asks for. Its context ends when the task or the session
	// is aborted or the agent has to go; then it should return soon. The custom checks
	// in the request are words of the architect: Do alone knows whether to run them.
	// With an error, or when it panics, there is no result, and the architect is told
	// why.
	Do func(ctx context.Context, request ReviewRequest) (ReviewResult, error)
	// Mend judges anew when the result was refused, such as one that approves although
	// something bad is open. When it fails, or when there is none, there is no result.
	Mend func(ctx context.Context, request ReviewRequest, result ReviewResult, refused *Undelivered) (ReviewResult, error)
	// Capacity is how many reviews are made at a time; one when it is 0.
	Capacity int
	// Hear is told every message before it is heeded, in order. It must not wait.
	Hear func(*Said)
	// Work does the tasks that the agent gets beside those of the session, as WorkAs
	// does: by matching, by its role, by hand. Without it they are not done.
	Work *Worker
}

// Review judges what it is asked to, until the agent is to shut down, the stream
// ends or ctx does; then it waits for what is being judged and returns. A request
// that comes twice is answered once; one of a task that was aborted is not.
//
// A review that cannot be made has no result, for none would be true: the
// architect gets feedback instead, an answer to the request that wants something
// done.
//
// What was given up because the agent has to go is not told. Review then returns
// an error, as Work does.
func (s *Session) Review(ctx context.Context, do func(ctx context.Context, request ReviewRequest) (ReviewResult, error)) error {
	return s.ReviewAs(ctx, Reviewer{Do: do})
}

// ReviewAs is Review for a Reviewer.
func (s *Session) ReviewAs(ctx context.Context, reviewer Reviewer) error {
	if err := s.opened(wire.AgentReviewer); err != nil {
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

// review is a request, for the function that judges it.
type review struct {
	said    *Said
	request ReviewRequest
	result  ReviewResult // as it was told
}

// asked is the errand of a request.
func (r *judging) asked(said *Said) *errand {
	v := &review{said: said}
	if said.MessageType != wire.TypeReviewRequest || said.Read(&v.request) != nil {
		return nil
	}
	return &errand{
		key: v.request.ReviewID, task: v.request.TaskID,
		status: func() TaskStatus { return TaskStatus{TaskID: v.request.TaskID, Step: "review " + v.request.ReviewID} },
		do: func(ctx context.Context, e *errand) error {
			leave, err := r.turn(ctx, e)
			if err != nil {
				return r.tell(ctx, e, v, err)
			}
			defer leave()
			return r.judge(ctx, e, v, func() (ReviewResult, error) { return r.Reviewer.Do(ctx, v.request) })
		},
		mend: func(ctx context.Context, e *errand, why *Undelivered) error { return r.mend(ctx, e, v, why) },
	}
}

// judge calls a function of the reviewer and tells what it says. One that panics
// takes nothing with it.
func (r *judging) judge(ctx context.Context, e *errand, v *review, do func() (ReviewResult, error)) error {
	err := func() (err error) {
		defer func() {
			if reason := recover(); reason != nil {
				err = r.panicked(e.task, reason)
			}
		}()
		v.result, err = do()
		return err
	}()
	return r.tell(ctx, e, v, err)
}

// fix judges anew what was refused.
func (r *judging) mend(ctx context.Context, e *errand, v *review, why *Undelivered) error {
	if r.Mend == nil || e.mended >= mendings {
		return errors.Join(why, r.tell(ctx, e, v, why))
	}
	return r.judge(ctx, e, v, func() (ReviewResult, error) { return r.Mend(ctx, v.request, v.result, why) })
}

// tell tells a result, or why there is none, if a caller still waits.
func (r *judging) tell(ctx context.Context, e *errand, v *review, failed error) error {
	switch {
	case off(ctx):
		return nil
	case gaveUp(ctx, failed):
		return errUnfinished
	}
	ctx = context.WithoutCancel(ctx)
	if failed == nil {
		sent, err := r.Judge(ctx, v.said, v.result)
		if err == nil {
			r.expects(ctx, e, sent)
		}
		if !errors.Is(err, errUnsaid) {
			return err
		}
		failed = fmt.Errorf("its result cannot be told: %w", err)
	}
	_, err := r.Answer(ctx, v.said, Feedback{
		Type: wire.FeedbackClarification, Subject: "the review " + v.request.ReviewID + " cannot be made",
		Content: failed.Error(), ActionRequired: true, TaskID: v.request.TaskID,
	})
	return err
}
