// Package api is the door: HTTP, and nothing that HTTP does not need.
//
// An operation is behind POST /api/v1/operations/NAME: it takes a document of
// package wire and answers with one, or, if it is a Stream, with JSON lines. A
// List is behind GET /api/v1/NAME: it takes a query and answers with JSON lines.
// A Pipe is behind POST /api/v1/NAME: it takes the caller's connection over. The
// door translates, bounds and refuses; what an operation means is somebody
// else's.
//
// Over the unix socket the caller is known by the kernel: only the user that
// runs the orchestrator, and root, get as far as a request. Callers look as
// well, with Dial: nobody but these two may answer them.
package api
