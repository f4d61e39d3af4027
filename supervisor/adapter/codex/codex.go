// Package codex speaks the protocol of the Codex app server.
//
// A conversation is a thread; its id is kept and resumed. Prompts start turns, and mail steers a
// running one. The tools of the orchestrator are dynamic tools of the thread.
package codex

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"orchestrator/supervisor/adapter"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/object"
	"orchestrator/wire/tools"
)

// A mode has the client's words for a value of Opening.Permission.
type mode struct{ sandbox, policy, reviewer string }

var modes = map[string]mode{
	adapter.PermissionAsk:   {"read-only", "on-request", "user"},
	adapter.PermissionEdits: {"workspace-write", "on-request", "user"},
	adapter.PermissionPlan:  {"read-only", "never", "user"},
	adapter.PermissionAuto:  {"workspace-write", "on-request", "auto_review"},
	adapter.PermissionFull:  {"danger-full-access", "never", "user"},
}

// modeOf returns the mode of a permission in a conversation. A client that is confined cannot begin its sandbox, which
// would mount, and the confinement takes its place. Without a sandbox, the client runs any command of its model on
// request, so a person or the reviewing model is asked about all commands.
func modeOf(permission string, o *adapter.Opening) mode {
	m := modes[permission]
	if o.Confined {
		m.sandbox = modes[adapter.PermissionFull].sandbox
		if permission != adapter.PermissionFull {
			m.policy = "untrusted"
		}
	}
	return m
}

// Launch returns the command line of the client. Its settings ignore the confinement: a thread that the client begins
// by itself then has a sandbox, or runs no command.
func Launch(command []string, o *adapter.Opening) (argv []string) {
	if len(command) == 0 {
		command = []string{"codex"}
	}
	m := modes[o.Permission]
	argv = append(append(argv, command...),
		"-c", "approval_policy="+m.policy, "-c", "approvals_reviewer="+m.reviewer, "-c", "sandbox_mode="+m.sandbox)
	for _, s := range o.Servers {
		prefix := "mcp_servers." + s.Name + "."
		argv = append(argv, "-c", prefix+"command="+string(object.Spell(s.Command[0])), "-c", prefix+"args="+string(object.Spell(s.Command[1:])))
	}
	return append(argv, "app-server")
}

// Client is the state of one run of Codex.
type Client struct {
	o        *adapter.Opening
	calls    int64
	waiting  map[int64]string // method of a call that is not answered
	thread   string
	model    string
	version  string
	login    string // whether it is logged in, as adapter.Offers has it
	turn     string // that runs, once it has begun
	starting bool   // a turn was asked for, and has not begun
	words    string
	steered  []steer                  // texts that the model does not have yet
	resets   time.Time                // when the limit ends, as last reported
	stop     bool                     // the turn that is starting is to be interrupted
	changes  adapter.Memory[wire.Raw] // the changes of files in this turn, by item
	sandbox  wire.Raw                 // the configured one, as the client spells it
	plans    bool                     // the next turn may not change files
	planned  bool                     // the last turn could not change files
}

// New returns a Client.
func New() *Client { return &Client{waiting: map[int64]string{}} }

// call calls a method of the client.
func (c *Client) call(method string, params any) adapter.Effect {
	c.calls++
	c.waiting[c.calls] = method
	return adapter.Write{Line: object.Spell(map[string]any{"id": c.calls, "method": method, "params": params})}
}

func answer(id string, result any) adapter.Effect {
	return adapter.Write{Line: object.Spell(map[string]any{"id": wire.Raw(id), "result": result})}
}

// Begin returns the handshake.
func (c *Client) Begin(o *adapter.Opening) []adapter.Effect {
	c.o = o
	return []adapter.Effect{c.call("initialize", map[string]any{
		"clientInfo":   map[string]any{"name": "orchestrator", "title": "orchestrator", "version": wire.FormatVersion},
		"capabilities": map[string]any{"experimentalApi": true},
	})}
}

// Heard takes a line of the client.
func (c *Client) Heard(line []byte) []adapter.Effect {
	var m adapter.RPC
	if object.Decode(line, &m) != nil {
		return []adapter.Effect{adapter.Log{Text: string(line)}}
	}
	switch {
	case m.Method != "" && len(m.ID) > 0:
		return c.requested(&m)
	case m.Method != "":
		return c.notified(&m)
	}
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	method := c.waiting[id]
	if err != nil || method == "" {
		return nil
	}
	delete(c.waiting, id)
	return c.answered(id, method, &m)
}

// Cut takes the beginning of a line that was too long. The client writes the id of a request before
// the parameters.
func (c *Client) Cut(head []byte) []adapter.Effect {
	h := object.ReadHead(head)
	if h["id"] != nil || h["method"] == nil {
		return adapter.CutRPC(h, c.Heard)
	}
	params := object.ReadHead(h["params"])
	n := notice{ThreadID: params.Text("threadId")}
	n.Turn.ID, n.Turn.Error = object.ReadHead(params["turn"]).Text("id"), &fault{Message: adapter.TooLong}
	if h.Text("method") != "turn/completed" || c.other(&n) || !c.runs(n.Turn.ID) {
		return nil
	}
	return c.ended(&n)
}

// answered handles the answer to a call of ours.
func (c *Client) answered(id int64, method string, m *adapter.RPC) []adapter.Effect {
	if m.Error != nil {
		return c.refused(id, method, m.Error.Message)
	}
	switch method {
	case "initialize":
		agent, _ := object.TextOf(m.Result, "userAgent")
		c.version = versionIn(agent)
		return []adapter.Effect{adapter.Write{Line: []byte(`{"method":"initialized"}`)}, c.first()}
	case "account/read":
		c.login = login(m.Result)
		return []adapter.Effect{c.readConfig()}
	case "config/read":
		return c.examined(m.Result)
	case "thread/start", "thread/resume":
		c.thread, _ = object.TextOf(object.MemberOf(m.Result, "thread"), "id")
		c.model, _ = object.TextOf(m.Result, "model")
		c.sandbox = object.MemberOf(m.Result, "sandbox")
		return []adapter.Effect{&adapter.Ready{Conversation: c.thread, Version: c.version, Model: c.model}}
	case "turn/start":
		if c.starting { // or it has begun, and may have ended
			c.turn, _ = object.TextOf(object.MemberOf(m.Result, "turn"), "id")
		}
		c.planned = c.plans
	}
	return nil
}

// refused handles an error in the answer to a call of ours.
func (c *Client) refused(id int64, method, why string) []adapter.Effect {
	switch method {
	case "account/read": // it is not reported
		return []adapter.Effect{c.readConfig()}
	case "config/read":
		return c.examined(nil)
	case "thread/resume": // it is gone: begin a new one
		c.o.Conversation = ""
		return []adapter.Effect{adapter.Log{Text: "the conversation cannot be resumed: " + why}, c.open()}
	case "turn/steer": // the turn has just ended
		return c.unread(func(s steer) bool { return s.call == id })
	case "turn/start":
		c.starting = false
		return []adapter.Effect{&adapter.Ended{Failure: adapter.FailTool, Text: why}}
	case "initialize", "thread/start":
		return []adapter.Effect{adapter.Stuck{Why: method + " failed: " + why}}
	}
	return []adapter.Effect{adapter.Log{Text: method + " failed: " + why}}
}

// first makes the first call after the handshake. An examination begins no thread: for a new one,
// the client makes a request to its model, without input, before there is any prompt.
func (c *Client) first() adapter.Effect {
	if c.o.Examine {
		return c.call("account/read", map[string]any{})
	}
	return c.open()
}

// login reads the answer to account/read.
func login(result wire.Raw) string {
	var r struct {
		Account  wire.Raw `json:"account"`
		Required *bool    `json:"requiresOpenaiAuth"`
	}
	switch failed := object.Decode(result, &r); {
	case failed != nil || r.Required == nil:
		return ""
	case len(r.Account) > 0 && string(r.Account) != "null":
		return adapter.LoginYes
	case *r.Required:
		return adapter.LoginNo
	}
	return adapter.LoginFree
}

func (c *Client) readConfig() adapter.Effect {
	return c.call("config/read", map[string]any{"includeLayers": false, "cwd": c.o.Dir})
}

// examined ends an examination with the answer to config/read.
func (c *Client) examined(result wire.Raw) []adapter.Effect {
	var mode []string
	for _, key := range []string{"sandbox_mode", "approval_policy", "approvals_reviewer"} {
		word, _ := object.TextOf(object.MemberOf(result, "config"), key)
		word = c.conversing(key, word)
		if word != "" && word != "user" {
			mode = append(mode, word)
		}
	}
	return []adapter.Effect{&adapter.Ready{Version: c.version, Offers: adapter.Offers{
		Login: c.login, Mail: adapter.MailProved, Resume: true, Plans: true, Cost: adapter.CostNo, Mode: strings.Join(mode, ", "),
	}}}
}

// conversing returns the value of a setting in a conversation.
func (c *Client) conversing(key, configured string) string {
	m := modeOf(c.o.Permission, c.o)
	switch {
	case !c.o.Confined:
	case key == "sandbox_mode":
		return m.sandbox
	case key == "approval_policy":
		return m.policy
	}
	return configured
}

// open begins or resumes the conversation.
func (c *Client) open() adapter.Effect {
	m := modeOf(c.o.Permission, c.o)
	params := map[string]any{
		"cwd": c.o.Dir, "developerInstructions": c.o.Briefing(),
		"approvalPolicy": m.policy, "approvalsReviewer": m.reviewer, "sandbox": m.sandbox,
	}
	if c.o.Model != "" {
		params["model"] = c.o.Model
	}
	if c.o.Conversation != "" {
		params["threadId"] = c.o.Conversation
		return c.call("thread/resume", params)
	}
	described := make([]map[string]any, 0, len(tools.All))
	for _, t := range tools.All {
		described = append(described, map[string]any{"type": "function", "name": t.Name, "description": t.Description, "inputSchema": t.Schema})
	}
	params["dynamicTools"] = described
	return c.call("thread/start", params)
}

// versionIn returns the version in a user agent such as name/1.2.3 (…).
func versionIn(agent string) string {
	_, rest, _ := strings.Cut(agent, "/")
	version, _, _ := strings.Cut(rest, " ")
	return version
}

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

// requested answers a request of the client.
func (c *Client) requested(m *adapter.RPC) []adapter.Effect {
	id := string(m.ID)
	switch m.Method {
	case "item/commandExecution/requestApproval":
		return c.permission(command(id, m.Params))
	case "item/fileChange/requestApproval":
		return c.permission(c.fileChange(id, m.Params))
	case "item/tool/call":
		tool, _ := object.TextOf(m.Params, "tool")
		return []adapter.Effect{&adapter.Call{ID: id, Tool: tool, Arguments: object.MemberOf(m.Params, "arguments")}}
	case "mcpServer/elicitation/request":
		return []adapter.Effect{answer(id, map[string]any{"action": "decline"}), adapter.Log{Text: "a question of an MCP server was declined"}}
	case "item/tool/requestUserInput":
		return []adapter.Effect{answer(id, map[string]any{"answers": map[string]any{}}), adapter.Log{Text: "a question was not answered: the model has ask_human"}}
	}
	return []adapter.Effect{adapter.Write{Line: object.Spell(map[string]any{
		"id": m.ID, "error": map[string]any{"code": -32601, "message": "unknown method " + m.Method},
	})}}
}

// Decide answers a permission.
func (c *Client) Decide(p *adapter.Permission, d adapter.Decision) []adapter.Effect {
	decision := "decline"
	if d.Allow {
		decision = "accept"
	}
	effects := []adapter.Effect{answer(p.ID, map[string]any{"decision": decision})}
	if !d.Allow && c.turn != "" && d.Message != "" { // a decision has no words
		effects = append(effects, c.Steer("", "It was denied: "+d.Message)...)
	}
	return effects
}

// Result answers a tool call.
func (c *Client) Result(call, text string, failed bool) []adapter.Effect {
	return []adapter.Effect{answer(call, map[string]any{
		"contentItems": []map[string]any{{"type": "inputText", "text": text}}, "success": !failed,
	})}
}

func input(text string) []map[string]any { return []map[string]any{{"type": "text", "text": text}} }

// Prompt begins a turn.
func (c *Client) Prompt(id, text string) []adapter.Effect {
	if c.thread == "" || c.turn != "" || c.starting {
		return nil
	}
	return c.start(id, text)
}

func (c *Client) start(id, text string) []adapter.Effect {
	c.starting = true
	params := map[string]any{"threadId": c.thread, "input": input(text), "clientUserMessageId": id}
	switch {
	case c.plans == c.planned:
	case c.plans && c.o.Confined:
		params["approvalPolicy"] = modeOf(adapter.PermissionPlan, c.o).policy
	case c.plans:
		params["sandboxPolicy"], params["approvalPolicy"] = map[string]string{"type": "readOnly"}, modes[adapter.PermissionPlan].policy
	default:
		params["sandboxPolicy"], params["approvalPolicy"] = c.sandbox, modeOf(c.o.Permission, c.o).policy
	}
	return []adapter.Effect{c.call("turn/start", params)}
}

// Plan changes the sandbox of the turns that follow.
func (c *Client) Plan(on bool) []adapter.Effect {
	c.plans = on
	return []adapter.Effect{}
}

// Steer adds a text to the running turn.
func (c *Client) Steer(id, text string) []adapter.Effect {
	if c.turn == "" || c.starting {
		return nil
	}
	params := map[string]any{"threadId": c.thread, "expectedTurnId": c.turn, "input": input(text)}
	if id != "" {
		params["clientUserMessageId"] = id
	}
	effect := c.call("turn/steer", params)
	if id != "" {
		c.steered = append(c.steered, steer{call: c.calls, id: id})
	}
	return []adapter.Effect{effect}
}

// Interrupt ends the turn.
func (c *Client) Interrupt() []adapter.Effect {
	switch {
	case c.starting:
		c.stop = true
		return []adapter.Effect{}
	case c.turn == "":
		return nil
	}
	return []adapter.Effect{c.call("turn/interrupt", map[string]any{"threadId": c.thread, "turnId": c.turn})}
}
