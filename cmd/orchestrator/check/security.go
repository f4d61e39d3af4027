package check

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/hub"
	"orchestrator/supervisor/hub/team"
)

// An exposureRow is one thing that an agent may do or reach.
type exposureRow struct {
	What    string   `json:"what"`
	Exposed extent   `json:"exposed"`
	Text    string   `json:"text"`
	Names   []string `json:"names"` // paths, agents or variables that Text is about
}

// An extent is how far an agent has an exposure.
type extent string

const (
	no     extent = "no"
	partly extent = "partly"
	yes    extent = "yes"
)

// An exposed is an agent with all that it may do or reach.
type exposed struct {
	Agent string        `json:"agent"` // its block: replicas are equal
	Rows  []exposureRow `json:"rows"`
}

// surroundings are the common facts of all agents.
type surroundings struct {
	config  *config.Config
	user    string
	root    bool
	home    string
	environ []string // the variables that agents could inherit
}

func (s *surroundings) find(a *cli.App) {
	s.root, s.home, s.environ = os.Geteuid() == 0, a.Getenv("HOME"), hub.AgentBase(a.Environ)
	s.user = "user " + strconv.Itoa(os.Geteuid())
	if u, err := user.Current(); err == nil {
		s.user = u.Username
	}
}

// An examiner judges one agent.
type examiner struct {
	*surroundings
	agent   *config.Agent
	confine *child.Confinement // nil if the agent has all rights of its user
	as      *child.User        // whom it runs as; nil: the user of the orchestrator
	homes   []string           // of the user of the orchestrator and of the agent's
	exposed
}

// expose judges an agent.
func (s *surroundings) expose(a *config.Agent) exposed {
	e := &examiner{surroundings: s, agent: a, confine: team.Confinement(s.config, a), exposed: exposed{Agent: a.Block}}
	e.homes = []string{s.home}
	if as, err := child.FindUser(a.User); err == nil && as != nil {
		e.as = as
		if u, err := user.Lookup(a.User); err == nil {
			e.homes = append(e.homes, u.HomeDir)
		}
	}
	e.identity()
	e.changes()
	e.reads()
	e.environment()
	e.rights()
	return e.exposed
}

// row adds a row.
func (e *examiner) row(what string, is extent, text string, names ...string) {
	e.Rows = append(e.Rows, exposureRow{What: what, Exposed: is, Text: text, Names: append([]string{}, names...)})
}

// either adds a row that holds or does not hold.
func (e *examiner) either(what string, is bool, open, closed string, names ...string) {
	if is {
		e.row(what, yes, open, names...)
		return
	}
	e.row(what, no, closed)
}

// any adds a row that holds if there are names.
func (e *examiner) any(what string, open, closed string, names []string) {
	e.either(what, len(names) > 0, open, closed, names...)
}

// identity judges as which user the agent runs, and how it is confined.
func (e *examiner) identity() {
	if e.as != nil {
		e.row("user", no, fmt.Sprintf("runs as %s, not as root (user = %q)", e.as.Name, e.as.Name))
	} else {
		e.either("user", e.root, "runs as root", "runs as "+e.user+", not as root")
	}
	switch {
	case e.confine == nil:
		e.row("confinement", yes, "is not confined: it has all rights of its user")
	case e.confine.BestEffort && !e.confine.Complete():
		e.confine = nil
		e.row("confinement", yes, "is not confined: not fully supported on this system")
	default:
		e.row("confinement", no, "is confined: the kernel refuses other access")
	}
}

// changes judges the write access of the agent.
func (e *examiner) changes() {
	project := e.config.Dir
	switch {
	case e.mayChange(unnamedIn(project)):
		e.row("project", yes, "may change the project", project)
	case e.confine != nil && e.mayChange(project):
		e.row("project", partly, "may change part of the project", e.confine.Write...)
	default:
		e.row("project", no, "may not change the project")
	}
	e.either("configuration", e.mayChange(e.config.File), "may change the configuration and its commands", "may not change the configuration", e.config.File)
	e.any("git hooks", "may change git hooks, which run with your rights", "may not change git hooks", slices.DeleteFunc(e.hooks(), func(part string) bool { return !e.mayChange(part) }))
	state := e.config.Orchestrator.StateDir
	e.either("state", e.mayRead(state) || e.mayChange(state), "may read or change the state directory and its keys", "may not use the state directory", state)
	profile := filepath.Join(e.home, ".profile")
	e.either("home", e.home != "" && e.mayChange(profile), "may change the startup files of your shell", "may not change the startup files of your shell", profile)
}

// unnamedIn returns a file in a folder that no rule of a confinement names.
func unnamedIn(dir string) string { return filepath.Join(dir, "orchestrator.check") }

// hooks returns the parts of git repositories that name programs: of the project, of the agent, of workspaces, and of those
// that the agent may change.
func (e *examiner) hooks() []string {
	var found []string
	add := func(repository string) {
		found = append(found, filepath.Join(repository, "hooks"), filepath.Join(repository, "config"))
	}
	if e.confine != nil {
		for _, repository := range child.FindRepositories(e.confine.Write) {
			add(repository)
		}
	}
	dirs := []string{e.config.Dir, e.agent.Dir}
	if e.agent.Workspace != nil {
		dirs = append(dirs, e.agent.Workspace.Worktree)
	}
	for _, dir := range dirs {
		for ; ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, ".git", "objects")); err == nil {
				add(filepath.Join(dir, ".git"))
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// credentialPlaces are files and folders of a home with credentials, except the credentials that a
// coding agent needs for itself.
var credentialPlaces = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".config/gcloud", ".config/gh", ".docker/config.json", ".netrc", ".git-credentials",
	".npmrc", ".pypirc", ".password-store",
}

// reads judges the read access of the agent.
func (e *examiner) reads() {
	readable := func(paths []string) []string {
		return slices.DeleteFunc(paths, func(path string) bool { return !e.mayRead(path) })
	}
	e.any("secret files", "may read secret files", "may not read secret files", readable(e.config.SecretFiles()))
	var places []string
	for _, home := range e.homes {
		for _, place := range credentialPlaces {
			if path := filepath.Join(home, place); home != "" && exists(path) {
				places = append(places, path)
			}
		}
	}
	if keys := readable(slices.Clone(places)); len(keys) > 0 && len(keys) < len(places) {
		e.row("keys", partly, "may read some of your keys", keys...)
	} else {
		e.any("keys", "may read your keys", "may not read your keys", keys)
	}
	var others []string
	for i := range e.config.Agents {
		if other := &e.config.Agents[i]; other.Block != e.agent.Block && !slices.Contains(others, other.Block) && e.mayRead(unnamedIn(other.Dir)) {
			others = append(others, other.Block)
		}
	}
	e.any("folders", "may read the folders of other agents", "may not read the folders of other agents", others)
}

// environment judges which credentials reach the agent.
func (e *examiner) environment() {
	given := e.config.Secrets(e.agent)
	for i, name := range given {
		given[i] = "secret." + name
	}
	e.any("secrets", "gets secrets", "gets no secrets", append(given, e.agent.EnvFile...))
	var names []string
	for _, pair := range e.config.Inherited(e.agent, e.surroundings.environ) {
		name, value, _ := strings.Cut(pair, "=")
		if value != "" && config.IsCredential(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	e.any("environment", "inherits variables that look like credentials", "inherits no variables that look like credentials", names)
}

// rights judges the network, the rights at the orchestrator, the limits and the permission mode.
func (e *examiner) rights() {
	x := &e.agent.Confined
	switch {
	case e.confine == nil || !x.Limited:
		e.row("network", yes, "may use the whole network")
	case len(x.Ports) > 0:
		e.row("network", partly, fmt.Sprintf("may use UDP, and TCP to the ports %s", strings.Trim(fmt.Sprint(x.Ports), "[]")))
	default:
		e.row("network", no, "may not use the network")
	}
	if e.agent.Manage && !e.agent.Operator {
		e.row("operator", partly, "may manage other agents' tasks (manage = true)")
	} else {
		e.either("operator", e.agent.Operator, "has operator rights (operator = true)", "has no operator rights")
	}
	e.either("capabilities", !e.agent.Fixed, "may report other capabilities to get more tasks", "may report only capabilities from the file")
	e.limits()
	if e.agent.IsClient() {
		e.permission()
	} else if word := skips(e.agent.Command); word != "" {
		e.row("permission", yes, "has a flag that skips permissions", word)
	}
}

// limits judges the limits of the agent's resources.
func (e *examiner) limits() {
	l := &e.agent.Limits
	var missing []string
	for _, limit := range []struct {
		name string
		set  bool
	}{{"memory", l.Memory > 0}, {"processes", l.Processes > 0}, {"cpu", l.CPU > 0}} {
		if !limit.set {
			missing = append(missing, limit.name)
		}
	}
	if len(missing) == 0 {
		e.row("limits", no, "has limits on memory, processes and cpu")
		return
	}
	is := partly
	if len(missing) == 3 {
		is = yes
	}
	e.row("limits", is, "has no limit on "+strings.Join(missing, ", "))
}

// decides is how far a coding agent decides by itself, by its permission mode.
var decides = map[string]extent{
	adapter.PermissionFull: yes, adapter.PermissionAuto: partly, adapter.PermissionEdits: partly, adapter.PermissionAsk: no, adapter.PermissionPlan: no,
}

// permission judges the permission mode of a coding agent, with the actions that need no question.
func (e *examiner) permission() {
	c := &e.agent.Client.Opening
	if word := skips(e.agent.Command); word != "" {
		e.row("permission", yes, "has a flag that skips permissions", word)
		return
	}
	is, text := decides[c.Permission], "permission = "+strconv.Quote(c.Permission)
	for _, rule := range c.Allow {
		if slices.Contains([]string{"*", "Bash", "Bash(*)", "Bash(:*)"}, rule) {
			is, text = yes, text+", and may run any command"
			break
		}
	}
	e.row("permission", is, text, c.Allow...)
}

// skippingFlags are flags of coding agents that skip permissions.
var skippingFlags = []string{
	"--dangerously-skip-permissions", "--allow-dangerously-skip-permissions", "--dangerously-bypass-approvals-and-sandbox",
	"--yolo", "--trust-all-tools", "--allow-all-tools", "bypassPermissions", "danger-full-access",
}

// skips returns a word of a command that skips permissions, or "".
func skips(command []string) string {
	for _, word := range command {
		_, value, _ := strings.Cut(word, "=")
		if slices.Contains(skippingFlags, word) || slices.Contains(skippingFlags, strings.Trim(value, `"'`)) {
			return word
		}
	}
	return ""
}

const (
	toRead  = 4
	toWrite = 2
)

// mayRead reports whether the agent may read a file, or any file in a folder.
func (e *examiner) mayRead(path string) bool {
	switch {
	case !e.confine.MayRead(path):
		return false
	case e.as == nil:
		return syscall.Access(path, toRead) == nil || !exists(path)
	case exists(path):
		return e.as.MayRead(path)
	}
	// The orchestrator makes its state directory, and closes it.
	return path != e.config.Orchestrator.StateDir && e.as.MayExecute(filepath.Dir(path))
}

// mayChange reports whether the agent may change or replace a file, or change any file in a folder.
func (e *examiner) mayChange(path string) bool {
	if !e.confine.MayChange(path) {
		return false
	}
	if e.as != nil {
		return e.as.MayReplace(path)
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if exists(dir) {
			return syscall.Access(path, toWrite) == nil || syscall.Access(dir, toWrite) == nil
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
