package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"orchestrator/wire"
)

// A mark is a note of the orchestrator about a branch, in a file that agents cannot write.
type mark struct {
	Task     string `json:"task,omitempty"`
	Base     string `json:"base,omitempty"`     // the branch or commit where it began
	Began    string `json:"began,omitempty"`    // the commit where it began; "" if an early version has made it
	History  string `json:"history,omitempty"`  // the result of repository.history when it began; "" if an earlier version has made it
	Restarts int    `json:"restarts,omitempty"` // how often the task was tried again on a fresh branch before
	Making   bool   `json:"making,omitempty"`   // its worktree is being added
	Ready    bool   `json:"ready,omitempty"`    // the setup commands have succeeded
	Leaving  string `json:"leaving,omitempty"`  // the branch that all of it is merged into, once its removal has begun
	Unmerged string `json:"unmerged,omitempty"` // its last commit when the queue could not merge it
	Back     string `json:"back,omitempty"`     // the commit that came back from a host last
	Heir     string `json:"heir,omitempty"`     // the task that was to resolve why it was not merged
	Rounds   int    `json:"rounds,omitempty"`   // how many such tasks came before it
	Onto     string `json:"onto,omitempty"`     // the commit that such a task is to merge
}

// A move is one of a branch to a commit.
type move struct {
	Branch string `json:"branch"`
	Commit string `json:"commit"`
}

// A page has the notes about a repository.
type page struct {
	Branches map[string]mark   `json:"branches"`
	Moving   *move             `json:"moving,omitempty"`  // a branch that is being moved
	Awaited  map[string]mark   `json:"awaited,omitempty"` // of branches that tasks will have, by the names of these tasks
	Merged   map[string]string `json:"merged,omitempty"`  // the commit of the last merge into each branch
}

// A book has a page for each repository, by its top folder.
type book struct {
	path     string // of its file; "": it is kept in memory
	readOnly bool

	mu    sync.Mutex
	pages map[string]*page // nil: not read yet
}

// page returns the notes about a repository, or nil. The caller holds the lock.
func (b *book) page(top string) (*page, error) {
	if b.pages != nil || b.path == "" {
		return b.pages[top], nil
	}
	text, err := os.ReadFile(b.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text = []byte("{}")
	case err != nil:
		return nil, err
	}
	var pages map[string]*page // not the pages of the book: a damaged file is read in part
	if err := json.Unmarshal(text, &pages); err != nil {
		return nil, fmt.Errorf("%s, the notes about branches, cannot be read: %w (move it away: then they are made again from the record)", b.path, err)
	}
	b.pages = pages
	return b.pages[top], nil
}

// change edits the notes about a repository, and writes them to the disk. A repository without notes gets the page
// first.
func (b *book) change(top string, first *page, do func(*page)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, err := b.page(top)
	if err != nil {
		return err
	}
	if known != nil {
		first = known
	}
	next := page{Branches: maps.Clone(first.Branches), Moving: first.Moving, Merged: maps.Clone(first.Merged), Awaited: maps.Clone(first.Awaited)}
	do(&next)
	pages := maps.Clone(b.pages)
	if pages == nil {
		pages = make(map[string]*page)
	}
	pages[top] = &next
	if b.path != "" && !b.readOnly {
		err = b.write(pages)
	}
	if err == nil {
		b.pages = pages
	}
	return err
}

// write replaces the file, which is whole even after a crash.
func (b *book) write(pages map[string]*page) error {
	text, err := json.Marshal(pages)
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(b.path), ".workspaces-*")
	if err != nil {
		return err
	}
	defer os.Remove(next.Name())
	_, err = next.Write(append(text, '\n'))
	if err == nil {
		err = next.Sync()
	}
	if err = errors.Join(err, next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), b.path)
}

// noted returns the notes about the repository. They are not modified.
func (r *repository) noted() (page, error) {
	r.book.mu.Lock()
	defer r.book.mu.Unlock()
	p, err := r.book.page(r.top)
	if err != nil || p == nil {
		return page{}, err
	}
	return *p, nil
}

// mark edits the mark of a branch.
func (r *repository) mark(branch string, do func(*mark)) error {
	return r.book.change(r.top, &page{}, func(p *page) {
		if p.Branches == nil {
			p.Branches = make(map[string]mark)
		}
		m := p.Branches[branch]
		if do(&m); m == (mark{}) {
			delete(p.Branches, branch)
		} else {
			p.Branches[branch] = m
		}
	})
}

// unmark forgets a branch.
func (r *repository) unmark(branch string) error {
	return r.mark(branch, func(m *mark) { *m = mark{} })
}

// learn begins the page of a repository with the notes of an earlier version, in the configuration of git.
func (r *repository) learn(ctx context.Context) error {
	r.book.mu.Lock()
	known, err := r.book.page(r.top)
	r.book.mu.Unlock()
	if known != nil || err != nil {
		return err
	}
	text, err := r.git(ctx, "config", "--local", "--get-regexp", `^(branch\..*\.orchestrator-|orchestrator\.advancing$)`)
	if err != nil && !isNo(err) {
		return err
	}
	first := page{Branches: make(map[string]mark)}
	var keys []string
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		keys = append(keys, key)
		if commit, branch, ok := strings.Cut(value, " "); key == "orchestrator.advancing" && ok {
			first.Moving = &move{branch, commit}
		}
		if at := strings.LastIndex(key, ".orchestrator-"); at > 0 {
			branch := strings.TrimPrefix(key[:at], "branch.")
			m := first.Branches[branch]
			m.learn(key[at+len(".orchestrator-"):], value)
			if m != (mark{}) {
				first.Branches[branch] = m
			}
		}
	}
	for branch, m := range first.Branches {
		if m.Leaving == "true" { // as an early version wrote it
			m.Leaving = cmp.Or(m.Base, "HEAD")
			first.Branches[branch] = m
		}
	}
	if err := r.book.change(r.top, &first, func(*page) {}); err != nil || r.book.readOnly {
		return err
	}
	for _, key := range keys {
		_, _ = r.git(ctx, "config", "--local", "--unset-all", key)
	}
	return nil
}

// learn sets a note of an earlier version. Agents could write there, so git must not read the value as an option.
func (m *mark) learn(name, value string) {
	value = strings.TrimLeft(value, "-")
	switch name {
	case "task":
		m.Task = value
	case "base":
		m.Base = value
	case "began":
		if isCommit.MatchString(value) {
			m.Began = value
		}
	case "history":
		m.History = value
	case "restarts":
		m.Restarts, _ = strconv.Atoi(value)
	case "making":
		m.Making = true
	case "ready":
		m.Ready = true
	case "leaving":
		m.Leaving = value
	case "unmerged":
		m.Unmerged = value
	case "back":
		m.Back = value
	case "heir":
		m.Heir = value
	case "rounds":
		m.Rounds, _ = strconv.Atoi(value)
	case "onto":
		if isCommit.MatchString(value) {
			m.Onto = value
		}
	}
}

// remember makes the mark of a branch again from the record, if it is missing: the record may have come from a copy.
func (r *repository) remember(t *wire.Task) error {
	if t.Details == nil || t.Workspace == nil {
		return nil
	}
	w, back := *t.Workspace, ""
	if w.Host != "" { // the branch that has come back is here
		w.Path, back = filepath.Join(r.top, folder, Name(t.ID)), w.Commit
	}
	if !r.mine(w.Path) || !exists(w.Path) {
		return nil
	}
	noted, err := r.noted()
	if err == nil && noted.Branches[w.Branch] == (mark{}) {
		err = r.mark(w.Branch, func(m *mark) {
			*m = mark{Task: t.ID, Base: w.Base, Began: w.Began, Restarts: restarts(t), Back: back}
		})
	}
	return err
}

// moving notes that a branch is being moved.
func (r *repository) moving(to *move) error {
	return r.book.change(r.top, &page{}, func(p *page) { p.Moving = to })
}

// arrived notes the new commit of a branch, or that the branch was not moved if the commit is "".
func (r *repository) arrived(branch, commit string) error {
	return r.book.change(r.top, &page{}, func(p *page) {
		if p.Moving = nil; commit == "" {
			return
		}
		if p.Merged == nil {
			p.Merged = make(map[string]string)
		}
		p.Merged[branch] = commit
	})
}

// await stores the mark of the branch of a task that will be submitted with a name. A nil mark removes it.
func (r *repository) await(task string, what *mark) error {
	return r.book.change(r.top, &page{}, func(p *page) {
		if what == nil {
			delete(p.Awaited, task)
			return
		}
		if p.Awaited == nil {
			p.Awaited = make(map[string]mark)
		}
		p.Awaited[task] = *what
	})
}
