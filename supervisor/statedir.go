package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A state directory may lie in a repository that somebody else wrote: what is in it may
// be a link to a file elsewhere, or a record and a signing key whose maker knows them.
// checkStateDir looks before anything is changed.

// stateFiles are the files of a state directory that are trusted or written by name.
// SQLite makes those that end in -wal and -shm.
var stateFiles = []string{"lock", ".gitignore", "jwt.key", "orchestrator.log", "events.db", "events.db-wal", "events.db-shm", "events.db-tip"}

// stateSecrets are those of them whose contents are trusted. Others must not have been
// able to write them, nor to read them.
var stateSecrets = []string{"jwt.key", "events.db"}

// stateFolders are the folders of a state directory.
var stateFolders = []string{"logs", "audit", "artifacts"}

// ignoreAll is what the .gitignore of a state directory says.
const ignoreAll = "*\n"

// checkStateDir returns an error if a state directory, or something in it that is used,
// was not made by an orchestrator of this user.
func checkStateDir(dir string) error {
	real, err := realStateDir(dir)
	if err != nil {
		return err
	}
	trusted := false
	for _, name := range stateFiles {
		there, err := checkStateFile(filepath.Join(real, name), slices.Contains(stateSecrets, name))
		if err != nil {
			return err
		}
		trusted = trusted || there && slices.Contains(stateSecrets, name)
	}
	for _, name := range stateFolders {
		path := filepath.Join(real, name)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := ownFolder(path); err != nil {
			return err
		}
	}
	index, inside := repositoryOf(real)
	if !trusted || index == "" {
		return nil
	}
	if text, err := os.ReadFile(filepath.Join(real, ".gitignore")); err != nil || string(text) != ignoreAll {
		return fmt.Errorf("%s holds a record or a key, but not the .gitignore that an orchestrator writes, and may have come with the repository (if it is yours: echo '*' >%s/.gitignore)", dir, dir)
	}
	if tracked(index, inside) {
		return fmt.Errorf("%s is tracked by git, so its record and its keys came with the repository", dir)
	}
	return nil
}

// realStateDir returns where a state directory is. It must be a folder of this user. A
// link is followed only if root made it, as systemd does for StateDirectory.
func realStateDir(dir string) (string, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); info.Mode()&fs.ModeSymlink != 0 && ok && owner.Uid == 0 && os.Geteuid() != 0 {
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", err
		}
	}
	return dir, ownFolder(dir)
}

// ownFolder returns an error unless path is a folder of this user and not a link.
func ownFolder(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a link", path)
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", path)
	case !known || int(owner.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user", path)
	}
	return nil
}

// checkStateFile reports whether there is a file, with an error unless it is a regular
// file of this user with one name. A secret must be closed to others.
func checkStateFile(path string, secret bool) (bool, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return true, fmt.Errorf("%s is a link", path)
	case !info.Mode().IsRegular():
		return true, fmt.Errorf("%s is not a regular file", path)
	case !known || int(owner.Uid) != os.Geteuid():
		return true, fmt.Errorf("%s belongs to another user", path)
	case owner.Nlink != 1:
		return true, fmt.Errorf("%s has a second name", path)
	case secret && info.Mode().Perm()&0o077 != 0:
		return true, fmt.Errorf("%s is open to other users, as no orchestrator leaves it (chmod 600 closes it, if it is yours)", path)
	}
	return true, nil
}

// largestIndex bounds how much of git's index is read.
const largestIndex = 256 << 20

// repositoryOf returns the index of the git repository around a folder, and the name of
// the folder in it. The index is "" where there is no repository.
func repositoryOf(dir string) (index, inside string) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", ""
	}
	for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
		if index := indexOf(filepath.Join(at, ".git")); index != "" {
			inside, _ := filepath.Rel(at, dir)
			return index, filepath.ToSlash(inside)
		}
		if at == filepath.Dir(at) {
			return "", ""
		}
	}
}

// tracked reports whether files of a folder are in an index. No program of git is run for
// that, since the configuration of the repository could name any. The index has each path
// whole, except in its rare version 4, which is passed over.
func tracked(index, inside string) bool {
	info, err := os.Stat(index)
	if err != nil || info.Size() > largestIndex {
		return false
	}
	text, err := os.ReadFile(index)
	return err == nil && bytes.Contains(text, []byte(inside+"/"))
}

// indexOf is the index of a repository, by its .git: a folder, or a file that names one.
func indexOf(git string) string {
	info, err := os.Lstat(git)
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return filepath.Join(git, "index")
	}
	text, err := os.ReadFile(git)
	to, found := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if err != nil || !found {
		return ""
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(git), to)
	}
	return filepath.Join(to, "index")
}
