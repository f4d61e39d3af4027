// Package history reads the parts of an answer that are only in the log, and not in the State: large
// texts of tasks, results of finished ones, messages of actors and the logs of sessions.
//
// An answer that needs the log comes with Pages, which name its records. Complete fills them in.
// It needs no State, so it may run beside the decisions.
//
//	page.go      which records an answer needs, messages of actors
//	complete.go  answers about tasks, their notes, their responses and the log of a session
//	status.go    the states of a message
//
// The facts in the records belong to the package handlers. A fact implements the interfaces of
// this package that fit it: Part, Success, Note, Entry, Receipt, Line.
package history
