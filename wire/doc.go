// Package wire is the vocabulary that agents, operators and the orchestrator share: messages,
// tasks, records, and the table of operations.
//
//	Reader                   a line as a message of one of the dialects, or as log
//	Operations               all requests: names, audiences, payloads, schemas
//	Payloads                 the payload of a request or an event
//	ReadTaskRequest, ReadTaskAct, ReadTaskResponse   lines of delegated work
//	ReadHubTask, …           bodies of protocol A as requests
//	Envelope                 answers and notices as lines, in the Dialect of the request
//	Record, Event            one fact as it is stored, and as people see it
//	AppendVisible            text of others, safe to show
//	Schemas                  JSON Schemas of all messages
//
// The packages below it have what it is made of:
//
//	object      strict reading and writing of JSON objects
//	line        bytes as lines
//	events      the kinds of events
//	mail        messages, actors and topics of the bus
//	session     messages of protocol C
//	delegation  messages of protocol D
//	hub         documents of protocol A
//	trace       ids of traces and spans
//	activity    what coding agents report
//
// The package control is above it: status, and requests that start and stop agents. The package
// identity is beside it: the callers of the HTTP API.
//
// Documents are stored unchanged, digit for digit. All these packages are pure: they open
// nothing, wait for nothing, and have no clock and no randomness. Callers pass streams, times
// and ids as values.
package wire
