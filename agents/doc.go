// Package agents is the library for agents written in Go. An agent sends requests and events to
// the orchestrator, receives its notices, and works on its tasks.
//
// # A conversation
//
// An agent writes JSON objects to stdout and reads them from stdin, one a line. Stdio connects
// both; from then on, the two sides send independently:
//
//	conn := agents.Stdio()
//	err := conn.Work(ctx, func(ctx context.Context, task wire.Task) (any, error) {
//		return wire.Raw(`{"success":true}`), nil
//	})
//
// Ask sends a request, Tell an event that has no answer, and News yields notices. Work is the loop
// of an agent that only does tasks. WorkAs can also plan tasks, receive notes of people about them,
// ask for help and read mail.
//
// Any line that is not a message is log, so an agent may also print to os.Stdout. Print whole
// lines with one call, so that no message is torn.
//
// # Mail
//
// Actors write to each other with SendMessage. Mail arrives as a Message notice and stays in
// the agent's mailbox until AckMessages acknowledges it. PollMessages lists missed mail, and
// the next run is notified of it again.
//
// If a Worker has a Mail function, WorkAs calls it with one message at a time, acknowledges
// each message, and sends heartbeats:
//
//	Mail returns              the message
//	nil                       is acknowledged
//	an error, or it panics    is acknowledged, after task.failed was sent to GO
//	the error of its context  stays, when the agent has to go
//
// An error does not make WorkAs call Mail again, unlike a handler of package bus: Mail has to
// retry by itself. Without Mail, Work discards notices of mail, so such an agent has to poll.
//
// Programs that no orchestrator has started use package bus.
//
// # Sessions
//
// In a session, an architect assigns tasks, developers do them and reviewers review them.
// OpenSession returns the agent's membership in one. Its methods send single messages; its
// roles do the whole work:
//
//	Lead      an Architect: Deliver assigns a task, has it reviewed and revised until it is approved
//	Develop   a Developer: acknowledges, reports progress, and always reports the outcome
//	Review    a Reviewer: answers each request once
//
// The delivery of a message is not confirmed. If a message cannot be delivered, a refusal
// arrives, perhaps late, and the Sent of the message has it as an *Undelivered. A delivery that
// will be retried is not reported.
//
// The connection itself repeats a message that was refused because of a rate limit or a full
// queue, a bounded number of times. Later messages that would overtake it wait, and a
// role does not return before it is sent.
//
// Messages of other members arrive at least once. A connection remembers the latest few
// thousand and drops duplicates. A run of an agent does not know the previous run.
//
// Talk yields only the messages. Work, News, Talk and the roles consume the same notices, so an
// agent uses one of them at a time. Serve consumes none. A role handles only notices about its
// tasks and the shutdown. If a developer or reviewer also gets tasks outside the session, set
// the Worker in its Work field.
//
// # Delegation
//
// An agent delegates work to another agent with a task request; responses report its status and
// outcome. The two sides are
//
//	Delegate   gives a Delegation: Responses, Wait, Status, Update, Cancel
//	Serve      calls a Skill for each Delegated, by the type of the request
//
// and both run beside everything else that an agent does. Responses and refusals carry only the
// id of the task. So a Delegation has one act under way at a time, which ends with the next
// response.
//
// A Skill reports that its job is running (Progress), asks for input (Ask), and adds artifacts
// to the final response (Artifact). It can delegate parts of the job (Delegate), in the same
// trace and conversation. Every job ends with one final response:
//
//	the Skill returns          the response
//	a result, or nil           completed, with that or {}
//	a *Fault                   failed, with its code, details and recoverability
//	any other error, a panic   failed, INTERNAL_ERROR
//	when it was cancelled      cancelled, which is sent before it returns
//	because the agent goes     none: the orchestrator decides about the job
//
// A connection remembers the final responses of the latest jobs, so a repeated request is not done
// again. It is done again if the job was cancelled or its fault is recoverable. A question or final
// response that is refused for the rate limit is sent again.
//
// A run of an agent does not know the delegations of the previous run. Repeating a request with the
// same id returns the outcome of the first. The types that reach an agent are set in the
// orchestrator's configuration or with UpdateCapabilities.
//
// # Coding agents
//
// A program that runs a coding agent asks a person before a tool is used (AskPermission). It
// reports the activity and usage of the agent: ReportTurn, ReportUsage, ReportConversation,
// ReportReceipt, ReportLimit. ReturnTask gives a task back, for example because its vendor limits
// the use. The id of the last conversation is in $ORC_CONVERSATION.
//
// # Blocking and queues
//
// One goroutine reads the stream, and it never blocks on anything else. Answers go to the calls
// that wait for them. Notices, session messages and requests for work go to one queue each. So
// an agent that is busy for an hour, or never takes its notices, still gets its answers.
//
// The queues have no fixed bound; a notice takes a few hundred bytes. The number of assignments and
// requests is limited by the tasks that the agent may hold. If the agent does not serve, only the
// latest requests are kept, and the log counts the dropped ones. Mail has a separate queue without
// a bound; notices and tasks do not wait for mail.
//
// Writes happen in the calling goroutine, one at a time, and block while the orchestrator does
// not read.
//
// # Shutdown
//
// The orchestrator sends notify:shutdown and closes the agent's stdin. It goes on reading the
// agent's output until the process ends or its time is up, but sends no answers. A pending Ask
// then fails with an error that wraps io.EOF.
//
// # Limits
//
// The package gives an agent no more rights than a program that prints lines. It knows the
// orchestrator only through package wire. It handles no signals and sets no time limits. It
// repeats only the messages named above and the reports of a role or Work.
//
// Lines of unknown kinds are ignored. The package runs no commands that a message contains: the
// custom checks of a review are left to the reviewer.
package agents
