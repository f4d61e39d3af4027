package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"orchestrator/supervisor/child"
	"orchestrator/wire"
)

// folder holds the worktrees of tasks, in the top folder of a repository. Git ignores it.
const folder = ".workspaces"

// A repository runs git for an agent.
type repository struct {
	agent    *Agent
	run      runner
	top      string      // its first worktree
	common   string      // its folder .git
	settings [][2]string // override the settings of the repository
	book     *book
	lent     string // a folder that is closed to agents, for the files of a merge; "": none
}

// A failed is a command that has ended with another code than 0.
type failed struct {
	argv   []string
	code   int
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

// repository finds the repository of an agent.
func (m *Manager) repository(ctx context.Context, a *Agent) (*repository, error) {
	r := &repository{agent: a, run: m.run, book: m.book, top: a.Repository}
	if _, err := os.Stat(a.Repository); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the folder %s is gone", a.Repository)
	}
	found, err := m.run(ctx, a, command{argv: []string{"git", "rev-parse", "--path-format=absolute", "--git-common-dir"}, dir: a.Repository, git: new(gitRun)})
	if err != nil {
		return nil, err
	}
	r.common = strings.TrimSuffix(string(found), "\n")
	if filepath.Base(r.common) != ".git" {
		return nil, fmt.Errorf("%s is a bare repository or a submodule, which have no place for worktrees", a.Repository)
	}
	r.top = filepath.Dir(r.common)
	if r.settings, err = r.foreign(ctx, []string{"GIT_DIR=" + r.common}); err == nil {
		err = r.learn(ctx)
	}
	return r, err
}

// git runs git in the top folder and returns its output without the last line end.
func (r *repository) git(ctx context.Context, args ...string) (string, error) {
	return r.gitIn(ctx, r.top, args...)
}

// gitIn is git in the top folder of a worktree, or below the folder that an agent names.
func (r *repository) gitIn(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := r.runIn(ctx, command{argv: append([]string{"git"}, args...), dir: dir})
	return strings.TrimSuffix(string(out), "\n"), err
}

// runIn runs git, or a script that runs git, in a worktree.
func (r *repository) runIn(ctx context.Context, c command) (out []byte, err error) {
	if c.git, err = r.at(ctx, c.dir); err != nil {
		return nil, err
	}
	return r.run(ctx, r.agent, c)
}

// has reports whether git answers yes, and not no.
func (r *repository) has(ctx context.Context, args ...string) (bool, error) {
	_, err := r.git(ctx, args...)
	if isNo(err) {
		return false, nil
	}
	return err == nil, err
}

// isNo reports whether git answers no. Anything else went wrong.
func isNo(err error) bool {
	f, ok := errors.AsType[*failed](err)
	return ok && f.code == 1
}

// busy begins a change of the repository: it writes the process id of the orchestrator to a file. If the file has the
// id of another running process, the orchestrator of another team makes a change: busy waits up to 10 seconds, and no
// longer, because an agent can write the file. If that process does not run, or had the same id as this one, an
// orchestrator was killed during a change. Then busy removes locks of git, and the entry of a worktree that git had
// begun to add.
const busy = `cd "$(git rev-parse --git-common-dir)"
left=100
until (set -C && echo "$1 $2" >orchestrator-busy) 2>/dev/null; do
	before= of=
	read -r before of 2>/dev/null <orchestrator-busy
	test "$before $of" != "$1 $2" || exit 0
	if test "$before" != "$1" && { kill -0 "$before" || test -d "/proc/$before"; } 2>/dev/null; then
		test -n "$before" || left=$((left - 20)) # nobody has written it
		left=$((left - 1))
		test $left -gt 0 || { echo "$1 $2" >orchestrator-busy; exit; }
		sleep 0.1
		continue
	fi
	rm -f config.lock HEAD.lock index.lock packed-refs.lock
	find refs/heads -name "*.lock" -exec rm -f {} +
	for at in worktrees/*/; do test "$at" = worktrees/orchestrator/ || test ! -d "$at" || test -s "$at/commondir" -a -s "$at/gitdir" -a -s "$at/HEAD" || rm -rf "$at"; done
	rm -f orchestrator-busy || exit
done`

// prepare makes the folders that worktrees need, before a confined agent starts, because folders that are made later
// are closed to it. The entry in the folder worktrees keeps git from removing the folder.
const prepare = `mkdir -p "$1" "$2/worktrees/orchestrator" "$2/logs/refs/heads" "$2/refs/heads"
test -e "$2/worktrees/orchestrator/locked" || echo "orchestrator needs the folder above, for confined agents" >"$2/worktrees/orchestrator/locked"`

// prepare makes a repository ready for a confined agent.
func (r *repository) prepare(ctx context.Context) error {
	var spec child.Spec
	if err := r.agent.Fill(ctx, &spec); err != nil || spec.Confine == nil {
		return err
	}
	_, err := r.runIn(ctx, command{argv: []string{"sh", "-c", prepare, "sh", filepath.Join(r.top, folder), r.common}, dir: r.top})
	return err
}

// process tells this process from an earlier one with the same id.
var process = uuid.NewString()

// writes begins a change of the repository. The returned function ends it. Changes must not overlap.
func (r *repository) writes(ctx context.Context) (done func(), err error) {
	argv := []string{"sh", "-c", busy, "sh", strconv.Itoa(os.Getpid()), process}
	if _, err := r.runIn(ctx, command{argv: argv, dir: r.top}); err != nil {
		return nil, err
	}
	return func() {
		argv := []string{"rm", "-f", filepath.Join(r.common, "orchestrator-busy")}
		_, _ = r.runIn(context.WithoutCancel(ctx), command{argv: argv, dir: r.top})
	}, nil
}

// A worktree is one of a task.
type worktree struct {
	mark
	path, branch string
	half         bool // git was killed while it added it, before its agent knew of it
}

// mine reports whether a worktree is in the folder for worktrees of tasks.
func (r *repository) mine(path string) bool {
	return filepath.Dir(path) == filepath.Join(r.top, folder)
}

// list returns the worktrees of tasks, and where each branch is checked out.
func (r *repository) list(ctx context.Context) (all []worktree, places map[string]string, err error) {
	text, err := r.git(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return nil, nil, err
	}
	marks, err := r.marks()
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
			w.half = w.half || line == "locked initializing"
		}
		places[w.branch] = w.path
		if !r.mine(w.path) || w.branch == "" {
			continue
		}
		mark, known := marks[w.branch]
		if !known {
			mark = r.stranded(ctx, w)
		}
		if mark.Task != "" {
			mark.path, mark.half = w.path, mark.half || w.half
			all = append(all, mark)
		}
	}
	return all, places, nil
}

// stranded returns a worktree with a new mark, if its notes are lost with the state directory. Its task is the name of
// its folder.
func (r *repository) stranded(ctx context.Context, w worktree) worktree {
	name := filepath.Base(w.path)
	if w.half || !strings.HasSuffix(w.branch, name) || strings.Contains(name, asideMark) {
		return w
	}
	base, err := r.base(ctx)
	if err != nil {
		return w
	}
	if began, err := r.git(ctx, "merge-base", r.ref(ctx, base), "refs/heads/"+w.branch); err == nil {
		w.mark = mark{Task: name, Base: base, Began: began}
	}
	return w
}

// marks returns the notes about the branches of tasks.
func (r *repository) marks() (map[string]worktree, error) {
	noted, err := r.noted()
	marks := make(map[string]worktree, len(noted.Branches))
	for branch, m := range noted.Branches {
		marks[branch] = worktree{mark: m, branch: branch, half: m.Making}
	}
	return marks, err
}

// make returns the worktree of a task. It makes it if it is not there, at the branch that the task had before, or else at
// a commit.
func (r *repository) make(ctx context.Context, t *wire.Task, base, commit string) (w worktree, made bool, err error) {
	task := t.ID
	w = worktree{path: filepath.Join(r.top, folder, Name(task)), branch: r.agent.Branch(task), mark: mark{Task: task, Restarts: restarts(t)}}
	all, _, err := r.list(ctx)
	if err != nil {
		return w, false, err
	}
	for _, have := range all {
		if have.Task != task || have.Restarts < w.Restarts {
			continue
		}
		if have.half {
			changed, err := r.touched(ctx, have)
			if err == nil && !changed {
				_, err = r.git(ctx, "worktree", "remove", "--force", "--force", have.path)
			}
			if err != nil {
				return w, false, err
			}
		}
		if _, err := r.entry(have.path); errors.Is(err, errSwapped) && exists(filepath.Join(have.path, ".git")) {
			return w, false, err // its files stay as they are
		}
		if r.there(ctx, have.path) {
			return have, false, nil
		}
	}
	marks, err := r.marks()
	if err != nil {
		return w, false, err
	}
	if there, err := r.switched(ctx, t, &w, marks); there || err != nil {
		return w, false, err
	}
	if err := r.makeRoom(ctx, w, marks[w.branch]); err != nil {
		return w, false, err
	}
	if _, err := r.git(ctx, "worktree", "prune"); err != nil { // of worktrees without a folder: it was removed by hand
		return w, false, err
	}
	there, err := r.has(ctx, "show-ref", "--verify", "--quiet", "refs/heads/"+w.branch)
	if err != nil {
		return w, false, err
	}
	if there {
		mark := marks[w.branch]
		if mark.Task != task {
			return w, false, fmt.Errorf("the branch %s already exists, and belongs to another task", w.branch)
		}
		mark.path, mark.half = w.path, false
		return mark, true, r.add(ctx, mark.branch, mark.path, mark.branch)
	}
	if commit == "" {
		return w, false, errUnborn
	}
	w.Base, w.Began = base, commit
	return w, true, r.begin(ctx, w)
}

// makeRoom moves a folder aside that git does not know, from the place of a worktree. It removes the rest of an
// interrupted addition.
func (r *repository) makeRoom(ctx context.Context, w, mark worktree) error {
	if _, err := os.Lstat(w.path); err != nil {
		return nil
	}
	_, _ = r.git(ctx, "worktree", "unlock", w.path) // git locks it while it adds it
	argv := []string{"mv", w.path, fmt.Sprintf("%s-aside-%d", w.path, time.Now().Unix())}
	if mark.half {
		mark.path = w.path
		if changed, err := r.touched(ctx, mark); err == nil && !changed {
			argv = []string{"rm", "-rf", w.path}
		}
	}
	_, err := r.runIn(ctx, command{argv: argv, dir: r.top})
	return err
}

// switched returns an error unless the folder of a task has the branch of the task checked out. It changes no files
// then, because the agent may have work there. If only the marks of the branch are gone, it sets them again and reports
// true.
func (r *repository) switched(ctx context.Context, t *wire.Task, w *worktree, marks map[string]worktree) (bool, error) {
	if !r.there(ctx, w.path) {
		return false, nil
	}
	branch, err := r.gitIn(ctx, w.path, "branch", "--show-current")
	if err == nil && branch == "" && marks[w.branch].half {
		if begun, err := r.gitIn(ctx, w.path, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); begun == "" && isNo(err) {
			return false, nil // git was killed before it had noted the branch
		}
	}
	switch {
	case err != nil:
		return false, err
	case branch != w.branch:
		return false, fmt.Errorf("%s has %s checked out, and not the branch %s of the task: run git switch %[3]s in this folder, and merge the commits from elsewhere",
			w.path, cmp.Or(branch, "no branch"), w.branch)
	case marks[branch].Task != "":
		return false, nil // it is of another task, which is an error elsewhere
	}
	base, err := r.base(ctx)
	if err != nil {
		return false, err
	}
	began, err := r.gitIn(ctx, w.path, "merge-base", r.ref(ctx, base), "HEAD")
	if err != nil {
		return false, err
	}
	w.Base, w.Began = base, began
	return true, r.note(ctx, branch, w.mark)
}

// note stores the mark of a new branch, with the history of the repository as it begins.
func (r *repository) note(ctx context.Context, branch string, now mark) error {
	all, err := r.history(ctx)
	if err != nil {
		return err
	}
	now.History = cmp.Or(strings.Join(all, " "), unaltered)
	return r.mark(branch, func(m *mark) { *m = now })
}

// there reports whether a worktree still exists. Its folder may have been removed by hand.
func (r *repository) there(ctx context.Context, path string) bool {
	at, err := r.gitIn(ctx, path, "rev-parse", "--show-toplevel")
	return err == nil && at == path
}

// ref returns a branch as git calls it beyond doubt: an agent can make a tag of the same name. Another name stays.
func (r *repository) ref(ctx context.Context, name string) string {
	if is, err := r.has(ctx, "show-ref", "--verify", "--quiet", "refs/heads/"+name); is && err == nil {
		return "refs/heads/" + name
	}
	return name
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
	if _, err := r.git(ctx, "rev-parse", "--verify", "--quiet", r.ref(ctx, base)+"^{commit}"); err != nil {
		return "", fmt.Errorf("the commit %s to begin at does not exist", base)
	}
	return base, nil
}

// begin makes a branch and its worktree. The branch is noted first, so that a crash leaves none of an unknown task.
func (r *repository) begin(ctx context.Context, w worktree) error {
	if err := r.ignore(ctx); err != nil {
		return err
	}
	w.Making = true
	if err := r.note(ctx, w.branch, w.mark); err != nil {
		return err
	}
	err := r.add(ctx, w.branch, "-b", w.branch, w.path, w.Began)
	if err != nil {
		if there, unsure := r.has(ctx, "show-ref", "--verify", "--quiet", "refs/heads/"+w.branch); unsure == nil && !there {
			_ = r.unmark(w.branch)
		}
	}
	return err
}

// ignore has git ignore the folder of the worktrees.
func (r *repository) ignore(ctx context.Context) error {
	exclude, err := r.git(ctx, "rev-parse", "--path-format=absolute", "--git-path", "info/exclude")
	if err != nil {
		return err
	}
	add := `mkdir -p "${1%/*}" && { grep -qsxF "$2" "$1" || { test -z "$(tail -c 1 "$1" 2>/dev/null)" || echo; printf '%s\n' "$2"; } >>"$1"; }`
	_, err = r.runIn(ctx, command{argv: []string{"sh", "-c", add, "sh", exclude, "/" + folder + "/"}, dir: r.top})
	return err
}

// add adds a worktree with a branch. As long as that is not complete, the branch is marked.
func (r *repository) add(ctx context.Context, branch string, args ...string) error {
	err := r.mark(branch, func(m *mark) { m.Making = true })
	if err == nil {
		_, err = r.git(ctx, append([]string{"worktree", "add"}, args...)...)
	}
	if err == nil {
		err = r.mark(branch, func(m *mark) { m.Making = false })
	}
	return err
}

// unlike prints the files in a folder that differ from a branch, or from a commit if the branch is missing. Missing and
// ignored files do not count. The folder need not be a worktree.
const unlike = `set -e
cd "$1"
GIT_DIR=$3
GIT_WORK_TREE=$1
GIT_INDEX_FILE=$(mktemp)
export GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
trap 'rm -f "$GIT_INDEX_FILE"' EXIT
git read-tree "$(git rev-parse --verify --quiet "refs/heads/$2" || echo "$4")"
git update-index -q --refresh >/dev/null || :
git diff-files --name-status --diff-filter=d
git ls-files --others --exclude-standard`

// touched reports whether a folder has other contents than a worktree just after its addition or during its removal.
func (r *repository) touched(ctx context.Context, w worktree) (bool, error) {
	if _, err := os.Lstat(w.path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	argv := []string{"sh", "-c", unlike, "sh", w.path, w.branch, r.common, w.Began}
	files, err := r.runIn(ctx, command{argv: argv, dir: r.top})
	return len(files) > 0, err
}

// moved reports whether a branch has had a commit since it began.
func (r *repository) moved(ctx context.Context, w worktree) (bool, error) {
	if w.Began == "" {
		moves, err := r.git(ctx, "reflog", "show", "--format=%H", "refs/heads/"+w.branch)
		return strings.Contains(moves, "\n"), err
	}
	head, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+w.branch)
	return head != w.Began, err
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

// Name returns the name of the folder of a task, which also may be a part of the name of a branch: the beginning of a
// UUID, or the usable letters of another id with a hash that distinguishes similar ids.
func Name(id string) string {
	if uuid.Validate(id) == nil {
		return id[:8]
	}
	const maxName = 24
	plain := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '-'
	}, id)
	sum := sha256.Sum256([]byte(id))
	return strings.TrimLeft(plain[:min(len(plain), maxName)]+"-", "-") + hex.EncodeToString(sum[:4])
}
