package agents_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// A worker needs one call. Its handler may send requests and events.
func ExampleConn_Work() {
	conn, peer := agents.Pipe() // agents.Stdio() in an agent
	go func() {                 // the orchestrator's part
		defer peer.Close()
		_ = peer.Notify(agents.TaskAssigned, wire.TaskNotice{TaskID: "task-1"})
		request, _ := peer.Request()
		_ = peer.Answer(request.ID, &wire.TaskReply{Task: wire.Task{ID: "task-1", Name: "greet", Payload: wire.Raw(`{"who":"Ann"}`)}})
		request, _ = peer.Request()
		fmt.Println(request.Operation, string(request.Payload))
		_ = peer.Answer(request.ID, nil)
		_ = peer.Notify(agents.Shutdown, wire.ShutdownNotice{GracePeriod: 3000})
	}()

	err := conn.Work(context.Background(), func(ctx context.Context, task wire.Task) (any, error) {
		var about struct {
			Who string `json:"who"`
		}
		if err := object.DecodeOwn(task.Payload, &about); err != nil {
			return nil, err
		}
		return "Hello, " + about.Who, nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) // unfinished tasks must not count as done
	}
	// Output: complete-task {"taskId":"task-1","result":"Hello, Ann"}
}

// An agent that is an actor of the bus handles mail beside its tasks.
func ExampleWorker_mail() {
	conn, peer := agents.Pipe()
	go func() { // the orchestrator's part
		defer peer.Close()
		_ = peer.Notify(agents.Message, mail.Message{Seq: 41, From: "HO:h1", Topic: mail.TopicDirect, Payload: wire.Raw(`{"text":"hello"}`)})
		_ = peer.Notify(agents.Message, mail.Message{Seq: 42, From: "GO", Topic: mail.TopicTaskAssigned, Payload: wire.Raw(`{}`)})
		for range 4 {
			request, _ := peer.Request()
			switch request.Operation {
			case "send-message":
				fmt.Println("to GO: it failed")
			case "ack-messages":
				fmt.Println("dealt with", string(request.Payload))
			case "heartbeat": // at once and then every minute
			}
			_ = peer.Answer(request.ID, nil)
		}
	}()

	err := conn.WorkAs(context.Background(), agents.Worker{Mail: func(_ context.Context, received mail.Message) error {
		switch received.Topic {
		case mail.TopicTaskAssigned:
			return agents.Fatal("NO_REPO", errors.New("it does not say where to work"))
		case mail.TopicDirect:
			fmt.Println(received.From, "says", string(received.Payload))
		}
		return nil // also right for unknown topics
	}})
	fmt.Println(err)
	// Output:
	// HO:h1 says {"text":"hello"}
	// dealt with {"seq":41}
	// to GO: it failed
	// dealt with {"seq":42}
	// <nil>
}

// A program that runs a coding agent asks a person before a tool is used, and reports the usage.
func ExampleConn_AskPermission() {
	conn, peer := agents.Pipe()
	go func() { // the orchestrator's part
		defer peer.Close()
		_ = peer.Notify(agents.TaskAssigned, wire.TaskNotice{TaskID: "task-1"})
		request, _ := peer.Request()
		_ = peer.Answer(request.ID, &wire.TaskReply{Task: wire.Task{ID: "task-1", Payload: wire.Raw(`{"command":"rm -r web"}`)}})
		request, _ = peer.Request()
		_ = peer.Answer(request.ID, &wire.UserAnswer{Choice: "no", Message: "keep the old pages"})
		request, _ = peer.Request()
		fmt.Println(request.Operation, string(request.Payload))
		_ = peer.Answer(request.ID, nil)
		_ = peer.Notify(agents.Shutdown, wire.ShutdownNotice{GracePeriod: 3000})
	}()

	conversation := cmp.Or(os.Getenv("ORC_CONVERSATION"), "conv-1") // the program resumes it
	_ = conn.ReportConversation(activity.Conversation{ID: conversation, Kind: "claude"})
	err := conn.Work(context.Background(), func(ctx context.Context, task wire.Task) (any, error) {
		_ = conn.ReportTurn(activity.Turn{State: activity.Waiting, What: "rm -r web", TaskID: task.ID})
		answer, err := conn.AskPermission(ctx, wire.AskPermission{
			TaskID: task.ID, Tool: "Bash", Title: "rm -r web", Input: task.Payload,
			Choices: []activity.PermissionChoice{{ID: "yes", Kind: activity.AllowOnce}, {ID: "no", Kind: activity.Deny}},
		})
		if err != nil {
			return nil, err // ctx may have ended; the question is then withdrawn
		}
		_ = conn.ReportUsage(activity.Usage{TaskID: task.ID, Input: 1200, Output: 340, Cost: 0.03, Currency: "USD"})
		if answer.Choice != "yes" {
			return nil, fmt.Errorf("not allowed: %s", answer.Message)
		}
		return nil, nil
	})
	fmt.Println(err)
	// Output:
	// fail-task {"taskId":"task-1","error":"not allowed: keep the old pages"}
	// <nil>
}

// Ask sends any request of the orchestrator by its name.
func ExampleConn_Ask() {
	conn, peer := agents.Pipe()
	go func() {
		defer peer.Close()
		request, _ := peer.Request()
		_ = peer.Answer(request.ID, &wire.TaskList{Tasks: []wire.Task{{Name: "spec", Status: "queued"}}})
		request, _ = peer.Request()
		_ = peer.Refuse(request.ID, &wire.Error{Code: wire.CodeDenied, Message: "issue-key is for operators"})
	}()

	var list wire.TaskList
	err := conn.Ask(context.Background(), "query-tasks", wire.QueryTasks{Status: "queued"}, &list)
	fmt.Println(list.Tasks[0].Name, err)

	err = conn.Ask(context.Background(), "issue-key", map[string]string{"agent": "me"}, nil)
	var refused *agents.Refusal
	if errors.As(err, &refused) {
		fmt.Println(refused.Code, "-", refused.Message)
	}
	// Output:
	// spec <nil>
	// UNAUTHORIZED - issue-key is for operators
}

// News yields all notices to an agent that handles them itself.
func ExampleConn_News() {
	conn, peer := agents.Pipe()
	go func() {
		defer peer.Close()
		_ = peer.Notify(agents.TaskCancelled, wire.TaskNotice{TaskID: "task-1", Reason: wire.DependencyFailed})
		_ = peer.Notify(agents.Shutdown, wire.ShutdownNotice{GracePeriod: 30000, Reason: "Orchestrator stopping"})
	}()

	for notice := range conn.News(context.Background()) {
		switch notice.Name {
		case agents.TaskCancelled:
			var about wire.TaskNotice
			if notice.Read(&about) == nil {
				fmt.Printf("%s is off: %s\n", about.TaskID, about.Reason)
			}
		case agents.Shutdown:
			fmt.Println("goodbye")
		}
	}
	// Output:
	// task-1 is off: Dependency failed
	// goodbye
}

// Events have no answer. Progress refuses an invalid one.
func ExampleConn_Progress() {
	conn, peer := agents.Pipe()
	defer peer.Close()
	go func() { _ = conn.Progress("task-1", 0.75, "tests pass") }()

	_, message, _ := peer.Hear()
	if report, ok := message.(*wire.AgentEvent); ok {
		fmt.Println(report.Name, string(report.Payload))
	}
	fmt.Println(conn.Progress("task-1", 75, "in per cent"))
	// Output:
	// progress {"taskId":"task-1","progress":0.75,"message":"tests pass"}
	// event progress: progress must be from 0 to 1
}

// An agent delegates work to another agent and provides the input that it asks for.
func ExampleConn_Delegate() {
	conn, peer := agents.Pipe() // agents.Stdio() in an agent
	go func() {                 // the part of the other agents
		defer peer.Close()
		request, _ := peer.Delegated()
		fmt.Println("asked:", request.Type, "of", request.Routing.Target)
		_ = peer.Respond(delegation.Response{ID: request.ID, Status: delegation.InputRequired, Question: "Rye or wheat?"})
		line, _, _ := peer.Hear()
		act, _ := wire.ReadTaskAct([]byte(line), 100)
		fmt.Println("brought:", string(act.Input))
		_ = peer.Respond(delegation.Response{ID: request.ID, Status: delegation.Completed, Result: wire.Raw(`{"loaves":2}`)})
	}()

	ctx := context.Background()
	delegated, err := conn.Delegate(ctx, delegation.Request{
		Type: "bake", Payload: wire.Raw(`{"grams":1000}`), Routing: delegation.Routing{Target: "baker"},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for response := range delegated.Responses(ctx) {
		if response.Status == delegation.InputRequired {
			fmt.Println(response.Question)
			if err := delegated.Update(ctx, "rye"); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
	var made struct {
		Loaves int `json:"loaves"`
	}
	response, err := delegated.Wait(ctx)
	if err == nil {
		err = response.Read(&made)
	}
	fmt.Println(made.Loaves, err)
	// Output:
	// asked: bake of baker
	// Rye or wheat?
	// brought: "rye"
	// 2 <nil>
}

// The error of failed work has a code and a mark whether another try may succeed.
func ExampleDelegation_Wait() {
	conn, peer := agents.Pipe()
	go func() {
		defer peer.Close()
		request, _ := peer.Delegated()
		_ = peer.Respond(delegation.Response{ID: request.ID, Status: delegation.Failed, Fault: &delegation.Fault{
			Code: delegation.FaultMCPNotConnected, Message: "the mill is off", Recoverable: true,
		}})
	}()

	delegated, err := conn.Delegate(context.Background(), delegation.Request{ID: "loaf", Type: "bake"})
	if err == nil {
		_, err = delegated.Wait(context.Background())
	}
	var fault *agents.Fault
	if errors.As(err, &fault) && fault.Recoverable {
		fmt.Println("later, perhaps:", err)
	}
	// Output: later, perhaps: task loaf: the mill is off (MCP_NOT_CONNECTED)
}

// An agent does work that other agents delegate to it. The return value of a skill is the
// result.
func ExampleConn_Serve() {
	conn, peer := agents.Pipe()
	go func() { // the orchestrator's part
		defer peer.Close()
		_ = peer.Hand(delegation.Request{ID: "loaf", Type: "bake", Payload: wire.Raw(`{"loaves":2}`)})
		question, _ := peer.Response()
		fmt.Println(question.Status, question.Question)
		_ = peer.Act(delegation.Act{ID: "loaf", Type: delegation.ActUpdate, Input: wire.Raw(`"rye"`)})
		goesOn, _ := peer.Response()
		fmt.Println(goesOn.Status)
		bread, _ := peer.Response()
		fmt.Println(bread.Status, string(bread.Result))
		_ = peer.Hand(delegation.Request{ID: "sign", Type: "paint"})
		sign, _ := peer.Response()
		fmt.Println(sign.Err())
		_ = peer.Notify(agents.Shutdown, wire.ShutdownNotice{GracePeriod: 3000})
	}()

	err := conn.Serve(context.Background(), map[string]agents.Skill{
		"bake": func(ctx context.Context, job *agents.Delegated) (any, error) {
			var order struct {
				Loaves int `json:"loaves"`
			}
			if err := object.DecodeOwn(job.Payload, &order); err != nil {
				return nil, &agents.Fault{Code: delegation.FaultInvalidInput, Message: err.Error()}
			}
			flour, err := job.Ask(ctx, "Rye or wheat?", wire.Option{Label: "Rye", Value: "rye"}, wire.Option{Label: "Wheat", Value: "wheat"})
			if err != nil {
				return nil, err
			}
			return map[string]any{"flour": flour, "loaves": order.Loaves}, nil
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) // unfinished tasks must not count as done
	}
	// Output:
	// input_required Rye or wheat?
	// in_progress
	// completed {"flour":"rye","loaves":2}
	// task sign: this agent has no skill for paint (CAPABILITY_NOT_FOUND)
}

// A skill delegates a part of its job. The part stays in the same trace.
func ExampleDelegated_Delegate() {
	conn, peer := agents.Pipe()
	go func() {
		defer peer.Close()
		_ = peer.Hand(delegation.Request{
			ID: "loaf", Type: "bake", Routing: delegation.Routing{Chain: []string{"cook"}}, Observability: delegation.Trace{TraceID: "trace-1"},
		})
		part, _ := peer.Delegated()
		fmt.Println(part.Type, part.Context.ParentTaskID, part.Observability.TraceID, part.Routing.Chain)
		_ = peer.Respond(delegation.Response{ID: part.ID, Status: delegation.Completed, Result: wire.Raw(`{"grams":500}`)})
		response, _ := peer.Response()
		fmt.Println(string(response.Result))
	}()

	err := conn.Serve(context.Background(), map[string]agents.Skill{
		"bake": func(ctx context.Context, job *agents.Delegated) (any, error) {
			part, err := job.Delegate(ctx, delegation.Request{Type: "mill"})
			if err != nil {
				return nil, err
			}
			flour, err := part.Wait(ctx)
			if err != nil {
				return nil, err // the job fails with its code and details
			}
			return map[string]any{"bread of": flour.Result}, nil
		},
	})
	fmt.Println(err)
	// Output:
	// mill loaf trace-1 [cook]
	// {"bread of":{"grams":500}}
	// <nil>
}

// kitchen returns the identity of an agent in the examples. An agent started by the orchestrator
// uses an empty Identity.
func kitchen(who session.Agent) agents.Identity {
	return agents.Identity{Agent: who.AgentID, Type: who.AgentType, Session: "kitchen"}
}

// An architect assigns a task, has it reviewed, and has it revised until it is approved.
func ExampleArchitect_Deliver() {
	conn, peer := agents.Pipe() // agents.Stdio() in an agent
	go func() {                 // the part of the other agents
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
