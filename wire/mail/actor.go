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
//	GO             the one that runs it all
//	HO:host        one for each host
//	PO:project     one for each project
//	IO:person      one for each person
//	W:uuid         a worker, of which there may be many
//	S:kind:uuid    a specialist, likewise
func CheckActor(id string) string {
	if id == Global {
		return ""
	}
	family, rest, _ := strings.Cut(id, ":")
	parts := strings.Split(rest, ":")
	switch {
	case id == Bus || id == Governor:
		return fmt.Sprintf("must not be %q: that is the orchestrator's own", id)
	case len(id) > maxActor:
		return fmt.Sprintf("must not be longer than %d bytes", maxActor)
	case actorParts[family] != len(parts) || !strings.Contains(id, ":"):
		return fmt.Sprintf("must be GO, HO:host, PO:project, IO:person, W:id or S:kind:id, not %.80q", id)
	}
	for _, part := range parts {
		if part == "" || strings.ContainsFunc(part, unreadable) {
			return fmt.Sprintf("must have something that can be read behind each colon: %.80q", id)
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
