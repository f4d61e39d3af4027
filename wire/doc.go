// Package wire is the vocabulary that agents, operators and the orchestrator share: messages,
// tasks, records, and the table of operations.
//
//	Operations               all requests: names, audiences, payloads, schemas
//	Payloads                 the payload of a request or an event
//	ReadTaskRequest, ReadTaskAct, ReadTaskResponse   lines of delegated work
//	ReadHubTask, …           bodies of protocol A as requests
//	Record, Event            one fact, in the log and for people
//	AppendVisible            foreign text, safe to show
//	Schemas                  JSON Schemas of all messages
//
// The packages below it have its parts:
//
//	object      strict reading and writing of JSON objects
//	dialect     dialects of lines
//	line        bytes as lines
//	events      the kinds of events
//	mail        messages, actors and topics of the bus
//	session     messages of protocol C
//	delegation  messages of protocol D
//	hub         documents of protocol A
//	trace       ids of traces and spans
//	activity    reports of coding agents
//
// The packages stdio and control are above it: lines of agents and to them, and status with requests
// that start and stop agents. The package identity is beside it: the callers of the HTTP API.
//
// Documents are stored unchanged, digit for digit. All these packages are pure: they open
// no files, wait for no event, and have no clock and no randomness. Callers pass streams, times
// and ids as values.
package wire
