package bus_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"orchestrator/agents/bus"
	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// An actor handles mail and reports the outcome of each task.
func Example() {
	house := newHouse() // plays the orchestrator
	house.has(mail.TopicTaskAssigned, `{"repo":"shop"}`)
	house.has(mail.TopicTaskAssigned, `{}`)
	house.has(mail.TopicDirect, `{"text":"that is all"}`)
	server := httptest.NewServer(house)
	defer server.Close()

	client := &bus.Client{Actor: "HO:h1", URL: server.URL, Token: "its token"} // or bus.FromEnv()
	ctx, stop := context.WithCancel(context.Background())
	err := client.Receive(ctx, bus.Handlers{
		mail.TopicTaskAssigned: func(ctx context.Context, received mail.Message) error {
			var task struct {
				Repo string `json:"repo"`
			}
			if err := object.DecodeOwn(received.Payload, &task); err != nil || task.Repo == "" {
				return bus.Fatal("NO_REPO", errors.New("it does not say where to work"))
			}
			_, err := client.Send(ctx, wire.SendMessage{
				To: received.From, Topic: mail.TopicTaskCompleted, ReplyTo: received.Seq, Payload: wire.Raw(`{"summary":"done"}`),
			})
			return err
		},
		mail.TopicDirect: func(context.Context, mail.Message) error {
			stop()
			return nil
		},
	})
	fmt.Println(err)
	for _, received := range house.letters("GO", 0) {
		fmt.Println(received.Topic, "about", *received.ReplyTo, string(received.Payload))
	}
	// Output:
	// context canceled
	// task.completed about 10 {"summary":"done"}
	// task.failed about 20 {"error_code":"NO_REPO","error":"it does not say where to work","topic":"task.assigned"}
}
