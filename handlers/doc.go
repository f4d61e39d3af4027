// Package handlers decides. A State holds all open work (package state); Handle takes one Input,
// makes the decisions, and returns records and letters. The caller makes the records durable first
// and delivers the letters then. Inputs are handled one at a time.
//
//	Input -> Handle -> Outcome{Records, Letters}
//	record of an earlier life -> Apply -> the same State
//
// The package is pure. It has no clock and no randomness: times and random bytes come with
// the input, so the same inputs give the same records, byte for byte.
//
//	handle.go        inputs and their outcomes, deadlines
//	decision.go      the decisions of each domain about one input
//	operations.go    the table of all requests, from the lists in the other files; all transports use it
//	task*.go         requests on tasks, and the consequences of their end; update.go: notes and plans
//	reports.go       reports of agents; questions.go: their questions to people
//	assign.go        the choice of an agent; queue.go: waiting tasks and idle agents
//	dependencies.go  requests on dependencies
//	delegate.go      task requests of protocol D; forward.go, respond.go: their lines
//	session*.go      protocol C; outbox.go: messages that their addressees may not have read
//	mail.go          the message bus of protocol E; actors.go: its actors
//	agents.go        agents; lifecycle.go: their starts and ends; servers.go: registered ones
//	access.go        keys, tokens, registrations
//
// # Tasks
//
//	pending -> assigned -> running -> done | failed
//	pending, assigned -> planning -> plan_review -> running
//	                     planning <- plan_review
//	planning, plan_review -> failed     (its agent cannot plan it, or has ended: on_exit)
//	running -> needs_human -> running
//	running -> verifying -> running     (its verify commands run)
//	any that is open -> cancelled
//	any that has an agent -> pending    (its agent has ended, and it is tried again)
//	failed, cancelled -> pending        (retry-task)
//
// state.Transitions lists them. Any other transition is an error and has no effect. A task is assigned in one of five ways:
//
//	queued      to an idle agent with its role and capabilities; it starts when the agent has the notice
//	matched     to the agent that fits its requirements best (package match); the agent starts it
//	by hand     to the agent in the request; the agent starts it
//	session     by an architect, to a developer
//	delegated   by a task request, to its target or the agent that can begin soonest
//
// Which actor may change a task when is the table testdata/verbs.txt, which a test writes. When an
// agent exits, on_exit decides about a queued task; any other task is tried again up to
// MaxAttempts, and fails when two agents crashed with it. When the orchestrator itself was killed,
// no crash counts: open tasks wait for the next run.
//
// # Sessions and delegation
//
// A session message is checked whole before it is delivered. It stays in the outbox until it is
// written to its addressee, in order; an assignment and a review request stay until they are taken
// up. A delivery is tried again three times, each with a notice to the sender. The task of a
// session has a work item beside it, which outlives it while reviews go on:
//
//	held -> assigned -> working -> completed -> reviewing -> over
//	        assigned <- revise <------------------ |
//	        redesign, human <--------------------- |
//
// A delegated task is forwarded as it came, when its agent has room. Responses go back word for
// word, and each task has exactly one final response: if its agent gives none, the orchestrator
// does. Parts of a task that fails, is cancelled or starts again are cancelled with it.
//
// # Repeats
//
// The latest requests of each agent are kept with their answers. The same request with the same
// id gets the same answer and has no second effect; another request with that id is refused.
// Answers with secrets are not kept.
package handlers
