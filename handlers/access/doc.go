// Package access keeps the credentials of callers: keys of agents, registration tokens of
// servers, tokens of people and tokens of actors.
//
//	key           of an agent; an agent may have several while it changes them
//	registration  of a server that has not registered yet; it is used once
//	token         of a person; it is signed elsewhere, and kept only so that it can be revoked
//	actor         of an actor of the message bus on another machine
//
// A Book holds no secrets. A key is found by its hash, a person's token by its id.
//
// Grants are the permissions that people have given an agent for more than one time.
//
// The package does not decide who may issue or revoke a credential, and writes no records. The
// package handlers does both. Times and random bytes are arguments.
package access
