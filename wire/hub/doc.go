// Package hub has the documents of protocol A, in which servers share a queue of tasks: what a
// task should achieve (Spec), what its agent must be able to do (Requirements), what an agent can
// do (Capabilities), what a task achieved (Result) and what it waits for (Dependency).
//
// A Server is an agent as protocol A shows it.
//
// A document is kept digit for digit; the decoded fields are what decisions need. What is
// unusual but accepted is an Oddity, of which the author gets a warning.
package hub
