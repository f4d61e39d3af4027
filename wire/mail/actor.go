package mail

import (
	"fmt"
	"strings"
	"unicode"
)

// Actors that are always there.
const (
	Global   = "GO"       // runs the system; operators on the local socket act as it
	Bus      = "Bus"      // the orchestrator itself
	Governor = "Governor" // reserved for supervising programs
)

// Broadcast is the recipient of mail to all actors.
const Broadcast = "broadcast"

// maxActor is the maximum length of an actor's id, in bytes.
const maxActor = 200

// actorParts maps the family of an id to the number of parts after it.
var actorParts = map[string]int{"HO": 1, "PO": 1, "IO": 1, "W": 1, "S": 2}

// CheckActor returns why id does not name an actor that can send mail, or "" if it does:
//
//	GO             the actor that runs the whole team
//	HO:host        one for each host
//	PO:project     one for each project
//	IO:person      one for each person
//	W:uuid         a worker, one of many
//	S:kind:uuid    a specialist, likewise
func CheckActor(id string) string {
	if id == Global {
		return ""
	}
	family, rest, _ := strings.Cut(id, ":")
	parts := strings.Split(rest, ":")
	switch {
	case id == Bus || id == Governor:
		return fmt.Sprintf("must not be %q, which is reserved for the orchestrator", id)
	case len(id) > maxActor:
		return fmt.Sprintf("must not be longer than %d bytes", maxActor)
	case actorParts[family] != len(parts) || !strings.Contains(id, ":"):
		return fmt.Sprintf("must be GO, HO:host, PO:project, IO:person, W:id or S:kind:id, not %.80q", id)
	}
	for _, part := range parts {
		if part == "" || strings.ContainsFunc(part, unreadable) {
			return fmt.Sprintf("must have visible text after each colon: %.80q", id)
		}
	}
	return ""
}

// unreadable reports whether c is invisible, or looks like another character.
func unreadable(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }

// CheckAddressee reports why mail cannot have an addressee.
func CheckAddressee(id string) string {
	switch id {
	case Broadcast, Bus, Governor:
		return ""
	}
	if why := CheckActor(id); why != "" {
		return strings.Replace(why, "must be GO", "must be broadcast, GO", 1)
	}
	return ""
}

// maxName is the maximum length of the name of an agent, in bytes.
const maxName = 63

// IsName reports whether a word can be the name of an agent. Mail may be sent to a name, unless it
// is also an addressee.
func IsName(word string) bool {
	for i, c := range word {
		letter := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("._-", c)) {
			return false
		}
	}
	return word != "" && len(word) <= maxName
}

// ActorOfRun returns the actor id of a run. For "W" and "S:kind" each run has its own id. Any
// other actor is returned unchanged.
func ActorOfRun(actor, run string) string {
	if PerRun(actor) {
		return actor + ":" + run
	}
	return actor
}

// Passing reports whether id names a short-lived actor: a worker or a specialist.
func Passing(id string) bool { return strings.HasPrefix(id, "W:") || strings.HasPrefix(id, "S:") }

// PerRun reports whether each run of an agent with this actor has its own actor id.
func PerRun(actor string) bool {
	return actor == "W" || strings.HasPrefix(actor, "S:") && strings.Count(actor, ":") == 1
}

// Beat answers heartbeat.
type Beat struct {
	// The actor that sent the heartbeat.
	Actor string `json:"actor"`
	// When the actor was last seen: now.
	LastSeen string `json:"last_seen" schema:"stamp"`
	// The expected time between heartbeats, in milliseconds.
	Every int64 `json:"heartbeat_ms" schema:"min=1"`
}

// ActorView is an actor as all may see it.
type ActorView struct {
	// The id of the actor, such as GO or HO:attic.
	Actor string `json:"actor"`
	// The agent of this actor, if it runs here or has registered.
	Agent string `json:"agent,omitzero"`
	// active: its agent runs, or it was seen recently. stale: its heartbeats have stopped. offline:
	// its agent does not run. quiet: unknown, since it has never sent heartbeats.
	Status string `json:"status" schema:"enum=mail.actorStatuses"`
	// When the actor was last seen.
	LastSeen string `json:"last_seen,omitzero" schema:"stamp"`
	// When the actor last sent a heartbeat.
	LastBeat string `json:"last_heartbeat,omitzero" schema:"stamp"`
	// The number of the last message that the actor has acknowledged.
	Cursor int64 `json:"cursor" schema:"min=0"`
	// The number of the last message that was sent only to this actor.
	Latest int64 `json:"latest,omitzero" schema:"min=1"`
}

// The statuses of an actor.
const (
	ActorActive  = "active"  // its agent runs, or it was seen recently
	ActorStale   = "stale"   // its heartbeats have stopped
	ActorOffline = "offline" // its agent does not run
	ActorQuiet   = "quiet"   // unknown: it has never sent heartbeats
)

// ActorList answers list-actors.
type ActorList struct {
	Actors []ActorView `json:"actors"`
}
