package supervisor

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
	"syscall"
	"time"
)

// Home is the state directory of one orchestrator. Its holder is the
// only one; the kernel takes the lock back when its process is gone, however
// that happened.
type Home struct {
	Dir    string
	lock   *os.File
	inode  os.FileInfo // of the lock
	beacon io.Closer   // nil where there is none
}

// BusyError says that another orchestrator holds the home.
type BusyError struct {
	Dir   string
	PID   int
	Since time.Time
}

func (e *BusyError) Error() string {
	if e.PID == 0 { // between taking the lock and signing it
		return "an orchestrator already runs here"
	}
	if e.Since.IsZero() {
		return fmt.Sprintf("an orchestrator already runs here (pid %d)", e.PID)
	}
	return fmt.Sprintf("an orchestrator already runs here (pid %d, since %s)", e.PID, e.Since.Local().Format("15:04:05"))
}

// OpenHome makes the state directory if need be, closes it to others, and takes its
// locks. What is there already is checked before anything is changed.
func OpenHome(dir string) (*Home, error) {
	dir = filepath.Clean(dir)
	if err := makeStateDir(dir); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	if err := checkStateDir(dir); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil { // it may be older than we are
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

// makeStateDir makes the directory, and its name durable: the record in it is of no use
// without.
func makeStateDir(dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// take takes the locks of the directory.
func (h *Home) take() (err error) {
	if h.beacon, err = lightBeacon(h.Dir); err != nil {
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

// busySince adds to an error that names who holds the directory since when, if the lock
// still says so.
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

// Lock returns the name of the lock and the file that is open. If the name leads to
// another file, another orchestrator can take the directory.
func (h *Home) Lock() (name string, open os.FileInfo) { return filepath.Join(h.Dir, "lock"), h.inode }

// sign leaves the holder's name in the lock, and keeps the directory out of
// version control.
func (h *Home) sign() error {
	if err := h.lock.Truncate(0); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(h.lock, "%d %d\n", os.Getpid(), time.Now().Unix()); err != nil {
		return err
	}
	ignore := filepath.Join(h.Dir, ".gitignore")
	if _, err := os.Stat(ignore); errors.Is(err, os.ErrNotExist) {
		return os.WriteFile(ignore, []byte(ignoreAll), 0o600)
	}
	return nil
}

// busy reads who holds the lock.
func busy(dir string, lock *os.File) error {
	e := &BusyError{Dir: dir}
	text := make([]byte, 64)
	n, _ := lock.Read(text)
	if words := strings.Fields(string(text[:n])); len(words) == 2 {
		e.PID, _ = strconv.Atoi(words[0])
		since, _ := strconv.ParseInt(words[1], 10, 64)
		e.Since = time.Unix(since, 0)
	}
	return e
}

// Close gives the home back.
func (h *Home) Close() {
	if h.lock != nil {
		_ = h.lock.Close()
	}
	if h.beacon != nil {
		_ = h.beacon.Close()
	}
}

// longestSocket is what a socket's path may be long, with room to spare: the
// kernel's limit is 108 bytes, 104 on macOS.
const longestSocket = 100

// SocketPath is where the control door of a state directory is: in it, or,
// where that is too long for a socket, in a folder of the user's that is named
// after it.
func SocketPath(stateDir string) string {
	path := filepath.Join(stateDir, "api.sock")
	if len(path) <= longestSocket {
		return path
	}
	sum := sha256.Sum256([]byte(stateDir))
	name := hex.EncodeToString(sum[:8])
	if run := os.Getenv("XDG_RUNTIME_DIR"); run != "" && len(run) < longestSocket-40 {
		return filepath.Join(run, "orchestrator", name, "api.sock")
	}
	return filepath.Join("/tmp", fmt.Sprintf("orchestrator-%d", os.Getuid()), name, "api.sock")
}

// MakeSocketDir makes the folders of a socket that are there only for sockets,
// or sees that those that are there are safe: a stranger who owns or may write
// one of them could put a socket of his own in our place.
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

// RemoveSocketDir removes the folder that was made for the one socket, unless
// there is something in it.
func RemoveSocketDir(socket, stateDir string) {
	if levels := socketDirs(socket, stateDir); len(levels) > 1 {
		_ = os.Remove(levels[len(levels)-1]) // one that stays is used again
	}
}

// socketDirs are the folders of a socket that are ours, the upper one first.
func socketDirs(socket, stateDir string) []string {
	dir := filepath.Dir(socket)
	if dir == filepath.Clean(stateDir) {
		return []string{dir}
	}
	return []string{filepath.Dir(dir), dir}
}

// ours returns why a folder is not ours alone to write.
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
