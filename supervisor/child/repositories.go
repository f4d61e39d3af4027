package child

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of the search for git repositories below the folders that a child may change.
const (
	maxDepth   = 5
	maxFolders = 5000
)

// gitParts are the files of a git repository that name programs, which git would run for the user.
var gitParts = []string{"hooks", "config", "config.worktree"}

// worktreeParts are the parts of any worktree of a repository except the first one.
var worktreeParts = []string{"commondir", "gitdir", "config.worktree"}

// repositories returns the parts of git repositories that are kept: of repositories below Write, and of repositories
// with worktrees that the child works in.
func (c *Confinement) repositories() (parts []string) {
	if c.Trusted {
		return nil
	}
	var own []string
	for _, dir := range c.Repositories {
		if at := gitDir(dir); at != "" {
			own = append(own, at)
		}
	}
	found := slices.Concat(own, FindRepositories(c.Write))
	slices.Sort(found)
	for _, dir := range slices.Compact(found) {
		parts = append(parts, programsOf(dir)...)
		if !slices.Contains(own, dir) {
			parts = append(parts, c.worktreesOf(dir)...)
		}
	}
	return parts
}

// programsOf returns the parts of a repository and of its submodules.
func programsOf(dir string) (parts []string) {
	for _, name := range gitParts {
		parts = append(parts, filepath.Join(dir, name))
	}
	modules, _ := filepath.Glob(filepath.Join(dir, "modules", "*"))
	for _, module := range modules {
		if isRepository(module) {
			parts = append(parts, programsOf(module)...)
		}
	}
	return parts
}

// worktreesOf returns the parts of the worktrees of a repository that are not below Write: in those, git runs for
// the user.
func (c *Confinement) worktreesOf(dir string) (parts []string) {
	entries, _ := filepath.Glob(filepath.Join(dir, "worktrees", "*"))
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(entry, "gitdir"))
		if err != nil || slices.ContainsFunc(c.Write, func(path string) bool { return within(strings.TrimSpace(string(text)), resolve(path)) }) {
			continue
		}
		for _, name := range worktreeParts {
			parts = append(parts, filepath.Join(entry, name))
		}
	}
	return parts
}

// FindRepositories returns the folders with the contents of git repositories below some folders: the nearest ones.
func FindRepositories(folders []string) (found []string) {
	type place struct {
		path  string
		depth int
	}
	var next []place
	for _, path := range folders {
		next = append(next, place{path: path})
	}
	for looked := 0; len(next) > 0 && looked < maxFolders; looked++ {
		at := next[0]
		next = next[1:]
		if isRepository(at.path) {
			found = append(found, at.path)
			continue
		}
		if at.depth > maxDepth {
			continue
		}
		entries, _ := os.ReadDir(at.path) // without the right to list it, it has none that the child finds
		for _, e := range entries {
			if e.Type().IsDir() && e.Name() != "node_modules" && e.Name() != ".workspaces" {
				next = append(next, place{path: filepath.Join(at.path, e.Name()), depth: at.depth + 1})
			}
		}
	}
	return found
}

// isRepository reports whether a folder has the contents of a git repository.
func isRepository(dir string) bool {
	parts := []string{"objects"}
	if filepath.Base(dir) != ".git" {
		parts = append(parts, "refs", "HEAD")
	}
	return !slices.ContainsFunc(parts, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err != nil
	})
}

// gitDir returns the folder with the contents of the repository of a folder, or "".
func gitDir(dir string) string {
	for at := resolve(dir); ; at = filepath.Dir(at) {
		inner := filepath.Join(at, ".git")
		if isRepository(inner) {
			return inner
		}
		if text, err := os.ReadFile(inner); err == nil { // a worktree
			if entry, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: "); ok && filepath.Base(filepath.Dir(entry)) == "worktrees" {
				return filepath.Dir(filepath.Dir(entry))
			}
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}
