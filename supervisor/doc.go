// Package supervisor keeps agents running and carries their words.
//
// One goroutine, Run, owns what every agent is doing and decides what happens
// next; everything else tells it by posting a turn, and nothing waits
// inside a turn. Starting, reading and writing happen in goroutines of
// the agent concerned, so a slow, deaf or flooding agent is felt by itself
// alone:
//
//	stdout - wire.Lines - output -+- channel - seat: State decides - record - letters
//	                             +- log file, tail, followers
//	letters - mailbox - one writer - stdin
//	mailbox - receipts - seat (whether what must not be lost was written)
//	record - postman - mailbox (mail, and answers and lines that are read in the record)
//	       - notifiers (who follows mail reads it there)
//	channel - artifacts (what is too large for the record) - postman
//	record - feed -+- journal (events -f)
//	                   +- outputs, followers (console, logs -f)
//	record - turn - stop (of agents that end with their session)
//	child.Exited, child.Ended - turn - restart arithmetic - deadline - start
//
// What follows from messages is decided by package handlers, one input at a
// time, by the holder of the dispatcher's lock: a lock, because handing over to
// a goroutine would cost more than most decisions. What was decided is recorded
// a batch at a time, and nothing is told or shown before that.
//
// What is only in the record is read by the postman, for agents, and by the one that
// asks at a door. Mail is brought to an agent a page at a time, as it takes it, and
// from what it has acked on again in its next run.
//
// What an agent has made and what is too large for the record is in files of its own,
// which are durable before the response that it is in is decided about: the one that has
// made it waits for the disk. It is put back for each reader.
//
// A run of an agent is a child process, or the connection of a program that has
// joined as it; all the rest is the same.
//
// What follows for an agent: it starts after the agents it depends on and is
// stopped before them; after it ends, its tree is cleared before it starts
// again; delays grow, are spread by chance, and end in giving up; its stop is
// a ladder from a notice to a kill, inside one budget for all.
//
// The package reads no configuration, opens no socket, and decides nothing
// about tasks or messages itself.
package supervisor
