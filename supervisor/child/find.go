package child

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// find returns the file that command names for a process that starts in dir with env. It uses the PATH in env, not the
// PATH of this process.
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
		Reason: fmt.Sprintf("program not found: %q is not on this agent's PATH (%s)", command, firstFolders(path)),
		Err:    fs.ErrNotExist,
	}
	e.Hint = oneWord(command, dir, env)
	if executable(filepath.Join(dir, command)) == nil {
		e.Hint = fmt.Sprintf("a file ./%s exists: did you mean %q?", command, "./"+command)
	}
	return "", e
}

// firstFolders returns the first folders of a PATH, and the number of further ones.
func firstFolders(path string) string {
	const few = 3
	folders := filepath.SplitList(path)
	if len(folders) <= few {
		return path
	}
	return fmt.Sprintf("%s and %d more", strings.Join(folders[:few], string(filepath.ListSeparator)), len(folders)-few)
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
		return &StartError{Reason: fmt.Sprintf("%q is not a file that can be run", path), Err: fs.ErrInvalid}
	case info.Mode()&0o111 == 0:
		return &StartError{
			Reason: fmt.Sprintf("%q may not be executed", path),
			Hint:   "chmod +x " + path,
			Err:    fs.ErrPermission,
		}
	}
	return nil
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

// beginning is how many bytes of a file are read to explain why it cannot be run. The kernel
// reads as much of a first line.
const beginning = 256

// readBeginning returns the first bytes of a file, and whether it could be read.
func readBeginning(path string) ([]byte, bool) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would wait for its writer
	if errors.Is(err, syscall.EAGAIN) {                               // another process holds a lease on the file
		file, err = os.Open(path)
	}
	if err != nil {
		return nil, false
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	text := make([]byte, beginning)
	n, _ := file.Read(text)
	return text[:n], true
}

// notAProgram explains why the kernel cannot run a file.
func notAProgram(path string) (reason, hint string) {
	text, known := readBeginning(path)
	switch {
	case known && len(text) == 0:
		return fmt.Sprintf("%q is not a program: it is empty", path), ""
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf#!")):
		return fmt.Sprintf("%q is not a program: it begins with a byte order mark", path),
			"save it as UTF-8 without one"
	case bytes.HasPrefix(text, []byte("\x7fELF")), bytes.IndexByte(text, 0) >= 0:
		return fmt.Sprintf("%q is not a program for this machine: it was built for another one, or is damaged", path), ""
	}
	line := cmp.Or(firstLines[filepath.Ext(path)], "#!/bin/sh")
	if begins, _, _ := bytes.Cut(text, []byte("\n")); len(begins) > 0 {
		hint = fmt.Sprintf("it begins with %.80q", begins) // an installer that failed left its advice there
	}
	return fmt.Sprintf("%q is not a program: a script needs a first line such as %s", path, line), hint
}

// firstLines maps the extension of a script to its usual first line.
var firstLines = map[string]string{
	".py": "#!/usr/bin/env python3", ".rb": "#!/usr/bin/env ruby", ".pl": "#!/usr/bin/env perl", ".bash": "#!/bin/bash",
	".js": "#!/usr/bin/env node", ".mjs": "#!/usr/bin/env node", ".cjs": "#!/usr/bin/env node",
}

// noInterpreter explains why an existing file is reported as missing: its interpreter does not
// exist.
func noInterpreter(path string) (reason, hint string) {
	text, _ := readBeginning(path)
	line, _, whole := bytes.Cut(text, []byte("\n"))
	asked, is := bytes.CutPrefix(line, []byte("#!"))
	if !is || !whole {
		return fmt.Sprintf("%q exists, but the interpreter it is made for does not", path), ""
	}
	if bytes.HasSuffix(asked, []byte("\r")) {
		return fmt.Sprintf("%q exists, but no interpreter is called %q: it has Windows line endings", path, strings.TrimSpace(string(asked))+"\r"),
			fmt.Sprintf(`sed -i 's/\r$//' %s`, path)
	}
	name, _, _ := strings.Cut(strings.TrimSpace(string(asked)), " ")
	return fmt.Sprintf("%q exists, but the interpreter in its first line does not: %q", path, name), ""
}

// meantFile returns a file with the same name but another extension in the folder of a missing
// one.
func meantFile(path string) (string, bool) {
	stem := func(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return "", false
	}
	for _, e := range entries {
		if e.Type()&fs.ModeDir == 0 && strings.EqualFold(stem(e.Name()), stem(filepath.Base(path))) {
			return e.Name(), true
		}
	}
	return "", false
}

// oneWord returns a hint for a command that was written as one word. The hint lists its words
// if the first one is a program.
func oneWord(command, dir string, env []string) string {
	words := strings.Fields(command)
	if len(words) < 2 {
		return ""
	}
	if _, err := find(words[0], dir, env); err != nil {
		return ""
	}
	for i := range words {
		words[i] = fmt.Sprintf("%q", words[i])
	}
	return "each word is a separate element: did you mean command = [" + strings.Join(words, ", ") + "]?"
}
