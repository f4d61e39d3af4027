// Package session has the messages of the agents of a session: an architect gives out tasks,
// developers do them and reviewers judge them. It also has sessions as operators see them.
//
//	Message      one message: Read takes it from a line or a document
//	Assignment, Completion, ReviewRequest, …     the Body of a Message, by its type
//	Head         creates the messages that the orchestrator sends for a member
//	Spec         the definition of a session: its members and rules
//	Brief, ReviewView, Entry, …     a session in answers: its members, reviews and log
//	words.go     the closed lists: types, priorities, verdicts, severities
//
// A message is judged alone here. The package handlers decides its meaning in a session, and
// whether it fits there.
package session
