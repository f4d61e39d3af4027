package supervisor

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A state directory may come with a repository of another author. It may then hold a link
// to a file elsewhere, or a record and a signing key that the author knows.
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
	removeUnfinishedKeys(real)
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

// removeUnfinishedKeys removes what is left when the orchestrator is killed while it makes
// its key: a second name of it.
func removeUnfinishedKeys(dir string) {
	names, _ := filepath.Glob(filepath.Join(dir, ".key-*")) // a folder whose name is a pattern keeps them
	for _, name := range names {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
			_ = os.Remove(name)
		}
	}
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
	case owner.Nlink > 1 && filepath.Base(path) != ".gitignore": // which is never changed
		return true, fmt.Errorf("%s has a second name (if it is yours: cp -p %[1]s %[1]s.new && mv %[1]s.new %[1]s)", path)
	case secret && info.Mode().Perm()&0o077 != 0 && hasModes(filepath.Dir(path)):
		return true, fmt.Errorf("%s is open to other users, as no orchestrator leaves it (chmod 600 closes it, if it is yours)", path)
	}
	return true, nil
}

// hasModes reports whether a new file in a folder can be closed to others. Disks of other
// systems give all files the same mode.
func hasModes(dir string) bool {
	file, err := os.CreateTemp(dir, ".mode-*")
	if err != nil {
		return true
	}
	defer os.Remove(file.Name())
	defer file.Close()
	info, err := file.Stat()
	return err != nil || info.Mode().Perm()&0o077 == 0
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
// that, since the configuration of the repository could name any.
func tracked(index, inside string) bool {
	info, err := os.Stat(index)
	if err != nil || info.Size() > largestIndex {
		return false
	}
	text, err := os.ReadFile(index)
	return err == nil && (indexHas(text, sha1.Size, inside+"/") || indexHas(text, sha256.Size, inside+"/"))
}

// indexHas reports whether a path in an index begins with prefix. The index of version 2
// or 3 is a head of twelve bytes, and for each path 40 bytes about the file, its hash,
// two bytes of flags, or four, the path, and zeros up to a multiple of eight. The rare
// version 4 is passed over.
func indexHas(index []byte, hash int, prefix string) bool {
	const head, about, extended = 12, 40, 0x4000
	if len(index) < head || string(index[:4]) != "DIRC" || binary.BigEndian.Uint32(index[4:]) > 3 {
		return false
	}
	rest := index[head:]
	for range binary.BigEndian.Uint32(index[8:]) {
		path := about + hash + 2
		if len(rest) <= path {
			return false
		}
		if binary.BigEndian.Uint16(rest[path-2:])&extended != 0 {
			path += 2
		}
		length := bytes.IndexByte(rest[min(path, len(rest)):], 0)
		if length < 0 {
			return false
		}
		if strings.HasPrefix(string(rest[path:path+length]), prefix) {
			return true
		}
		rest = rest[min((path+length+8)&^7, len(rest)):]
	}
	return false
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
