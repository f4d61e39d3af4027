package agents_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// leading calls Session.Lead in the background and returns the channel of its error.
func (t *talk) leading(do func(ctx context.Context, a *agents.Architect) error) <-chan error {
	s := t.as(lead)
	return doing(func() error { return s.Lead(t.Context(), do) })
}

// delivering calls Deliver in the background and returns the channel of its error and the
// delivery.
func (t *talk) delivering(o agents.Order) (<-chan error, *agents.Delivery) {
	delivery := new(agents.Delivery)
	return t.leading(func(ctx context.Context, a *agents.Architect) (err error) {
		*delivery, err = a.Deliver(ctx, o)
		return err
	}), delivery
}

func (t *talk) completes(assignment *agents.Said, what agents.Completion) {
	t.Helper()
	var work agents.Assignment
	require.NoError(t, assignment.Read(&work))
	what.TaskID = work.Task.TaskID
	if what.Status == "" {
		what.Status = session.OutcomeCompleted
	}
	t.deliver(spoken{from: coder, to: lead, replyTo: assignment.MessageID, kind: session.TypeTaskCompletion, payload: what})
}

func (t *talk) judges(request *agents.Said, result agents.ReviewResult) {
	t.Helper()
	var asked agents.ReviewRequest
	require.NoError(t, request.Read(&asked))
	result.ReviewID, result.TaskID = asked.ReviewID, asked.TaskID
	t.deliver(spoken{from: judge, to: lead, replyTo: request.MessageID, kind: session.TypeReviewResult, payload: result})
}

// shows answers the request for the session with the state of a task.
func (t *talk) shows(task wire.SessionTask) {
	t.Helper()
	request := t.request("get-session")
	require.JSONEq(t, `{"session_id":"kitchen","task_id":"`+task.TaskID+`","limit":1}`, string(request.Payload))
	t.answer(request, map[string]any{"tasks": []wire.SessionTask{{TaskID: "another", Phase: session.PhaseOver}, task}})
	synctest.Wait()
}

var changes = agents.ReviewResult{
	Verdict: session.VerdictChangesRequested, Summary: "almost",
	Findings: []agents.Finding{
		{FindingID: "f-1", Severity: session.SeverityMajor, Category: session.CategoryBug, Description: "it leaks", Suggestion: "a lid", Location: agents.Location{File: "kettle/a", LineStart: 3}},
		{FindingID: "f-2", Severity: session.SeverityMinor, Category: session.CategoryStyle, Description: "it was blue", FixedIn: 1, Location: agents.Location{File: "kettle/b"}},
		{FindingID: "f-3", Severity: session.SeveritySuggestion, Category: session.CategoryStyle, Description: "it could sing", Location: agents.Location{File: "kettle/b"}},
	},
	RequiredChanges: []agents.RequiredChange{{ChangeID: "c-1", Priority: session.FixMust, Findings: []string{"f-1"}, Description: "make it tight"}},
}

var approval = agents.ReviewResult{Verdict: session.VerdictApproved, Summary: "fine"}

// TestDeliver checks a delivery from assignment to approval: completion, review, a revision with
// the findings, and a second review.
func TestDeliver(t *testing.T) {
	converse(t, func(t *talk) {
		done, delivery := t.delivering(agents.Order{Developer: "coder", Reviewer: "judge", Assignment: boil("kettle")})
		first := t.hears(session.TypeTaskAssignment, nil)
		t.deliver(spoken{from: coder, to: lead, kind: session.TypeAcknowledgment, replyTo: first.MessageID, payload: map[string]any{}})
		t.completes(first, agents.Completion{Changes: agents.FileChanges{Deleted: []string{"kettle/a"}}})

		var asked agents.ReviewRequest
		request := t.hears(session.TypeReviewRequest, &asked)
		require.Equal(t, []string{"kettle/a"}, asked.Scope.Files)
		require.Equal(t, []string{session.FocusLogic}, asked.Scope.FocusAreas)
		require.Equal(t, agents.ReviewContext{TaskDescription: "boil water", AcceptanceCriteria: []string{"it boils"}}, asked.Context)
		t.judges(request, changes)
		t.shows(wire.SessionTask{TaskID: "kettle", Phase: session.PhaseRevise})

		var again agents.Assignment
		second := t.hears(session.TypeTaskAssignment, &again)
		require.NotEqual(t, first.MessageID, second.MessageID)
		const found = "The review says changes_requested: almost\n- must_fix: make it tight\n" +
			"- major (bug) in kettle/a:3: it leaks Suggestion: a lid\n- suggestion (style) in kettle/b: it could sing"
		require.Equal(t, "boil water\n\n"+found, again.Task.Description)
		require.Equal(t, []agents.Attempt{{Number: 1, Outcome: session.VerdictChangesRequested, Feedback: found}}, again.Task.Context.PreviousAttempts)
		require.Equal(t, []string{"kettle/**"}, again.Task.Constraints.Scope)
		t.completes(second, agents.Completion{Status: session.OutcomePartial})

		var once agents.ReviewRequest
		last := t.hears(session.TypeReviewRequest, &once)
		require.NotEqual(t, asked.ReviewID, once.ReviewID)
		require.Equal(t, "boil water", once.Context.TaskDescription)
		require.Equal(t, []agents.ReviewSummary{{
			Number: 1, Verdict: session.VerdictChangesRequested, KeyFindings: []string{"major (bug) in kettle/a:3: it leaks Suggestion: a lid"},
		}}, once.Context.PreviousReviews)
		t.judges(last, approval)

		require.NoError(t, <-done)
		require.Equal(t, []any{"kettle", 2, session.VerdictApproved, false}, []any{delivery.TaskID, delivery.Reviews, delivery.Review.Verdict, delivery.Forced})
		for _, said := range []*agents.Said{request, second, last} {
			require.Equal(t, first.CorrelationID, said.CorrelationID)
		}
	})
}

// TestDeliverUnderNewNames checks that Rename gives each attempt its own id in the same chain.
func TestDeliverUnderNewNames(t *testing.T) {
	converse(t, func(t *talk) {
		done, delivery := t.delivering(agents.Order{
			Developer: "coder", Reviewer: "judge", Assignment: boil("kettle"),
			Rename: func(attempt int) string { return "kettle-" + string(rune('0'+attempt)) },
		})
		first := t.hears(session.TypeTaskAssignment, nil)
		t.completes(first, agents.Completion{})
		t.judges(t.hears(session.TypeReviewRequest, nil), changes)
		t.shows(wire.SessionTask{TaskID: "kettle", Phase: session.PhaseRevise})
		var again agents.Assignment
		second := t.hears(session.TypeTaskAssignment, &again)
		require.Equal(t, []string{"kettle-2", first.CorrelationID}, []string{again.Task.TaskID, second.CorrelationID})
		t.completes(second, agents.Completion{})
		t.judges(t.hears(session.TypeReviewRequest, nil), approval)
		require.NoError(t, <-done)
		require.Equal(t, "kettle-2", delivery.TaskID)
	})
}

// TestResume checks that an architect that continues a revision waits for the completion of that
// revision. The completion before the review is delivered to it again, before and after it asks.
func TestResume(t *testing.T) {
	converse(t, func(t *talk) {
		order := agents.Order{Developer: "coder", Reviewer: "judge", Assignment: boil("kettle")}
		done := t.leading(func(ctx context.Context, a *agents.Architect) error {
			_, err := a.Task("kettle").Resume(ctx, order)
			return err
		})
		again := func(id string) spoken {
			return spoken{id: id, from: coder, to: lead, kind: session.TypeTaskCompletion, payload: agents.Completion{TaskID: "kettle", Status: session.OutcomeCompleted}}
		}
		first, second := uuid.NewString(), uuid.NewString()
		t.deliver(again(first))
		for page, id := range []string{first, second} {
			request := t.request("get-session")
			require.JSONEq(t, fmt.Sprintf(`{"session_id":"kitchen","task_id":"kettle","to":"lead","limit":10000%s}`, []string{"", `,"after":7`}[page]), string(request.Payload))
			t.answer(request, map[string]any{
				"tasks":    []wire.SessionTask{{TaskID: "kettle", Phase: session.PhaseRevise, Developer: "coder", CorrelationID: "boiling"}},
				"messages": []any{map[string]any{"message_id": id, "message_type": session.TypeTaskCompletion}},
				"more":     page == 0, "next": 7,
			})
		}
		assignment := t.hears(session.TypeTaskAssignment, nil)
		t.deliver(again(second))
		t.completes(assignment, agents.Completion{Changes: agents.FileChanges{Deleted: []string{"kettle/lid"}}})
		var asked agents.ReviewRequest
		request := t.hears(session.TypeReviewRequest, &asked)
		require.Equal(t, []string{"kettle/lid"}, asked.Scope.Files, "it was the completion of an earlier attempt")
		t.judges(request, approval)
		require.NoError(t, <-done)
	})
}

func TestDeliverWithoutAReviewer(t *testing.T) {
	for status, want := range map[string]error{session.OutcomeCompleted: nil, session.OutcomePartial: agents.ErrIncomplete, session.OutcomeFailed: agents.ErrIncomplete} {
		converse(t, func(t *talk) {
			order := agents.Order{Developer: "coder", Assignment: boil("")}
			done, delivery := t.delivering(order)
			t.completes(t.hears(session.TypeTaskAssignment, nil), agents.Completion{Status: status, Summary: "so"})
			require.ErrorIs(t, <-done, want)
			require.Equal(t, "so", delivery.Completion.Summary)
			require.Len(t, delivery.TaskID, 36, "it has got an id")
		})
	}
}

// TestDeliveriesThatComeToNothing checks that failed deliveries return an error to the
// architect.
func TestDeliveriesThatComeToNothing(t *testing.T) {
	taken := &wire.Error{Code: wire.CodeConflict, Message: "it is over", Details: map[string]any{"reason": "task_id_taken"}}
	reviewed := func(t *talk, result agents.ReviewResult) {
		t.completes(t.hears(session.TypeTaskAssignment, nil), agents.Completion{})
		t.judges(t.hears(session.TypeReviewRequest, nil), result)
	}
	usedUp := func(task wire.SessionTask) func(t *talk) {
		return func(t *talk) {
			reviewed(t, changes)
			task.TaskID, task.Iteration, task.MaxIterations = "kettle", 3, 3
			t.shows(task)
		}
	}
	refused := func(task wire.SessionTask) func(t *talk) {
		return func(t *talk) {
			reviewed(t, changes)
			require.NoError(t, t.peer.Refuse(t.request("get-session").ID, &wire.Error{Code: wire.CodeDenied, Message: "no"}))
			t.undeliver(t.hears(session.TypeTaskAssignment, nil), taken)
			task.TaskID = "kettle"
			t.shows(task)
		}
	}
	for name, each := range map[string]struct {
		goes func(t *talk)
		want string // the error
	}{
		"it cannot be assigned": {
			goes: func(t *talk) { t.undeliver(t.hears(session.TypeTaskAssignment, nil), taken) },
			want: "not delivered: it is over (INVALID_REQUEST)",
		},
		"it is rejected": {
			goes: func(t *talk) {
				reviewed(t, agents.ReviewResult{Verdict: session.VerdictRejected})
			},
			want: agents.ErrRejected.Error(),
		},
		"it cannot be reviewed": {
			goes: func(t *talk) {
				t.completes(t.hears(session.TypeTaskAssignment, nil), agents.Completion{})
				request := t.hears(session.TypeReviewRequest, nil)
				feedback := spoken{from: judge, to: lead, kind: session.TypeFeedback, replyTo: request.MessageID, payload: agents.Feedback{
					Type: session.FeedbackClarification, Subject: "no", Content: "no eyes", ActionRequired: true, TaskID: "another",
				}}
				t.deliver(feedback)
				feedback.payload = agents.Feedback{Type: session.FeedbackGuidance, Content: "nice", TaskID: "kettle"}
				t.deliver(feedback)
				feedback.payload = agents.Feedback{Type: session.FeedbackClarification, Subject: "no", Content: "no eyes", ActionRequired: true, TaskID: "kettle"}
				t.deliver(feedback)
			},
			want: agents.ErrUnreviewed.Error() + ": no: no eyes",
		},
		"there is no reviewer": {
			goes: func(t *talk) {
				t.completes(t.hears(session.TypeTaskAssignment, nil), agents.Completion{})
				t.undeliver(t.hears(session.TypeReviewRequest, nil), &wire.Error{Code: wire.CodeTimeout, Message: "judge does not run"})
			},
			want: "not delivered: judge does not run (TIMEOUT)",
		},
		"a person is asked": {
			goes: usedUp(wire.SessionTask{Phase: session.PhaseHuman, State: wire.TaskDone}),
			want: "task kettle is needs_human: changes are requested after 3 of 3 reviews",
		},
		"it is aborted": {
			goes: usedUp(wire.SessionTask{Phase: session.PhaseOver, State: wire.TaskCancelled}),
			want: "task kettle is cancelled: changes are requested after 3 of 3 reviews",
		},
		"it is aborted when done": {
			goes: usedUp(wire.SessionTask{Phase: session.PhaseOver, State: wire.TaskDone, Escalated: session.EscalateAbort}),
			want: "task kettle is cancelled: changes are requested after 3 of 3 reviews",
		},
		"it is over by then": {
			goes: refused(wire.SessionTask{Phase: session.PhaseOver, State: wire.TaskCancelled}),
			want: "task kettle is cancelled: it is over",
		},
		"it goes on elsewhere": {goes: refused(wire.SessionTask{Phase: session.PhaseWorking}), want: "not delivered: it is over (INVALID_REQUEST)"},
		"it is cancelled": {
			goes: func(t *talk) { t.hears(session.TypeTaskAssignment, nil); t.notify(agents.TaskCancelled, "kettle") },
			want: "task kettle is cancelled: for a test",
		},
		"it is in the hands of people": {
			goes: func(t *talk) {
				t.hears(session.TypeTaskAssignment, nil)
				t.notify(agents.TaskUpdated, "kettle")
				t.shows(wire.SessionTask{TaskID: "kettle", Phase: session.PhaseWorking})
				require.NoError(t, t.peer.Notify(agents.TaskUpdated, wire.TaskNotice{TaskID: "kettle", Message: "A person is asked"}))
				t.shows(wire.SessionTask{TaskID: "kettle", Phase: session.PhaseHuman})
			},
			want: "task kettle is needs_human: A person is asked",
		},
		"it cannot be looked at": {
			goes: func(t *talk) {
				t.hears(session.TypeTaskAssignment, nil)
				require.NoError(t, t.peer.Notify(agents.TaskUpdated, wire.TaskNotice{TaskID: "kettle", Message: "something"}))
				require.NoError(t, t.peer.Refuse(t.request("get-session").ID, &wire.Error{Code: wire.CodeDenied, Message: "no"}))
			},
			want: "task kettle: something",
		},
		"its last word is lost": {
			goes: func(t *talk) {
				t.hears(session.TypeTaskAssignment, nil)
				require.NoError(t, t.peer.Notify(agents.TaskUpdated, wire.TaskNotice{TaskID: "kettle", Message: "gone"}))
				t.shows(wire.SessionTask{TaskID: "kettle", Phase: session.PhaseOver, State: wire.TaskFailed})
			},
			want: "task kettle is failed: gone",
		},
		"the agent has to go": {
			goes: func(t *talk) {
				t.hears(session.TypeTaskAssignment, nil)
				require.NoError(t, t.peer.Notify(agents.Shutdown, nil))
			},
			want: agents.ErrShutdown.Error(),
		},
		"the stream ends": {
			goes: func(t *talk) { t.hears(session.TypeTaskAssignment, nil); t.peer.End() },
			want: "the orchestrator has closed the stream: " + io.EOF.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			converse(t, func(t *talk) {
				done, _ := t.delivering(agents.Order{Developer: "coder", Reviewer: "judge", Assignment: boil("kettle")})
				each.goes(t)
				require.EqualError(t, <-done, each.want)
			})
		})
	}
}

// TestForced checks that Deliver succeeds if the task is force-accepted at its review limit,
// both before and after the revision is assigned.
func TestForced(t *testing.T) {
	taken := wire.SessionTask{TaskID: "kettle", Phase: session.PhaseOver, State: wire.TaskDone, Escalated: session.EscalateForceApprove}
	for _, late := range []bool{false, true} {
		converse(t, func(t *talk) {
			done, delivery := t.delivering(agents.Order{Developer: "coder", Reviewer: "judge", Assignment: boil("kettle")})
			t.completes(t.hears(session.TypeTaskAssignment, nil), agents.Completion{})
			t.judges(t.hears(session.TypeReviewRequest, nil), changes)
			if late {
				t.shows(wire.SessionTask{TaskID: "kettle", Phase: session.PhaseRevise})
				t.hears(session.TypeTaskAssignment, nil)
				require.NoError(t, t.peer.Notify(agents.TaskUpdated, wire.TaskNotice{TaskID: "kettle", Message: "Approved all the same"}))
			}
			t.shows(taken)
			require.NoError(t, <-done)
			require.True(t, delivery.Forced)
		})
	}
}

// TestTheLastWordOfATask checks that the news that a task has ended may arrive before its
// completion.
func TestTheLastWordOfATask(t *testing.T) {
	converse(t, func(t *talk) {
		done, delivery := t.delivering(agents.Order{Developer: "coder", Assignment: boil("kettle")})
		assignment := t.hears(session.TypeTaskAssignment, nil)
		t.notify(agents.TaskUpdated, "kettle")
		t.shows(wire.SessionTask{TaskID: "kettle", Phase: session.PhaseOver, State: wire.TaskDone})
		<-time.After(time.Second)
		t.completes(assignment, agents.Completion{Summary: "at last"})
		require.NoError(t, <-done)
		require.Equal(t, "at last", delivery.Completion.Summary)
	})
}

// TestTasksBesideEachOther checks that each task receives only its own messages.
func TestTasksBesideEachOther(t *testing.T) {
	converse(t, func(t *talk) {
		var heard []string
		s := t.as(lead)
		done := doing(func() error {
			return s.LeadAs(t.Context(), agents.Lead{
				Hear: func(said *agents.Said) { heard = append(heard, said.MessageType) },
				Do: func(ctx context.Context, a *agents.Architect) error {
					kettle, err := a.Assign(ctx, "coder", boil("kettle"))
					lid, err2 := a.Assign(ctx, "coder", boil("lid"))
					for _, task := range []*agents.SessionTask{kettle, lid, a.Task("of an earlier life")} {
						completion, failed := task.Completion(ctx)
						if completion.TaskID != task.ID() {
							failed = errors.New("it is another's")
						}
						err = errors.Join(err, failed)
					}
					return errors.Join(err, err2)
				},
			})
		})
		kettle, lid := t.hears(session.TypeTaskAssignment, nil), t.hears(session.TypeTaskAssignment, nil)
		t.completes(lid, agents.Completion{})
		t.deliver(spoken{from: coder, to: lead, kind: session.TypeTaskCompletion, payload: agents.Completion{TaskID: "of an earlier life", Status: session.OutcomeCompleted}})
		t.completes(kettle, agents.Completion{})
		require.NoError(t, <-done)
		require.Len(t, heard, 3)
	})
}

// TestAbort checks that a wait for the completion of an aborted task returns an error.
func TestAbort(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.leading(func(ctx context.Context, a *agents.Architect) error {
			task, err := a.Assign(ctx, "coder", boil("kettle"))
			if err != nil {
				return err
			}
			if err := task.Abort(ctx, "enough", true); err != nil {
				return err
			}
			_, err = task.Completion(ctx)
			return errors.Join(err, a.AbortSession(ctx, coder, "all of it"))
		})
		t.hears(session.TypeTaskAssignment, nil)
		var abort agents.Abort
		require.Equal(t, coder, t.hears(session.TypeAbort, &abort).To)
		require.Equal(t, agents.Abort{Scope: session.AbortTask, TargetID: "kettle", Reason: "enough", CleanupRequired: true}, abort)
		t.hears(session.TypeAbort, &abort)
		require.Equal(t, agents.Abort{Scope: session.AbortSession, TargetID: "kitchen", Reason: "all of it"}, abort)
		var ended *agents.Ended
		require.ErrorAs(t, <-done, &ended)
		require.Equal(t, agents.Ended{TaskID: "kettle", State: wire.TaskCancelled, Why: "enough"}, *ended)
	})
}
