package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// devices can be used by every confined child. Other devices are closed: root could read disks, and any child could
// read the user's typing.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// rules makes the ruleset of c.
func (c *Confinement) rules(version int) (*ruleset, error) {
	r, err := newRuleset(version, c.Limited)
	if err != nil {
		return nil, err
	}
	if err := c.checkWrite(); err != nil {
		return nil, err
	}
	hidden := exceptions(c.Hide)
	kept := c.kept()
	grants := []struct {
		paths    []string
		rights   uint64
		except   []string
		required bool
	}{
		{paths: c.Read, rights: mayRead, except: hidden},
		{paths: c.Write, rights: mayRead, except: hidden, required: true},
		{paths: c.Write, rights: mayChange, except: kept, required: true},
		{paths: c.Lend, rights: mayRead | mayChange, required: true},
		{paths: devices, rights: mayUseDevice, except: hidden},
		{paths: c.terminal(), rights: mayUseDevice},
		{paths: []string{c.temporary}, rights: mayRead | mayChange, required: true},
	}
	for _, g := range grants {
		for _, path := range g.paths {
			err := r.open(path, g.rights, g.except)
			if err != nil && (g.required || !missing(err)) {
				return nil, fmt.Errorf("allowing %s: %w", path, err)
			}
		}
	}
	if c.Limited && version >= withPorts {
		for _, port := range c.Ports {
			if err := r.allowPort(port); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// missing reports whether a file does not exist, or cannot be reached by this user anyway.
func missing(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission)
}

// terminal returns the name of the child's own terminal. Without one the name would mean the user's terminal.
func (c *Confinement) terminal() []string {
	if c.pty {
		return []string{"/dev/tty"}
	}
	return nil
}

// checkWrite returns an error if a path of Write leads out of another one by a symbolic link. The
// child could have made that link in an earlier run.
func (c *Confinement) checkWrite() error {
	for _, path := range c.Write {
		for _, other := range c.Write {
			top := resolve(other)
			inside := within(path, other) || within(path, top)
			if inside && !within(resolve(path), top) {
				return fmt.Errorf("%s is a symbolic link that leads out of %s, where the agent may write", path, other)
			}
		}
	}
	return nil
}

// open gives rights to a path and everything below it but the exceptions.
func (r *ruleset) open(path string, rights uint64, except []string) error {
	path = resolve(filepath.Clean(path))
	if !within(path, "/dev") {
		except = append(slices.Clone(except), "/dev")
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return r.below(fd, path, rights, except)
}

// below gives rights to an open file, and to everything below a folder but the exceptions. It
// closes the file. path has no symbolic links.
func (r *ruleset) below(fd int, path string, rights uint64, except []string) error {
	defer closeAll(fd)
	var status unix.Stat_t
	if err := unix.Fstat(fd, &status); err != nil {
		return err
	}
	kind := status.Mode & unix.S_IFMT
	if kind == unix.S_IFLNK { // its target has the rights
		return nil
	}
	folder := kind == unix.S_IFDIR
	next := make(map[string]bool) // the names in the folder that lead to exceptions
	for _, e := range except {
		if within(path, e) {
			return nil
		}
		if within(e, path) {
			name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(e, path), "/"), "/")
			next[name] = true
		}
	}
	if len(next) == 0 || !folder {
		return r.allow(fd, folder, rights)
	}
	if err := r.allow(fd, folder, rights&unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
		return err
	}
	entries, _ := names(path) // a folder that cannot be listed has the ways to its exceptions
	for _, name := range entries {
		next[name] = true
	}
	for name := range next {
		inner, err := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			err = r.below(inner, filepath.Join(path, name), rights, except)
		}
		if err != nil && !missing(err) {
			return fmt.Errorf("%s: %w", filepath.Join(path, name), err)
		}
	}
	return nil
}
