package activity

import (
	"orchestrator/wire/object"
)

// A PermissionChoice is one of the possible answers. Its kind is its meaning.
type PermissionChoice struct {
	// The answer that the agent gets.
	ID string `json:"id"`
	// The meaning of the answer.
	Kind string `json:"kind" schema:"enum=allow_once|allow_session|allow_always|deny"`
	// The text that the person sees.
	Label string `json:"label,omitzero"`
}

// The kinds of a PermissionChoice.
const (
	AllowOnce    = "allow_once"
	AllowSession = "allow_session" // and the same again, as long as the agent's conversation lasts
	AllowAlways  = "allow_always"  // and the same again
	Deny         = "deny"
)

// choiceKinds lists the kinds of a PermissionChoice.
var choiceKinds = []string{AllowOnce, AllowSession, AllowAlways, Deny}

// ChoicesIn reads the member choices: at least one choice, with different ids.
func ChoicesIn(o *object.Reader) []PermissionChoice {
	var choices []PermissionChoice
	taken := make(map[string]bool)
	o.Objects("choices", func(item *object.Reader) {
		c := PermissionChoice{ID: item.NeedText("id"), Kind: item.NeedOneOf("kind", choiceKinds...), Label: item.Text("label")}
		if taken[c.ID] {
			item.Refuse("id", "stands twice")
		}
		taken[c.ID] = true
		choices = append(choices, c)
	})
	if len(choices) == 0 && o.Err() == nil {
		o.Refuse("choices", "must have at least one choice")
	}
	return choices
}

// Permission is the requested permission of a Question from ask-permission.
type Permission struct {
	// The tool.
	Tool string `json:"tool"`
	// The input of the tool call.
	Input object.Raw `json:"input" schema:"type=object"`
	// The files and folders that it concerns.
	Paths []string `json:"paths,omitzero"`
	// Why it is needed.
	Reason string `json:"reason,omitzero"`
	// The possible answers, with their meanings.
	Choices []PermissionChoice `json:"choices"`
}
