package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// folder holds the worktrees of tasks, in the top folder of a repository. Git ignores it.
const folder = ".workspaces"

// A repository runs git for an agent.
type repository struct {
	agent *Agent
	run   runner
	top   string // its first worktree
}

// A failed is a command that has ended with another code than 0.
type failed struct {
	argv   []string
	how    string // such as "exit 1"
	output []byte
}

func (f *failed) Error() string {
	said := lastLines(f.output, 12)
	if said == "" {
		return fmt.Sprintf("%s: %s", words(f.argv), f.how)
	}
	return fmt.Sprintf("%s: %s\n%s", words(f.argv), f.how, said)
}

// open finds the repository of an agent.
func open(ctx context.Context, run runner, a *Agent) (*repository, error) {
	r := &repository{agent: a, run: run, top: a.Repository}
	common, err := r.git(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return nil, err
	}
	if filepath.Base(common) != ".git" {
		return nil, fmt.Errorf("%s is a bare repository or a submodule, which have no place for worktrees", a.Repository)
	}
	r.top = filepath.Dir(common)
	return r, nil
}

// git runs git in the top folder and returns what it prints, without the last line end.
func (r *repository) git(ctx context.Context, args ...string) (string, error) {
	return r.gitIn(ctx, r.top, args...)
}

// gitIn is git in another folder. Nothing of the repository is executed, except its filters.
func (r *repository) gitIn(ctx context.Context, dir string, args ...string) (string, error) {
	argv := append([]string{"git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false", "-c", "gc.auto=0"}, args...)
	out, err := r.run(ctx, r.agent, command{argv: argv, dir: dir})
	if f, ok := errors.AsType[*failed](err); ok {
		f.argv = append([]string{"git"}, args...)
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// has reports whether git succeeds.
func (r *repository) has(ctx context.Context, args ...string) (bool, error) {
	_, err := r.git(ctx, args...)
	if _, ok := errors.AsType[*failed](err); ok {
		return false, nil
	}
	return err == nil, err
}

// A worktree is one of a task.
type worktree struct {
	path, branch, base, task string
}

// mine reports whether a worktree is in the folder for those of tasks.
func (r *repository) mine(path string) bool {
	return filepath.Dir(path) == filepath.Join(r.top, folder)
}

// list returns the worktrees of tasks, and where each branch is checked out.
func (r *repository) list(ctx context.Context) (all []worktree, places map[string]string, err error) {
	text, err := r.git(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return nil, nil, err
	}
	places = make(map[string]string)
	for entry := range strings.SplitSeq(text, "\n\n") {
		var w worktree
		for line := range strings.SplitSeq(entry, "\n") {
			if path, ok := strings.CutPrefix(line, "worktree "); ok {
				w.path = path
			}
			if branch, ok := strings.CutPrefix(line, "branch refs/heads/"); ok {
				w.branch = branch
			}
		}
		places[w.branch] = w.path
		if !r.mine(w.path) || w.branch == "" {
			continue
		}
		if w.task, w.base, err = r.marks(ctx, w.branch); err != nil {
			return nil, nil, err
		}
		if w.task != "" {
			all = append(all, w)
		}
	}
	return all, places, nil
}

// marks returns the task of a branch, and the branch at which it began.
func (r *repository) marks(ctx context.Context, branch string) (task, base string, err error) {
	text, err := r.git(ctx, "config", "--local", "--get-regexp", `^branch\..*\.orchestrator-`)
	if _, ok := errors.AsType[*failed](err); ok {
		return "", "", nil // there is none
	}
	for line := range strings.SplitSeq(text, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "branch." + branch + ".orchestrator-task":
			task = value
		case "branch." + branch + ".orchestrator-base":
			base = value
		}
	}
	return task, base, err
}

// make returns the worktree of a task. It makes it if it is not there, at the branch that the task had before.
func (r *repository) make(ctx context.Context, task string) (w worktree, made bool, err error) {
	w = worktree{path: filepath.Join(r.top, folder, short(task)), branch: r.agent.Branch(task), task: task}
	all, _, err := r.list(ctx)
	if err != nil {
		return w, false, err
	}
	for _, have := range all {
		if have.task == task && r.there(ctx, have.path) {
			return have, false, nil
		}
	}
	if _, err := r.git(ctx, "worktree", "prune"); err != nil { // of those that somebody else has removed
		return w, false, err
	}
	there, err := r.has(ctx, "show-ref", "--verify", "--quiet", "refs/heads/"+w.branch)
	if err != nil {
		return w, false, err
	}
	if there {
		var of string
		if of, w.base, err = r.marks(ctx, w.branch); err == nil && of != task {
			err = fmt.Errorf("there is a branch %s already, and it is not of this task", w.branch)
		}
		if err == nil {
			_, err = r.git(ctx, "worktree", "add", w.path, w.branch)
		}
		return w, true, err
	}
	if w.base, err = r.base(ctx); err != nil {
		return w, false, err
	}
	return w, true, r.begin(ctx, w)
}

// there reports whether a worktree is where git thinks, because somebody may have removed the folder.
func (r *repository) there(ctx context.Context, path string) bool {
	at, err := r.gitIn(ctx, path, "rev-parse", "--show-toplevel")
	return err == nil && at == path
}

// base returns the branch or commit that new branches begin at.
func (r *repository) base(ctx context.Context) (string, error) {
	base := r.agent.Base
	if base == "" {
		var err error
		if base, err = r.gitIn(ctx, r.agent.Repository, "rev-parse", "--abbrev-ref", "HEAD"); err == nil && base == "HEAD" {
			base, err = r.gitIn(ctx, r.agent.Repository, "rev-parse", "HEAD")
		}
		if err != nil {
			return "", fmt.Errorf("the repository has no commit to begin at: %w", err)
		}
	}
	if _, err := r.git(ctx, "rev-parse", "--verify", "--quiet", base+"^{commit}"); err != nil {
		return "", fmt.Errorf("there is no commit %s to begin at", base)
	}
	return base, nil
}

// begin makes a branch and its worktree. What belongs to the branch is noted first, so that a crash leaves no
// branch of an unknown task.
func (r *repository) begin(ctx context.Context, w worktree) error {
	exclude, err := r.git(ctx, "rev-parse", "--path-format=absolute", "--git-path", "info/exclude")
	if err != nil {
		return err
	}
	ignore := `mkdir -p "${1%/*}" && { grep -qsxF "$2" "$1" || printf '%s\n' "$2" >>"$1"; }`
	if _, err := r.run(ctx, r.agent, command{argv: []string{"sh", "-c", ignore, "sh", exclude, "/" + folder + "/"}, dir: r.top}); err != nil {
		return err
	}
	for _, mark := range [][2]string{{"task", w.task}, {"base", w.base}} {
		if _, err := r.git(ctx, "config", "--local", "branch."+w.branch+".orchestrator-"+mark[0], mark[1]); err != nil {
			return err
		}
	}
	_, err = r.git(ctx, "worktree", "add", "-b", w.branch, w.path, cmp.Or(w.base, "HEAD"))
	return err
}

// changes returns the names of files with changes that are not committed.
func (r *repository) changes(ctx context.Context, path string) ([]string, error) {
	text, err := r.gitIn(ctx, path, "status", "--porcelain", "--untracked-files=all")
	var names []string
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) > 3 {
			names = append(names, line[3:])
		}
	}
	return names, err
}

// short returns the beginning of an id, which is the name of a folder.
func short(id string) string { return id[:min(len(id), 8)] }
