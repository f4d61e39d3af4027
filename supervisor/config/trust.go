package config

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// UntrustedError reports that another user could have written a configuration that was found by
// searching. A file that is named explicitly is always used.
type UntrustedError struct {
	File string
	Why  string
}

func (e *UntrustedError) Error() string { return e.File + " is not used: " + e.Why }

// trusted returns an *UntrustedError if another user could have written a file or put it in its
// place. For a link, both the link and its target are checked.
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

// writtenByOthers returns a reason if a user other than self and root could have written a
// file. Write access of the group is allowed, because on many systems each user has a private
// group.
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

// elsewhere reports whether the search must not continue in the parent of a folder. The parent
// is then on another device, or its owner is neither root nor the owner of the folder.
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
