// Package wire is the language that agents, operators and the orchestrator share.
//
//	Lines                    a stream of bytes as lines
//	Reader                   a line as a message of one of the dialects, or as log
//	Payloads                 the payload of a request or an event
//	ReadHubTask ...          bodies of protocol A
//	ReadSessionMessage       messages of protocol C
//	ReadTaskRequest, ReadTaskAct, ReadTaskResponse   delegated work, protocol D
//	Spec, Result, Requirements, Capabilities         documents, as far as decisions need them
//	Detach, Attach           content that is too large for the record
//	Envelope                 answers and notices as lines, in the Dialect of the request
//	Encode                   every other document as JSON
//	Record                   one fact, as it is stored
//	AppendVisible            text of others, safe to show
//	Schemas                  JSON Schemas of all messages
//
// Documents are stored unchanged, digit for digit.
//
// The package is pure: it opens nothing, waits for nothing, and has no clock and no randomness.
// Callers pass streams, times and ids as values.
package wire
