// Package handlers is where decisions are made: one State, and one door to it.
//
// # Decide, record, tell
//
// Handle takes what a caller asks, tells or notices (an Input) and decides what
// becomes true (records) and who is to hear of it (letters). It writes nothing
// and sends nothing: the caller makes the records durable first and sends the
// letters then. Inputs are handled one at a time.
//
// # Facts
//
// What became true is a fact, and the fact is what is recorded, not the input
// that led to it. State changes by applying facts and in no other way: Handle
// applies each one as it decides it, Apply does the same with the records of
// an earlier life, and both end in an equal State. Applying cannot fail; a
// record of a kind that is not known is an error, since a reader that passes over it
// believes in another world than the one that wrote it.
//
// # Operations
//
// What can be asked is one table of operations, each with its name, what it
// takes and gives, and who may. Every door reaches the same table.
//
// # Tasks
//
// There is one kind of task, whatever protocol it came by:
//
//	pending -> assigned -> running -> done | failed
//	pending, assigned -> planning -> plan_review -> running
//	                     planning <- plan_review
//	running -> needs_human -> running
//	any that is open -> cancelled
//	any that has an agent -> pending    (its agent is gone, and it starts again)
//
// What is not drawn is refused and changes nothing. Tasks come to their agents in
// three ways. One that asks for a role or for flat capabilities is dispatched: by
// itself, to an agent that has them and has room, the most urgent first, then the
// oldest; to the agent with the fewest tasks, of those to the one that has waited
// longest, and never to the one that submitted it. It starts by its agent being
// told. One that says what it requires in a document is matched (package match):
// when it is asked for, when the last task that it waited for is done, and
// when an agent comes, has room again or can do more; not when it is created,
// unless the rules say so. The third way is by hand. Tasks of sessions, and those that
// were handed on, have ways of their own (see below). Of tasks that were matched
// or given by hand the agent says itself when it starts, or by saying how it
// ended, but not where each step is said by itself (Actor.Strict).
//
// A dispatched task ends with its agent, as the agent's on_exit says. One that was
// matched or given by hand is never done because its agent has ended: it is tried
// again, and given up after a few attempts; one that two agents died with is not
// given to a third. What an agent had not begun waits for its next run.
//
// # What tasks wait for
//
// Package graph knows what depends on what. Some dependencies hold a task back
// until the other is done, some of those deliver a contract of its result as well,
// others are only worth knowing. They can be added and taken away until the task
// runs; what would make a circle is refused. The end of a task decides all that
// follows at once, in the order of cascade.go. When the other comes to nothing,
// the task stays and it is said, or is cancelled: as the rules say, or else as
// those want it whose protocol the task came by.
//
// A caller that knows the id of a task can depend on it, and so get what it delivers:
// that is what contracts are for. Ids cannot be guessed.
//
// # Who may
//
// Agents see and touch their own tasks: those that they submitted and those
// that they hold. Operators see and touch all. There is a door by which agents
// see to tasks as those do who submit them (Actor.Wide): a planner to all, another
// to those that people have submitted and no other agent holds. Who may do what,
// and when, is a table in testdata/verbs.txt that a test writes:
//
//	start               its agent, operators; or who submitted it, for itself
//	complete, fail,
//	help, plan          its agent, operators; its agent is told when it was not itself
//	approve, revise     who sees to it, but not the agent that wrote the plan
//	assign, auto-assign,
//	update, cancel      who submitted it or sees to it as those do, operators
//	notes, dependencies all who may see it
//	progress, error     its agent
//
// # Servers
//
// A server that registers is an agent like the others. It runs elsewhere, asks for
// its tasks, and is online as long as it is heard of; the record knows of it now
// and then, not each time.
//
// # Credentials
//
// Who is let in is decided here too: by the keys of agents, by tokens with which
// a server registers, once, by those of actors from elsewhere, and by the tokens of
// people. Of the first three a hash is kept; those of people are signed elsewhere,
// and here is only that they were issued, and whether they were revoked. What has run out is not found any more,
// and forgotten when the next one is issued.
//
// # Mail
//
// Actors write to each other: agents, people, and those from elsewhere who have
// nothing else here. Every agent is one, by the name that the configuration gives
// it, or another with each run; operators speak for GO at their own socket, and
// with a token for themselves. A message is one record,
// as it was sent, and stays. What is here is who there is, up to where each has
// dealt with its mail (its cursor), and the keys of the latest messages: a sender that
// asks for one with a key has looked into the record for older ones before, and
// is sent back to look again when that is too long ago. A poll names a page of the
// record and changes nothing; an ack moves a cursor, forward only.
//
// GO is told, by mail, of the life of agents, of topics that are not
// registered, of messages that could not be dealt with, and of actors whose
// heartbeat stays away: those that have sent one, and those that were
// given a name. What an agent says by mail of a task that it has counts as if it
// had said so itself.
//
// # Sessions
//
// Agents that work together say typed messages to each other: architects assign,
// developers do, reviewers judge. A message is checked whole before it is delivered
// it, against what it is, who says it and who hears it, and how things are; what is wrong is
// logged with its session and answered. What is right is logged, and is a parcel
// until it is written to the stdin of its addressee, in order; an assignment and a
// review request stay parcels until they are taken up, so that the next run gets them
// when one dies. What cannot be delivered is tried again three times, and its sender
// is told each time. Members that run elsewhere ask for theirs.
//
// An assigned task is a task like the others, with a work beside it:
//
//	held -> assigned -> working -> completed -> reviewing -> over
//	        assigned <- revise <------------------ |
//	        redesign, human <--------------------- |
//
// The work outlives the task where a session does not require reviews: the task is
// done when its developer says so, and a review that comes later changes nothing of
// what followed from that. How often something is reviewed is package review, which
// files may be changed package scope.
//
// A completion always comes: when a developer dies twice over a task, takes twice
// its time twice, or is gone, it is said for it; and so it is when a person ends a
// session's task by another door.
//
// # Delegation
//
// An agent hands a task on with a task request: to an agent that is named, or to the
// one of those that can do it that is most likely to begin at once. The request is
// forwarded as it came, with who has had it in hand so far (the chain, which no agent
// may be in twice) and with the trace, the baggage, the conversation and the parent of
// what it is a part of, where it does not say these itself. What is refused is no task.
//
//	pending -> assigned -> forwarded -> running -> done | failed | cancelled
//	   ^          ^            |           |  ^
//	   |          +- returned -+           v  |
//	   +---- retried, requeued ------- needs_human
//
// An agent gets a task when it has room for it, the most urgent first. What it has
// handed on itself, and waits for, takes no room. It responds as often as it likes, and
// its responses go on word for word to the source of the task: at once, or, the latest of
// them, when the source reads again or runs again. Where the agent does not say how the
// task ends (it has ended, the task was cancelled, it was completed in another
// dialect), that is said in its place: each task that was handed on gets one final
// response. Input that it requires is a question for people; the answer, or an update by
// the source, is brought to the agent.
//
// A question how a task stands is answered by the agent, or by what is known when it does
// not say so within a second. A task whose agent ends is given to it again, or to
// another; one that failed and may go better is tried again as often as the rules say.
// What was handed on in the course of a task that has failed, was cancelled or is begun
// anew is cancelled with it.
//
// # Repeats
//
// Of each agent the latest requests that changed something are remembered, with
// their answers. The same request again, by its id and all that it says, is
// answered as it was and has no second effect; another one of the same id is
// refused. What makes a secret is the exception: the answer is kept nowhere, and
// the same request makes another one. An agent that is started again may begin to
// count anew, unless it repeats what the run before it sent, its time included.
//
// # What it will not do
//
// The package is pure. It knows no clock and no chance: times and random bytes
// come with the input, so that the same inputs give the same records, byte for
// byte. It starts nothing, waits for nothing and imports nothing that could. It
// keeps what is open; of finished tasks it keeps the latest whole, and of older
// ones a stub. What a stub leaves out, large documents and notes are in the log
// alone: an answer that needs them names their records (Page), and Complete reads
// them with what its caller brings.
package handlers
