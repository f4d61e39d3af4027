// Package bus is a client for actors of the mail bus, on any machine. It talks to the orchestrator
// over HTTP and implements the duties of senders and receivers in the protocol.
//
//	client, err := bus.FromEnv()
//	…
//	sent, err := client.Send(ctx, wire.SendMessage{To: "GO", Topic: wire.TopicTaskCompleted, Payload: result})
//	…
//	err = client.Receive(ctx, bus.Handlers{wire.TopicTaskAssigned: assigned})
//
// An agent that the orchestrator has started can use package agents on its stdin and stdout
// instead.
//
// # Sending
//
// The bus stores mail before it confirms it. If the bus is unreachable or fails (HTTP 5xx), Send
// tries again after 2, 10 and 60 seconds. It repeats the idempotency key, so that mail is stored
// only once, even after the loss of a confirmation. Refused mail is not sent again, whether it is
// invalid or over the rate limit (429).
//
// After the fourth attempt the mail is given up. A line in the incident file records all that is
// needed to send it again, and the circuit opens: for a minute, no mail is sent. Then the next
// message gets one attempt. If it reaches the bus, the circuit closes; otherwise it is given up and
// the circuit stays open for another minute. Polls and heartbeats do not close the circuit, because
// a bus that cannot store mail still answers them.
//
// A client sends one message at a time, and a retry delays the messages behind it. So an actor's
// mail is stored in the order of sending, except mail that was given up.
//
// # Receiving
//
// Receive polls for mail after the last acknowledged message, which the bus remembers. It
// handles messages in the order of their numbers and acknowledges each. A message is handled
// again if the program ends before the acknowledgment, so handlers must be safe to repeat.
//
// Between polls Receive waits 10 seconds, or a minute if there was no mail for a minute. During
// this time it listens to the event stream of the bus and polls at any event. The stream is only a
// hint: its content is not read, and without it mail arrives later.
//
//	handler returns        the message
//	nil                    is acknowledged
//	an error               stays, and is handled again at the next poll; later messages wait
//	Fatal                  is acknowledged, after task.failed was sent to GO
//	a panic                likewise
//	(no handler)           is acknowledged: topics may be added any time
//
// No task.failed is sent about a task.failed or about mail from the bus itself, because the
// report could fail in turn, for ever. Trouble is called instead.
//
// # Limits
//
// The package stores only the incident file, and does not send its mail by itself. No goroutine
// outlives the call that started it, except goroutines of idle connections, which last a minute.
package bus
