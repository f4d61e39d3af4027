package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// find returns the file that command names for a process that starts in dir with env. It uses
// the PATH in env, not that of this process.
func find(command, dir string, env []string) (string, *StartError) {
	if strings.ContainsRune(command, '/') {
		path := command
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		err := executable(path)
		if err != nil && errors.Is(err, fs.ErrNotExist) {
			err.Hint = oneWord(command, dir, env)
			if name, ok := meantFile(path); ok {
				err.Hint = fmt.Sprintf("did you mean %q?", filepath.Join(filepath.Dir(path), name))
			}
		}
		return path, err
	}
	path := lookup(env, "PATH")
	var refused *StartError
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue // a relative entry would depend on the working directory
		}
		file := filepath.Join(folder, command)
		switch err := executable(file); {
		case err == nil:
			return file, nil
		case !errors.Is(err, fs.ErrNotExist) && refused == nil:
			refused = err
		}
	}
	if refused != nil {
		return "", refused
	}
	e := &StartError{
		Reason: fmt.Sprintf("program not found: %q is not on this agent's PATH (%s)", command, path),
		Err:    fs.ErrNotExist,
	}
	e.Hint = oneWord(command, dir, env)
	if executable(filepath.Join(dir, command)) == nil {
		e.Hint = fmt.Sprintf("a file ./%s exists: did you mean %q?", command, "./"+command)
	}
	return "", e
}

// executable returns a *StartError if path cannot be run, or nil.
func executable(path string) *StartError {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &StartError{Reason: fmt.Sprintf("program not found: %q does not exist", path), Err: err}
	case err != nil:
		return &StartError{Reason: fmt.Sprintf("cannot look at %q: %v", path, err), Err: err}
	case info.IsDir():
		return &StartError{Reason: fmt.Sprintf("%q is a folder, not a program", path), Err: fs.ErrInvalid}
	case !info.Mode().IsRegular():
		return &StartError{Reason: fmt.Sprintf("%q is no file that can be run", path), Err: fs.ErrInvalid}
	case info.Mode()&0o111 == 0:
		return &StartError{
			Reason: fmt.Sprintf("%q may not be executed", path),
			Hint:   "chmod +x " + path,
			Err:    fs.ErrPermission,
		}
	}
	return nil
}

// touch reads the beginning of a file, as the kernel will. If a mount hangs, the wait is here,
// where no lock is held. A thread that hangs in fork or exec would hold the census, and block
// the garbage collector. Errors are ignored, because an unreadable file may be executable.
func touch(path string) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	var beginning [256]byte
	_, _ = file.Read(beginning[:])
}

// lookup returns the last value of name in env, as execve's reader would see
// it.
func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// checkDir returns why a child cannot start in dir, or nil.
func checkDir(dir string) *StartError {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &StartError{Reason: fmt.Sprintf("its folder %q does not exist", dir), Err: err}
	case err != nil:
		return &StartError{Reason: fmt.Sprintf("cannot use its folder %q: %v", dir, err), Err: err}
	case !info.IsDir():
		return &StartError{Reason: fmt.Sprintf("its folder %q is a file", dir), Err: fs.ErrInvalid}
	}
	return nil
}
