package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Confine restricts the rights of an agent's processes. Its paths are absolute.
type Confine struct {
	On         bool     // the agent or the defaults have the block
	Write      []string // paths that it may read and change
	Read       []string // paths that it may read and run
	Hide       []string // exceptions from both: from the block, secrets, logs and the state directory
	Keep       []string // exceptions from Write: the files of the configuration
	Limited    bool     // it has no network but Ports
	Ports      []int
	BestEffort bool // it starts even if the system cannot do all of this
}

// confine returns the block of an agent or of the defaults.
func (r *reader) confine(x *Confine) child {
	return child{kind: "confine", attributes: []attribute{
		attr("write", &x.Write, paths(r.config.absolute)),
		attr("read", &x.Read, paths(r.config.absolute)),
		attr("hide", &x.Hide, paths(r.config.absolute)),
		attr("network", x, network),
		attr("best_effort", &x.BestEffort, truth),
	}, check: func(*hcl.Block, map[string]hcl.Range) { x.On = true }}.restarts(x)
}

// paths reads a list of paths and makes them absolute.
func paths(absolute func(string) string) func(*[]string, value) {
	return func(into *[]string, v value) {
		items, ok := v.items("a list of paths")
		if !ok {
			return
		}
		list := []string{}
		for _, item := range items {
			var p string
			path(absolute)(&p, item)
			if p == "" {
				return
			}
			list = append(list, p)
		}
		*into = list
	}
}

// network reads "all", "none" or a list of ports.
func network(x *Confine, v value) {
	if v.cty.Type() == cty.String {
		var word string
		choice("all", "none")(&word, v)
		x.Limited, x.Ports = word == "none", nil
		return
	}
	if v.cty.Type().IsPrimitiveType() {
		v.wrongKind(`"all", "none" or a list of ports`)
		return
	}
	var ports []int
	numbers(1, 65535)(&ports, v)
	x.Limited, x.Ports = true, ports
}

// settleConfine completes the confinement of an agent with the rules for all agents, and warns about a folder that it
// cannot use well.
func (r *reader) settleConfine(b *hcl.Block, a *Agent) {
	x, c := &a.Confined, r.config
	if !x.On {
		return
	}
	if x.Write == nil {
		x.Write = []string{a.Dir}
	}
	if x.Read == nil {
		x.Read = []string{"/"}
	}
	hide := slices.Concat([]string{c.Orchestrator.StateDir, c.Store.Path}, x.Hide, c.SecretFiles())
	if !strings.HasPrefix(a.Output.Dir, c.Orchestrator.StateDir+"/") {
		hide = append(hide, a.Output.Dir)
	}
	x.Hide, x.Keep = hide, r.files
	r.warnOfHoles(b, a)
	r.warnOfWorkspace(b, a)
}

// SecretFiles returns the files of secrets and the key of the HTTP listener.
func (c *Config) SecretFiles() []string {
	var files []string
	for _, name := range slices.Sorted(maps.Keys(c.secrets)) {
		if file := c.secrets[name].file; file != "" {
			files = append(files, file)
		}
	}
	if c.HTTP.Key != "" {
		files = append(files, c.HTTP.Key)
	}
	return files
}

// warnOfHoles warns if a folder that an agent may change holds a path that the agent may not change. The agent then
// cannot make or remove entries directly in the folders above that path.
func (r *reader) warnOfHoles(b *hcl.Block, a *Agent) {
	for _, dir := range a.Confined.Write {
		for _, except := range slices.Concat([]string{filepath.Join(dir, ".git", "hooks")}, a.Confined.Keep, a.Confined.Hide) {
			rest, inside := strings.CutPrefix(except, strings.TrimSuffix(dir, "/")+"/")
			if _, err := os.Lstat(except); !inside || err != nil && except != r.config.Orchestrator.StateDir {
				continue
			}
			hint := "Give it its own folder with dir or write, for example a git worktree."
			if a.Workspace != nil && below(a.Workspace.repository(), dir) {
				hint = "The workspaces of its tasks are not affected. For other files, add a folder to write."
			}
			r.report(b.DefRange, Problem{
				Severity: SeverityWarning, Code: "config/confine-holes", Summary: "Folder has exceptions",
				Detail: fmt.Sprintf("Agent %q cannot create or remove files directly in %s, because it may not change %s.", a.Block, dir, rest),
				Hint:   hint,
			})
			return
		}
	}
}

// warnOfWorkspace warns if an agent may not change the repository of its workspaces, which holds them.
func (r *reader) warnOfWorkspace(b *hcl.Block, a *Agent) {
	if a.Workspace == nil {
		return
	}
	top := a.Workspace.repository()
	for _, needed := range []string{".git", ".workspaces"} {
		path := filepath.Join(top, needed)
		if !slices.ContainsFunc(a.Confined.Write, func(dir string) bool { return below(path, dir) }) {
			r.report(b.DefRange, Problem{
				Severity: SeverityWarning, Code: "config/confined-workspace", Summary: "Workspaces cannot be changed",
				Detail: fmt.Sprintf("Agent %q works in worktrees below %s, and may not change %s.", a.Block, top, path),
				Hint:   fmt.Sprintf("Add %q to write.", top),
			})
			return
		}
	}
}

// below reports whether a path is a folder or in it, also if links lead there.
func below(path, folder string) bool {
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path))
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	inside, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(inside)
}
