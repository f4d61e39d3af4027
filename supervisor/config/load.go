package config

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Schema is the JSON Schema of the JSON form of a file. A test generates it from the reader.
//
//go:embed schema.json
var Schema []byte

// Options configure the reading of a file.
type Options struct {
	Vars     []string // name=value; highest precedence
	VarFiles []string // files of name = value; a later one wins
	Environ  []string // as os.Environ returns it
	// NoEnv disables the environment, for checking a file on another machine. The values of
	// env() and of secrets are unknown, and attributes that depend on them are not checked.
	NoEnv bool
	// Node is the name of this hub in a shared store; "" if the address or the name of the machine decides.
	Node string
	// Host is set on a host, which has the file of the hubs and not their certificates.
	Host bool
	// StateDir replaces the file's state_dir.
	StateDir string
	// Run runs the command of a secret and returns its output. This package starts no process
	// itself.
	Run func(ctx context.Context, command []string, dir string, env []string) ([]byte, error)
	// Rights returns the rights of the user of an agent to a file; nil: they are not checked.
	Rights func(user, path string) Rights
}

// Load reads a configuration file and everything that it mentions, except secrets. The Config
// is nil if one of the problems is an error.
func Load(file string, o Options) (*Config, Problems) {
	r, body, ok := begin(file, o)
	if ok {
		r.warnOfEmpty(body, filepath.Base(file))
		r.file(body)
	}
	for i := range r.problems {
		r.problems[i] = r.masked(r.problems[i])
	}
	problems := r.problems.Sorted()
	if problems.Errors() > 0 {
		return nil, problems
	}
	return r.config, problems
}

// Record returns the state directory and the store of a file. It reads no agents, and mistakes elsewhere do
// not count, so that a running team is found while its file is being edited. It reports false for a file
// that is not there or makes no sense at all.
func Record(file string, o Options) (stateDir string, store Store, ok bool) {
	r, body, _ := begin(file, o)
	if body == nil {
		return "", Store{}, false
	}
	p := r.parts(body)
	r.setScope(&p)
	for _, b := range p.settings {
		if b.Type == "orchestrator" || b.Type == "store" {
			r.setting(b)
		}
	}
	r.settle()
	return r.config.Orchestrator.StateDir, r.config.Store, true
}

// begin parses a file. It reports false if the body is missing or incomplete.
func begin(file string, o Options) (*reader, hcl.Body, bool) {
	name := filepath.Base(file)
	r := &reader{options: o, sources: map[string]*source{}, agents: map[string]*block{}, actors: map[string]string{}}
	absolute, err := filepath.Abs(file)
	if err != nil {
		r.report(hcl.Range{Filename: name}, unreadable(file, err))
		return r, nil, false
	}
	r.config = standard(absolute)
	r.config.environ, r.config.run = o.Environ, o.Run
	r.config.home, _ = lookup(o.Environ, "HOME")
	r.functions = r.functionTable()
	body, ok := r.open(absolute, name, false)
	return r, body, ok
}

// parts holds the blocks of a file, in the order of reading.
type parts struct {
	variables, locals, secrets, settings, hosts, sessions, defaults, agents, tasks hcl.Blocks
}

// file reads a whole file. Each step may use the results of earlier steps.
func (r *reader) file(body hcl.Body) {
	p := r.parts(body)
	r.setScope(&p)
	r.secrets(p.secrets)
	for _, b := range p.settings {
		r.setting(b)
	}
	r.settle()
	start := r.defaults(p.defaults)
	r.agentBlocks(p.agents, start)
	r.hostBlocks(p.hosts)
	for _, b := range p.sessions {
		r.session(b)
	}
	r.sessionMembers()
	r.tasks(p.tasks)
	for _, check := range r.users {
		check()
	}
}

// setScope sets the scope of all expressions: path, variables and locals.
func (r *reader) setScope(p *parts) {
	r.scope = &scope{functions: r.functions, roots: map[string]cty.Value{
		"path": cty.ObjectVal(map[string]cty.Value{"config": cty.StringVal(r.config.Dir)}),
	}}
	r.scope = r.scope.with("var", r.variables(p.variables))
	r.scope = r.scope.with("local", r.locals(p.locals))
}

// setting reads a block that may occur only once.
func (r *reader) setting(b *hcl.Block) {
	all := r.settings(b.DefRange)
	i := slices.IndexFunc(all, func(c child) bool { return c.kind == b.Type })
	r.block(b, all[i], b.Type, r.scope)
}

// parts sorts the blocks of a file. settings are the blocks that may occur only once.
func (r *reader) parts(body hcl.Body) parts {
	var p parts
	into := func(list *hcl.Blocks) func(*hcl.Block) {
		return func(b *hcl.Block) { *list = append(*list, b) }
	}
	settings := r.settings(hcl.Range{})
	for i := range settings {
		settings[i].read = into(&p.settings)
	}
	s := section{title: "The file", children: slices.Concat([]child{
		{kind: "variable", label: "name", many: true, read: into(&p.variables)},
		{kind: "locals", many: true, read: into(&p.locals)},
		{kind: "secret", label: "name", many: true, read: into(&p.secrets)},
	}, settings, []child{
		{kind: "host", label: "name", many: true, read: into(&p.hosts)},
		{kind: "session", label: "name", many: true, read: into(&p.sessions)},
		{kind: "defaults", read: into(&p.defaults)},
		{kind: "agent", label: "name", many: true, read: into(&p.agents)},
		{kind: "task", label: "name", many: true, read: into(&p.tasks)},
	})}
	if filepath.Ext(r.config.File) == ".json" { // editors look for the schema there
		s.attributes = []attribute{{name: "$schema", raw: func(*hcl.Attribute) {}}}
	}
	r.read(body, nil, s)
	return p
}

// unique reports whether a label is free, and adds a problem if it is not.
func (r *reader) unique(seen map[string]hcl.Range, b *hcl.Block) bool {
	name := b.Labels[0]
	if first, taken := seen[name]; taken {
		r.report(b.LabelRanges[0], Problem{
			Code: "config/duplicate-" + b.Type, Summary: "Duplicate " + b.Type,
			Detail: "The name " + quotedList([]string{name}) + " is already used at " + place(first) + ".",
		})
		return false
	}
	seen[name] = b.LabelRanges[0]
	return true
}

// fileNames are the names of a configuration file, in the order of the search.
var fileNames = []string{"orchestrator.hcl", "orchestrator.hcl.json"}

// A NotFound reports that no configuration was found.
type NotFound struct {
	Looked []string // the folders searched, nearest first
}

func (nf *NotFound) Error() string {
	where := "nowhere"
	if n := len(nf.Looked); n > 0 {
		where = nf.Looked[0]
		if n > 1 {
			where += " or its parents up to " + nf.Looked[n-1]
		}
	}
	return fmt.Sprintf("no %s in %s", fileNames[0], where)
}

// Find returns the configuration file to use. It is explicit if that is not empty, else
// $ORC_CONFIG of environ. If explicit names a folder, it is the file in that folder. Find does
// not check whether an explicit file can be read.
//
// Otherwise Find searches dir and then its parents for orchestrator.hcl or
// orchestrator.hcl.json. The search ends with the first folder that holds .git, the home folder
// or the root. It does not go on to another device or to a folder of another user. A file found
// in this way must not be writable by another user.
func Find(dir, explicit string, environ []string) (string, error) {
	if explicit == "" {
		explicit, _ = lookup(environ, "ORC_CONFIG")
	}
	if explicit != "" {
		return given(dir, explicit)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the configuration: %w", err)
	}
	home, _ := lookup(environ, "HOME")
	notFound := &NotFound{}
	for at := dir; ; at = filepath.Dir(at) {
		if file, ok := configIn(at); ok {
			if err := trusted(file); err != nil {
				return "", err
			}
			return file, nil
		}
		notFound.Looked = append(notFound.Looked, at)
		_, err := os.Lstat(filepath.Join(at, ".git"))
		top := err == nil || at == filepath.Dir(at) || (home != "" && at == filepath.Clean(home)) ||
			elsewhere(at, filepath.Dir(at))
		if top {
			return "", notFound
		}
	}
}

func given(dir, explicit string) (string, error) {
	if !filepath.IsAbs(explicit) {
		explicit = filepath.Join(dir, explicit)
	}
	info, err := os.Stat(explicit)
	if err != nil || !info.IsDir() {
		return explicit, nil
	}
	if file, ok := configIn(explicit); ok {
		return file, nil
	}
	return "", &NotFound{Looked: []string{explicit}}
}

func configIn(dir string) (string, bool) {
	for _, name := range fileNames {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return file, true
		}
	}
	return "", false
}

// lookup returns a variable of a list such as os.Environ returns. The last of several counts,
// as for a started program.
func lookup(environ []string, name string) (string, bool) {
	for i := len(environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(environ[i], name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// UntrustedError reports that another user could have written a configuration that was found by
// searching. A file that is named explicitly is always used.
type UntrustedError struct {
	File string
	Why  string
}

func (e *UntrustedError) Error() string { return e.File + " is not used: " + e.Why }

// trusted returns an *UntrustedError if another user could have written a file or put it in its
// place. For a link, both the link and its target are checked.
func trusted(file string) error {
	paths := []string{filepath.Dir(file), file}
	if real, err := filepath.EvalSymlinks(file); err == nil && real != file {
		paths = append(paths, filepath.Dir(real), real)
	}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			return fmt.Errorf("looking for the configuration: %w", err)
		}
		if why := writtenByOthers(info, os.Geteuid()); why != "" {
			return &UntrustedError{File: file, Why: path + " " + why}
		}
	}
	return nil
}

// writtenByOthers returns a reason if a user other than self and root could have written a
// file. Write access of the group is allowed, because on many systems each user has a private
// group.
func writtenByOthers(info os.FileInfo, self int) string {
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(owner.Uid) != self && owner.Uid != 0:
		return "belongs to another user"
	case info.Mode().Type() != os.ModeSymlink && info.Mode().Perm()&0o002 != 0:
		return "can be written by other users (chmod o-w closes it to them)"
	}
	return ""
}

// elsewhere reports whether the search must not continue in the parent of a folder. The parent
// is then on another device, or its owner is neither root nor the owner of the folder.
func elsewhere(dir, parent string) bool {
	from, err := os.Stat(dir)
	if err != nil {
		return true
	}
	to, err := os.Stat(parent)
	if err != nil {
		return true
	}
	a, known := from.Sys().(*syscall.Stat_t)
	b, knownToo := to.Sys().(*syscall.Stat_t)
	return !known || !knownToo || a.Dev != b.Dev || b.Uid != a.Uid && b.Uid != 0
}
