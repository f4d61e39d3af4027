// Package events has the kinds of events: changes of the orchestrator, of agents, tasks, sessions,
// questions and messages. The kind of a record is one of them: the orchestrator keeps the record,
// and people see the event.
package events
