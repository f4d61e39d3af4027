package home

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

// stateFiles are the files of a state directory that are used by name. SQLite creates those
// that end in -wal and -shm.
var stateFiles = []string{"lock", ".gitignore", "jwt.key", "orchestrator.log", "events.db", "events.db-wal", "events.db-shm", "events.db-tip", "sign-ins.json", "ui.address", notesFile}

// stateSecrets are the state files with trusted contents. No other user may be able to read or write them.
var stateSecrets = []string{"jwt.key", "events.db", "sign-ins.json", notesFile}

// stateFolders are the folders of a state directory.
var stateFolders = []string{"logs", "audit", "artifacts", mergesDir}

// ignoreAll is the content of the .gitignore of a state directory.
const ignoreAll = "*\n"

// checkStateDir returns an error unless an orchestrator of this user created the state
// directory and everything in it that is used.
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

// removeUnfinishedKeys removes a second name of the key, which remains if the orchestrator is
// killed while it creates the key.
func removeUnfinishedKeys(dir string) {
	names, _ := filepath.Glob(filepath.Join(dir, ".key-*")) // finds no file if the folder's name contains pattern characters
	for _, name := range names {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
			_ = os.Remove(name)
		}
	}
}

// realStateDir returns the real path of a state directory, which must be a folder of this user.
// It follows a link only if root created it, as systemd does for StateDirectory.
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

// checkStateFile reports whether a file exists. It returns an error unless the file is a
// regular file of this user with one name. Other users must have no access to a secret.
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
	case owner.Nlink > 1 && filepath.Base(path) != ".gitignore": // .gitignore is never changed
		return true, fmt.Errorf("%s has a second name (if it is yours: cp -p %[1]s %[1]s.new && mv %[1]s.new %[1]s)", path)
	case secret && info.Mode().Perm()&0o077 != 0 && hasModes(filepath.Dir(path)):
		return true, fmt.Errorf("%s is open to other users, as no orchestrator leaves it (chmod 600 closes it, if it is yours)", path)
	}
	return true, nil
}

// hasModes reports whether a new file in a folder can be closed to other users. Some file
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

// largestIndex is the largest git index that is read, in bytes.
const largestIndex = 256 << 20

// repositoryOf returns the index of the git repository that contains a folder, and the folder's path in it. The index
// is "" outside of a repository.
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

// tracked reports whether an index has files of a folder. It does not run git, because the
// repository's configuration could name any program.
func tracked(index, inside string) bool {
	info, err := os.Stat(index)
	if err != nil || info.Size() > largestIndex {
		return false
	}
	text, err := os.ReadFile(index)
	return err == nil && (indexHas(text, sha1.Size, inside+"/") || indexHas(text, sha256.Size, inside+"/"))
}

// indexHas reports whether a path in an index begins with prefix. An index of version 2 or 3
// has a header of 12 bytes and one entry for each path. An entry has 40 bytes about the file,
// its hash, and 2 or 4 bytes of flags. The path follows, with zeros up to a multiple of 8.
// Version 4, which is rare, is not read.
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

// indexOf returns the index of a repository. git is its .git: a folder, or a file that names
// one.
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
