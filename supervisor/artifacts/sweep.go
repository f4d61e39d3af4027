package artifacts

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"orchestrator/supervisor/dispatch"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// claim protects content until Release is called as often.
func (a *Store) claim(hash string) {
	a.claiming.Lock()
	defer a.claiming.Unlock()
	if a.Claims[hash] == nil {
		a.Claims[hash] = new(claim)
	}
	a.Claims[hash].holders++
	if a.recent != nil {
		a.recent[hash] = true
	}
}

// Release ends claims when their request is decided. A file that was made only for requests that
// were refused is removed.
func (a *Store) Release(refs []string, granted bool) {
	a.claiming.Lock()
	defer a.claiming.Unlock()
	for _, ref := range refs {
		hash, _ := delegation.ArtifactHash(ref)
		c := a.Claims[hash]
		if c == nil {
			continue // content that was stored before
		}
		c.granted = c.granted || granted
		if c.holders--; c.holders > 0 {
			continue
		}
		delete(a.Claims, hash)
		if c.made && !c.granted {
			_ = os.Remove(a.Path(hash)) // a remaining file is removed by sweep
		}
	}
}

// Sweep removes files that no record refers to: files of removed records, and files that a killed orchestrator has
// left. It looks only at files that are younger than the log, since older ones may belong to a log that was moved away.
// settle waits until all decisions are recorded.
func (a *Store) Sweep(ctx context.Context, record dispatch.Record, began time.Time, settle func()) (removed int, err error) {
	a.claiming.Lock()
	a.recent = make(map[string]bool)
	for hash := range a.Claims {
		a.recent[hash] = true
	}
	a.claiming.Unlock()
	defer func() {
		a.claiming.Lock()
		a.recent = nil
		a.claiming.Unlock()
	}()
	unused, err := a.files(began)
	if err != nil || len(unused) == 0 {
		return 0, err
	}
	settle()
	for r, err := range record.Find(ctx, wire.Search{Artifacts: true}) {
		if err != nil {
			return 0, err // without all references, no file may be removed
		}
		for _, ref := range artifactRefs.FindAllSubmatch(r.Payload, -1) {
			delete(unused, string(ref[1]))
		}
	}
	for hash := range unused {
		if a.discard(hash) {
			removed++
		}
	}
	return removed, nil
}

// artifactRefs matches the references in a record. It may match other text, which does no harm.
var artifactRefs = regexp.MustCompile(`"sha256:([0-9a-f]{64})`)

// discard removes a file unless a request has referred to it since the sweep began.
func (a *Store) discard(hash string) bool {
	a.claiming.Lock()
	defer a.claiming.Unlock()
	return !a.recent[hash] && os.Remove(a.Path(hash)) == nil
}

// hashName matches the name of a file.
var hashName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// files returns the hashes of the files that are younger than a time.
func (a *Store) files(than time.Time) (map[string]bool, error) {
	found := make(map[string]bool)
	err := filepath.WalkDir(a.Dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() || !hashName.MatchString(entry.Name()) || path != a.Path(entry.Name()) {
			return err
		}
		if info, err := entry.Info(); err == nil && info.ModTime().After(than) {
			found[entry.Name()] = true
		}
		return nil
	})
	return found, err
}
