// Package home is the state directory of an orchestrator: its holder, its permitted contents, and the paths of its
// files and sockets. It is checked before any file in it is touched, because it may have come with a repository of
// another author.
//
//	home.go       the locked directory, folders for other users, sockets
//	statedir.go   checks before it is used
//	beacon_*.go   how another orchestrator on this machine sees that the directory is held
package home

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"orchestrator/supervisor/child"
)

// A Home is the locked state directory of one orchestrator. The kernel releases the lock when
// the process ends, even if it is killed.
type Home struct {
	Dir    string
	lock   *os.File
	inode  os.FileInfo // the lock file's identity
	beacon io.Closer   // nil on systems without one
	unsaid bool        // the last orchestrator here has stopped in order, and could not record it

	making sync.Mutex // held while the folder for other users is made
	users  *os.File   // that folder; nil if it was not made
}

// A BusyError reports that another orchestrator holds the state directory.
type BusyError struct {
	Dir   string
	PID   int
	Since time.Time
}

func (e *BusyError) Error() string {
	if e.PID == 0 { // the holder has not written its pid yet
		return "an orchestrator already runs here"
	}
	if e.Since.IsZero() {
		return fmt.Sprintf("an orchestrator already runs here (pid %d)", e.PID)
	}
	return fmt.Sprintf("an orchestrator already runs here (pid %d, since %s)", e.PID, e.Since.Local().Format("15:04:05"))
}

// Open creates the state directory if necessary, sets its mode to 0700 and takes its locks.
// It checks an existing directory before it changes anything.
func Open(dir string) (*Home, error) {
	dir = filepath.Clean(dir)
	if err := makeStateDir(dir); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	if err := checkStateDir(dir); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil { // an existing directory may be open to other users
		return nil, fmt.Errorf("closing the state directory to others: %w", err)
	}
	h := &Home{Dir: dir}
	err := h.take()
	if err == nil {
		if err = h.sign(); err != nil {
			err = fmt.Errorf("writing the state directory: %w", err)
		}
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// TakeOver returns the home of the program before this one in this process, by the file
// descriptors that Files has returned. The locks were never released.
func TakeOver(dir string, files []int) (*Home, error) {
	h := &Home{Dir: filepath.Clean(dir)}
	for i, fd := range files {
		syscall.CloseOnExec(fd)
		file := os.NewFile(uintptr(fd), "lock")
		if i > 0 {
			beacon, err := takeName(file)
			if err != nil {
				return nil, err
			}
			h.beacon = beacon
			continue
		}
		var err error
		if h.lock = file; file == nil {
			return nil, errors.New("the lock was not handed over")
		}
		if h.inode, err = file.Stat(); err != nil {
			return nil, err
		}
	}
	if ours(UserDir(h.Dir)) == nil {
		_, _ = h.UserDir() // a start that needs it returns the error
	}
	return h, nil
}

// Files returns the file descriptors of the locks.
func (h *Home) Files() []int {
	files := []int{int(h.lock.Fd())}
	if b, ok := h.beacon.(syscall.Conn); ok {
		if conn, err := b.SyscallConn(); err == nil {
			_ = conn.Control(func(fd uintptr) { files = append(files, int(fd)) })
		}
	}
	return files
}

// makeStateDir creates the directory and makes its name durable. Otherwise a crash could lose
// the record together with the directory.
func makeStateDir(dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(dir))
}

// take takes the locks of the directory.
func (h *Home) take() (err error) {
	if h.beacon, err = lockName(h.Dir); err != nil {
		return h.busySince(err)
	}
	h.lock, err = os.OpenFile(filepath.Join(h.Dir, "lock"), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("opening the lock: %w", err)
	}
	if h.inode, err = h.lock.Stat(); err != nil {
		return err
	}
	err = syscall.Flock(int(h.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return busy(h.Dir, h.lock)
	case err != nil:
		return fmt.Errorf("locking the state directory: %w", err)
	}
	return nil
}

// busySince adds the holder of the directory and its start time to an error, if the lock file
// still has them.
func (h *Home) busySince(err error) error {
	known, ok := errors.AsType[*BusyError](err)
	if !ok {
		return err
	}
	lock, openErr := os.OpenFile(filepath.Join(h.Dir, "lock"), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if openErr != nil {
		return err
	}
	defer lock.Close()
	if signed, ok := errors.AsType[*BusyError](busy(h.Dir, lock)); ok && signed.PID == known.PID {
		return signed
	}
	return err
}

// Lock returns the name of the lock file and the identity of the open file. If the name leads
// to another file, another orchestrator can take the directory.
func (h *Home) Lock() (name string, open os.FileInfo) { return filepath.Join(h.Dir, "lock"), h.inode }

// sign writes the process id and the time into the lock file. It also keeps the directory out
// of version control.
func (h *Home) sign() error {
	words, _ := wordsOf(h.lock)
	h.unsaid = len(words) == 3 && words[2] == unsaidEnd
	if err := h.write(); err != nil {
		return err
	}
	ignore := filepath.Join(h.Dir, ".gitignore")
	if _, err := os.Stat(ignore); errors.Is(err, os.ErrNotExist) {
		return os.WriteFile(ignore, []byte(ignoreAll), 0o600)
	}
	return nil
}

// unsaidEnd is the third word of a lock file after an end that could not be recorded.
const unsaidEnd = "ordered"

// wordsOf returns the words of a lock file: the process id, the time of its start, and perhaps unsaidEnd.
func wordsOf(lock *os.File) ([]string, error) {
	text := make([]byte, 64)
	n, err := lock.ReadAt(text, 0)
	return strings.Fields(string(text[:n])), err
}

// write writes the lock file. A full disk has room for it, because the file was there before.
func (h *Home) write() error {
	text := fmt.Sprintf("%d %d\n", os.Getpid(), time.Now().Unix())
	if h.unsaid {
		text = fmt.Sprintf("%d %d %s\n", os.Getpid(), time.Now().Unix(), unsaidEnd)
	}
	if _, err := h.lock.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return h.lock.Truncate(int64(len(text)))
}

// NoteEnd notes that this orchestrator stops in order without a record of it. The note stays with the
// directory, even if that was moved.
func (h *Home) NoteEnd() error {
	h.unsaid = true
	return h.write()
}

// TakeEnd returns whether the last orchestrator has noted its end, and removes the note.
func (h *Home) TakeEnd() bool {
	noted := h.unsaid
	if h.unsaid = false; noted {
		_ = h.write() // a note that stays would excuse a later kill only in words
	}
	return noted
}

// busy returns a BusyError with the holder that the lock file names.
func busy(dir string, lock *os.File) error {
	e := &BusyError{Dir: dir}
	if words, _ := wordsOf(lock); len(words) >= 2 {
		e.PID, _ = strconv.Atoi(words[0])
		since, _ := strconv.ParseInt(words[1], 10, 64)
		e.Since = time.Unix(since, 0)
	}
	return e
}

// Close releases the locks.
func (h *Home) Close() {
	h.closeUserDir()
	if h.lock != nil {
		_ = h.lock.Close()
	}
	if h.beacon != nil {
		_ = h.beacon.Close()
	}
}

// maxSocketPath is the longest socket path in bytes, with room to spare. The kernel's limit is
// 108 bytes, 104 on macOS.
const maxSocketPath = 100

// SocketPath returns the path of the control socket of a state directory. The socket is in the
// directory, or, if that path would be too long, in a folder of the user that is named after
// it.
func SocketPath(stateDir string) string {
	path := filepath.Join(stateDir, "api.sock")
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(stateDir))
	name := hex.EncodeToString(sum[:8])
	if run := os.Getenv("XDG_RUNTIME_DIR"); run != "" && len(run) < maxSocketPath-40 {
		return filepath.Join(run, "orchestrator", name, "api.sock")
	}
	return filepath.Join("/tmp", fmt.Sprintf("orchestrator-%d", os.Getuid()), name, "api.sock")
}

// MakeSocketDir creates the folders that exist only for a socket. It returns an error if
// another user owns or may write an existing one, and so could replace the socket.
func MakeSocketDir(socket, stateDir string) error {
	levels := socketDirs(socket, stateDir)
	if err := os.MkdirAll(filepath.Dir(levels[0]), 0o700); err != nil {
		return err
	}
	for _, dir := range levels {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := ours(dir); err != nil {
			return err
		}
	}
	return os.Chmod(levels[len(levels)-1], 0o700)
}

// RemoveSocketDir removes the folder that was created only for this socket, if it is empty.
func RemoveSocketDir(socket, stateDir string) {
	if levels := socketDirs(socket, stateDir); len(levels) > 1 {
		_ = os.Remove(levels[len(levels)-1]) // a remaining folder is used again
	}
}

// UserDir returns the path of the folder in /tmp that agents of other users must reach, with the sockets of their runs
// and their $TMPDIR. The state directory is closed to these users.
func UserDir(stateDir string) string {
	sum := sha256.Sum256([]byte(stateDir))
	return filepath.Join("/tmp", fmt.Sprintf("orchestrator-%d", os.Getuid()), hex.EncodeToString(sum[:8])+"-users")
}

// UserDir makes the folder for agents of other users, and returns its path. Other users can enter it, and not change
// it. It returns an error if another user owns or may write an existing one.
func (h *Home) UserDir() (string, error) {
	h.making.Lock()
	defer h.making.Unlock()
	path := UserDir(h.Dir)
	if h.users != nil {
		return path, nil
	}
	for _, dir := range []string{filepath.Dir(path), path} {
		if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
		if err := ours(dir); err != nil {
			return "", err
		}
		if err := os.Chmod(dir, 0o711); err != nil {
			return "", err
		}
	}
	open, err := os.Open(path)
	if err != nil {
		return "", err
	}
	// A program that removes old files from /tmp leaves a locked folder alone.
	_ = syscall.Flock(int(open.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	h.users = open
	return path, nil
}

// notesFile is the file of a state directory with the notes about branches of tasks.
const notesFile = "workspaces.json"

// Notes returns the path of the file with the notes about branches of tasks, in a state directory.
func Notes(dir string) string { return filepath.Join(dir, notesFile) }

// mergesDir is the folder of a state directory with the files of merges that run.
const mergesDir = "merges"

// Apart returns a folder for the files of merges, which is closed to confined agents. The user, if not nil, can enter
// it.
func (h *Home) Apart(u *child.User) (string, error) {
	if u == nil {
		dir := filepath.Join(h.Dir, mergesDir)
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
		return dir, nil
	}
	top, err := h.UserDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(top, mergesDir)
	if err = os.Mkdir(dir, 0o711); errors.Is(err, os.ErrExist) {
		err = nil
	}
	return dir, err
}

// ClearMerges removes the files of merges that an earlier orchestrator has left.
func (h *Home) ClearMerges() { _ = child.RemoveAll(filepath.Join(h.Dir, mergesDir)) }

// ClearUserDir empties the folder for agents of other users, after an earlier orchestrator.
func (h *Home) ClearUserDir() {
	if path := UserDir(h.Dir); ours(filepath.Dir(path)) == nil && ours(path) == nil {
		_ = child.RemoveAll(path)
	}
}

// closeUserDir removes the folder for agents of other users if it is empty.
func (h *Home) closeUserDir() {
	if h.users != nil {
		_ = h.users.Close()
		_ = os.Remove(UserDir(h.Dir)) // ClearUserDir of the next orchestrator removes a remaining one
	}
}

// socketDirs returns the socket's folders that only this user may write, outermost first.
func socketDirs(socket, stateDir string) []string {
	dir := filepath.Dir(socket)
	if dir == filepath.Clean(stateDir) {
		return []string{dir}
	}
	return []string{filepath.Dir(dir), dir}
}

// ours returns an error unless only this user may write a folder.
func ours(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", dir)
	case !known || int(owner.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user", dir)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s may be written by others (chmod go-w closes it to them)", dir)
	}
	return nil
}

// SyncDir makes the entries of a folder durable.
func SyncDir(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
