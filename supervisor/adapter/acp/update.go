package acp

import (
	"strings"

	"orchestrator/supervisor/adapter"
	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/tools"
)

// An update is a notification about the turn.
type update struct {
	Kind    string   `json:"sessionUpdate"`
	Content wire.Raw `json:"content"`
	Status  string   `json:"status"`
	toolCall
	Entries []struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	} `json:"entries"`
	Meta wire.Raw `json:"_meta"`
	Used int64    `json:"used"`
	Size int64    `json:"size"`
	Cost *struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	} `json:"cost"`
}

// A toolCall is the description of a tool call by the client. Later updates hold only changed members.
type toolCall struct {
	ID        string   `json:"toolCallId"`
	ToolKind  string   `json:"kind"`
	Title     string   `json:"title"`
	Name      string   `json:"name"`
	Input     wire.Raw `json:"rawInput"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
}

// updated handles a notification about the turn.
func (c *Client) updated(document wire.Raw) []adapter.Effect {
	var u update
	if object.Decode(document, &u) != nil {
		return nil
	}
	if u.Kind == "usage_update" {
		c.used(&u)
		return nil
	}
	if c.turn == 0 { // the history of a conversation that is resumed
		return nil
	}
	var effects []adapter.Effect
	if !c.begun && (u.Kind == "agent_message_chunk" || u.Kind == "agent_thought_chunk" || u.Kind == "tool_call" || u.Kind == "plan") {
		c.begun = true
		effects = append(effects, &adapter.Begun{}, &adapter.InContext{ID: c.waiting[c.turn].id})
	}
	switch u.Kind {
	case "agent_message_chunk":
		text, _ := object.TextOf(u.Content, "text")
		c.words.WriteString(text)
		if effects = append(effects, c.read()...); c.words.Len() > maxWords {
			last := c.words.String()
			effects = append(effects, c.said())
			c.before = last
		}
	case "tool_call", "tool_call_update":
		k := c.merge(u.toolCall)
		if u.Kind == "tool_call" {
			effects = append(append(effects, c.said()), c.read()...)
			if !own(&k) {
				effects = append(effects, &adapter.Doing{Kind: "tool", Text: k.Title, ID: k.ID})
			}
		}
		if u.Status == "completed" || u.Status == "failed" {
			effects = append(effects, &adapter.Did{ID: k.ID})
			c.tools.Forget(k.ID)
		}
	case "session_info_update":
		effects = append(effects, retries(u.Meta)...)
	case "plan":
		for _, e := range u.Entries {
			if e.Status == "in_progress" {
				effects = append(effects, &adapter.Doing{Kind: "plan", Text: e.Content})
			}
		}
	}
	return effects
}

// retries reports that the client waits for its vendor, and retries by itself.
func retries(meta wire.Raw) []adapter.Effect {
	trouble := object.MemberOf(object.MemberOf(meta, "codex"), "error")
	if string(object.MemberOf(trouble, "willRetry")) != "true" || !strings.Contains(string(trouble), "429") {
		return nil
	}
	return []adapter.Effect{&adapter.Limited{Retries: true}}
}

// used notes the context size and the cost of the whole conversation from an update.
func (c *Client) used(u *update) {
	c.context.ContextUsed, c.context.ContextSize = u.Used, u.Size
	if u.Cost != nil && u.Cost.Amount >= c.paid {
		c.context.Cost, c.context.Currency = u.Cost.Amount, u.Cost.Currency
	}
}

// maxWords is how many bytes of the model's words are collected before they are logged. The last words of a turn have
// up to twice as many.
const maxWords = 64 << 10

// read reports texts that the client took as read by the model: it has gone on since.
func (c *Client) read() []adapter.Effect {
	var effects []adapter.Effect
	for _, id := range c.injected {
		effects = append(effects, &adapter.InContext{ID: id})
	}
	c.injected = nil
	return effects
}

// said logs the words of the model since the last call.
func (c *Client) said() adapter.Effect {
	text := c.words.String()
	c.before = ""
	c.words.Reset()
	return adapter.Log{Text: text}
}

// size returns how many bytes a tool call keeps.
func (k *toolCall) size() int {
	size := len(k.Title) + len(k.ToolKind) + len(k.Name) + len(k.Input)
	for _, l := range k.Locations {
		size += len(l.Path)
	}
	return size
}

// merge adds an update to the known members of a tool call.
func (c *Client) merge(k toolCall) toolCall {
	known := c.tools.Get(k.ID)
	known.ID = k.ID
	if k.Title != "" {
		known.Title = k.Title
	}
	if k.ToolKind != "" {
		known.ToolKind = k.ToolKind
	}
	if k.Name != "" {
		known.Name = k.Name
	}
	if len(k.Input) > 2 || len(known.Input) == 0 {
		known.Input = k.Input
	}
	if len(k.Locations) > 0 {
		known.Locations = k.Locations
	}
	c.tools.Put(k.ID, known, known.size())
	return known
}

// own reports whether a call is one of our tools, by the names that clients give the tools of MCP servers. The model
// writes titles of commands and of edits, and the arguments of any tool, so they prove no call of ours.
func own(k *toolCall) bool {
	if tool, ok := strings.CutPrefix(k.Title, "mcp."+tools.Server+"."); ok && tools.Has(tool) {
		return calls(k.Input, tool)
	}
	if k.ToolKind != "" && k.ToolKind != "other" {
		return false
	}
	for _, name := range []string{k.Name, k.Title} {
		if rest, ok := strings.CutPrefix(name, "mcp__"+tools.Server+"__"); ok && tools.Has(rest) {
			return true
		}
		if rest, ok := strings.CutPrefix(name, tools.Server+"_"); ok && tools.Has(rest) {
			return true
		}
		if rest, ok := strings.CutSuffix(name, " ("+tools.Server+" MCP Server)"); ok && tools.Has(rest) {
			return true
		}
	}
	return false
}

// calls reports whether the input is exactly a call of one of our tools as Codex writes it.
func calls(input wire.Raw, tool string) bool {
	var all map[string]wire.Raw
	if object.Decode(input, &all) != nil {
		return false
	}
	delete(all, "arguments")
	server, _ := object.Text(all["server"])
	called, _ := object.Text(all["tool"])
	return len(all) == 2 && server == tools.Server && called == tool
}
