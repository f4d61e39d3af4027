// Package api is the door: HTTP, and nothing that HTTP does not need.
//
// Every operation is one function behind POST /api/v1/operations/NAME, taking
// and giving a document of package wire; lists and streams are behind GET
// /api/v1/NAME and come as JSON lines. The door translates, bounds and
// refuses; what an operation means is somebody else's.
//
// Over the unix socket the caller is known by the kernel: only the user that
// runs the orchestrator, and root, get as far as a request.
package api
