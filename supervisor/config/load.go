package config

import (
	"context"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Options hold what a file is read with.
type Options struct {
	Vars     []string // name=value; highest precedence
	VarFiles []string // files of name = value; a later one wins
	Environ  []string // as os.Environ returns it
	// NoEnv disables the environment, for checking a file on another machine. The values of
	// env() and of secrets are unknown, and attributes that depend on them are not checked.
	NoEnv bool
	// StateDir replaces the file's state_dir.
	StateDir string
	// Run runs the command of a secret and returns its output. This package starts no process
	// itself.
	Run func(ctx context.Context, command []string, dir string, env []string) ([]byte, error)
}

// Load reads a configuration file and everything that it mentions, except secrets. The Config
// is nil if one of the problems is an error.
func Load(file string, o Options) (*Config, Problems) {
	name := filepath.Base(file)
	r := &reader{options: o, sources: map[string]*source{}, agents: map[string]*block{}, actors: map[string]string{}}
	absolute, err := filepath.Abs(file)
	if err != nil {
		r.report(hcl.Range{Filename: name}, unreadable(file, err))
		return nil, r.problems
	}
	r.config = standard(absolute)
	r.config.environ, r.config.run = o.Environ, o.Run
	r.config.home, _ = lookup(o.Environ, "HOME")
	r.functions = r.functionTable()

	if body, ok := r.open(absolute, name, false); ok {
		r.warnOfEmpty(body, name)
		r.file(body)
	}
	for i := range r.problems {
		r.problems[i] = r.masked(r.problems[i])
	}
	problems := r.problems.sorted()
	if problems.Errors() > 0 {
		return nil, problems
	}
	return r.config, problems
}

// parts holds the blocks of a file, in the order in which they are read.
type parts struct {
	variables, locals, secrets, settings, sessions, defaults, agents hcl.Blocks
}

// file reads a whole file. Each step may use the results of earlier steps.
func (r *reader) file(body hcl.Body) {
	p := r.parts(body)
	r.scope = &scope{functions: r.functions, roots: map[string]cty.Value{
		"path": cty.ObjectVal(map[string]cty.Value{"config": cty.StringVal(r.config.Dir)}),
	}}
	r.scope = r.scope.with("var", r.variables(p.variables))
	r.scope = r.scope.with("local", r.locals(p.locals))
	r.secrets(p.secrets)
	for _, b := range p.settings {
		r.setting(b)
	}
	r.settle()
	start := r.defaults(p.defaults)
	r.agentBlocks(p.agents, start)
	for _, b := range p.sessions {
		r.session(b)
	}
	r.sessionMembers()
}

// parts sorts the blocks of a file. settings are the blocks that may occur only once.
func (r *reader) parts(body hcl.Body) parts {
	var p parts
	into := func(list *hcl.Blocks) func(*hcl.Block) {
		return func(b *hcl.Block) { *list = append(*list, b) }
	}
	s := section{title: "The file", children: []child{
		{kind: "variable", label: "name", many: true, read: into(&p.variables)},
		{kind: "locals", many: true, read: into(&p.locals)},
		{kind: "secret", label: "name", many: true, read: into(&p.secrets)},
		{kind: "orchestrator", read: into(&p.settings)},
		{kind: "http", read: into(&p.settings)},
		{kind: "log", read: into(&p.settings)},
		{kind: "store", read: into(&p.settings)},
		{kind: "protocol", read: into(&p.settings)},
		{kind: "scheduler", read: into(&p.settings)},
		{kind: "bus", read: into(&p.settings)},
		{kind: "session", label: "name", many: true, read: into(&p.sessions)},
		{kind: "defaults", read: into(&p.defaults)},
		{kind: "agent", label: "name", many: true, read: into(&p.agents)},
	}}
	r.read(body, nil, s)
	return p
}

// unique reports whether a label is free, and adds a problem if it is not.
func (r *reader) unique(seen map[string]hcl.Range, b *hcl.Block) bool {
	name := b.Labels[0]
	if first, taken := seen[name]; taken {
		r.report(b.LabelRanges[0], Problem{
			Code:    "config/duplicate-" + b.Type,
			Summary: "Duplicate " + b.Type,
			Detail:  "The name " + quotedList([]string{name}) + " is taken at " + place(first) + ".",
		})
		return false
	}
	seen[name] = b.LabelRanges[0]
	return true
}
