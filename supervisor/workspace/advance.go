package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"orchestrator/wire"
)

// advance moves a branch. If the branch is checked out, its files change too, unless that would overwrite uncommitted
// work. The cancellation of ctx does not stop advance halfway. It looks up where the branch is checked out, since that
// may have changed after the merge began.
func (m *Manager) advance(ctx context.Context, r *repository, branch, before, commit string) error {
	ctx = context.WithoutCancel(ctx)
	return m.writing(ctx, r, func() error {
		_, places, err := r.list(ctx)
		if err != nil {
			return err
		}
		head, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
		if err == nil && head != before {
			err = errMoved(branch)
		}
		if err == nil {
			err = m.followed(ctx, r, branch, before)
		}
		if err == nil {
			err = r.moving(&move{Branch: branch, Commit: commit})
		}
		if err != nil {
			return err
		}
		place := places[branch]
		if place != "" {
			_, err = r.gitIn(ctx, place, "merge", "--ff-only", "--quiet", commit)
		} else {
			_, err = r.git(ctx, "update-ref", "-m", "merge by orchestrator", "refs/heads/"+branch, commit, before)
		}
		if err != nil {
			commit = ""
			if head, failed := r.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch); failed == nil && head != before {
				err = errMoved(branch)
			} else if place != "" {
				err = inTheWay(err, place)
			}
		}
		return errors.Join(err, r.arrived(branch, commit))
	})
}

// followed logs a warning if a branch has lost the commit of the last merge into it. Agents and people can move a
// branch, and merged work would be lost.
func (m *Manager) followed(ctx context.Context, r *repository, branch, now string) error {
	noted, err := r.noted()
	last := noted.Merged[branch]
	if err != nil || last == "" || last == now {
		return err
	}
	if follows, err := r.has(ctx, "merge-base", "--is-ancestor", last, now); err != nil || !follows { // git may have removed the commit
		m.options.Log.Warn("a branch has lost merged commits: somebody has moved it", "branch", branch, "merged", last, "now", now)
	}
	return nil
}

// errMoved reports that a branch has another commit than when the merge into it began.
func errMoved(branch string) error {
	return &wire.Error{
		Code: wire.CodeConflict, Message: branch + " has moved since, so nothing was merged", Hint: "Ask again",
		Details: map[string]any{"reason": "moved"},
	}
}

// inTheWay returns an error that names the files that keep git from changing those in a folder.
func inTheWay(err error, place string) error {
	var names []string
	if f, ok := errors.AsType[*failed](err); ok {
		if strings.Contains(string(f.output), "index.lock'") { // the rest depends on the language
			return &wire.Error{
				Code: wire.CodeConflict, Message: "git cannot lock the index of " + place + ": another git is running there, or was killed",
				Hint: "Try again. If no git is running there, remove index.lock", Details: map[string]any{"reason": "locked"},
			}
		}
		for line := range strings.Lines(string(f.output)) {
			if name, ok := strings.CutPrefix(line, "\t"); ok {
				names = append(names, strings.TrimSpace(name))
			}
		}
	}
	if names == nil {
		return err
	}
	return &wire.Error{
		Code: wire.CodeConflict, Message: fmt.Sprintf("it would overwrite uncommitted changes in %s: %s", place, some(names)),
		Hint: "Commit them there, or move them away", Details: map[string]any{"reason": "in_the_way", "files": names},
	}
}

// resume repairs a repository after git was killed in advance. It removes the locks of git. Files that already match
// the new commit are added to the index; otherwise they would look like uncommitted changes. A partly written file is
// removed and written again.
const resume = `for at in index HEAD "refs/heads/$2"; do rm -f "$(git rev-parse --path-format=absolute --git-path "$at").lock"; done
test -n "$3" || exit 0
index=$(git rev-parse --path-format=absolute --git-path index)
own=$index.orchestrator-$$
trap 'rm -f "$own" "$own.lock"' EXIT
git diff --name-only -z --no-renames HEAD "$1" | xargs -0 -r -n 1 sh -c '
export GIT_LITERAL_PATHSPECS=1
test -e "$4" || test -L "$4" || exit 0
cp "$2" "$3"
export GIT_INDEX_FILE="$3"
git add --all --force -- "$4"
if git diff --cached --quiet "$1" -- "$4"; then
	unset GIT_INDEX_FILE
	git add --all --force -- "$4"
elif test -f "$4" && ! test -L "$4" && git cat-file blob "$1:$4" 2>/dev/null | head -c "$(wc -c <"$4")" | cmp -s - "$4"; then
	rm -f -- "$4"
fi' sh "$1" "$index" "$own"`

// finish ends an advance during which the orchestrator was killed, unless the branch has other commits since.
func (m *Manager) finish(ctx context.Context, r *repository, places map[string]string) error {
	if noted, err := r.noted(); noted.Moving == nil {
		return err
	}
	return m.writing(ctx, r, func() error { return m.finishAlone(ctx, r, places) })
}

// finishAlone is finish while no other merge moves a branch.
func (m *Manager) finishAlone(ctx context.Context, r *repository, places map[string]string) error {
	noted, err := r.noted()
	if noted.Moving == nil {
		return err
	}
	commit, branch := noted.Moving.Commit, noted.Moving.Branch
	place := places[branch]
	follows := false
	if err == nil && place != "" {
		follows, err = r.has(ctx, "merge-base", "--is-ancestor", "refs/heads/"+branch, commit)
	}
	if err == nil {
		files := ""
		if follows { // otherwise a person has left them
			files = "files"
		}
		_, err = r.runIn(ctx, command{argv: []string{"sh", "-c", resume, "sh", commit, branch, files}, dir: cmp.Or(place, r.top)})
	}
	if err == nil && follows {
		if _, err = r.gitIn(ctx, place, "merge", "--ff-only", "--quiet", commit); err != nil {
			return inTheWay(err, place) // when it has gone, the next call goes on
		}
	}
	if err != nil || !follows {
		commit = ""
	}
	return errors.Join(err, r.arrived(branch, commit))
}
