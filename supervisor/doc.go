// Package supervisor runs agents and carries their messages.
//
// Run owns the lifecycle of every agent in one goroutine; other goroutines post functions to it
// and do not wait inside them. Each agent has goroutines of its own for starting, reading and
// writing, so a slow, deaf or flooding agent delays only itself.
//
//	stdout  - line.Splitter - output -+- channel - dispatcher (handlers.State) - record - letters
//	                               +- log file, tail, followers
//	letters - mailbox - one writer - stdin
//	mailbox - receipts - dispatcher        whether a message that must not be lost was written
//	record  - postman - mailbox            mail, and answers and lines that are in the record
//	        - notifier                     readers of mail wait for it
//	channel - artifacts - postman          what is too large for the record
//	record  - feed -+- recent events       events -f
//	                +- outputs, followers  console, logs -f
//	record  - Run - stop                   agents that end with their session
//	child   - Run - restart - deadline - start
//
// The dispatcher is a lock and not a goroutine, because handing an input over costs more than
// most decisions. Records are committed in batches, and nothing is delivered or shown before
// its batch is durable. Mail is brought to an agent a page at a time, as the agent takes it, and
// a new run continues behind the last acknowledged message. Large artifacts are files, durable
// before the response that names them is decided.
//
// A run of an agent is a child process, or the connection of a program that has joined as the
// agent. An agent starts after the agents that it depends on and stops before them. After it
// ends, its process tree is cleared before it starts again. Restart delays grow with jitter until
// the supervisor gives up. A stop is a sequence from a notice to a kill, within one budget for
// the whole team.
//
// The package reads no configuration, opens no socket, and decides nothing about tasks or
// messages.
package supervisor
