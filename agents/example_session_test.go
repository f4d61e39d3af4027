package agents_test

import (
	"context"
	"fmt"
	"os"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// kitchen returns the identity of an agent in the examples. An agent started by the orchestrator
// uses an empty Identity.
func kitchen(who session.Agent) agents.Identity {
	return agents.Identity{Agent: who.AgentID, Type: who.AgentType, Session: "kitchen"}
}

// An architect assigns a task, has it reviewed, and has it revised until it is approved.
func ExampleArchitect_Deliver() {
	conn, peer := agents.Pipe() // agents.Stdio() in an agent
	go func() {                 // the others' part
		defer peer.Close()
		assignment, _ := peer.Said()
		fmt.Println(assignment.MessageType, "for", assignment.To.AgentID)
		_ = peer.Say(spoken{from: coder, to: lead, kind: session.TypeTaskCompletion, payload: agents.Completion{
			TaskID: "kettle", Status: session.OutcomeCompleted, Changes: agents.FileChanges{Created: []agents.FileChange{{Path: "kettle/lid", Type: session.ChangeCreated}}},
		}}.line())
		var asked agents.ReviewRequest
		request, _ := peer.Said()
		_ = request.Read(&asked)
		fmt.Println(request.MessageType, "of", asked.Scope.Files)
		_ = peer.Say(spoken{from: judge, to: lead, kind: session.TypeReviewResult, payload: agents.ReviewResult{
			ReviewID: asked.ReviewID, TaskID: "kettle", Verdict: session.VerdictApproved, Summary: "fine",
		}}.line())
	}()

	joined, err := conn.OpenSession(kitchen(lead))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	err = joined.Lead(context.Background(), func(ctx context.Context, a *agents.Architect) error {
		delivery, err := a.Deliver(ctx, agents.Order{
			Developer: "coder", Reviewer: "judge", Assignment: agents.Assignment{Task: agents.TaskInput{
				TaskID: "kettle", Description: "The kettle needs a lid", AcceptanceCriteria: []string{"it closes"},
				Constraints: agents.Constraints{Scope: []string{"kettle/**"}},
			}},
		})
		fmt.Println(delivery.TaskID, "is", delivery.Review.Verdict)
		return err
	})
	fmt.Println(err)
	// Output:
	// task_assignment for coder
	// review_request of [kettle/lid]
	// kettle is approved
	// <nil>
}

// A developer does one task after another. The SDK acknowledges each task and reports its
// outcome.
func ExampleSession_Develop() {
	conn, peer := agents.Pipe()
	go func() { // the architect's part, and the orchestrator's
		defer peer.Close()
		_ = peer.Say(spoken{id: "msg-1", from: lead, to: coder, kind: session.TypeTaskAssignment, payload: boil("kettle")}.line())
		for range 3 {
			said, _ := peer.Said()
			fmt.Println(said.MessageType, "in", said.CorrelationID)
		}
		_ = peer.Notify(agents.Shutdown, wire.ShutdownNotice{GracePeriod: 3000})
	}()

	joined, err := conn.OpenSession(kitchen(coder))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	err = joined.Develop(context.Background(), func(ctx context.Context, task *agents.Assigned) (agents.Completion, error) {
		if err := task.Progress(50, "the lid is cut", "kettle/lid"); err != nil {
			return agents.Completion{}, err
		}
		return agents.Completion{
			Summary: "The kettle has a lid",
			Changes: agents.FileChanges{Created: []agents.FileChange{{Path: "kettle/lid", LinesAdded: 12}}},
		}, nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) // unfinished tasks must not count as done
	}
	// Output:
	// acknowledgment in chain
	// task_progress in chain
	// task_completion in chain
}

// A reviewer answers review requests. The checks in a request are commands written by another
// agent, so only the reviewer decides whether to run them.
func ExampleSession_Review() {
	conn, peer := agents.Pipe()
	go func() {
		defer peer.Close()
		_ = peer.Say(spoken{id: "msg-5", from: lead, to: judge, kind: session.TypeReviewRequest, payload: agents.ReviewRequest{
			ReviewID: "review-1", TaskID: "kettle", Scope: agents.ReviewScope{Files: []string{"kettle/lid"}},
		}}.line())
		var result agents.ReviewResult
		said, _ := peer.Said()
		_ = said.Read(&result)
		fmt.Println(result.ReviewID, result.Verdict, result.Findings[0])
		_ = peer.Notify(agents.Shutdown, wire.ShutdownNotice{GracePeriod: 3000})
	}()

	joined, err := conn.OpenSession(kitchen(judge))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	err = joined.Review(context.Background(), func(ctx context.Context, request agents.ReviewRequest) (agents.ReviewResult, error) {
		return agents.ReviewResult{
			Verdict: session.VerdictChangesRequested, Summary: "It does not close",
			Findings: []agents.Finding{{
				FindingID: "loose", Severity: session.SeverityMajor, Category: session.CategoryBug,
				Location: agents.Location{File: request.Scope.Files[0], LineStart: 7}, Description: "the lid is loose", Rationale: "steam gets out",
			}},
			RequiredChanges: []agents.RequiredChange{{
				ChangeID: "tighten", Priority: session.FixMust, Findings: []string{"loose"}, Description: "make it tight",
			}},
		}, nil
	})
	fmt.Println(err)
	// Output:
	// review-1 changes_requested major (bug) in kettle/lid:7: the lid is loose
	// <nil>
}
