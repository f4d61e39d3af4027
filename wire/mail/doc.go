// Package mail has the vocabulary of the message bus: the ids of actors, the topics, what an
// alert says, and the bounds of a message.
package mail
