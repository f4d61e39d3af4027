// Package hub has the documents of protocol A, for servers that share a queue of tasks: the goal of
// a task (Spec), the demands on its agent (Requirements), the skills of an agent (Capabilities),
// the outcome of a task (Result) and the tasks that it needs (Dependency).
//
// A Server is an agent as protocol A shows it.
//
// A document is kept digit for digit; the decoded fields are what decisions need. An unusual but
// accepted value is an Oddity, and its author gets a warning.
package hub
