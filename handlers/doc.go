// Package handlers is where decisions are made: one State, and one door to it.
//
// # Decide, record, tell
//
// Handle takes what somebody asks, tells or notices (an Input) and decides what
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
// record of a kind that is not known is an error, since whoever passes over it
// believes in another world than the one that wrote it.
//
// # Operations
//
// What can be asked is one table of operations, each with its name, what it
// takes and gives, and who may. Every door reaches the same table.
//
// # Tasks
//
// There is one kind of task. It is pending until an agent is found for it, then
// assigned, running once its agent has been told, and done, failed or cancelled
// in the end:
//
//	pending -> assigned -> running -> done | failed
//	pending, assigned, running -> cancelled
//	assigned, running -> pending    (its agent is gone, and it starts again)
//
// A submitted task that asks for a role or for capabilities goes by itself to
// an agent that has them and has room, as soon as every task that it depends on
// is done: the most urgent first, then the oldest; to the agent with the fewest
// tasks, of those to the one that has waited longest, and never to the one that
// submitted it. One that asks for nothing waits until its owner starts it.
//
// Agents see and touch their own tasks: those that they submitted and those
// that they hold. Operators see and touch all. Who may do what, and when:
//
//	start      pending    who submitted it, an agent with room for it: it takes it
//	start      assigned   its agent, operators
//	complete,
//	fail       assigned,  its agent, operators; its agent is told when it was
//	           running    not itself
//	cancel     pending,   who submitted it, operators; its agent is told
//	           assigned,
//	           running
//	progress,
//	error      assigned,  its agent
//	           running
//
// What an agent says of a task that is assigned to it starts it. Anything else
// is refused and changes nothing.
//
// # Repeats
//
// Of each agent the latest requests that changed something are remembered, with
// their answers. The same request again, by its id and all that it says, is
// answered as it was and has no second effect; another one of the same id is
// refused. An agent that is started again may begin to count anew, unless it
// repeats what the run before it sent, its time included.
//
// # What it will not do
//
// The package is pure. It knows no clock and no chance: times and random bytes
// come with the input, so that the same inputs give the same records, byte for
// byte. It starts nothing, waits for nothing and imports nothing that could. It
// keeps what is open; of finished tasks it keeps the latest whole, and of older
// ones a stub that says where in the log the rest is.
package handlers
