package codex

import (
	"slices"
	"strings"
	"time"

	"orchestrator/supervisor/adapter"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/object"
)

// notice holds the members of notifications that matter here.
type notice struct {
	ThreadID string `json:"threadId"`
	Turn     struct {
		ID     string `json:"id"`
		Status string `json:"status"`
		Items  []item `json:"items"`
		Error  *fault `json:"error"`
	} `json:"turn"`
	Item       item     `json:"item"`
	Error      *fault   `json:"error"`
	WillRetry  bool     `json:"willRetry"`
	RequestID  wire.Raw `json:"requestId"`
	TokenUsage struct {
		Last   tokens `json:"last"`
		Window int64  `json:"modelContextWindow"`
	} `json:"tokenUsage"`
	RateLimits struct {
		Primary *struct {
			ResetsAt int64 `json:"resetsAt"`
		} `json:"primary"`
	} `json:"rateLimits"`
}

type item struct {
	ID       string   `json:"id"`
	Changes  wire.Raw `json:"changes"`
	Type     string   `json:"type"`
	ClientID string   `json:"clientId"`
	Text     string   `json:"text"`
	Command  string   `json:"command"`
	Actions  []action `json:"commandActions"`
	Server   string   `json:"server"`
	Tool     string   `json:"tool"`
}

// An action is a command without the shell around it.
type action struct {
	Command string `json:"command"`
}

type fault struct {
	Message string   `json:"message"`
	Info    wire.Raw `json:"codexErrorInfo"`
}

type tokens struct {
	Total      int64 `json:"totalTokens"`
	Input      int64 `json:"inputTokens"`
	Cached     int64 `json:"cachedInputTokens"`
	CacheWrite int64 `json:"cacheWriteInputTokens"`
	Output     int64 `json:"outputTokens"`
	Reasoning  int64 `json:"reasoningOutputTokens"`
}

// notified handles a notification. Other notifications are not needed.
func (c *Client) notified(m *adapter.RPC) []adapter.Effect {
	var n notice
	if object.Decode(m.Params, &n) != nil && m.Method != "turn/completed" {
		return nil
	}
	other := c.other(&n)
	switch m.Method {
	case "turn/started":
		if other {
			return nil
		}
		c.turn, c.starting, c.words = n.Turn.ID, false, ""
		effects := []adapter.Effect{&adapter.Begun{}}
		if c.stop {
			effects = append(effects, c.Interrupt()...)
		}
		return effects
	case "item/started":
		return c.began(&n.Item)
	case "item/completed":
		if n.Item.Type != "agentMessage" {
			c.changes.Forget(n.Item.ID)
			return []adapter.Effect{&adapter.Did{ID: n.Item.ID}}
		}
		if !other {
			c.words = n.Item.Text
		}
		return []adapter.Effect{adapter.Log{Text: n.Item.Text}}
	case "thread/tokenUsage/updated":
		return []adapter.Effect{c.usage(&n, other)}
	case "account/rateLimits/updated":
		if p := n.RateLimits.Primary; p != nil && p.ResetsAt > 0 {
			c.resets = time.Unix(p.ResetsAt, 0).UTC()
		}
	case "error":
		if n.WillRetry && n.Error != nil {
			return []adapter.Effect{&adapter.Limited{Retries: true}, adapter.Log{Text: n.Error.Message}}
		}
	case "serverRequest/resolved":
		return []adapter.Effect{&adapter.Withdrawn{ID: string(n.RequestID)}}
	case "turn/completed":
		if !other && c.runs(n.Turn.ID) {
			return c.ended(&n)
		}
	}
	return nil
}

// other reports whether a notification is about an agent that the model has started.
func (c *Client) other(n *notice) bool { return n.ThreadID != "" && n.ThreadID != c.thread }

// runs reports whether a turn is running or starting.
func (c *Client) runs(turn string) bool {
	return c.starting || c.turn != "" && (turn == "" || turn == c.turn)
}

// usage returns the usage of a request to the model. It leaves out the context of another thread.
func (c *Client) usage(n *notice, other bool) *activity.Usage {
	last := n.TokenUsage.Last
	u := &activity.Usage{
		Model: c.model, Input: last.Input, Output: last.Output, CacheRead: last.Cached, CacheWrite: last.CacheWrite, Reasoning: last.Reasoning,
	}
	if !other {
		u.ContextUsed, u.ContextSize = last.Total, n.TokenUsage.Window
	}
	return u
}

// began handles an item that begins: a text that the model gets, or a tool call.
func (c *Client) began(i *item) []adapter.Effect {
	switch i.Type {
	case "userMessage":
		if i.ClientID != "" {
			c.steered = slices.DeleteFunc(c.steered, func(s steer) bool { return s.id == i.ClientID })
			return []adapter.Effect{&adapter.InContext{ID: i.ClientID}}
		}
	case "commandExecution":
		return []adapter.Effect{&adapter.Doing{Kind: "tool", Text: plain(i.Command, i.Actions), ID: i.ID}}
	case "fileChange":
		c.changes.Put(i.ID, i.Changes, len(i.Changes))
		return []adapter.Effect{&adapter.Doing{Kind: "tool", Text: "edits files"}}
	case "mcpToolCall":
		return []adapter.Effect{&adapter.Doing{Kind: "tool", Text: i.Server + ": " + i.Tool, ID: i.ID}}
	case "webSearch":
		return []adapter.Effect{&adapter.Doing{Kind: "tool", Text: "searches the web"}}
	}
	return nil
}

// plain returns a command without the shell around it, if the client reports that.
func plain(command string, actions []action) string {
	if len(actions) == 1 && actions[0].Command != "" {
		return actions[0].Command
	}
	return command
}

// A steer is a text that was given to the running turn.
type steer struct {
	call int64
	id   string
}

// unread reports the texts that the model will not get in this turn.
func (c *Client) unread(lost func(steer) bool) []adapter.Effect {
	var effects []adapter.Effect
	kept := c.steered[:0]
	for _, s := range c.steered {
		if lost(s) {
			effects = append(effects, &adapter.Unread{ID: s.id})
		} else {
			kept = append(kept, s)
		}
	}
	c.steered = kept
	return effects
}

// ended handles the end of a turn.
func (c *Client) ended(n *notice) []adapter.Effect {
	c.turn, c.starting, c.stop = "", false, false
	effects := append(c.unread(func(steer) bool { return true }), c.changes.Clear())
	end := &adapter.Ended{Text: c.words}
	for _, i := range n.Turn.Items {
		if i.Type == "agentMessage" {
			end.Text = i.Text
		}
	}
	switch n.Turn.Status {
	case "completed":
	case "interrupted":
		end.Stopped = true
		effects = append(effects, c.call("thread/backgroundTerminals/clean", map[string]any{"threadId": c.thread})) // or a command goes on
	default:
		return append(effects, c.failed(n.Turn.Error, end)...)
	}
	return append(effects, end)
}

// failed classifies the error of a turn.
func (c *Client) failed(f *fault, end *adapter.Ended) []adapter.Effect {
	end.Failure = adapter.FailTool
	if f == nil {
		return []adapter.Effect{end}
	}
	end.Text = f.Message
	switch info := string(f.Info); {
	case info == `"contextWindowExceeded"`:
		end.Failure = adapter.FailContext
	case strings.Contains(info, "429"):
		end.Failure = adapter.FailLimit
		return []adapter.Effect{&adapter.Limited{Scope: "429"}, end}
	case info == `"usageLimitExceeded"`:
		end.Failure = adapter.FailLimit
		return []adapter.Effect{&adapter.Limited{Until: c.resets, Scope: "usage"}, end}
	case info == `"unauthorized"`, strings.Contains(info, "401"):
		end.Failure = adapter.FailLogin
	}
	return []adapter.Effect{end}
}
