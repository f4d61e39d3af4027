// Package api serves the HTTP API on unix sockets and on TCP. It translates, bounds and refuses; package handlers
// decides about the effects of an operation.
//
//	POST /api/v1/operations/NAME   an operation: a document in, a document or JSON lines out
//	GET  /api/v1/NAME              a list: a query in, JSON lines out
//	POST /api/v1/NAME              a pipe: it takes the connection over
//	/api/v1/tasks, /server, /servers   the routes of protocol A, with its refusals
//	/api/bus, /api/agents, /api/sse    the routes of protocol E; the last streams mail as it comes
//	/metrics                       figures
//	/openapi.json                  a description of all routes, made from them
//
// A poll returns all that a stream of mail sends, so the stream never waits for a slow reader.
//
// # Callers
//
// A caller is known by its listener and its credential:
//
//	listener                 without a credential   with a credential
//	the operators' socket    an operator, of all    its owner
//	the socket of a run      that run               that run; another: 403
//	TCP                      401                    its owner
//
// An agent's key (orc_…) and the token of an actor elsewhere, which has the same form, come as X-API-Key or as a bearer
// token; the token of an operator is a JWT and comes as a bearer token. An actor elsewhere may use only the bus and the
// operations for Actors. An empty, malformed, unknown or ambiguous credential is 401, even where none is needed, and so
// is one of the wrong kind for a route. 403 is for known callers without the right. Public routes, such as the route
// for registering a server, look at no credential.
//
// The kernel admits only the orchestrator's user and root to a unix socket, and Dial checks the
// other side in the same way. The socket and the token of a run end with it, together with the
// streams that they opened; a stream also ends with the credential that opened it.
//
// TCP is for this machine, or speaks TLS 1.3. It answers only to the host names of the configuration, and no page of
// another origin may read it, so a web page cannot reach it under the page's name.
//
// # Limits and traces
//
// Each caller has a number of requests a second, except operators at a socket. Of a refused
// request only the headers are read.
//
// A new task without a trace may name one in the header traceparent (W3C trace context); a wrong
// header is ignored, and so is tracestate. An answer about one task has the same header, with the
// span of the task.
package api
