package config

import (
	"fmt"
	"strings"
	"unicode"
)

// actorForm matches the actor of an agent. "W" and "S:kind" are a new actor for each run, and
// "auto" means "W". The bus has the same rules.
var actorForm = expression(`^(auto|GO|W|(HO|PO|IO|W):[^:\s]+|S:[^:\s]+(:[^:\s]+)?)$`)

// topicForm matches words separated by dots.
var topicForm = expression(`^[^.\s*]+(\.[^.\s*]+)*$`)

// actor reads the actor of an agent. An actor that is not per run may be used only once.
func (r *reader) actor(a *Agent) func(value) {
	return func(v value) {
		var id string
		word(&id)(v)
		switch {
		case id == "":
			return
		case !actorForm().MatchString(id) || !seen(id):
			v.reject("bad-actor", "Bad actor", fmt.Sprintf("%s is no actor.", v.quoted()),
				"Say GO, HO:host, PO:project, IO:person, or auto, W or S:kind for another one with each run.")
			return
		}
		a.Actor = id
		if id == "auto" || id == "W" || strings.HasPrefix(id, "S:") && strings.Count(id, ":") == 1 {
			return
		}
		if other, taken := r.actors[id]; taken {
			hint := "Two agents cannot read the same mail: give each an actor of its own."
			if a.Index > 0 && strings.HasPrefix(other, a.Block) {
				hint = "Replicas need one each, such as \"PO:name-${self.index}\"."
			}
			v.reject("actor-taken", "Actor is taken", fmt.Sprintf("Agent %q is %s already.", other, v.quoted()), hint)
			return
		}
		r.actors[id] = a.Name
	}
}

// maxWordLength is the longest word that leaves room for the id of a run.
const maxWordLength = 150

// seen reports whether a word is printable and not too long.
func seen(word string) bool {
	return len(word) <= maxWordLength && !strings.ContainsFunc(word, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) })
}

// topics reads a list of topic names.
func topics(into *[]string) func(value) {
	return func(v value) {
		var names []string
		words(&names)(v)
		for _, name := range names {
			if !topicForm().MatchString(name) || !seen(name) {
				v.reject("bad-topic", "Bad topic", fmt.Sprintf("%q is no topic.", name), "A topic is words with dots between them, such as build.finished.")
				return
			}
		}
		if names != nil {
			*into = names
		}
	}
}
