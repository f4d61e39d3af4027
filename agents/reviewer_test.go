package agents_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// asked sends a review request to the agent.
func (t *talk) asked(id, review, task string) {
	t.Helper()
	t.deliver(spoken{id: id, from: lead, to: judge, kind: session.TypeReviewRequest, payload: agents.ReviewRequest{
		ReviewID: review, TaskID: task, Criteria: agents.ReviewCriteria{CustomChecks: []agents.CustomCheck{{Name: "n", Command: "false"}}},
	}})
}

func TestReview(t *testing.T) {
	converse(t, func(t *talk) {
		s := t.as(judge)
		done := doing(func() error {
			return s.Review(t.Context(), func(_ context.Context, r agents.ReviewRequest) (agents.ReviewResult, error) {
				return agents.ReviewResult{Verdict: session.VerdictApproved, Summary: r.Criteria.CustomChecks[0].Name, Verification: agents.Verification{
					Tests: agents.CheckResult{Passed: true}, TypeCheck: agents.CheckResult{Passed: true},
				}}, nil
			})
		})
		t.asked("msg-1", "r-1", "kettle")
		said := t.hears(session.TypeReviewResult, nil)
		require.Equal(t, "msg-1", said.ReplyTo)
		require.JSONEq(t, `{"review_id":"r-1","task_id":"kettle","verdict":"approved","findings":[],"summary":"n",
			"verification":{"tests":{"passed":true},"type_check":{"passed":true},"custom":{}}}`, string(said.Payload))
		t.asked("msg-1", "r-1", "kettle")
		require.NoError(t, t.shutDown(done))
		requireSilence(t)
	})
}

// TestReviewsThatCannotBeMade checks that a failed review sends no verdict.
func TestReviewsThatCannotBeMade(t *testing.T) {
	converse(t, func(t *talk) {
		results := []func() (agents.ReviewResult, error){
			func() (agents.ReviewResult, error) { return agents.ReviewResult{}, errors.New("no eyes") },
			func() (agents.ReviewResult, error) { panic("oh no") },
			func() (agents.ReviewResult, error) { return agents.ReviewResult{Verdict: "fine"}, nil },
		}
		s := t.as(judge)
		done := doing(func() error {
			return s.Review(t.Context(), func(context.Context, agents.ReviewRequest) (agents.ReviewResult, error) {
				next := results[0]
				results = results[1:]
				return next()
			})
		})
		for i, want := range []string{"no eyes", "it panicked: oh no", "verdict must be one of"} {
			id := fmt.Sprintf("msg-%d", i)
			t.asked(id, "r-1", "kettle")
			if i == 1 {
				t.report("error")
			}
			var feedback agents.Feedback
			require.Equal(t, id, t.hears(session.TypeFeedback, &feedback).ReplyTo)
			require.Contains(t, feedback.Content, want)
			require.True(t, feedback.ActionRequired)
			require.Equal(t, []string{"kettle", "the review r-1 cannot be made"}, []string{feedback.TaskID, feedback.Subject})
		}
		require.NoError(t, t.shutDown(done))
	})
}

func TestResultsOfReviewsThatAreRefused(t *testing.T) {
	converse(t, func(t *talk) {
		open := &wire.Error{Code: wire.CodeConflict, Message: "something is open"}
		s := t.as(judge)
		done := doing(func() error {
			return s.ReviewAs(t.Context(), agents.Reviewer{
				Do: func(context.Context, agents.ReviewRequest) (agents.ReviewResult, error) {
					return agents.ReviewResult{Verdict: session.VerdictApproved}, nil
				},
				Correct: func(_ context.Context, r agents.ReviewRequest, result agents.ReviewResult, why *agents.Undelivered) (agents.ReviewResult, error) {
					require.Equal(t, session.VerdictApproved, result.Verdict)
					result.Verdict, result.Summary = session.VerdictApproved, why.Message
					return result, nil
				},
			})
		})
		t.asked("msg-1", "r-1", "kettle")
		for range 3 {
			t.undeliver(t.hears(session.TypeReviewResult, nil), open)
		}
		var feedback agents.Feedback
		t.hears(session.TypeFeedback, &feedback)
		require.Equal(t, "not delivered: something is open (INVALID_REQUEST)", feedback.Content)
		require.Contains(t, string(t.report("log").Payload), "something is open")
		require.NoError(t, t.shutDown(done))
	})
}

// TestReviewsOfWhatIsAborted checks that the review of an aborted task is cancelled.
func TestReviewsOfWhatIsAborted(t *testing.T) {
	converse(t, func(t *talk) {
		why := make(chan error, 2)
		s := t.as(judge)
		done := doing(func() error {
			return s.ReviewAs(t.Context(), agents.Reviewer{Capacity: 2, Do: func(ctx context.Context, _ agents.ReviewRequest) (agents.ReviewResult, error) {
				<-ctx.Done()
				why <- context.Cause(ctx)
				return agents.ReviewResult{}, ctx.Err()
			}})
		})
		t.asked("msg-1", "r-1", "kettle")
		t.asked("msg-2", "r-2", "lid")
		t.asked("msg-3", "r-3", "waiting")
		t.notify(agents.TaskCancelled, "kettle")
		require.ErrorIs(t, <-why, agents.ErrCancelled)
		t.notify(agents.TaskCancelled, "waiting")
		require.ErrorContains(t, t.shutDown(done), "of the tasks left unfinished")
		requireSilence(t)
	})
}
