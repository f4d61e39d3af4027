package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"orchestrator/wire"
)

// artifacts keeps what agents have made and what is too large for the record: content
// of more than detachAbove, each in a file that is named after its hash,
//
//	artifacts/AB/AB…, 64 digits of SHA-256
//
// so that the same content is there once, and nothing else is ever taken for it. A
// file is there whole or not at all, before the record refers to it: what is being
// written is artifacts/new-…. Nothing is removed but what was never finished: the
// record goes on referring to the rest.
type artifacts struct {
	dir   string
	alarm *alarm
	sync  func(dir string) error // has what is in a folder survive
	began time.Time              // what is older is not being written any more

	making sync.Mutex      // held while a folder is made
	firm   map[string]bool // folders that are known to survive
}

// detachAbove is how many bytes of content stay in a response.
const detachAbove = 64 << 10

func newArtifacts(stateDir string, alarm *alarm) *artifacts {
	return &artifacts{
		dir: filepath.Join(stateDir, "artifacts"), alarm: alarm, sync: syncDir, began: time.Now(), firm: make(map[string]bool),
	}
}

// clear removes what an earlier life did not finish writing. What cannot be removed
// does no harm, and is tried again in the next.
func (a *artifacts) clear() {
	if a == nil {
		return
	}
	left, _ := filepath.Glob(filepath.Join(a.dir, unfinished)) // the pattern is right
	for _, path := range left {
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && info.ModTime().Before(a.began) {
			_ = os.Remove(path)
		}
	}
}

// unfinished is how files are named that are being written.
const unfinished = "new-*"

// detach puts the large content of a response into files. It waits for the disk, so
// the agent that responds pays for it. A nil artifacts leaves everything where it is.
func (a *artifacts) detach(r *wire.TaskResponse) *wire.Error {
	if a == nil {
		return nil
	}
	if err := r.Detach(detachAbove, a.keep); err != nil {
		a.alarm.raise("an artifact cannot be kept: the response that it is in is refused", "error", err)
		return &wire.Error{Code: wire.CodeInternal, Message: "an artifact cannot be kept; why is in the orchestrator's log"}
	}
	return nil
}

// attach puts the content back into a document. What cannot be read stays away, and
// what refers to it stays there.
func (a *artifacts) attach(document wire.Raw) wire.Raw {
	load := func(string) (string, error) { return "", errors.New("there is no state directory") }
	if a != nil {
		load = a.load
	}
	whole, err := wire.Attach(document, load)
	if err != nil && a != nil {
		a.alarm.raise("an artifact cannot be read: who gets it gets what refers to it", "error", err)
	}
	return whole
}

// keep keeps content, and returns what refers to it. When it returns without an
// error, the content will not be lost any more.
func (a *artifacts) keep(content string) (ref string, err error) {
	hash := hashOf([]byte(content))
	path := a.path(hash)
	for _, dir := range []string{a.dir, filepath.Dir(path)} {
		if err := a.makeDir(dir); err != nil {
			return "", err
		}
	}
	if there, err := readRegular(path); err != nil || hashOf(there) != hash { // a wrong one is replaced
		if err := a.write(path, content); err != nil {
			return "", err
		}
	}
	if err := a.sync(filepath.Dir(path)); err != nil { // be it there already: perhaps since a moment ago
		return "", err
	}
	return wire.ArtifactRef(hash), nil
}

// load reads content. A file that has something else in it is an error.
func (a *artifacts) load(ref string) (content string, err error) {
	hash, ok := wire.ArtifactHash(ref)
	if !ok {
		return "", fmt.Errorf("%.80q refers to nothing here", ref)
	}
	text, err := readRegular(a.path(hash))
	if err != nil {
		return "", err
	}
	if hashOf(text) != hash {
		return "", fmt.Errorf("the file %s was changed: it does not have the content that was kept", a.path(hash))
	}
	return string(text), nil
}

func (a *artifacts) path(hash string) string { return filepath.Join(a.dir, hash[:2], hash) }

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// largestArtifact is more than any line has room for.
const largestArtifact = 256 << 20

// readRegular reads a file of ours. Agents run as the same user and may put something
// else in its place: what never ends, or is somewhere else, is not read.
func readRegular(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > largestArtifact {
		return nil, fmt.Errorf("%s is no file that was kept here", path)
	}
	return io.ReadAll(io.LimitReader(file, largestArtifact))
}

// write makes a file, or replaces a wrong one.
func (a *artifacts) write(path, content string) error {
	file, err := os.CreateTemp(a.dir, unfinished) // with the mode 0600
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // what is left of it goes with the next start
	}
	return err
}

// makeDir makes a folder that survives, if it is not there. One that is there may be
// what a life that was killed had just made, so it is trusted only when it, and the
// folder that it is in, were synced once.
func (a *artifacts) makeDir(dir string) error {
	a.making.Lock()
	defer a.making.Unlock()
	err := os.Mkdir(dir, 0o700)
	made := err == nil
	switch {
	case made:
	case !errors.Is(err, os.ErrExist):
		return err
	case a.firm[dir]:
		return nil
	}
	if err = errors.Join(a.sync(dir), a.sync(filepath.Dir(dir))); err == nil {
		a.firm[dir] = true
		return nil
	}
	delete(a.firm, dir)
	if made {
		err = errors.Join(err, os.Remove(dir))
	}
	return err
}

func syncDir(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
