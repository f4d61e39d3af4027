package wire

import (
	"fmt"
	"strings"
	"unicode"
)

// Actors that are always there.
const (
	ActorGlobal   = "GO"       // who runs it all; operators at their own socket speak for it
	ActorBus      = "Bus"      // the orchestrator itself
	ActorGovernor = "Governor" // reserved, for those who watch over it
)

// Broadcast is the addressee of mail for all.
const Broadcast = "broadcast"

// longestActor is how many bytes the id of an actor may have.
const longestActor = 200

// actorParts is how many parts an id has behind its family.
var actorParts = map[string]int{"HO": 1, "PO": 1, "IO": 1, "W": 1, "S": 2}

// CheckActor returns why a text is no id of an actor who can send mail, "" if it is
// one:
//
//	GO             the one that runs it all
//	HO:host        one for each host
//	PO:project     one for each project
//	IO:person      one for each person
//	W:uuid         a worker, of which there may be many
//	S:kind:uuid    a specialist, likewise
func CheckActor(id string) string {
	if id == ActorGlobal {
		return ""
	}
	family, rest, _ := strings.Cut(id, ":")
	parts := strings.Split(rest, ":")
	switch {
	case id == ActorBus || id == ActorGovernor:
		return fmt.Sprintf("must not be %q: that is the orchestrator's own", id)
	case len(id) > longestActor:
		return fmt.Sprintf("must not be longer than %d bytes", longestActor)
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

// unreadable reports whether a character is one that people cannot tell apart from
// nothing, or from another.
func unreadable(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }

// CheckAddressee reports why mail cannot have an addressee.
func CheckAddressee(id string) string {
	switch id {
	case Broadcast, ActorBus, ActorGovernor:
		return ""
	}
	if why := CheckActor(id); why != "" {
		return strings.Replace(why, "must be GO", "must be broadcast, GO", 1)
	}
	return ""
}

// ActorOfRun is the id that a run of an agent has. Of "W", and of "S:kind", each
// run is another one; everything else is an id by itself.
func ActorOfRun(actor, run string) string {
	if PerRun(actor) {
		return actor + ":" + run
	}
	return actor
}

// Passing reports whether an actor is one of many of its kind, which come and go: a
// worker or a specialist.
func Passing(id string) bool { return strings.HasPrefix(id, "W:") || strings.HasPrefix(id, "S:") }

// PerRun reports whether each run of an agent is an actor of its own.
func PerRun(actor string) bool {
	return actor == "W" || strings.HasPrefix(actor, "S:") && strings.Count(actor, ":") == 1
}
