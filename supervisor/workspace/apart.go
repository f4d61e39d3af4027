package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/wire"
)

// room returns the path of a worktree for a merge. It is outside the reach of confined agents. A sandbox that another
// program makes may not show that folder: then it is beside the worktrees of tasks.
func (m *Manager) room(ctx context.Context, r *repository, name string) (string, error) {
	beside := filepath.Join(r.top, folder, name)
	if m.options.Notes != "" { // another team may make a merge of the same name
		sum := sha256.Sum256([]byte(m.options.Notes))
		beside += "-" + hex.EncodeToString(sum[:4])
	}
	for _, a := range m.configured().Agents {
		if a.Wrapped || m.options.Apart == nil {
			return beside, nil
		}
	}
	var spec child.Spec
	if err := r.agent.Fill(ctx, &spec); err != nil {
		return "", err
	}
	dir, err := m.options.Apart(spec.User)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(r.top)) // two repositories may have branches of the same name
	at := filepath.Join(dir, name+"-"+hex.EncodeToString(sum[:4]))
	if err = child.RemoveAll(at); err == nil { // of a merge that was killed
		err = os.Mkdir(at, 0o700)
	}
	if err == nil && spec.User != nil {
		err = os.Chown(at, spec.User.UID, spec.User.GID)
	}
	return at, err
}

// apart calls do with a new worktree for a merge, which is removed then.
func (m *Manager) apart(ctx context.Context, r *repository, name, commit string, do func(at string) error) error {
	at, err := m.room(ctx, r, "merge-"+name)
	if err != nil {
		return err
	}
	if !below(at, r.top) {
		r.lent = filepath.Dir(at)
		defer func() { r.lent = "" }()
	}
	drop := func(ctx context.Context) error {
		return m.writing(ctx, r, func() error {
			_, _ = r.git(ctx, "worktree", "remove", "--force", "--force", at)
			return errors.Join(child.RemoveAll(at), ctx.Err()) // git may not know it
		})
	}
	err = m.writing(ctx, r, func() error {
		_, _ = r.git(ctx, "worktree", "remove", "--force", "--force", at) // of a merge that was killed
		_, _ = r.git(ctx, "worktree", "unlock", at)                       // git locks it while it adds it
		_, _ = r.git(ctx, "worktree", "prune")
		_, err := r.git(ctx, "worktree", "add", "--force", "--force", "--detach", at, commit)
		return err
	})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = drop(ctx)
	}()
	return do(at)
}

// verifyMerged runs the verify commands of agents on the files of a merge, each once. The files must match its commit
// before and after.
func (m *Manager) verifyMerged(ctx context.Context, r *repository, agents []*Agent, at, commit string) error {
	if !slices.ContainsFunc(agents, func(a *Agent) bool { return len(a.Verify) > 0 }) {
		return nil
	}
	if err := r.same(ctx, at, commit, "before"); err != nil {
		return err
	}
	if err := m.verifyEach(ctx, agents, at); err != nil {
		return err
	}
	return r.same(ctx, at, commit, "after")
}

// verifyEach runs the verify commands of agents, each once.
func (m *Manager) verifyEach(ctx context.Context, agents []*Agent, at string) error {
	ran := make(map[string]bool)
	for _, a := range agents {
		for _, argv := range a.Verify {
			if key := fmt.Sprintf("%q", argv); ran[key] {
				continue
			} else {
				ran[key] = true
			}
			_, err := m.each(ctx, a, [][]string{argv}, at, agents...)
			if err != nil && ctx.Err() == nil && isOfCommand(err) {
				err = &wire.Error{Code: wire.CodeConflict, Message: "the merged files are not verified, so nothing was merged: " + err.Error(), Details: map[string]any{"reason": "not_verified"}}
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// isOfCommand reports whether an error comes from a command that has failed, has taken too long, or is missing.
func isOfCommand(err error) bool {
	_, ended := errors.AsType[*failed](err)
	return ended || errors.Is(err, errSlow) || errors.Is(err, fs.ErrNotExist)
}
