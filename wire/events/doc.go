// Package events has the kinds of events: what happened to the orchestrator, to agents, tasks,
// sessions, questions and messages. The kind of a record is one of them; the record is what the
// orchestrator keeps, and an event is what people see of it.
package events
