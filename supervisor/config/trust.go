package config

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// UntrustedError reports that a configuration that was found by searching could have been
// written by another user. A file that is named is not searched for, and is used.
type UntrustedError struct {
	File string
	Why  string
}

func (e *UntrustedError) Error() string { return e.File + " is not used: " + e.Why }

// trusted returns an *UntrustedError if another user could have written a file, or put it
// where it is. What a link leads to counts as well as the link.
func trusted(file string) error {
	paths := []string{filepath.Dir(file), file}
	if real, err := filepath.EvalSymlinks(file); err == nil && real != file {
		paths = append(paths, filepath.Dir(real), real)
	}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			return fmt.Errorf("looking for the configuration: %w", err)
		}
		if why := writtenByOthers(info, os.Geteuid()); why != "" {
			return &UntrustedError{File: file, Why: path + " " + why}
		}
	}
	return nil
}

// writtenByOthers returns why another user than this one and root could have written what
// info describes. The group may write: on many systems each user has a group of his own,
// and files are open to it.
func writtenByOthers(info os.FileInfo, self int) string {
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(owner.Uid) != self && owner.Uid != 0:
		return "belongs to another user"
	case info.Mode().Type() != os.ModeSymlink && info.Mode().Perm()&0o002 != 0:
		return "can be written by other users (chmod o-w closes it to them)"
	}
	return ""
}

// elsewhere reports whether the parent of a folder is on another device, or belongs to
// another user than the folder and root: the search does not go on there.
func elsewhere(dir, parent string) bool {
	from, err := os.Stat(dir)
	if err != nil {
		return true
	}
	to, err := os.Stat(parent)
	if err != nil {
		return true
	}
	a, known := from.Sys().(*syscall.Stat_t)
	b, knownToo := to.Sys().(*syscall.Stat_t)
	return !known || !knownToo || a.Dev != b.Dev || b.Uid != a.Uid && b.Uid != 0
}
