// Package state is the knowledge of the orchestrator. A State holds all open work and a bounded
// history of finished work. It changes only by facts: a record of the log is a fact, and the same
// records make the same State. Package handlers decides which facts become true; this package does
// not refer to a decision, and no decision assigns a field of the State.
//
//	record of the log -> fact: check, apply, tell -> State
//
// A fact has the kind of its record. check reports whether it can follow from the facts before it,
// apply makes it true and cannot fail, and tell spells it for people. An unknown kind is an error:
// skipping it would build a different State than the one that was recorded.
//
// A State keeps open work, the latest finished tasks whole and older ones as stubs. The rest is in
// the log: an answer that needs it names the records (history.Page), and Complete fills them in.
//
//	state.go       the State, the facts that change it, records of an earlier life
//	actor.go       who causes facts, and the settings
//	task*.go       tasks and their facts; queue.go: waiting tasks and idle agents
//	links.go       dependencies (package graph) and contracts
//	questions.go   questions to people; person.go: the needs for a person
//	delegation.go  task requests of protocol D
//	session*.go    protocol C; outbox.go: messages that their addressees may not have read
//	mail.go        the message bus of protocol E (package bus); actors.go: its actors
//	agents.go      agents; lifecycle.go: their starts and ends; servers.go: registered ones
//	access.go      keys, tokens, registrations (package access)
//	archive.go     ended tasks that are only in the log
//	stored.go      tasks as they are stored: in records of the archive, and in snapshots (package snapshot)
//	tell.go        facts as text; check.go: whether a fact of the log can be applied
package state
