// Package wire is the language that agents, operators and the orchestrator
// share: lines, what they mean, and the documents that answer requests.
//
// A stream of bytes becomes lines here (Lines) and a line a message of one of
// five dialects, or log (Reader); its payload becomes what it asks or tells
// (Payloads), as does what comes over HTTP in the words of a hub (ReadHubTask and
// the like), what agents of a session say to each other (ReadSessionMessage), and
// work that one agent hands to another and what becomes of it (ReadTaskRequest,
// ReadTaskAct, ReadTaskResponse); documents in it are kept as they came, but for
// content that is kept elsewhere (Detach, Attach), and read as far as decisions need
// them (Spec, Result, Requirements, Capabilities, SessionMessage); answers and notices
// become lines (Envelope), in the form of the question (Form), and every other
// document JSON (Encode), so that there is one spelling of everything; text of
// strangers becomes safe to show (AppendVisible); what became true has a form
// that lasts (Record); and what each message looks like is written down for
// those who write agents in other languages (Schemas).
//
// The package is pure: it opens nothing, waits for nothing, knows no clock and
// no randomness. A caller that has a stream, a time or an id hands it in as a value.
package wire
