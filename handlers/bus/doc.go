// Package bus keeps the actors of the message bus of protocol E: who has mail, how far each has
// read it, and when each was last heard. The mail itself is in the log.
//
//	actors.go  actors, their heartbeats, and the topics that always exist
//	keys.go    idempotency keys of sent messages
//
// An actor may belong to an owner, such as an agent. The package does not know what an owner is. It
// makes no decisions and sends no mail: the package handlers notifies actors, and calls a Directory
// when it applies facts.
package bus
