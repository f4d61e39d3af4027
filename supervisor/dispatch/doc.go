// Package dispatch decides about messages, records the decisions and tells their results.
//
//	Submit   one goroutine at a time lets the State decide: facts and letters
//	record   the facts of a batch are appended to the record and become durable
//	tell     the letters of the batch leave, and its facts are shown as events
//
// An answer, a line or an event leaves only after its facts are durable. While a batch is being recorded the next one
// is decided, so one sync of the disk serves many requests. Letters leave in the order of the decisions. A decision
// without facts still waits for the batches before it.
//
// A [Channel] brings the messages of one run of an agent, [Callers] the messages of the HTTP API, and [Requests] the
// messages of all other callers. A letter goes to the mailbox of a run, or to the caller that waits for it. The
// postman, one goroutine, brings letters that must first be read: mail, long answers, and lines that are in the record.
// If the record fails, no request is granted, and no letter leaves.
//
// The package starts no process and opens no file.
package dispatch
