package access

import (
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/activity"
)

// A Grant is a permission that a person has given an agent for more than one time.
type Grant struct {
	Tool  string   `json:"tool"`
	Input wire.Raw `json:"input"`
	// the conversation, or the run, that it is limited to; "" is for ever.
	Session string `json:"session,omitzero"`
}

// Grants holds the permissions of an agent, oldest first.
type Grants []Grant

// maxGrants is the maximum number of remembered permissions of an agent. The oldest is forgotten
// first, and asked again.
const maxGrants = 1000

// Choice returns the choice that answers a request for permission in a session, if it was granted
// before, or "".
func (g Grants) Choice(r *wire.AskPermission, session string) string {
	i := slices.IndexFunc(g, func(o Grant) bool {
		return o.Tool == r.Tool && string(o.Input) == string(r.Input) && (o.Session == "" || o.Session == session)
	})
	if i < 0 {
		return ""
	}
	for _, kind := range []string{activity.AllowOnce, activity.AllowSession, activity.AllowAlways} {
		for _, c := range r.Choices {
			if c.Kind == kind {
				return c.ID
			}
		}
	}
	return ""
}

// Remember keeps a permission that was given for more than one time. One for a session is not
// kept if session is "", because that has ended.
func (g *Grants) Remember(p *activity.Permission, answer, session string) {
	i := slices.IndexFunc(p.Choices, func(c activity.PermissionChoice) bool { return c.ID == answer })
	if i < 0 || p.Choices[i].Kind != activity.AllowSession && p.Choices[i].Kind != activity.AllowAlways {
		return
	}
	kept := Grant{Tool: p.Tool, Input: p.Input}
	if p.Choices[i].Kind == activity.AllowSession {
		if kept.Session = session; session == "" {
			return
		}
	}
	if *g = append(*g, kept); len(*g) > maxGrants {
		*g = (*g)[1:]
	}
}
