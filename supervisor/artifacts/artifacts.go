// Package artifacts keeps content that is too large for the record: in files of the state directory, and
// among the objects of several hubs if they share the record.
//
//	artifacts.go  the files: content is stored before the record refers to it, and read for answers
//	objects.go    the content that several hubs share
//	sweep.go      files go with the last record that refers to them
package artifacts

import (
	"context"
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
	"unicode/utf8"

	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/home"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// Store stores content that is too large for the record. Content of more than detachAbove
// bytes goes into a file that is named after its hash,
//
//	artifacts/AB/AB…, 64 digits of SHA-256
//
// so equal content is stored once and a name cannot refer to other content. A file is complete and durable before the
// record refers to it. A file that is still being written is named artifacts/new-…. A file is removed when its
// completion is refused, and when the last record that refers to it is removed; see Sweep.
//
// If several hubs share the record, the content is also among their objects before the record refers to it, and
// stays there. A hub that does not have the file reads it from there.
type Store struct {
	Dir     string
	alarm   func(text string, args ...any)
	Objects Objects                // of several hubs; nil: the files are the only ones
	Sync    func(dir string) error // makes the entries of a folder durable
	Read    func(path string) ([]byte, error)
	began   time.Time // older unfinished files have no writer

	making sync.Mutex      // held while a folder is made
	firm   map[string]bool // folders that are known to be durable

	claiming sync.Mutex
	Claims   map[string]*claim // content of requests that are not decided, by hash
	recent   map[string]bool   // hashes that had a claim since the running sweep began; nil: none runs
}

// A claim is held by requests that refer to content and are not decided yet.
type claim struct {
	holders int
	made    bool // the file was made for one of them
	granted bool // one of them was granted
}

// DetachAbove is the largest content, in bytes, that stays in a response.
const DetachAbove = 64 << 10

func New(stateDir string, alarm func(text string, args ...any)) *Store {
	return &Store{
		Dir: filepath.Join(stateDir, "artifacts"), alarm: alarm, Sync: home.SyncDir, Read: ReadRegular,
		began: time.Now(), firm: make(map[string]bool), Claims: make(map[string]*claim),
	}
}

// Clear removes files that an earlier run of the orchestrator did not finish. It has no effect without a state
// directory. A file that cannot be removed does no harm; the next start tries again.
func (a *Store) Clear() {
	if a == nil {
		return
	}
	left, _ := filepath.Glob(filepath.Join(a.Dir, unfinished)) // the pattern is right
	for _, path := range left {
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && info.ModTime().Before(a.began) {
			_ = os.Remove(path)
		}
	}
}

// unfinished is the name pattern of files that are still being written.
const unfinished = "new-*"

// Detach moves the large content of a response into files. It runs on the goroutine of the
// agent that responds, because it waits for the disk.
func (a *Store) Detach(r *delegation.Response) *wire.Error {
	var kept []string
	err := r.Detach(DetachAbove, func(content string) (ref string, err error) {
		if ref, err = a.Keep(content); err == nil {
			kept = append(kept, ref)
		}
		return ref, err
	})
	if err != nil {
		a.Release(kept, false)
		a.alarm("an artifact cannot be stored: its message is refused", "error", err)
		return &wire.Error{Code: wire.CodeInternal, Message: "an artifact cannot be stored; see the orchestrator's log"}
	}
	return nil
}

// Collect reads the files that artifacts name and stores large content. The artifacts then have
// their content, or a reference to it, and their size.
func (a *Store) Collect(folder dispatch.Folder, all []hub.Artifact) *wire.Error {
	room := int64(hub.MaxArtifactBytes)
	var r delegation.Response
	for i := range all {
		made := &all[i]
		if made.Path != "" {
			content, err := ReadFor(folder, made.Path, room)
			if err != nil {
				in := object.Reader{Pointer: made.Pointer}
				in.Refuse("path", fmt.Sprintf("names a file that cannot be used: %v", err))
				return in.Err()
			}
			made.Content, made.Size, made.Path = content, int64(len(content)), ""
		}
		if room -= made.Size; room < 0 {
			return object.Invalid(made.Pointer, fmt.Sprintf("the artifacts have more than %d MiB in all", hub.MaxArtifactBytes>>20))
		}
		r.Artifacts = append(r.Artifacts, delegation.Artifact{Content: made.Content, Ref: made.Ref})
	}
	if err := a.Detach(&r); err != nil {
		return err
	}
	for i := range all {
		all[i].Content, all[i].Ref = r.Artifacts[i].Content, r.Artifacts[i].Ref
	}
	return nil
}

// ReadFor returns the text of a file in the folder of an agent, read with the rights of the agent. Root
// could read any file in a folder such as /.
func ReadFor(folder dispatch.Folder, path string, most int64) (text string, err error) {
	if folder.Remote != nil {
		return folder.Remote.ReadFile(path, most)
	}
	if folder.Do == nil {
		return ReadWithin(folder, path, most)
	}
	err = folder.Do(func() error {
		text, err = ReadWithin(folder, path, most)
		return err
	})
	return text, err
}

// ReadWithin returns the text of a file in a folder. The path may not lead out of the folder, also
// not by a symbolic link.
func ReadWithin(folder dispatch.Folder, path string, most int64) (string, error) {
	if folder.Path == "" {
		return "", errors.New("paths need a folder: the orchestrator must have started the agent, and a confined agent must be allowed to read all of it")
	}
	if filepath.IsAbs(path) {
		below, err := filepath.Rel(folder.Path, path)
		if err != nil {
			return "", err
		}
		path = below
	}
	root, err := os.OpenRoot(folder.Path)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if now, err := root.Stat("."); err != nil || folder.Is == nil || !os.SameFile(now, folder.Is) {
		return "", errors.New("the agent's folder was replaced after its start")
	}
	file, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if wrong, ok := errors.AsType[*os.PathError](err); ok {
		return "", fmt.Errorf("%q: %w", wrong.Path, wrong.Err)
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%q is not a regular file", path)
	case sameDevice(info, "/proc"): // /proc/self would be this process
		return "", fmt.Errorf("%q is a file of the kernel", path)
	}
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return "", err
	case int64(len(text)) > most:
		return "", fmt.Errorf("%q is too large: the artifacts of a task have at most %d MiB", path, hub.MaxArtifactBytes>>20)
	case !utf8.Valid(text):
		return "", fmt.Errorf("%q is not text in UTF-8: store it elsewhere, and give its location as ref", path)
	}
	return string(text), nil
}

// sameDevice reports whether an open file is in the file system of a folder.
func sameDevice(info os.FileInfo, folder string) bool {
	there, err := os.Stat(folder)
	if err != nil {
		return false
	}
	one, known := info.Sys().(*syscall.Stat_t)
	other, also := there.Sys().(*syscall.Stat_t)
	return known && also && one.Dev == other.Dev
}

// Attach puts stored content back into a document. A reference stays in the document if its content cannot be read.
func (a *Store) Attach(document wire.Raw) wire.Raw {
	whole, err := delegation.Attach(document, a.Load)
	if err != nil {
		a.alarm("an artifact cannot be read: the recipient gets only its reference", "error", err)
	}
	return whole
}

// Keep stores content and returns a reference to it. The content is durable when keep returns
// without an error, and the caller then holds a claim on it.
func (a *Store) Keep(content string) (ref string, err error) {
	hash := HashOf([]byte(content))
	path := a.Path(hash)
	a.claim(hash)
	defer func() {
		if err != nil {
			a.Release([]string{delegation.ArtifactRef(hash)}, false)
		}
	}()
	if err := a.makeDirs(path); err != nil {
		return "", err
	}
	if there, err := ReadRegular(path); err != nil || HashOf(there) != hash { // a file with other content is replaced
		if err := a.write(path, content); err != nil {
			return "", err
		}
		a.claiming.Lock()
		a.Claims[hash].made = a.Claims[hash].made || there == nil
		a.claiming.Unlock()
	}
	if err := a.Sync(filepath.Dir(path)); err != nil { // even for an existing file, which may not be synced yet
		return "", err
	}
	if a.Objects != nil { // it waits while recording is not possible
		if err := a.Objects.PutObject(context.Background(), hash, []byte(content)); err != nil {
			return "", err
		}
	}
	return delegation.ArtifactRef(hash), nil
}

// Load returns the content of a reference. It returns an error if the file has other content.
func (a *Store) Load(ref string) (content string, err error) {
	hash, ok := delegation.ArtifactHash(ref)
	if !ok {
		return "", fmt.Errorf("%.80q does not refer to stored content", ref)
	}
	text, err := a.Read(a.Path(hash))
	if err == nil && HashOf(text) != hash {
		err = fmt.Errorf("the file %s was changed: its content is not the stored one", a.Path(hash))
	}
	switch {
	case err == nil:
		return string(text), nil
	case a.Objects == nil:
		return "", err
	}
	return a.fetch(context.Background(), hash, err)
}

func (a *Store) Path(hash string) string { return filepath.Join(a.Dir, hash[:2], hash) }

func HashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// largestArtifact is the most that is read from a file. No line can hold as much.
const largestArtifact = 256 << 20

// ReadRegular reads a stored file. Agents run as the same user and may replace the file, so it
// rejects symbolic links and anything that is not a regular file.
func ReadRegular(path string) ([]byte, error) {
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
		return nil, fmt.Errorf("%s is not a stored file", path)
	}
	return io.ReadAll(io.LimitReader(file, largestArtifact))
}

// write creates a file or replaces one with wrong content.
func (a *Store) write(path, content string) error {
	file, err := os.CreateTemp(a.Dir, unfinished) // with the mode 0600
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
		_ = os.Remove(file.Name()) // a failure leaves the file for clear
	}
	return err
}

// makeDirs creates the folders of a file.
func (a *Store) makeDirs(path string) error {
	if err := a.makeDir(a.Dir); err != nil {
		return err
	}
	return a.makeDir(filepath.Dir(path))
}

// makeDir creates a folder if it is missing and makes it durable. A killed orchestrator may
// have left an existing folder unsynced. So the folder and its parent are synced once before
// the folder is trusted.
func (a *Store) makeDir(dir string) error {
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
	if err = errors.Join(a.Sync(dir), a.Sync(filepath.Dir(dir))); err == nil {
		a.firm[dir] = true
		return nil
	}
	delete(a.firm, dir)
	if made {
		err = errors.Join(err, os.Remove(dir))
	}
	return err
}
