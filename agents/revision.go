package agents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"orchestrator/wire/session"
)

// asking fills in the empty fields of a review request from the task, with a new id.
func (t *SessionTask) asking(r ReviewRequest) ReviewRequest {
	task := t.work.Task
	r.ReviewID, r.TaskID = cmp.Or(r.ReviewID, "review-"+uuid.NewString()), t.id
	if r.Scope.Files == nil {
		r.Scope.Files = t.done.Changes.Touched()
	}
	if r.Scope.FocusAreas == nil {
		r.Scope.FocusAreas = []string{session.FocusLogic}
	}
	r.Context.TaskDescription = cmp.Or(r.Context.TaskDescription, t.first)
	if r.Context.AcceptanceCriteria == nil {
		r.Context.AcceptanceCriteria = task.AcceptanceCriteria
	}
	if r.Context.PreviousReviews == nil {
		r.Context.PreviousReviews = t.reviews
	}
	return r
}

// reviewed records a review for the context of the next one.
func (t *SessionTask) reviewed(result ReviewResult) {
	key := []string{}
	for _, f := range result.Findings {
		if f.FixedIn == 0 && f.Severity != session.SeveritySuggestion {
			key = append(key, f.String())
		}
	}
	t.reviews = append(t.reviews[:len(t.reviews):len(t.reviews)], ReviewSummary{
		Number: int64(len(t.reviews)) + 1, Verdict: result.Verdict, KeyFindings: key,
	})
}

// Revise assigns the task to its developer again. The findings of the review are in the
// description and in a previous attempt.
func (t *SessionTask) Revise(ctx context.Context, result ReviewResult) error {
	return t.ReviseAs(ctx, t.id, result)
}

// ReviseAs is like Revise, but gives the task a new id.
func (t *SessionTask) ReviseAs(ctx context.Context, id string, result ReviewResult) error {
	a := t.architect
	a.mu.Lock()
	a.tasks.enter(id, t)
	a.mu.Unlock()
	work, said := t.work, requested(&result)
	work.Task.TaskID = id
	work.Task.Description = strings.TrimLeft(t.first+"\n\n"+said, "\n")
	attempts := work.Task.Context.PreviousAttempts
	work.Task.Context.PreviousAttempts = append(slices.Clone(attempts), Attempt{
		Number: int64(len(attempts)) + 1, Outcome: result.Verdict, Feedback: said,
	})
	return t.assign(ctx, t.developer, work)
}

// requested returns the changes that a result asks for, as text.
func requested(r *ReviewResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The review says %s: %s", r.Verdict, r.Summary)
	for _, c := range r.RequiredChanges {
		fmt.Fprintf(&b, "\n- %s: %s", c.Priority, c.Description)
	}
	for _, f := range r.Findings {
		if f.FixedIn == 0 {
			fmt.Fprintf(&b, "\n- %s", f)
		}
	}
	return b.String()
}
