// Package claude speaks the stream-json protocol of Claude Code.
//
// The client is started without a terminal. Prompts are user messages on its stdin; each has a
// uuid, which comes back when the model has the text. Permissions and the tools of the
// orchestrator are control requests on the same pipes.
package claude

import (
	"maps"
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

// modes translates Opening.Permission.
var modes = map[string]string{
	adapter.PermissionAsk:   "default",
	adapter.PermissionEdits: "acceptEdits",
	adapter.PermissionPlan:  "plan",
	adapter.PermissionAuto:  "auto",
	adapter.PermissionFull:  "bypassPermissions",
}

// Launch returns the command line of the client.
func Launch(command []string, o *adapter.Opening) (argv []string) {
	if len(command) == 0 {
		command = []string{"claude"}
	}
	argv = append(append(argv, command...), "-p",
		"--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
		"--permission-prompt-tool", "stdio", "--replay-user-messages",
		"--permission-mode", modes[o.Permission],
		"--mcp-config", servers(o), "--strict-mcp-config")
	argv = append(argv, "--allowedTools", strings.Join(append([]string{"mcp__" + tools.Server}, o.Allow...), ","))
	if o.Model != "" {
		argv = append(argv, "--model", o.Model)
	}
	if o.Conversation != "" && o.Conversation[0] != '-' { // an id with a dash would be a flag
		argv = append(argv, "--resume", o.Conversation)
	}
	return argv
}

// servers returns the configuration of the MCP servers: our tools in band, and the servers of the configuration file.
func servers(o *adapter.Opening) string {
	type server struct {
		Type       string   `json:"type,omitzero"`
		Name       string   `json:"name,omitzero"`
		AlwaysLoad bool     `json:"alwaysLoad,omitzero"`
		Command    string   `json:"command,omitzero"`
		Args       []string `json:"args,omitzero"`
	}
	all := map[string]server{tools.Server: {Type: "sdk", Name: tools.Server, AlwaysLoad: true}}
	for _, s := range o.Servers {
		all[s.Name] = server{Command: s.Command[0], Args: s.Command[1:]}
	}
	return string(object.Spell(map[string]any{"mcpServers": all}))
}

// Client is the state of one run of Claude Code.
type Client struct {
	o        *adapter.Opening
	requests int
	hello    string // the id of the initialize request
	session  string // the conversation, as last reported
	busy     bool
	ready    bool
	prompt   string            // the prompt that begins the turn, until the model has it
	words    string            // the last words of the model in this turn
	refused  bool              // the model refused in this turn
	modes    map[string]string // the mode that a request asked for, until it is answered
}

// New returns a Client.
func New() *Client { return &Client{modes: map[string]string{}} }

func write(v any) adapter.Effect { return adapter.Write{Line: object.Spell(v)} }

// control makes a control request.
func (c *Client) control(request map[string]any) (id string, effect adapter.Effect) {
	c.requests++
	id = "orc_" + strconv.Itoa(c.requests)
	return id, write(map[string]any{"type": "control_request", "request_id": id, "request": request})
}

// Begin returns the handshake.
func (c *Client) Begin(o *adapter.Opening) []adapter.Effect {
	c.o = o
	id, effect := c.control(map[string]any{
		"subtype": "initialize", "sdkMcpServers": []string{tools.Server}, "appendSystemPrompt": o.Briefing(),
	})
	c.hello = id
	if o.Permission == adapter.PermissionPlan {
		return []adapter.Effect{effect, c.personDecides()}
	}
	return []adapter.Effect{effect}
}

// message is a line of the client, with the members that matter here.
type message struct {
	Type          string   `json:"type"`
	Subtype       string   `json:"subtype"`
	SessionID     string   `json:"session_id"`
	RequestID     string   `json:"request_id"`
	Request       *request `json:"request"`
	Response      *reply   `json:"response"`
	Message       wire.Raw `json:"message"`
	IsReplay      bool     `json:"isReplay"`
	Refused       string   `json:"refused_message_id"`
	UUID          string   `json:"uuid"`
	CommandUUID   string   `json:"command_uuid"`
	State         string   `json:"state"`
	ParentToolUse string   `json:"parent_tool_use_id"`
}

// about is a line of the client about itself.
type about struct {
	Content     string `json:"content"`
	Model       string `json:"model"`
	Version     string `json:"claude_code_version"`
	ErrorStatus int    `json:"error_status"`
}

// result is the line that ends a turn.
type result struct {
	IsError        bool     `json:"is_error"`
	Result         string   `json:"result"`
	TerminalReason string   `json:"terminal_reason"`
	APIErrorStatus int      `json:"api_error_status"`
	SinceLast      wire.Raw `json:"model_usage_since_last_result"`
}

// limit is the line about a limit of the vendor.
type limit struct {
	Info struct {
		Status   string `json:"status"`
		ResetsAt int64  `json:"resetsAt"`
		Type     string `json:"rateLimitType"`
	} `json:"rate_limit_info"`
}

type modelUsage struct {
	Input      int64   `json:"inputTokens"`
	Output     int64   `json:"outputTokens"`
	CacheRead  int64   `json:"cacheReadInputTokens"`
	CacheWrite int64   `json:"cacheCreationInputTokens"`
	Thinking   int64   `json:"thinkingTokens"`
	Cost       float64 `json:"costUSD"`
	Window     int64   `json:"contextWindow"`
}

type request struct {
	Subtype     string   `json:"subtype"`
	ToolName    string   `json:"tool_name"`
	Input       wire.Raw `json:"input"`
	Description string   `json:"description"`
	BlockedPath string   `json:"blocked_path"`
	Message     wire.Raw `json:"message"`
}

type reply struct {
	Subtype   string   `json:"subtype"`
	RequestID string   `json:"request_id"`
	Error     string   `json:"error"`
	Response  wire.Raw `json:"response,omitzero"`
}

type block struct {
	Type  string   `json:"type"`
	ID    string   `json:"id"`
	Use   string   `json:"tool_use_id"`
	Text  string   `json:"text"`
	Name  string   `json:"name"`
	Input wire.Raw `json:"input"`
}

// Heard takes a line of the client.
func (c *Client) Heard(line []byte) []adapter.Effect {
	var m message
	if object.Decode(line, &m) != nil {
		return []adapter.Effect{adapter.Log{Text: string(line)}}
	}
	switch m.Type {
	case "control_response":
		return c.replied(m.Response)
	case "control_request":
		return c.requested(&m)
	case "control_cancel_request":
		return []adapter.Effect{&adapter.Withdrawn{ID: m.RequestID}}
	case "system":
		return c.system(&m, line)
	case "assistant":
		return c.assistant(&m)
	case "user":
		return c.echoed(&m)
	case "command_lifecycle":
		if m.State == "started" {
			return c.inContext(m.CommandUUID)
		}
	case "rate_limit_event":
		return limits(line)
	case "result":
		return c.ended(line)
	}
	return nil // other lines are not needed
}

// Cut takes the beginning of a line that was too long.
func (c *Client) Cut(head []byte) []adapter.Effect {
	h := object.ReadHead(head)
	id := h.Text("request_id")
	switch kind := h.Text("type"); {
	case h == nil:
	case kind == "control_request" && id != "":
		return []adapter.Effect{write(map[string]any{"type": "control_response", "response": reply{
			Subtype: "error", RequestID: id, Error: adapter.TooLong,
		}})}
	case kind == "control_response":
		return c.replied(&reply{Subtype: "error", RequestID: object.ReadHead(h["response"]).Text("request_id"), Error: adapter.TooLong})
	case kind == "result", h["duration_api_ms"] != nil: // its type comes late, after the inputs that were denied
		return c.ended(nil)
	case kind == "control_request", kind == "":
		return []adapter.Effect{adapter.Unanswerable}
	}
	return nil
}

// replied handles the answer to a control request of ours.
func (c *Client) replied(r *reply) []adapter.Effect {
	if r == nil {
		return nil
	}
	if mode, ok := c.modes[r.RequestID]; ok {
		delete(c.modes, r.RequestID)
		if r.Subtype == "error" {
			why := "it does not change to its mode " + strconv.Quote(mode) + ": " + r.Error
			return []adapter.Effect{adapter.Stuck{Why: why}}
		}
		return nil
	}
	if r.RequestID != c.hello || c.ready {
		return nil
	}
	if r.Subtype == "error" {
		return []adapter.Effect{adapter.Stuck{Why: "the handshake failed: " + r.Error}}
	}
	c.ready = true
	var w welcome
	_ = object.Decode(r.Response, &w) // an invalid response is not reported
	return []adapter.Effect{&adapter.Ready{Version: w.Version, Offers: adapter.Offers{
		Login: w.Account.login(), Mail: adapter.MailProved, Resume: true, Plans: true, Cost: adapter.CostYes, Mode: w.Mode,
	}}}
}

// welcome is the answer to the handshake.
type welcome struct {
	Version string  `json:"claude_code_version"`
	Mode    string  `json:"current_permission_mode"`
	Account account `json:"account"`
}

// account is the login of the client. With a provider other than firstParty, the provider checks the login, and the
// client does not.
type account struct {
	TokenSource  string `json:"tokenSource"`
	APIKeySource string `json:"apiKeySource"`
	Email        string `json:"email"`
	Provider     string `json:"apiProvider"`
}

func (a *account) login() string {
	has := func(source string) bool { return source != "" && source != "none" }
	switch {
	case has(a.TokenSource), has(a.APIKeySource), has(a.Email):
		return adapter.LoginYes
	case a.Provider == "firstParty":
		return adapter.LoginNo
	}
	return ""
}

// system handles messages of the client about itself.
func (c *Client) system(m *message, line []byte) []adapter.Effect {
	var a about
	if object.Decode(line, &a) != nil {
		return nil
	}
	switch m.Subtype {
	case "init":
		if m.SessionID == c.session {
			return nil
		}
		c.session = m.SessionID
		return []adapter.Effect{&adapter.Ready{Conversation: m.SessionID, Version: a.Version, Model: a.Model}}
	case "api_retry":
		return []adapter.Effect{&adapter.Limited{Retries: true, Scope: strconv.Itoa(a.ErrorStatus)}}
	case "informational":
		return []adapter.Effect{adapter.Log{Text: a.Content}}
	}
	return nil
}

// assistant handles words and tool calls of the model.
func (c *Client) assistant(m *message) []adapter.Effect {
	var blocks []block
	if object.Decode(object.MemberOf(m.Message, "content"), &blocks) != nil {
		return nil
	}
	var effects []adapter.Effect
	for _, b := range blocks {
		switch b.Type {
		case "text":
			if m.ParentToolUse == "" {
				c.words = b.Text
			}
			effects = append(effects, adapter.Log{Text: b.Text})
		case "tool_use":
			if !ours(b.Name) {
				effects = append(effects, &adapter.Doing{Kind: "tool", Text: title(b.Name, b.Input), ID: b.ID})
			}
		}
	}
	return effects
}

// title describes a tool call in one line.
func title(tool string, input wire.Raw) string {
	for _, key := range []string{"command", "file_path", "path", "pattern", "url", "query", "description"} {
		if words, ok := object.TextOf(input, key); ok && words != "" {
			first, _, _ := strings.Cut(words, "\n")
			return tool + ": " + first
		}
	}
	return tool
}

// echoed handles a user message: one of ours, which the client repeats when the model gets it, or
// the result of a tool.
func (c *Client) echoed(m *message) []adapter.Effect {
	if m.Refused != "" {
		c.refused = true
	}
	if m.IsReplay && m.UUID != "" {
		return c.inContext(m.UUID)
	}
	var blocks []block
	if object.Decode(object.MemberOf(m.Message, "content"), &blocks) != nil {
		return nil
	}
	var effects []adapter.Effect
	for _, b := range blocks {
		if b.Type == "tool_result" {
			effects = append(effects, &adapter.Did{ID: b.Use})
		}
	}
	return effects
}

// inContext reports that the model has a text. A text that came too late for its turn begins
// another one by itself.
func (c *Client) inContext(id string) []adapter.Effect {
	var effects []adapter.Effect
	if id == c.prompt || !c.busy {
		c.prompt, c.busy = "", true
		effects = append(effects, &adapter.Begun{})
	}
	return append(effects, &adapter.InContext{ID: id})
}

// requested answers a control request of the client.
func (c *Client) requested(m *message) []adapter.Effect {
	if m.Request == nil {
		return nil
	}
	if m.RequestID == "" {
		return []adapter.Effect{adapter.Log{Text: "a request of the client has no id and gets no answer: " + m.Request.Subtype}}
	}
	switch m.Request.Subtype {
	case "can_use_tool":
		return c.permissionFor(m)
	case "mcp_message":
		return c.rpc(m.RequestID, m.Request)
	}
	return []adapter.Effect{respond(m.RequestID, map[string]any{})}
}

func respond(id string, response any) adapter.Effect {
	return write(map[string]any{"type": "control_response", "response": map[string]any{
		"subtype": "success", "request_id": id, "response": response,
	}})
}

// ours reports whether a tool is one of the orchestrator's.
func ours(name string) bool {
	own, ok := strings.CutPrefix(name, "mcp__"+tools.Server+"__")
	return ok && tools.Has(own)
}

// permissionFor asks whether a tool may be used. The tools of the orchestrator are always
// allowed.
func (c *Client) permissionFor(m *message) []adapter.Effect {
	r := m.Request
	p := &adapter.Permission{ID: m.RequestID, Tool: r.ToolName, Title: title(r.ToolName, r.Input), Input: r.Input, Reason: r.Description}
	if r.BlockedPath != "" {
		p.Paths = []string{r.BlockedPath}
	}
	switch {
	case ours(r.ToolName):
		return c.Decide(p, adapter.Decision{Allow: true})
	case r.ToolName == exitPlan:
		p.Title = "carry out its plan"
		if p.Plan, _ = object.TextOf(r.Input, "plan"); p.Plan == "" { // its file for plans is empty
			p.Plan = c.words
		}
		if p.Plan == "" {
			return c.Decide(p, adapter.Decision{Message: "There is no plan. Write it first."})
		}
	}
	return []adapter.Effect{p}
}

// exitPlan is the tool that presents a plan. The client adds the text of the plan to its input.
const exitPlan = "ExitPlanMode"

// Plan switches to the mode for plans, or back.
func (c *Client) Plan(on bool) []adapter.Effect {
	if !on {
		return []adapter.Effect{c.mode(c.o.Permission)}
	}
	effects := []adapter.Effect{c.mode(adapter.PermissionPlan)}
	if c.o.Permission != adapter.PermissionAuto {
		effects = append(effects, c.personDecides())
	}
	return effects
}

func (c *Client) mode(permission string) adapter.Effect {
	id, effect := c.control(map[string]any{"subtype": "set_permission_mode", "mode": modes[permission]})
	c.modes[id] = modes[permission]
	return effect
}

// personDecides turns off the model that decides about commands while the client plans.
func (c *Client) personDecides() adapter.Effect {
	_, effect := c.control(map[string]any{"subtype": "apply_flag_settings", "settings": map[string]any{"useAutoModeDuringPlan": false}})
	return effect
}

// Decide answers a permission. The mode is set before a plan is allowed, because the client would
// return to its default.
func (c *Client) Decide(p *adapter.Permission, d adapter.Decision) []adapter.Effect {
	if !d.Allow {
		return []adapter.Effect{respond(p.ID, map[string]any{"behavior": "deny", "message": d.Message})}
	}
	var effects []adapter.Effect
	if p.Plan != "" {
		effects = c.Plan(false)
	}
	return append(effects, respond(p.ID, map[string]any{"behavior": "allow", "updatedInput": orEmpty(p.Input)}))
}

func orEmpty(document wire.Raw) wire.Raw {
	if len(document) == 0 {
		return wire.Raw("{}")
	}
	return document
}

// rpc answers a message to the server of our tools.
func (c *Client) rpc(id string, r *request) []adapter.Effect {
	answer, call := adapter.AnswerRPC(r.Message)
	if call != nil {
		call.ID = adapter.CallID(id, call.ID)
		return []adapter.Effect{call}
	}
	return []adapter.Effect{respond(id, map[string]any{"mcp_response": answer})}
}

// Result answers a tool call.
func (c *Client) Result(call, text string, failed bool) []adapter.Effect {
	id, rpc := adapter.SplitCallID(call)
	return []adapter.Effect{respond(id, map[string]any{"mcp_response": adapter.ToolResult(wire.Raw(rpc), text, failed)})}
}

// Prompt begins a turn.
func (c *Client) Prompt(id, text string) []adapter.Effect {
	if c.busy {
		return nil
	}
	c.busy, c.prompt, c.words = true, id, ""
	return c.user(id, text)
}

// Steer adds a text to the turn: the model gets it with the result of the next tool.
func (c *Client) Steer(id, text string) []adapter.Effect {
	if !c.busy {
		return nil
	}
	return c.user(id, text)
}

func (c *Client) user(id, text string) []adapter.Effect {
	return []adapter.Effect{write(map[string]any{
		"type": "user", "message": map[string]any{"role": "user", "content": text},
		"parent_tool_use_id": nil, "session_id": "", "uuid": id,
	})}
}

// Interrupt ends the turn.
func (c *Client) Interrupt() []adapter.Effect {
	if !c.busy {
		return nil
	}
	_, effect := c.control(map[string]any{"subtype": "interrupt"})
	return []adapter.Effect{effect}
}

// limits reports a limit of the vendor.
func limits(line []byte) []adapter.Effect {
	var m limit
	if object.Decode(line, &m) != nil || m.Info.Status != "rejected" {
		return nil
	}
	l := &adapter.Limited{Scope: m.Info.Type}
	if m.Info.ResetsAt > 0 {
		l.Until = time.Unix(m.Info.ResetsAt, 0).UTC()
	}
	return []adapter.Effect{l}
}

// ended handles the end of a turn. A line that cannot be read ends it as well.
func (c *Client) ended(line []byte) []adapter.Effect {
	m := result{IsError: true}
	failed := object.Decode(line, &m)
	effects := usage(&m)
	end := &adapter.Ended{Text: m.Result}
	if end.Text == "" {
		end.Text = c.words
	}
	switch {
	case failed != nil:
		end.Failure, end.Text = adapter.FailTool, "the end of the turn cannot be read"
	case strings.HasPrefix(m.TerminalReason, "aborted"):
		end.Stopped = true
	case m.TerminalReason == "prompt_too_long":
		end.Failure = adapter.FailContext
	case m.APIErrorStatus == 429 || m.APIErrorStatus == 529:
		end.Failure = adapter.FailLimit
		effects = append(effects, &adapter.Limited{Scope: strconv.Itoa(m.APIErrorStatus)})
	case m.APIErrorStatus == 401 || m.APIErrorStatus == 403:
		end.Failure = adapter.FailLogin
	case c.refused:
		end.Failure = adapter.FailRefused
	case m.IsError:
		end.Failure = adapter.FailTool
	}
	c.busy, c.refused, c.prompt = false, false, ""
	return append(effects, end)
}

// usage reports the usage of the turn, one event for each model. Invalid usage is logged.
func usage(m *result) []adapter.Effect {
	if len(m.SinceLast) == 0 {
		return nil
	}
	var models map[string]modelUsage
	if err := object.Decode(m.SinceLast, &models); err != nil {
		return []adapter.Effect{adapter.Log{Text: "the usage of the turn cannot be read: " + tools.Clip(string(m.SinceLast), 500)}}
	}
	var effects []adapter.Effect
	for _, model := range slices.Sorted(maps.Keys(models)) {
		u := models[model]
		effects = append(effects, &activity.Usage{
			Model: model, Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite,
			Reasoning: u.Thinking, Cost: u.Cost, Currency: "USD", ContextSize: u.Window,
		})
	}
	return effects
}
