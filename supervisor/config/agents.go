package config

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"orchestrator/supervisor/adapter"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// maxReplicas limits the effect of a typing mistake.
const maxReplicas = 10_000

var agentName = expression(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// A block is an agent block and the agents that it declares.
type block struct {
	at     hcl.Range // position of its label
	names  []string
	broken bool // its name or replicas are invalid; references to it are not reported
}

// A dependency is an unresolved element of depends_on.
type dependency struct {
	agent int // index into Config.Agents; -1 for a block without replicas
	owner string
	name  string
	value value
}

// agentBlocks reads every agent block. It finds all names first, so that an agent can depend on
// a block further down.
func (r *reader) agentBlocks(blocks hcl.Blocks, start Agent) {
	var valid hcl.Blocks
	seen := map[string]hcl.Range{}
	for _, b := range blocks {
		if !r.unique(seen, b) {
			continue
		}
		valid = append(valid, b)
		named := &block{at: b.LabelRanges[0], broken: !r.checkName(b, "An agent")}
		r.agents[b.Labels[0]] = named
		n, ok := r.replicas(b)
		named.broken = named.broken || !ok
		for i := range n {
			named.names = append(named.names, replicaName(b.Labels[0], i, n))
		}
	}
	r.checkReplicaNames(valid)
	var waits []dependency
	for _, b := range valid {
		waits = append(waits, r.agentBlock(b, start)...)
	}
	r.resolve(waits)
}

func replicaName(name string, i, n int) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, i)
}

func (r *reader) checkName(b *hcl.Block, who string) bool {
	if agentName().MatchString(b.Labels[0]) {
		return true
	}
	r.report(b.LabelRanges[0], Problem{
		Code: "config/bad-name", Summary: "Bad name",
		Detail: who + " needs a name of " + NameRule + ".",
	})
	return false
}

// replicas reads the number of replicas. It runs before the rest of the block is read, which
// happens once for each replica.
func (r *reader) replicas(b *hcl.Block) (int, bool) {
	schema := &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "replicas"}}}
	content, _, _ := b.Body.PartialContent(schema) // agent reports the mistakes
	n := 1
	if content == nil || content.Attributes["replicas"] == nil {
		return n, true
	}
	v, ok := r.value(content.Attributes["replicas"].Expr, "replicas", r.scope)
	if !ok {
		return n, false
	}
	n = -1
	if whole(0, maxReplicas)(&n, v); n < 0 {
		return 1, false
	}
	return n, true
}

// checkReplicaNames reports a replica with the same name as another agent, such as coder-1.
func (r *reader) checkReplicaNames(blocks hcl.Blocks) {
	owner := map[string]string{}
	for _, b := range blocks {
		named := r.agents[b.Labels[0]]
		for _, name := range named.names {
			if other, taken := owner[name]; taken {
				r.report(b.LabelRanges[0], Problem{
					Code: "config/duplicate-agent", Summary: "Duplicate agent",
					Detail: fmt.Sprintf("Agents %q and %q would both run as %q.", other, b.Labels[0], name),
				})
				named.broken = true
				break
			}
			owner[name] = b.Labels[0]
			if !named.broken && !agentName().MatchString(name) {
				r.report(b.LabelRanges[0], Problem{
					Code: "config/bad-name", Summary: "Bad name",
					Detail: fmt.Sprintf("The replica %q would have a name of more than 63 characters.", name),
				})
				named.broken = true
			}
		}
	}
}

// agentBlock reads a block once for each replica. A block without replicas is read as well, so
// that its mistakes are found before it is scaled up.
func (r *reader) agentBlock(b *hcl.Block, start Agent) []dependency {
	names := r.agents[b.Labels[0]].names
	if len(names) == 0 {
		_, waits := r.agent(b, start, b.Labels[0], 0)
		for i := range waits {
			waits[i].agent = -1
		}
		return waits
	}
	var all []dependency
	before := r.problems.Errors()
	r.config.Agents = slices.Grow(r.config.Agents, len(names))
	for i, name := range names {
		if r.problems.Errors() > before {
			break // the other replicas have the same mistakes
		}
		a, waits := r.agent(b, start, name, i)
		for j := range waits {
			waits[j].agent = len(r.config.Agents)
		}
		r.config.Agents = append(r.config.Agents, a)
		all = append(all, waits...)
	}
	return all
}

// agent reads one replica.
func (r *reader) agent(b *hcl.Block, a Agent, name string, index int) (Agent, []dependency) {
	a.Name, a.Block, a.Index, a.Place = name, b.Labels[0], index, place(b.DefRange)
	self := cty.ObjectVal(map[string]cty.Value{
		"name":  cty.StringVal(name),
		"index": cty.NumberIntVal(int64(index)),
	})
	sc := r.scope.with("self", self)
	var waits []dependency
	s := r.agentSection(&a, &waits, sc, isPlaced(b))
	r.config.places[s.path] = a.Place
	set := r.read(b.Body, sc, s)
	r.checkAgent(b, &a, set)
	r.settleVerify(&a, set)
	r.settleConfine(b, &a)
	r.users = append(r.users, func() { r.checkUser(b, &a, set) })
	return a, waits
}

// agentSection returns the rows of the block of an agent. A process keeps its user, folder, environment, pipes and
// limits from its start, so changes of these need another start. All other settings are read at each use.
func (r *reader) agentSection(a *Agent, waits *[]dependency, sc *scope, placed bool) section {
	path := "agent." + a.Block
	return section{
		title: fmt.Sprintf("Agent %q", a.Block), path: path,
		attributes: []attribute{
			attr("command", &a.Command, argv).restarts(nil),
			attr("wrap", &a.Wrap, prefix).restarts([]string{}),
			attr("user", &a.User, account).restarts(""),
			attr("description", &a.Description, text).live(""),
			attr("dir", &a.Dir, folder(placed)).restarts(derived(".")),
			raw("env", func(found *hcl.Attribute) { a.env = r.environment(found.Expr, sc) }, &a.env.print).restarts(map[string]string{}),
			attr("env_file", &a.EnvFile, envFiles).restarts([]string{}),
			attr("inherit_env", &a.InheritEnv, inheritEnv).restarts(ordinaryEnv),
			attr("protocol", &a.Protocol, protocol).restarts("native"),
			attr("stdin", &a.NoStdin, chosen("null", "pipe", "null")).restarts("pipe"),
			attr("role", &a.Role, role).live("worker"),
			attr("actor", a, actor).of(&a.Actor).restarts("auto"), // letters are addressed to it
			attr("pty", &a.Pty, truth).restarts(false),
			attr("operator", &a.Operator, truth).live(false),
			attr("manage", &a.Manage, truth).live(false),
			{name: "replicas", raw: func(*hcl.Attribute) {}, initial: 1}, // a change starts or stops replicas
			attr("depends_on", waits, func(into *[]dependency, v value) { *into = dependencies(v, a.Name) }).of(&a.DependsOn).live([]string{}),
			attr("autostart", &a.Autostart, truth).live(true),
			attr("on_exit", &a.OnExit, choice(OnExits...)).live("auto"),
			attr("verify", &a.Verify, argvs).live([]string{}),
			attr("verify_env", &a.VerifyEnv, words).live([]string{}),
			attr("permission", &a.Client.Opening.Permission, choice("ask", "edits", "plan", "auto", "full")).restarts("ask"),
			attr("allow", &a.Client.Opening.Allow, words).restarts([]string{}),
			attr("model", &a.Client.Opening.Model, text).restarts(""),
			attr("instructions", &a.Client.Opening.Instructions, text).restarts(""),
			attr("on_turn_end", &a.Client.Opening.OnTurnEnd, choice("remind", "complete", "fail")).restarts("remind"),
			attr("resume", &a.Client.Resume, truth).restarts(true),
			attr("wire_log", &a.Client.WireLog, truth).restarts(true),
		},
		children: append(r.behaviour(a), r.capabilities(path+".capabilities", a, sc).live(&a.Capabilities, &a.Names, &a.Fixed, &a.Capacity, &a.Outputs),
			child{kind: "mcp", label: "name", many: true, read: func(b *hcl.Block) {
				r.mcpServer(b, path, &a.Client.Opening.Servers, sc)
			}}.restarts(&a.Client.Opening.Servers),
			r.placement(path, a, sc).restarts(&a.Placement, &a.Wait), // a process stays on its machine
			r.workspace(path, &a.Workspace, sc).live(&a.Workspace), r.budgetBlock(path, a, sc).live(&a.Budget)),
	}
}

// checkAgent checks the relations of attributes.
func (r *reader) checkAgent(b *hcl.Block, a *Agent, set map[string]hcl.Range) {
	a.Raw = a.Protocol == "raw"
	r.checkClient(b, a, set)
	if _, ok := set["command"]; !ok && !meansCommand(b) && !a.IsClient() {
		r.missing(b, fmt.Sprintf("Agent %q has no command.", a.Block), `Add one, for example command = ["node", "coder.mjs"].`)
	}
	if a.Pty && a.NoStdin {
		r.report(set["pty"], Problem{
			Code: "config/pty-without-stdin", Summary: "A terminal needs stdin",
			Detail: `pty = true makes the terminal the agent's stdin, so stdin cannot be "null".`,
		})
	}
	if x := a.Restart; x.Delay > x.MaxDelay {
		r.report(b.DefRange, Problem{
			Severity: SeverityWarning, Code: "config/delay-above-max", Summary: "Restart delay is above its maximum",
			Detail: fmt.Sprintf("Agent %q would wait for max_delay (%v), never for delay (%v).", a.Block, x.MaxDelay, x.Delay),
		})
	}
}

// role reads the role of an agent. Any word is valid, but a word that is close to a known role
// gets a warning.
func role(into *string, v value) {
	s, ok := v.asQuoted()
	switch {
	case !ok:
		return
	case !IsRole(s):
		v.reject("bad-role", "Not a role", fmt.Sprintf("%s must be %s, and not \"none\": %s.", v.name, NameRule, v.quoted()), "")
		return
	}
	*into = s
	// Only one letter may differ: writer is not meant as worker.
	if near := nearest(s, roles); near != "" && object.EditDistance(s, near) == 1 && !slices.Contains(roles, s) {
		v.warn("odd-role", "Unusual role", fmt.Sprintf("%s is a custom role, not %s.", v.quoted(), quotedList(roles)), v.suggest(s, roles))
	}
}

// roles are the predefined roles.
var roles = []string{"worker", "planner", "reviewer"}

// folder reads the path of a folder, which must be there unless it is on another machine.
func folder(elsewhere bool) func(*string, value) {
	return func(into *string, v value) {
		var dir string
		path(v.r.config.absolute)(&dir, v)
		if dir == "" {
			return
		}
		info, err := os.Stat(dir)
		switch {
		case elsewhere:
			*into = dir
		case err != nil:
			v.reject("bad-dir", "Folder cannot be used", fmt.Sprintf("%s: %v.", v.quoted(), folderCause(err)), "")
		case !info.IsDir():
			v.reject("bad-dir", "Folder cannot be used", v.quoted()+" is not a folder.", "")
		default:
			*into = dir
		}
	}
}

// ordinaryEnv is the word for all variables that do not look like credentials.
const ordinaryEnv = "ordinary"

// inheritEnv reads true, false, "ordinary" or a list of names.
func inheritEnv(into *InheritEnv, v value) {
	if v.cty.Type() == cty.Bool {
		*into = InheritEnv{All: v.cty.True()}
		return
	}
	if v.cty.Type().IsPrimitiveType() {
		word := ""
		choice(ordinaryEnv)(&word, v)
		*into = InheritEnv{Ordinary: word == ordinaryEnv}
		return
	}
	var names []string
	words(&names, v)
	*into = InheritEnv{Names: names}
}

// capabilities returns the block of that name.
func (r *reader) capabilities(path string, a *Agent, sc *scope) child {
	c := &a.Capabilities
	repos := map[string]hcl.Range{}
	return child{kind: "capabilities", attributes: []attribute{
		attr("fixed", &a.Fixed, truth).initially(false),
		attr("languages", &c.Languages, words).initially([]string{}),
		attr("tools", &c.Tools, words).initially([]string{}),
		attr("environments", &c.Environments, words).initially([]string{}),
		attr("tags", &c.Tags, words).initially([]string{}),
		attr("names", &a.Names, words).initially([]string{}),
		attr("max_concurrent_tasks", &a.Capacity, whole(0, math.MaxInt32)).initially(1),
	}, children: []child{{kind: "repo", label: "name", many: true, read: func(b *hcl.Block) {
		if !r.unique(repos, b) {
			return
		}
		repo := hub.Repo{Name: b.Labels[0]}
		r.readFresh(b.Body, sc, section{
			title: fmt.Sprintf("Repo %q", repo.Name),
			path:  path + ".repo." + repo.Name,
			attributes: []attribute{
				attr("path", &repo.Path, word).initially("."),
				attr("languages", &repo.Languages, words),
				attr("tools", &repo.Tools, words),
			},
		})
		c.Repos = append(c.Repos, repo)
	}}, r.outputBlock(path, &a.Outputs, sc)}}
}

// actorForm matches the actor of an agent. "W" and "S:kind" are a new actor for each run, and
// "auto" means "W". The bus has the same rules.
var actorForm = expression(`^(auto|GO|W|(HO|PO|IO|W):[^:\s]+|S:[^:\s]+(:[^:\s]+)?)$`)

// topicForm matches words separated by dots.
var topicForm = expression(`^[^.\s*]+(\.[^.\s*]+)*$`)

// actor reads the actor of an agent. An actor that is not per run may be used only once.
func actor(a *Agent, v value) {
	taken := v.r.actors
	var id string
	word(&id, v)
	switch {
	case id == "":
		return
	case !actorForm().MatchString(id) || !seen(id):
		v.reject("bad-actor", "Bad actor", fmt.Sprintf("%s is not an actor.", v.quoted()),
			"Use GO, HO:host, PO:project, IO:person, or auto, W or S:kind for a new actor in each run.")
		return
	}
	if a.Actor = id; id == "auto" {
		a.Actor = ""
	}
	if id == "auto" || id == "W" || strings.HasPrefix(id, "S:") && strings.Count(id, ":") == 1 {
		return
	}
	if other, ok := taken[id]; ok {
		hint := "Two agents cannot read the same mail. Give each its own actor."
		if a.Index > 0 && strings.HasPrefix(other, a.Block) {
			hint = "Give each replica its own actor, for example \"PO:name-${self.index}\"."
		}
		v.reject("actor-taken", "Actor is taken", fmt.Sprintf("Agent %q already uses %s.", other, v.quoted()), hint)
		return
	}
	taken[id] = a.Name
}

// maxWordLength is the longest word that leaves room for the id of a run.
const maxWordLength = 150

// seen reports whether a word is printable and not too long.
func seen(word string) bool {
	return len(word) <= maxWordLength && !strings.ContainsFunc(word, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) })
}

// topics reads a list of topic names.
func topics(into *[]string, v value) {
	var names []string
	words(&names, v)
	for _, name := range names {
		if !topicForm().MatchString(name) || !seen(name) {
			v.reject("bad-topic", "Bad topic", fmt.Sprintf("%q is not a topic.", name), "A topic is words separated by dots, for example build.finished.")
			return
		}
	}
	if names != nil {
		*into = names
	}
}

// protocol reads the protocol of an agent.
func protocol(into *string, v value) {
	choice("messages", "native", "claude", "codex", "acp", "raw")(into, v)
	if *into == "messages" {
		*into = "native"
	}
}

// mcpServer reads a block with a program that has more tools for a coding agent.
func (r *reader) mcpServer(b *hcl.Block, path string, into *[]adapter.Server, sc *scope) {
	s := adapter.Server{Name: b.Labels[0]}
	set := r.read(b.Body, sc, section{
		title: fmt.Sprintf("MCP server %q", s.Name), path: path + ".mcp",
		attributes: []attribute{attr("command", &s.Command, argv)},
	})
	switch {
	case s.Name == "orc":
		r.report(b.DefRange, Problem{
			Code: "config/mcp-name", Summary: "Name is taken", Detail: `"orc" is the server with the tools of the orchestrator.`,
		})
	case !IsRole(s.Name), strings.Contains(s.Name, "__"): // it separates server and tool in the names of tools
		r.report(b.DefRange, Problem{
			Code: "config/mcp-name", Summary: "Not a name", Detail: fmt.Sprintf("The name of an MCP server must be %s: %q.", NameRule, s.Name),
		})
	}
	if _, ok := set["command"]; !ok {
		r.missing(b, fmt.Sprintf("MCP server %q has no command.", s.Name), `Add one, for example command = ["github-mcp"].`)
		return
	}
	*into = append(*into, s)
}

// checkClient checks a coding agent, and warns about another agent with its settings. It sets the
// command that the protocol implies.
func (r *reader) checkClient(b *hcl.Block, a *Agent, set map[string]hcl.Range) {
	if !a.IsClient() {
		c := a.Client
		c.Opening.Servers = nil
		if !reflect.DeepEqual(c, r.client) {
			r.report(b.DefRange, Problem{
				Severity: SeverityWarning, Code: "config/not-a-coding-agent", Summary: "Only for coding agents",
				Detail: fmt.Sprintf("Agent %q has settings that need a coding agent: protocol = \"claude\", \"codex\" or \"acp\".", a.Block),
			})
		}
		return
	}
	a.Client.Protocol = a.Protocol
	switch {
	case len(a.Command) > 0:
	case a.Protocol == ProtocolACP: // many programs speak it
		r.missing(b, fmt.Sprintf("Agent %q has no command.", a.Block), `Name the program that speaks ACP, for example command = ["gemini", "--acp"].`)
	default:
		a.Command = []string{a.Protocol}
	}
	if r.config.places["agent."+a.Block+".capabilities.fixed"] == "" {
		a.Fixed = true // a model writes its messages
	}
	if _, ok := set["on_exit"]; !ok && a.OnExit == "auto" {
		a.OnExit = "requeue" // such a program exits with 0 or 1 whatever its task is
	}
	switch {
	case a.Pty:
		r.report(set["pty"], clientProblem(a, "a terminal"))
	case a.NoStdin:
		r.report(set["stdin"], clientProblem(a, "a stdin that is /dev/null"))
	}
	if a.Capacity > 1 {
		r.report(b.DefRange, Problem{
			Code: "config/one-task", Summary: "One task at a time",
			Detail: fmt.Sprintf("Agent %q speaks %s, which works on one task at a time: max_concurrent_tasks must be 0 or 1.", a.Block, a.Protocol),
			Hint:   "To run several, set replicas.",
		})
	}
}

func clientProblem(a *Agent, what string) Problem {
	return Problem{
		Code: "config/coding-agent-pipes", Summary: "Not for coding agents",
		Detail: fmt.Sprintf("protocol = %q uses pipes, so the agent cannot have %s.", a.Protocol, what),
	}
}
