package agents_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// An agent delegates work to another agent and provides the input that it asks for.
func ExampleConn_Delegate() {
	conn, peer := agents.Pipe() // agents.Stdio() in an agent
	go func() {                 // the others' part
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

// The error of failed work has a code and says whether another try may succeed.
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
