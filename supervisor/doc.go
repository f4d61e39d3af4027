// Package supervisor keeps agents running and carries their words.
//
// One goroutine, Run, owns what every agent is doing and decides what happens
// next; everything else tells it by posting a turn, and nobody waits for
// anybody inside a turn. Starting, reading and writing happen in goroutines of
// the agent concerned, so a slow, deaf or flooding agent is felt by itself
// alone:
//
//	stdout, stderr - wire.Lines - voice -+- log file, whole lines with a time
//	                                     +- tail in memory
//	                                     +- followers (console, logs -f)
//	Tell - mailbox - one writer - stdin
//	child.Exited, child.Ended - turn - restart arithmetic - deadline - start
//
// A run of an agent is a child process, or the connection of somebody who has
// joined as it; all the rest is the same.
//
// What follows for an agent: it starts after the agents it depends on and is
// stopped before them; after it ends, its tree is cleared before it starts
// again; delays grow, are spread by chance, and end in giving up; its stop is
// a ladder from a notice to a kill, inside one budget for all.
//
// Every change is an event in the journal first and is seen by people second.
// The package reads no configuration, opens no socket, and decides nothing
// about tasks or messages.
package supervisor
