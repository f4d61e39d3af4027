package codex

import (
	"maps"
	"path"
	"slices"
	"strings"

	"orchestrator/supervisor/adapter"
	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/tools"
)

// circumstances lists the members of a request for a command that do not extend the permission.
var circumstances = []string{
	"threadId", "turnId", "itemId", "startedAtMs", "approvalId", "reason", "commandActions", "availableDecisions",
	"proposedExecpolicyAmendment", "proposedNetworkPolicyAmendments", // the answer takes none of them
}

// command asks whether a command may be run. Other members of the request, such as a host or more
// rights, become members of the input: a permission for the command does not hold for them.
func command(id string, params wire.Raw) *adapter.Permission {
	var r struct {
		Command string `json:"command"`
		Cwd     string `json:"cwd"`
		Reason  string `json:"reason"`
	}
	var all map[string]wire.Raw
	p := &adapter.Permission{ID: id, Tool: "Bash", Title: "Bash"}
	if object.Decode(params, &r) != nil || object.Decode(params, &all) != nil {
		p.Once, p.Beyond = true, true // a person is asked about an undecoded request
	}
	command := unwrapped(r.Command)
	input := map[string]any{"command": command, "cwd": r.Cwd}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		value := all[key]
		usual := key == "kind" && string(value) == `"command"` // another kind stays in the input
		if usual || key == "command" || key == "cwd" || string(value) == "null" || slices.Contains(circumstances, key) {
			continue
		}
		input[key] = value
		if key != "environmentId" {
			p.Beyond = true
			p.Title += ", " + key + " " + tools.Clip(string(value), 300)
		}
	}
	if command != "" {
		p.Title += ": " + command
	}
	p.Reason, p.Input = r.Reason, object.Spell(input)
	return p
}

// fileChange asks whether files may be changed. The changes are in an earlier item.
func (c *Client) fileChange(id string, params wire.Raw) *adapter.Permission {
	var r struct {
		ItemID    string `json:"itemId"`
		Reason    string `json:"reason"`
		GrantRoot string `json:"grantRoot"`
	}
	_ = object.Decode(params, &r) // a person is asked about an invalid request, too
	var changes []struct {
		Path string   `json:"path"`
		Kind wire.Raw `json:"kind"`
	}
	known := c.changes.Get(r.ItemID)
	p := &adapter.Permission{
		ID: id, Tool: "Edit", Title: "edit files", Reason: r.Reason, Input: wire.Raw("{}"), Once: true, Beyond: r.GrantRoot != "",
	}
	if len(known) > 0 && object.Decode(known, &changes) == nil {
		p.Input, p.Once = object.Spell(map[string]any{"changes": known, "grantRoot": r.GrantRoot}), false
	}
	for _, change := range changes {
		p.Paths = append(p.Paths, change.Path)
		if to, _ := object.TextOf(change.Kind, "move_path"); to != "" {
			p.Paths = append(p.Paths, to)
		}
	}
	if r.GrantRoot != "" {
		p.Paths = append(p.Paths, r.GrantRoot)
	}
	if len(p.Paths) > 0 {
		p.Title = "edit " + strings.Join(p.Paths, ", ")
	}
	return p
}

// permission asks for a permission. A confined client asks about edits in its folder, too, where the
// sandbox would allow them.
func (c *Client) permission(p *adapter.Permission) []adapter.Effect {
	edits := c.o.Permission == adapter.PermissionEdits && !c.planned && !c.plans
	if c.o.Confined && edits && !p.Beyond && c.inside(p.Paths) {
		return c.Decide(p, adapter.Decision{Allow: true})
	}
	return []adapter.Effect{p}
}

// inside reports whether paths is not empty, and all are in the folder of the client. Paths of hidden files, such as
// the files of git and of the client itself, count as outside: its sandbox excepts them, too.
func (c *Client) inside(paths []string) bool {
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(p string) bool {
		rest, within := strings.CutPrefix(path.Clean(p), strings.TrimSuffix(c.o.Dir, "/")+"/")
		return !within || strings.HasPrefix(rest, ".") || strings.Contains(rest, "/.")
	})
}
