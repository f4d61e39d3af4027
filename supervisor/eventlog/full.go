//go:build unix

package eventlog

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
)

// ErrFull reports that the disk, a quota or a limit of the process has no room left.
var ErrFull = errors.New("no space left on the disk")

// why adds ErrFull to an error of SQLite that a lack of space caused. SQLite reports such a
// write as an input/output error, so why asks the file system.
func (l *SQLite) why(err error) error { return orFull(l.path, err) }

// orFull returns err, wrapped in ErrFull if no space is left.
func orFull(path string, err error) error {
	full := codeOf(err)&0xff == codeFull || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
	if full || codeOf(err)&0xff == codeIO && NoRoom(filepath.Dir(path)) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// NoRoom reports whether the file system of a folder is almost full.
func NoRoom(dir string) bool {
	const little = 1 << 20
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return false
	}
	return uint64(s.Bavail)*uint64(s.Bsize) < little || s.Files > 0 && s.Ffree == 0
}
