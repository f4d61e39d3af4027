package agents_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
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
		_ = peer.Notify(agents.Message, wire.Mail{Seq: 41, From: "HO:h1", Topic: mail.TopicDirect, Payload: wire.Raw(`{"text":"hello"}`)})
		_ = peer.Notify(agents.Message, wire.Mail{Seq: 42, From: "GO", Topic: mail.TopicTaskAssigned, Payload: wire.Raw(`{}`)})
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

	err := conn.WorkAs(context.Background(), agents.Worker{Mail: func(_ context.Context, received wire.Mail) error {
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
