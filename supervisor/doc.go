// Package supervisor runs agents.
//
// Run owns the lifecycle of every agent in one goroutine; other goroutines post functions to it and do not wait inside
// them. Each agent has its own goroutines for starting, reading and writing, so a slow, deaf or flooding agent delays
// only itself.
//
//	stdout    - line.Splitter - output -+- dispatch.Channel - dispatch.Dispatcher - record
//	                                    +- log file, tail, followers
//	Dispatcher -+- letters - stdin.Mailbox - stdin
//	            +- events  - feed -+- recent events       events -f
//	            |                  +- outputs, followers  console, logs -f
//	            +- closed sessions - Run - stop           agents that end with their session
//	Channel   - artifacts             content that is too large for the record
//	child     - Run - restart - deadline - start
//
// Large artifacts are files, durable before the response that names them is decided. If several hubs share the
// record, they are also among the objects of the hubs, and the folder is a cache.
//
// A run of an agent is a child process, or the connection of a program that has joined as the
// agent. An agent starts after the agents that it depends on and stops before them. After it
// ends, its process tree is cleared before it starts again. Restart delays grow with jitter until
// the supervisor gives up. A stop is a sequence from a notice to a kill, within one budget for
// the whole team.
//
// The package reads no configuration, opens no socket, and leaves decisions about tasks and messages to package
// handlers.
package supervisor
