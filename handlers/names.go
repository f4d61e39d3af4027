package handlers

import (
	"orchestrator/handlers/snapshot"
	"orchestrator/handlers/state"
)

// Inputs and settings use the vocabulary of the State.
type (
	// An Actor is who causes an input, or gets a letter.
	Actor = state.Actor
	// ActorKind is the kind of an Actor.
	ActorKind = state.ActorKind
	// Rules holds the settings from the configuration.
	Rules = state.Rules
	// A Snapshot is a State as bytes.
	Snapshot = snapshot.Snapshot
	// UnknownKindError reports a record of a kind that only newer versions know.
	UnknownKindError = state.UnknownKindError
)

// The kinds of Actor.
const (
	Orchestrator = state.Orchestrator
	Operator     = state.Operator
	Agent        = state.Agent
	Anonymous    = state.Anonymous
	External     = state.External
)
