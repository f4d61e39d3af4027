// Package agents is what an agent written in Go needs: it asks the orchestrator,
// tells it things, hears its notices and works at its tasks.
//
// # A conversation
//
// An agent speaks on its stdout and listens on its stdin, in lines that are JSON
// objects. Stdio takes both; from then on anything may be said at any time:
//
//	conn := agents.Stdio()
//	err := conn.Work(ctx, func(ctx context.Context, task wire.Task) (any, error) {
//		return wire.Raw(`{"success":true}`), nil
//	})
//
// Ask is for questions, Tell for events that have no answer, News for notices,
// and Work is the loop of an agent that does nothing but tasks; with WorkAs it
// also plans them, hears what people say of them, asks for help and reads its
// mail. A line that is no message is log, so an agent may print to os.Stdout as
// well; a program that prints whole lines with one call never tears a message.
//
// # Mail
//
// Actors write to each other with SendMessage. Mail comes as a notice, Message,
// as soon as it is there, and stays in the agent's mailbox until AckMessages says
// that it has been dealt with: what was missed PollMessages lists, and the next
// run is told of it again.
//
// The Mail of a Worker deals with message after message, and WorkAs acknowledges
// each, and sends heartbeats:
//
//	Mail returns              the message
//	nil                       is acknowledged
//	an error, or it panics    is acknowledged, after task.failed was sent to GO
//	the error of its context  stays, when the agent has to go
//
// Mail is never called again because of an error, as a handler of package bus is:
// it tries again by itself what may go better then. Without Mail, Work takes
// notices of mail and does nothing about them, so such an agent polls, if it has
// mail.
//
// Actors that no orchestrator has started have package bus.
//
// # Sessions
//
// In a session an architect gives out tasks, developers do them and reviewers judge
// them. OpenSession is an agent's place in one; its verbs say one message each, and
// its roles do the rest:
//
//	Lead      an Architect: Deliver assigns a task, has it reviewed and revised until it is approved
//	Develop   a Developer: acknowledges, reports progress, and always says what came of a task
//	Review    a Reviewer: answers each request once
//
// Delivery of a message is not confirmed. One that was not comes back, maybe
// late, and the Sent of the message says why: an *Undelivered. That it is tried
// again is not told. One that is refused because the agent has said too much, or
// because its addressee has a lot to take, the connection says again, a bounded
// number of times; what would overtake it waits, and a role does not end before.
//
// What others say comes at least once, and is heard once by a connection, which
// remembers the latest few thousand messages; a run of an agent knows nothing of the
// one before it.
//
// Talk is for those who want nothing but the messages. Work, News and the roles
// take the same notices, so an agent has one of them at a time; a role has no use
// for other notices than those about its tasks and the shutdown. Serve takes none.
// A Developer or a Reviewer that is given other tasks as well, by matching perhaps,
// has a Worker for them as its Work.
//
// # Delegation
//
// An agent delegates work to another one with a task request, and hears in responses
// how it stands and what came of it. The two sides are
//
//	Delegate   gives a Delegation: Responses, Wait, Status, Update, Cancel
//	Serve      calls a Skill for each Delegated, by the type of the request
//
// and both go on beside all else that an agent does. The id of the task is all that
// there is to tell responses, and refusals, apart: so one thing at a time is said of a
// Delegation, and is over when something is said of it from the other side.
//
// A Skill says that its job is at work (Progress), asks for input (Ask), keeps what it
// has made for the end (Artifact), and delegates parts of it (Delegate), in the trace
// and the conversation of the job. Its job comes to one final response:
//
//	the Skill returns          the response
//	a result, or nil           completed, with that or {}
//	a *Fault                   failed, with its code and details, and whether another try may go well
//	any other error, a panic   failed, INTERNAL_ERROR
//	when it was cancelled      cancelled, which is said before it returns
//	because the agent goes     none: the orchestrator knows what becomes of it
//
// A connection remembers the final responses of the latest jobs, so one that is asked
// for twice is done once, unless it was cancelled or another try may go well. A
// response that is refused because the agent has said too much is said again, if it is
// a question or the final one.
//
// A run of an agent knows nothing of what the one before it has delegated; but who asks
// for the same once more, with the same id, hears what became of it. What an agent can
// do, and so which types reach it, is said in the orchestrator's configuration or with
// UpdateCapabilities.
//
// # Who waits for what
//
// One goroutine reads, and it waits for nothing but the stream: an answer goes
// to the caller that asked, a notice into a queue that has no bound, a message of a session
// into another, and what is asked of the agent into a third. So an agent that is
// busy for an hour, or never looks at its notices, still gets its answers. The queues
// hold what the orchestrator has said and no caller has taken, a few hundred bytes each
// notice: there are no more assignments than tasks that the agent may have at a time,
// and no more requests; of those that reach an agent that does not serve the latest are
// kept, and the log counts the others. Mail waits for the message before it in a queue of its own,
// which has no bound either, and neither notices nor tasks wait for mail.
//
// A goroutine that speaks writes by itself, one at a time, and waits while the
// orchestrator does not read.
//
// # The end
//
// The orchestrator says notify:shutdown and closes the agent's stdin; what the
// agent says after that is heard until its process ends or its time is up, but
// not answered. A question that waits then fails with an error that wraps
// io.EOF.
//
// # What it will not do
//
// It gives an agent no more rights than any program has that prints lines: what
// it knows of the orchestrator is package wire. It handles no signals, retries
// no request that a caller did not ask to be retried, sets no time limits of its
// own, and passes over every line that is no answer, no notice, no message of a
// session and none about delegated work. It runs nothing that a message asks it to
// run: the custom checks of a review are for the reviewer to judge.
package agents
