package agents_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// An agent delegates work to another agent and provides the input that it asks for.
func ExampleConn_Delegate() {
	conn, peer := agents.Pipe() // agents.Stdio() in an agent
	go func() {                 // the others' part
		defer peer.Close()
		request, _ := peer.Delegated()
		fmt.Println("asked:", request.Type, "of", request.Routing.Target)
		_ = peer.Respond(wire.TaskResponse{ID: request.ID, Status: wire.ResponseInputRequired, Question: "Rye or wheat?"})
		line, _, _ := peer.Hear()
		act, _ := wire.ReadTaskAct([]byte(line), 100)
		fmt.Println("brought:", string(act.Input))
		_ = peer.Respond(wire.TaskResponse{ID: request.ID, Status: wire.ResponseCompleted, Result: wire.Raw(`{"loaves":2}`)})
	}()

	ctx := context.Background()
	delegation, err := conn.Delegate(ctx, wire.TaskRequest{
		Type: "bake", Payload: wire.Raw(`{"grams":1000}`), Routing: wire.TaskRouting{Target: "baker"},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for response := range delegation.Responses(ctx) {
		if response.Status == wire.ResponseInputRequired {
			fmt.Println(response.Question)
			if err := delegation.Update(ctx, "rye"); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
	var made struct {
		Loaves int `json:"loaves"`
	}
	response, err := delegation.Wait(ctx)
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
		_ = peer.Respond(wire.TaskResponse{ID: request.ID, Status: wire.ResponseFailed, Fault: &wire.TaskFault{
			Code: wire.FaultMCPNotConnected, Message: "the mill is off", Recoverable: true,
		}})
	}()

	delegation, err := conn.Delegate(context.Background(), wire.TaskRequest{ID: "loaf", Type: "bake"})
	if err == nil {
		_, err = delegation.Wait(context.Background())
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
		_ = peer.Hand(wire.TaskRequest{ID: "loaf", Type: "bake", Payload: wire.Raw(`{"loaves":2}`)})
		question, _ := peer.Response()
		fmt.Println(question.Status, question.Question)
		_ = peer.Act(wire.TaskAct{ID: "loaf", Type: wire.ActUpdate, Input: wire.Raw(`"rye"`)})
		goesOn, _ := peer.Response()
		fmt.Println(goesOn.Status)
		bread, _ := peer.Response()
		fmt.Println(bread.Status, string(bread.Result))
		_ = peer.Hand(wire.TaskRequest{ID: "sign", Type: "paint"})
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
				return nil, &agents.Fault{Code: wire.FaultInvalidInput, Message: err.Error()}
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
		_ = peer.Hand(wire.TaskRequest{
			ID: "loaf", Type: "bake", Routing: wire.TaskRouting{Chain: []string{"cook"}}, Observability: wire.TaskTrace{TraceID: "trace-1"},
		})
		part, _ := peer.Delegated()
		fmt.Println(part.Type, part.Context.ParentTaskID, part.Observability.TraceID, part.Routing.Chain)
		_ = peer.Respond(wire.TaskResponse{ID: part.ID, Status: wire.ResponseCompleted, Result: wire.Raw(`{"grams":500}`)})
		response, _ := peer.Response()
		fmt.Println(string(response.Result))
	}()

	err := conn.Serve(context.Background(), map[string]agents.Skill{
		"bake": func(ctx context.Context, job *agents.Delegated) (any, error) {
			part, err := job.Delegate(ctx, wire.TaskRequest{Type: "mill"})
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
