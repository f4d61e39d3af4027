// Package codex speaks the protocol of the Codex app server.
//
// A conversation is a thread; its id is kept and resumed. Prompts start turns, and mail steers a
// running one. The tools of the orchestrator are dynamic tools of the thread.
package codex

import (
	"strconv"
	"strings"
	"time"

	"orchestrator/supervisor/adapter"
	"orchestrator/wire"
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
