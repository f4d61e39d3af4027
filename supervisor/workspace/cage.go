package workspace

import (
	"context"
	"slices"
	"strings"

	"orchestrator/supervisor/child"
)

// A cage confines commands of setup and verify, since they run files that any agent may have written. They may change
// the worktree, $TMPDIR, and paths outside of the repository that the agent may change, such as caches. In a merge they
// have only the permissions that all agents of the merge share. Commands of agents that are not confined are not
// confined either.
type cage struct {
	dir        string // the worktree
	repository string // a folder of the repository
	others     []*Agent
}

// confine sets the confinement of a command.
func (c *cage) confine(ctx context.Context, spec *child.Spec) error {
	for _, a := range c.others {
		var other child.Spec
		if err := a.Fill(ctx, &other); err != nil {
			return err
		}
		spec.Confine = spec.Confine.Intersect(other.Confine)
	}
	if spec.Confine == nil {
		return nil
	}
	own := *spec.Confine
	own.Read = slices.Concat(own.Read, own.Write)
	own.Write = slices.DeleteFunc(slices.Clone(own.Write), func(path string) bool {
		return below(path, c.repository) || below(c.repository, path) || below(path, c.dir) || below(c.dir, path)
	})
	own.Lend = []string{c.dir}
	spec.Confine = &own
	return nil
}

// below reports whether a path is a folder or below it.
func below(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
