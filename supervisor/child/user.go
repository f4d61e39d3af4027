package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
)

// A User is the account of a child that does not run as the user of this process. A nil User is that
// of this process.
type User struct {
	Name   string
	UID    int
	GID    int
	Groups []int // all of its groups
}

// FindUser returns the account with a name. It returns nil for "" and for the user of this process.
// The error is a *StartError.
func FindUser(name string) (*User, error) {
	if name == "" {
		return nil, nil
	}
	found, err := user.Lookup(name)
	if err != nil {
		return nil, &StartError{Reason: fmt.Sprintf("user %q does not exist: %v", name, err), Err: err}
	}
	groups, err := found.GroupIds()
	ids, wrong := numbersIn(append([]string{found.Uid, found.Gid}, groups...))
	switch err = errors.Join(err, wrong); {
	case err != nil:
		return nil, &StartError{Reason: fmt.Sprintf("the groups of user %q cannot be read: %v", name, err), Err: err}
	case ids[0] == os.Geteuid():
		return nil, nil
	case os.Geteuid() != 0 || !canBecome:
		return nil, &StartError{
			Reason: fmt.Sprintf("only root on Linux can start an agent as another user: user = %q", name), Err: os.ErrPermission,
		}
	}
	return &User{Name: name, UID: ids[0], GID: ids[1], Groups: ids[2:]}, nil
}

func numbersIn(texts []string) (found []int, err error) {
	for _, text := range texts {
		n, wrong := strconv.Atoi(text)
		found, err = append(found, n), errors.Join(err, wrong)
	}
	return found, err
}

// Find returns the file that command names for a process of the user that starts in dir with env. The
// user must be able to enter dir and to execute the file. The error is a *StartError.
func (u *User) Find(command, dir string, env []string) (path string, err error) {
	failed := u.Do(func() error {
		var wrong *StartError
		if wrong = u.checkDir(dir); wrong == nil {
			path, wrong = find(command, dir, env)
		}
		if wrong == nil {
			wrong = u.checkProgram(path)
		}
		if wrong == nil {
			// The kernel reads the beginning as well. If a mount hangs, the wait is here, where no lock
			// is held. A thread that hangs in fork or exec would hold the census, and block the garbage
			// collector. A file that cannot be read may be executable.
			_, _ = readBeginning(path)
			return nil
		}
		if u != nil && errors.Is(wrong.Err, fs.ErrPermission) {
			wrong.Reason += fmt.Sprintf("; the agent runs as user %q", u.Name)
		}
		path, err = "", wrong
		return nil
	})
	if failed != nil {
		return "", lacking(fmt.Sprintf("looking at its files as user %q", u.Name), failed)
	}
	return path, err
}

// checkDir returns why a child of the user cannot start in dir, or nil.
func (u *User) checkDir(dir string) *StartError {
	wrong := checkDir(dir)
	if err := u.access(dir, mayExecute); wrong == nil && err != nil {
		wrong = &StartError{Reason: fmt.Sprintf("cannot enter its folder %q: %v", dir, err), Err: err}
	}
	return wrong
}

// checkProgram returns why the user cannot execute a program, or nil.
func (u *User) checkProgram(path string) *StartError {
	if err := u.access(path, mayExecute); err != nil {
		return &StartError{Reason: fmt.Sprintf("%q may not be executed: %v", path, err), Err: err}
	}
	return nil
}

// MayRead reports whether the user may read a file or list a folder.
func (u *User) MayRead(path string) bool { return u.may(path, toRead) }

// MayExecute reports whether the user may execute a file or enter a folder.
func (u *User) MayExecute(path string) bool { return u.may(path, mayExecute) }

func (u *User) may(path string, mode uint32) bool {
	return u.Do(func() error { return u.access(path, mode) }) == nil
}

// The modes of access.
const (
	mayExecute = 1
	toWrite    = 2
	toRead     = 4
)
