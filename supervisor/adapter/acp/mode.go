package acp

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"orchestrator/supervisor/adapter"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// modes lists the names that clients have for a value of Opening.Permission. The first one that
// a client offers is set.
var modes = map[string][]string{
	adapter.PermissionAsk:   {"default", "read-only", "ask", "manual"},
	adapter.PermissionEdits: {"acceptEdits", "workspace-write", "autoEdit", "edit"},
	adapter.PermissionPlan:  {"plan", "read-only"},
	adapter.PermissionAuto:  {"auto", "agent"},
	adapter.PermissionFull:  {"bypassPermissions", "agent-full-access", "yolo"},
}

// opened is the answer to the methods that begin or resume a conversation.
type opened struct {
	SessionID string `json:"sessionId"`
	Modes     struct {
		Current   string `json:"currentModeId"`
		Available []struct {
			ID string `json:"id"`
		} `json:"availableModes"`
	} `json:"modes"`
	Models struct {
		Current   string `json:"currentModelId"`
		Available []struct {
			ID string `json:"modelId"`
		} `json:"availableModels"`
	} `json:"models"`
	Options []struct {
		ID       string `json:"id"`
		Category string `json:"category"`
		Current  string `json:"currentValue"`
		Options  []struct {
			Value string `json:"value"`
		} `json:"options"`
	} `json:"configOptions"`
}

// opened sets the mode of the new conversation.
func (c *Client) opened(method string, result wire.Raw) []adapter.Effect {
	var r opened
	_ = object.Decode(result, &r) // without an id, the prompts fail and say so
	c.session = r.SessionID
	if method != "session/new" {
		c.session = c.o.Conversation
	}
	c.model, c.models = r.Models.Current, nil
	for _, m := range r.Models.Available {
		c.models = append(c.models, m.ID)
	}
	current := c.findPlanMode(&r)
	if len(r.Modes.Available) == 0 {
		effects := []adapter.Effect{adapter.Log{Text: "the client has no modes: its own settings decide when it asks"}}
		if c.option != "" && current != c.workMode { // it planned when it was ended
			return append(effects, c.set(c.workMode))
		}
		return append(effects, c.choose()...)
	}
	c.mode = r.first(c.o.Permission)
	switch c.mode {
	case "":
		why := "it has no mode for permission = " + strconv.Quote(c.o.Permission) + " and would decide by itself"
		return []adapter.Effect{adapter.Stuck{Why: why}}
	case r.Modes.Current:
		return c.choose()
	}
	return []adapter.Effect{c.set(c.mode)}
}

// first returns the mode that fits a permission, or "".
func (r *opened) first(permission string) string {
	for _, wanted := range modes[permission] {
		for _, m := range r.Modes.Available {
			if m.ID == wanted {
				return wanted
			}
		}
	}
	return ""
}

// findPlanMode finds the mode for plans, and the one to return to. A client may have both among its
// settings instead: then it returns the current one.
func (c *Client) findPlanMode(r *opened) (current string) {
	c.planMode, c.workMode, c.option = r.first(adapter.PermissionPlan), r.first(c.o.Permission), ""
	if len(r.Modes.Available) > 0 {
		return ""
	}
	for _, o := range r.Options {
		if o.Category != "mode" {
			continue
		}
		for _, v := range o.Options {
			if slices.Contains(modes[adapter.PermissionPlan], v.Value) {
				c.planMode, c.option, current = v.Value, o.ID, o.Current
			} else if c.workMode == "" || v.Value == o.Current {
				c.workMode = v.Value
			}
		}
	}
	return current
}

// set sets a mode.
func (c *Client) set(mode string) adapter.Effect {
	if c.option != "" {
		return c.call("session/set_config_option", map[string]any{"sessionId": c.session, "configId": c.option, "value": mode}, call{})
	}
	return c.call("session/set_mode", map[string]any{"sessionId": c.session, "modeId": mode}, call{})
}

// planIn returns the plan that a call presents, or "". Gemini CLI names only its file.
func planIn(k *toolCall) string {
	if strings.HasPrefix(k.Title, "Requesting plan approval for: ") {
		return k.Title
	}
	if k.ToolKind != "switch_mode" || k.Name == "EnterPlanMode" {
		return ""
	}
	plan, _ := object.TextOf(k.Input, "plan")
	return cmp.Or(plan, k.Title)
}

// Plan switches to the mode for plans, or back. The prompt waits until that is done.
func (c *Client) Plan(on bool) []adapter.Effect {
	mode := c.workMode
	if on {
		mode = c.planMode
	}
	if c.planMode == "" {
		return nil
	}
	c.planning, c.switching = on, true
	return []adapter.Effect{c.set(mode)}
}
