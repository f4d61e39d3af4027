// Package mail has the messages of the message bus as they are stored and shown, and its
// vocabulary: the ids of actors, the topics, the text of an alert, and the bounds of a message.
package mail
