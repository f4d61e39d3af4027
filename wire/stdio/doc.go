// Package stdio reads the lines of agents as messages, and writes replies and notices to agents as
// lines.
//
//	Reader      a line as a message of one of the dialects, or as log
//	Envelope    answers and notices as lines, in the dialect of the request
//
// Payloads of requests and events are read in wire.
package stdio
