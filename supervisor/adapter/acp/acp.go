// Package acp speaks the Agent Client Protocol, version 1.
//
// The client is the agent of that protocol; this side is its editor. The tools of the
// orchestrator come from an MCP server that the client starts. Where a client cannot be given a
// text in the middle of a turn, the text waits for the end of the turn.
package acp

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orchestrator/supervisor/adapter"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/object"
	"orchestrator/wire/tools"
)

// Launch returns the command line of the client.
func Launch(command []string, _ *adapter.Opening) []string { return command }

// Environ returns environment variables for a client: some clients take their permissions from there.
func Environ(command []string, o *adapter.Opening) []string {
	if filepath.Base(command[0]) != "opencode" {
		return nil
	}
	asked := map[string]string{
		adapter.PermissionAsk:   `{"edit":"ask","bash":"ask","webfetch":"ask"}`,
		adapter.PermissionEdits: `{"edit":"allow","bash":"ask","webfetch":"ask"}`,
		adapter.PermissionPlan:  `{"edit":"deny","bash":"deny","webfetch":"allow"}`,
		adapter.PermissionAuto:  `{"edit":"allow","bash":"ask","webfetch":"ask"}`, // it has no model that decides
		adapter.PermissionFull:  `{"edit":"allow","bash":"allow","webfetch":"allow"}`,
	}
	return []string{
		"OPENCODE_PERMISSION=" + asked[o.Permission],
		`OPENCODE_CONFIG_CONTENT={"agent":{"plan":{"permission":` + asked[adapter.PermissionPlan] + `}}}`,
	}
}

// Client is the state of one run of an ACP agent.
type Client struct {
	o         *adapter.Opening
	calls     int64
	waiting   map[int64]call
	session   string
	version   string
	model     string
	models    []string
	canResume string // the method that resumes a conversation; "" if the client has none
	canClose  bool
	canSteer  bool
	login     string // whether it is logged in, as adapter.Offers has it
	mode      string // its own name of the permission that is set
	planMode  string // the mode that changes no files; "" if it has none
	workMode  string // to return to from planMode
	option    string // the setting that has the mode, if it has no modes of the protocol
	planning  bool   // it is to be in planMode
	switching bool   // to or from planMode
	ownPrompt bool   // it takes instructions apart from the first prompt
	briefed   bool
	briefing  int64 // the call of the prompt that begins with the briefing
	turn      int64 // the call of the running prompt; 0: none
	begun     bool
	end       *adapter.Ended // of the turn, until its commands are ended
	injected  []string       // texts that the client took, and the model does not have yet
	words     strings.Builder
	before    string // the words before them that are logged already
	tools     adapter.Memory[toolCall]
	paid      float64             // of the cost, in turns that have ended
	context   activity.Usage      // how long the conversation is, and its cost so far
	options   map[string][]option // of the permissions that wait
}

// A call is a call of a method that is not answered.
type call struct{ method, id string }

// New returns a Client.
func New() *Client {
	return &Client{waiting: map[int64]call{}, options: map[string][]option{}}
}

func (c *Client) call(method string, params map[string]any, about call) adapter.Effect {
	c.calls++
	about.method = method
	c.waiting[c.calls] = about
	return adapter.Write{Line: object.Spell(map[string]any{"jsonrpc": "2.0", "id": c.calls, "method": method, "params": params})}
}

func answer(id string, result any) adapter.Effect {
	return adapter.Write{Line: object.Spell(map[string]any{"jsonrpc": "2.0", "id": wire.Raw(id), "result": result})}
}

// Begin returns the handshake.
func (c *Client) Begin(o *adapter.Opening) []adapter.Effect {
	c.o = o
	return []adapter.Effect{c.call("initialize", map[string]any{
		"protocolVersion":    1,
		"clientCapabilities": map[string]any{"fs": map[string]any{"readTextFile": false, "writeTextFile": false}, "terminal": false},
		"clientInfo":         map[string]any{"name": "orchestrator", "version": wire.FormatVersion},
	}, call{})}
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
	case m.Method == "session/update":
		return c.updated(object.MemberOf(m.Params, "update"))
	case m.Method == "_auth/status_update":
		c.login = login(m.Params)
		return nil
	case m.Method != "":
		return nil // kept with the raw wire
	}
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	about, ok := c.waiting[id]
	if err != nil || !ok {
		return nil
	}
	delete(c.waiting, id)
	if m.Error != nil {
		return c.refused(id, about, &m)
	}
	return c.answered(id, about, m.Result)
}

// Cut takes the beginning of a line that was too long.
func (c *Client) Cut(head []byte) []adapter.Effect {
	h := object.ReadHead(head)
	if h["id"] == nil && h.Text("method") == "session/update" {
		return nil
	}
	return adapter.CutRPC(h, c.Heard)
}

// capabilities is the answer to initialize.
type capabilities struct {
	Info struct {
		Version string `json:"version"`
	} `json:"agentInfo"`
	Agent struct {
		LoadSession bool `json:"loadSession"`
		Session     struct {
			Resume       wire.Raw `json:"resume"`
			Close        wire.Raw `json:"close"`
			SystemPrompt wire.Raw `json:"systemPrompt"`
		} `json:"sessionCapabilities"`
		Meta steering `json:"_meta"`
	} `json:"agentCapabilities"`
	Meta steering `json:"_meta"`
}

// steering reports whether a text can be added to the running turn.
type steering struct {
	Steering struct {
		Supported bool `json:"supported"`
	} `json:"steering"`
}

func (c *Client) answered(id int64, about call, result wire.Raw) []adapter.Effect {
	switch about.method {
	case "initialize":
		var k capabilities
		_ = object.Decode(result, &k) // an invalid answer means no support
		c.version = k.Info.Version
		c.canSteer = k.Meta.Steering.Supported || k.Agent.Meta.Steering.Supported
		c.ownPrompt = len(k.Agent.Session.SystemPrompt) > 0
		c.canClose = len(k.Agent.Session.Close) > 0
		switch {
		case len(k.Agent.Session.Resume) > 0:
			c.canResume = "session/resume"
		case k.Agent.LoadSession:
			c.canResume = "session/load"
		}
		return []adapter.Effect{c.open()}
	case "session/close":
		c.o.Conversation = c.session
		return []adapter.Effect{c.open()}
	case "session/new", "session/resume", "session/load":
		return c.opened(about.method, result)
	case "session/set_mode", "session/set_config_option":
		if c.switching {
			c.switching = false
			return nil
		}
		return c.choose()
	case "session/set_model":
		c.model = c.o.Model
		return c.ready()
	case "_session/steering":
		c.injected = append(c.injected, about.id)
	case "session/prompt":
		return c.ended(id, about, result)
	}
	return nil
}

// open begins or resumes the conversation.
func (c *Client) open() adapter.Effect {
	params := map[string]any{"cwd": c.o.Dir, "mcpServers": c.servers()}
	if c.o.Conversation != "" && c.canResume != "" {
		params["sessionId"] = c.o.Conversation
		c.briefed = true
		return c.call(c.canResume, params, call{})
	}
	if c.ownPrompt {
		params["_meta"] = map[string]any{"systemPrompt": map[string]any{"append": c.o.Briefing()}}
		c.briefed = true
	}
	return c.call("session/new", params, call{})
}

// servers lists the MCP servers: our tools, and the servers of the configuration file.
func (c *Client) servers() []map[string]any {
	list := []map[string]any{}
	if len(c.o.Door) > 0 {
		env := []map[string]string{}
		for _, pair := range c.o.DoorEnv {
			name, value, _ := strings.Cut(pair, "=")
			env = append(env, map[string]string{"name": name, "value": value})
		}
		door := c.o.Door
		if c.canSteer { // mail comes with the steering, and not with the results of tools
			door = append(slices.Clone(door), "--no-mail")
		}
		list = append(list, map[string]any{"name": tools.Server, "command": door[0], "args": door[1:], "env": env})
	}
	for _, s := range c.o.Servers {
		list = append(list, map[string]any{"name": s.Name, "command": s.Command[0], "args": s.Command[1:], "env": []map[string]string{}})
	}
	return list
}

// choose sets the model, if the configuration names one that the client has.
func (c *Client) choose() []adapter.Effect {
	switch {
	case c.o.Model == "" || c.o.Model == c.model:
	case slices.Contains(c.models, c.o.Model):
		return []adapter.Effect{c.call("session/set_model", map[string]any{"sessionId": c.session, "modelId": c.o.Model}, call{})}
	default:
		why := "the client has no model " + strconv.Quote(c.o.Model)
		return []adapter.Effect{adapter.Stuck{Why: why}}
	}
	return c.ready()
}

func (c *Client) ready() []adapter.Effect {
	offers := adapter.Offers{Login: c.login, Mail: adapter.MailLater, Resume: c.canResume != "", Plans: c.planMode != "", Mode: c.mode}
	if c.canSteer {
		offers.Mail = adapter.MailSteered
	}
	effects := []adapter.Effect{&adapter.Ready{Conversation: c.session, Version: c.version, Model: c.model, Offers: offers}}
	if c.end == nil {
		return effects
	}
	if c.planning {
		effects = append(effects, c.Plan(true)...)
	}
	return append(effects, c.cleared())
}

// cleared returns the end of the turn, after its commands have been ended.
func (c *Client) cleared() adapter.Effect {
	end := c.end
	c.end = nil
	return end
}

// login reads the notification of a client about its login, an extension of the protocol.
func login(params wire.Raw) string {
	switch kind, _ := object.TextOf(object.MemberOf(params, "authStatus"), "kind"); kind {
	case "":
		return ""
	case "none":
		return adapter.LoginNo
	}
	return adapter.LoginYes
}

// authRequired is the code of an error: the client is not logged in.
const authRequired = -32000

func (c *Client) refused(id int64, about call, m *adapter.RPC) []adapter.Effect {
	why := m.Error.Message
	for _, key := range []string{"details", "message"} {
		if details, ok := object.TextOf(m.Error.Data, key); ok {
			why += ": " + details
		}
	}
	switch about.method {
	case "session/resume", "session/load":
		c.o.Conversation, c.briefed = "", false
		return []adapter.Effect{adapter.Log{Text: "the conversation cannot be resumed: " + why}, c.open()}
	case "session/close":
		return []adapter.Effect{adapter.Log{Text: "the command of the interrupted turn may still be running: " + why}, c.cleared()}
	case "_session/steering":
		return []adapter.Effect{&adapter.Unread{ID: about.id}}
	case "session/prompt":
		if id == c.turn {
			c.turn = 0
		}
		if id == c.briefing && !c.begun {
			c.briefed = false
		}
		effects := append(c.unread(), c.said(), c.tools.Clear())
		end := &adapter.Ended{Failure: classify(why), Text: why}
		if end.Failure == adapter.FailLimit {
			effects = append(effects, &adapter.Limited{Scope: why})
		}
		return append(effects, end)
	}
	stuck := adapter.Stuck{Why: about.method + " failed: " + why}
	if m.Error.Code == authRequired {
		stuck.Class = adapter.FailLogin
	}
	return []adapter.Effect{stuck}
}

// classify guesses the class of a failure from its text: the protocol has no codes for it.
func classify(why string) string {
	lower := strings.ToLower(why)
	for _, class := range []struct {
		name  string
		words []string
	}{
		{adapter.FailLimit, []string{"usage limit", "rate limit", "429", "quota"}},
		{adapter.FailContext, []string{"too long", "context window", "context length", "maximum number of tokens"}},
		{adapter.FailLogin, []string{"auth_required", "authentication", "not logged in", "unauthorized"}},
	} {
		if slices.ContainsFunc(class.words, func(w string) bool { return strings.Contains(lower, w) }) {
			return class.name
		}
	}
	return adapter.FailTool
}

type option struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
}

// requested answers a request of the client.
func (c *Client) requested(m *adapter.RPC) []adapter.Effect {
	if m.Method != "session/request_permission" {
		return []adapter.Effect{adapter.Write{Line: object.Spell(map[string]any{
			"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32601, "message": "unknown method " + m.Method},
		})}}
	}
	var r struct {
		ToolCall toolCall `json:"toolCall"`
		Options  []option `json:"options"`
	}
	_ = object.Decode(m.Params, &r) // without options, it is cancelled
	k := c.merge(r.ToolCall)
	p := &adapter.Permission{ID: string(m.ID), Tool: toolName(&k), Title: cmp.Or(k.Title, toolName(&k)), Input: k.Input}
	switch {
	case len(p.Input) > 2:
		p.Once = p.Tool == cmp.Or(k.ToolKind, "other") // it does not say which tool gets the input
	case k.ToolKind == "execute" && k.Title != "": // the title of a command is the command
		p.Input = object.Spell(map[string]string{"command": k.Title})
	default:
		p.Input, p.Once = wire.Raw("{}"), true
	}
	for _, l := range k.Locations {
		p.Paths = append(p.Paths, l.Path)
	}
	c.options[p.ID] = r.Options
	if own(&k) {
		return c.Decide(p, adapter.Decision{Allow: true})
	}
	if plan := planIn(&k); plan != "" { // an approval would set a mode of the client's choice
		return append([]adapter.Effect{c.said(), &adapter.Planned{Text: plan}}, c.Decide(p, adapter.Decision{})...)
	}
	return []adapter.Effect{c.said(), p}
}

// toolName returns the name of a tool as rules know it. A tool of another server often has only a
// title, which comes after the kind, so that it cannot be the name of another tool.
func toolName(k *toolCall) string {
	command := len(k.Input) <= 2 || object.MemberOf(k.Input, "command") != nil
	switch {
	case k.ToolKind == "execute" && command:
		return "Bash"
	case k.ToolKind == "edit":
		return "Edit"
	case k.ToolKind == "delete":
		return "Delete"
	case k.ToolKind == "move":
		return "Move"
	case k.ToolKind == "fetch":
		return "WebFetch"
	case k.Name != "":
		return k.Name
	case k.Title != "":
		return cmp.Or(k.ToolKind, "other") + ": " + k.Title
	}
	return cmp.Or(k.ToolKind, "other")
}

// Decide answers a permission with the first option of a kind that fits. An interrupt may have
// answered it.
func (c *Client) Decide(p *adapter.Permission, d adapter.Decision) []adapter.Effect {
	kinds := []string{"reject_once", "reject_always"}
	if d.Allow {
		kinds = []string{"allow_once"}
	}
	options, waits := c.options[p.ID]
	if !waits {
		return nil
	}
	delete(c.options, p.ID)
	for _, kind := range kinds {
		for _, o := range options {
			if o.Kind == kind {
				return []adapter.Effect{answer(p.ID, map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": o.ID}})}
			}
		}
	}
	return []adapter.Effect{answer(p.ID, map[string]any{"outcome": map[string]any{"outcome": "cancelled"}})}
}

// Result has no effect: an MCP server answers the calls of tools.
func (c *Client) Result(string, string, bool) []adapter.Effect { return nil }

func content(text string) []map[string]any { return []map[string]any{{"type": "text", "text": text}} }

// Prompt begins a turn. The first one of a conversation begins with the briefing, unless the
// client has it already.
func (c *Client) Prompt(id, text string) []adapter.Effect {
	if c.session == "" || c.turn != 0 || c.switching {
		return nil
	}
	if !c.briefed {
		c.briefed, c.briefing = true, c.calls+1
		text = c.o.Briefing() + "\n\n" + text
	}
	c.begun = false
	c.before = ""
	c.words.Reset()
	effect := c.call("session/prompt", map[string]any{"sessionId": c.session, "prompt": content(text)}, call{id: id})
	c.turn = c.calls
	return []adapter.Effect{effect}
}

// Steer adds a text to the running turn.
func (c *Client) Steer(id, text string) []adapter.Effect {
	if !c.canSteer || c.turn == 0 || !c.begun {
		return nil
	}
	return []adapter.Effect{c.call("_session/steering", map[string]any{"sessionId": c.session, "prompt": content(text)}, call{id: id})}
}

// Interrupt ends the turn.
func (c *Client) Interrupt() []adapter.Effect {
	if c.turn == 0 {
		return nil
	}
	effects := []adapter.Effect{adapter.Write{Line: object.Spell(map[string]any{
		"jsonrpc": "2.0", "method": "session/cancel", "params": map[string]any{"sessionId": c.session},
	})}}
	for _, id := range slices.Sorted(maps.Keys(c.options)) { // the protocol wants an answer to each
		effects = append(effects, answer(id, map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}))
	}
	clear(c.options)
	return effects
}

// ended handles the end of a turn.
func (c *Client) ended(id int64, about call, result wire.Raw) []adapter.Effect {
	if id != c.turn {
		return nil
	}
	c.turn = 0
	last := c.before + c.words.String()
	effects := []adapter.Effect{c.said()}
	if !c.begun {
		effects = append(effects, &adapter.Begun{}, &adapter.InContext{ID: about.id})
	}
	effects = append(effects, c.unread()...)
	commands := c.tools.Has(func(k toolCall) bool { return k.ToolKind == "execute" && !own(&k) })
	effects = append(effects, c.tools.Clear())
	var r struct {
		StopReason string   `json:"stopReason"`
		Usage      wire.Raw `json:"usage"`
	}
	_ = object.Decode(result, &r) // the turn has ended anyway
	effects = append(effects, c.usage(r.Usage)...)
	end := &adapter.Ended{Text: last}
	switch r.StopReason {
	case "cancelled":
		end.Stopped = true
		// The protocol has no other way to end commands that outlive their turn, as commands of codex-acp do.
		if commands && c.canClose && c.canResume != "" {
			c.end = end
			return append(effects, c.call("session/close", map[string]any{"sessionId": c.session}, call{}))
		}
	case "refusal":
		end.Failure = adapter.FailRefused
	case "max_tokens":
		end.Failure = adapter.FailContext
	}
	return append(effects, end)
}

// unread reports texts that were added to the turn, and that the model did not get. It forgets the open permissions and
// calls of the turn.
func (c *Client) unread() []adapter.Effect {
	clear(c.options)
	lost := c.injected
	c.injected = nil
	for _, id := range slices.Sorted(maps.Keys(c.waiting)) {
		if about := c.waiting[id]; about.method == "_session/steering" {
			delete(c.waiting, id)
			lost = append(lost, about.id)
		}
	}
	var effects []adapter.Effect
	for _, id := range lost {
		effects = append(effects, &adapter.Unread{ID: id})
	}
	return effects
}

// usage reports the usage of the turn. Invalid token counts are logged.
func (c *Client) usage(document wire.Raw) []adapter.Effect {
	var effects []adapter.Effect
	var u *struct {
		Input      int64 `json:"inputTokens"`
		Output     int64 `json:"outputTokens"`
		CacheRead  int64 `json:"cachedReadTokens"`
		CacheWrite int64 `json:"cachedWriteTokens"`
		Thought    int64 `json:"thoughtTokens"`
	}
	if len(document) > 0 && object.Decode(document, &u) != nil {
		u = nil
		effects = append(effects, adapter.Log{Text: "the usage of the turn cannot be read: " + tools.Clip(string(document), 500)})
	}
	if u == nil && c.context.Cost <= c.paid {
		return effects
	}
	used := c.context
	used.Model, used.Cost = c.model, c.context.Cost-c.paid
	c.paid = c.context.Cost
	if u != nil {
		used.Input, used.Output, used.Reasoning = u.Input, u.Output, u.Thought
		used.CacheRead, used.CacheWrite = u.CacheRead, u.CacheWrite
	}
	return append(effects, &used)
}
