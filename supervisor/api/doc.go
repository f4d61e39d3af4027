// Package api is the door: HTTP, and nothing that HTTP does not need.
//
// An operation is behind POST /api/v1/operations/NAME: it takes a document of
// package wire and answers with one, or, if it is a Stream, with JSON lines. A
// List is behind GET /api/v1/NAME: it takes a query and answers with JSON lines.
// A Pipe is behind POST /api/v1/NAME: it takes the caller's connection over. A
// Route has a path and forms of its own, and so have the figures at /metrics. The
// door translates, bounds and refuses; what an operation means is decided elsewhere.
//
// Those who speak of a hub have routes of their own to the same operations,
// below /api/v1/tasks, /api/v1/server and /api/v1/servers, with refusals of their
// own. So do those who write to each other by a bus, below /api/bus, /api/agents
// and /api/sse: the last is a stream that tells of mail as it comes. It tells
// nothing that the poll does not, and so no reader is waited for. GET
// /openapi.json describes all of it, and is made of what is there.
//
// # Who asks
//
// A Caller is known by where it comes in, and by what it shows:
//
//	comes in by              shows nothing         shows a credential
//	the operators' socket    an operator, of all   who it says
//	the socket of a run      that run              that run; another: 403
//	TCP                      no caller: 401           who it says
//
// A key of an agent (orc_…), and the token of an actor from elsewhere, which looks
// the same, are taken as X-API-Key and as a bearer token; the token of an
// operator, a JWT, as a bearer token. Such an actor has the bus and the operations
// that are said to be for it, and nothing else. What is empty, malformed, not
// known, or two things at once is 401, also where one who shows nothing would be
// a caller. So is a credential of the wrong kind for a Route; 403 is for those
// who are known and may not. On a Public route, such as the one by which a server
// registers, its identity is not asked for.
//
// Over a unix socket only the user that runs the orchestrator, and root, get as
// far as a request: the kernel says who is there. Callers look as well, with
// Dial: only these two may answer them. The socket and the token of a run
// end with it, and all that is open by them; so does a stream with the credential
// that it was opened with.
//
// TCP is for this machine, or speaks TLS 1.3. It is asked for by the names that
// the configuration gives it, so that a page in a browser cannot reach it under
// a name of its own; no page of elsewhere is told that it may.
//
// # Traces
//
// A new task that does not say in which trace it is may say so in the header
// traceparent, as the W3C's recommendation on trace context has it; one that is
// wrong is passed over, and so is tracestate. What is answered with one task, or with
// what became of one, has the same header, with the span that is the task's own, if
// its ids are those of the W3C.
//
// Each caller has so many requests a second and no more, but for operators at a
// socket. What is refused has had nothing read but its headers.
package api
