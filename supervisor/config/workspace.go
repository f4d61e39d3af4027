package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Work configures the services of the orchestrator for tasks of an agent or of a session, or for the task of a task
// block.
type Work struct {
	Workspace *Workspace // nil: the workspace of the task's agent; if it has none, its Dir
	Verify    [][]string // commands that run before a task is done
}

// A Workspace configures a git worktree for each task, with a separate branch.
type Workspace struct {
	Worktree string     // a folder of the repository, absolute
	Branch   string     // TaskID and TaskShort stand for the ids of the task
	Base     string     // the branch or commit to begin at; "": the HEAD of Worktree
	Setup    [][]string // commands that run once in a new worktree
	Keep     string     // "unmerged" or "all": which worktrees prune leaves
	Filters  bool       // git of the orchestrator runs the filters of the repository
}

// Merge configures merges of the branches of done tasks.
type Merge struct {
	Queue bool // they are merged one after another; otherwise a person merges them
}

// Placeholders in Workspace.Branch for the id of a task and its short form.
const (
	TaskID    = "\x01id\x01"
	TaskShort = "\x01short\x01"
)

// workspace returns the reader of a workspace block.
func (r *reader) workspace(at string, into **Workspace, sc *scope) child {
	return child{kind: "workspace", read: func(b *hcl.Block) {
		w := new(Workspace)
		ofTask := sc.with("task", cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(TaskID), "short": cty.StringVal(TaskShort)}))
		set := r.readFresh(b.Body, ofTask, section{title: "Block workspace", path: at + ".workspace", attributes: []attribute{
			attr("worktree", &w.Worktree, repository),
			attr("branch", &w.Branch, branch).initially("task/" + TaskShort),
			attr("base", &w.Base, text),
			attr("keep", &w.Keep, choice("unmerged", "all")).initially("unmerged"),
			attr("setup", &w.Setup, argvs),
			attr("filters", &w.Filters, truth),
		}})
		if _, ok := set["worktree"]; !ok {
			r.missing(b, "A workspace needs worktree: a folder in the git repository of its tasks.", `Add one, for example worktree = ".".`)
			return
		}
		*into = w
	}}
}

// repository reads a folder of a git repository.
func repository(into *string, v value) {
	var dir string
	if folder(false)(&dir, v); dir == "" {
		return
	}
	if checkout(dir) != "" {
		*into = dir
		return
	}
	v.reject("not-a-repository", "Not a git repository", v.quoted()+" is not in a git repository, and each task needs a git worktree.", "Run git init there, and commit the files. Or remove the block: then all tasks share the agent's folder.")
}

// checkout returns the folder with the git checkout that dir is in, or "".
func checkout(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// repository returns the folder that holds the repository of the workspaces. A worktree of git has a file that names it.
func (w *Workspace) repository() string {
	top := checkout(w.Worktree)
	text, _ := os.ReadFile(filepath.Join(top, ".git")) // not a folder
	if name, linked := strings.CutPrefix(string(text), "gitdir: "); linked {
		if main, _, of := strings.Cut(name, "/.git/worktrees/"); of {
			return main
		}
	}
	return top
}

// branch reads the name of the branch of a task.
func branch(into *string, v value) {
	s, ok := v.asText()
	name := strings.NewReplacer(TaskID, "id", TaskShort, "id").Replace(s)
	switch {
	case !ok:
	case name == s:
		v.reject("bad-branch", "Bad branch", fmt.Sprintf("All tasks would share the branch %s.", v.quoted()), `Include the task, for example "task/${task.short}".`)
	case strings.ContainsAny(name, " \t\n~^:?*[\\\x01\x7f") || strings.Contains(name, "..") || strings.Contains(name, "//") || strings.Contains(name, "@{") ||
		strings.HasPrefix(name, "-") || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.HasSuffix(name, ".") || strings.HasSuffix(name, ".lock"):
		v.reject("bad-branch", "Bad branch", v.quoted()+" is not a valid name of a branch.", "")
	default:
		*into = s
	}
}

// argvs reads a list of commands.
func argvs(into *[][]string, v value) {
	items, ok := v.items("a list of commands, such as [[\"go\", \"test\", \"./...\"]]")
	if !ok {
		return
	}
	var all [][]string
	for _, item := range items {
		var one []string
		if argv(&one, item); one == nil {
			return
		}
		all = append(all, one)
	}
	*into = all
}

// settleVerify checks attributes that verify commands exclude. on_exit becomes "requeue", because a task with verify
// commands must not become done when its agent exits.
func (r *reader) settleVerify(a *Agent, set map[string]hcl.Range) {
	if len(a.Verify) > 0 && a.OnExit == "auto" {
		if at, ok := set["on_exit"]; ok {
			r.report(at, Problem{
				Code: "config/verify-on-exit", Summary: "Done without verification",
				Detail: "on_exit = \"auto\" completes a task when its agent exits with 0, but verify must check it first.",
				Hint:   "Remove on_exit: then the task is tried again.",
			})
		}
		a.OnExit = "requeue"
	}
}
