package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"orchestrator/supervisor/dispatch"
	"orchestrator/wire"
)

// Objects keep artifacts for several hubs, by the SHA-256 of their content. The folder of each hub is then
// a cache. A missing object is an fs.ErrNotExist.
type Objects interface {
	PutObject(ctx context.Context, hash string, content []byte) error
	GetObject(ctx context.Context, hash string) ([]byte, error)
}

// fetchTime is how long a reader waits for an object.
const fetchTime = 10 * time.Second

// fetch returns content from the objects, and stores it in the folder. here is the error of reading it there.
func (a *Store) fetch(ctx context.Context, hash string, here error) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	text, err := a.Objects.GetObject(ctx, hash)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("it is neither here nor in the shared store: %w", here)
	case err != nil:
		return "", fmt.Errorf("%w; reading it from the shared store: %w", here, err)
	case HashOf(text) != hash:
		return "", fmt.Errorf("%w; the shared store has other content under its name", here)
	}
	if err := a.cache(hash, string(text)); err != nil {
		a.alarm("an artifact from the shared store cannot be stored here", "error", err)
	}
	return string(text), nil
}

// cache stores content that is also among the objects.
func (a *Store) cache(hash, content string) error {
	path := a.Path(hash)
	if err := a.makeDirs(path); err != nil {
		return err
	}
	if err := a.write(path, content); err != nil {
		return err
	}
	return a.Sync(filepath.Dir(path))
}

// ShareArtifacts stores the artifacts of a state directory as objects, and returns their number.
func ShareArtifacts(ctx context.Context, stateDir string, o Objects) (n int, err error) {
	a := New(stateDir, nil)
	all, err := a.files(time.Time{})
	if err != nil {
		return 0, err
	}
	for hash := range all {
		text, err := a.Read(a.Path(hash))
		if err != nil {
			return n, err
		}
		if HashOf(text) != hash {
			continue // it was changed, and is no longer an artifact
		}
		if err := o.PutObject(ctx, hash, text); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// FetchArtifacts stores the objects that a record refers to in a state directory. It returns how many of them the
// directory has now, and how many are missing because no hub has stored them.
func FetchArtifacts(ctx context.Context, stateDir string, record dispatch.Record, o Objects) (n, missing int, err error) {
	a := New(stateDir, nil)
	seen := make(map[string]bool)
	for r, err := range record.Find(ctx, wire.Search{Artifacts: true}) {
		if err != nil {
			return n, missing, err
		}
		for _, ref := range artifactRefs.FindAllSubmatch(r.Payload, -1) {
			hash := string(ref[1])
			if seen[hash] {
				continue
			}
			seen[hash] = true
			there, err := a.obtain(ctx, hash, o)
			switch {
			case err != nil:
				return n, missing, err
			case there:
				n++
			default:
				missing++
			}
		}
	}
	return n, missing, nil
}

// obtain copies content from the objects to the folder, unless the folder has it. It returns false if neither has
// it.
func (a *Store) obtain(ctx context.Context, hash string, o Objects) (bool, error) {
	if text, err := a.Read(a.Path(hash)); err == nil && HashOf(text) == hash {
		return true, nil
	}
	text, err := o.GetObject(ctx, hash)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && HashOf(text) != hash:
		return false, nil
	case err != nil:
		return false, err
	}
	return true, a.cache(hash, string(text))
}
