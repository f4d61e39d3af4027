// Package bus keeps the actors of the message bus of protocol E: who has mail, how far each has
// read it, and when each was last heard. The mail itself is in the log.
//
//	actor.go   actors and their heartbeats
//	keys.go    idempotency keys of sent messages
//	topics.go  the topics that always exist
//
// An actor may belong to an owner, such as an agent. The package does not know what an owner is.
// It decides nothing and sends nothing: the package handlers notifies actors, and calls a
// Directory when it applies facts.
package bus
