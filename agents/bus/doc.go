// Package bus is what an actor needs that has mail and is anywhere: it speaks to
// the orchestrator over HTTP, and does what is asked of those who send and of
// those who receive.
//
//	client, err := bus.FromEnv()
//	…
//	sent, err := client.Send(ctx, wire.SendMessage{To: "GO", Topic: wire.TopicTaskCompleted, Payload: result})
//	…
//	err = client.Receive(ctx, bus.Handlers{wire.TopicTaskAssigned: assigned})
//
// An agent that the orchestrator has started can do the same on its own stdin
// and stdout, with package agents.
//
// # Sending
//
// The bus keeps mail before it says that it did. When it cannot be reached, or
// has trouble of its own (HTTP 5xx), Send tries again after 2, 10 and 60
// seconds, with the same idempotency key, so that mail whose answer got lost is
// not kept twice. What the bus refuses is not tried again: neither what makes no
// sense to it, nor what came too fast (429).
//
// After the fourth attempt the mail is given up. A line in the incident file says
// so, with all that it takes to send it again, and the circuit opens: nothing is
// sent for a minute. Then one message is let through, with one attempt; when that
// reaches the bus all is well again, and when it does not, it is given up as
// well, and the circuit stays open for another minute. That the bus answers a
// poll or a heartbeat closes nothing, because one that has no room left to keep
// mail does that too.
//
// The messages of one client go one after the other, and one that is tried again
// holds up those behind it: an actor's mail is kept in the order in which it was
// sent, but for what was given up.
//
// # Receiving
//
// Receive polls behind what was acknowledged last, which the bus remembers,
// handles message after message in the order of their numbers, and acknowledges
// each. A message is handled at least once: again, when the program ends between
// the two. So what a handler does must be right when it is done twice.
//
// Between polls it waits: 10 seconds, or a minute when there has been no mail for
// a minute. Meanwhile it listens to the bus's stream of events, and polls as soon
// as that says anything. The stream is a hint and no more: what it says is not
// read, and without it mail only comes later.
//
//	handler returns        the message
//	nil                    is acknowledged
//	an error               stays, and is handled again at the next poll; what is behind it waits
//	Fatal                  is acknowledged, after task.failed was sent to GO
//	a panic                likewise
//	(there is no handler)  is acknowledged: topics may be added any time
//
// No letter is sent about a task.failed that fails, nor about what the bus itself
// says: it would be the next to fail, for ever. Trouble is told instead.
//
// # What it will not do
//
// It keeps nothing but the incident file, and sends nothing by itself that is in
// there. No goroutine outlives the call that started it, but for those of
// connections, which are kept for a minute when they are idle.
package bus
