package child

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Confinement restricts a child and all processes that come from it, for as long as they live.
// Paths are absolute. A path stands for everything below it.
//
// The kernel can only allow: a right to a folder is a right to everything below it. To except a path, its neighbors are
// allowed one by one, as found when the child starts. The folders above it can be listed, but no entry can be made,
// removed or renamed directly in them, and entries that other processes make there later are closed to the child.
type Confinement struct {
	// Write lists paths that the child may read and change. The child also has a folder for temporary files, $TMPDIR,
	// which is removed with its run, and the harmless devices.
	Write []string
	// Read lists paths that the child may read and execute. Missing paths are ignored.
	Read []string
	// Hide lists exceptions from both: the contents can be neither read nor changed. Names in a
	// hidden folder can be listed if they can be guessed to be there. The home of the Host is hidden.
	Hide []string
	// Lend lists folders that the child may read and change, though they may be below Hide.
	Lend []string
	// Keep lists exceptions from Write. The hooks and settings of git repositories below Write are
	// such exceptions.
	Keep []string
	// Repositories lists folders of git repositories with worktrees that the child works in. Worktrees that are added
	// later are open to it.
	Repositories []string
	// Limited closes the network, except Ports over TCP, and UDP if there are ports.
	Limited bool
	Ports   []int
	// BestEffort starts the child even if the kernel supports this only in part, or not at all.
	BestEffort bool
	// Trusted is for git of the orchestrator: the home of the Host is not hidden, and the hooks and settings of
	// repositories are not kept.
	Trusted bool

	temporary string // $TMPDIR, which may be below Hide
	pty       bool   // it has its own terminal
}

// A shimOrder is the task of the shim before it becomes the child.
type shimOrder struct {
	Files     uint64 `json:",omitempty"`
	Memory    uint64 `json:",omitempty"`
	Confine   *Confinement
	Temporary string // of Confine
	Pty       bool   // of Confine
	User      *User
	Dir       string `json:",omitempty"` // of a child of User
}

// encode returns the order as an argument of the shim, or "" for an empty order.
func (o *shimOrder) encode() string {
	if o.Files == 0 && o.Memory == 0 && o.Confine == nil && o.User == nil {
		return ""
	}
	text, _ := json.Marshal(o) // numbers and texts always have a form
	return string(text)
}

// Possible returns a *StartError if this system cannot enforce c.
func (c *Confinement) Possible() error {
	if c == nil || c.BestEffort {
		return nil
	}
	if why := c.impossible(); why != "" {
		return &StartError{
			Reason: "it cannot be confined: " + why,
			Hint:   "set best_effort = true in its confine block to start it with partial or no confinement: orchestrator help security",
			Err:    os.ErrPermission,
		}
	}
	return nil
}

// Complete reports whether there is a confinement, and this system can do all of it.
func (c *Confinement) Complete() bool { return c != nil && c.impossible() == "" }

// MayReadAll reports whether a child may read all files below a folder.
func (c *Confinement) MayReadAll(folder string) bool {
	if c == nil {
		return true
	}
	folder = resolve(folder)
	if slices.ContainsFunc(exceptions(c.Hide), func(e string) bool { return within(e, folder) || within(folder, e) }) {
		return false
	}
	return slices.ContainsFunc(slices.Concat(c.Read, c.Write), func(path string) bool { return within(folder, resolve(path)) })
}

// MayRead reports whether a child may read a file, or any file in a folder.
func (c *Confinement) MayRead(path string) bool {
	return c == nil || opens(slices.Concat(c.Read, c.Write), exceptions(c.Hide), resolve(path)) || opens(c.Lend, nil, resolve(path))
}

// MayChange reports whether a child may change a file, or any file in a folder.
func (c *Confinement) MayChange(path string) bool {
	return c == nil || opens(c.Write, c.kept(), resolve(path)) || opens(c.Lend, nil, resolve(path))
}

// opens reports whether path, or a path below it, is allowed and is not an exception.
func opens(allowed, except []string, path string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool {
		inner := resolve(a)
		if within(path, inner) {
			inner = path
		}
		return within(inner, path) && !slices.ContainsFunc(except, func(e string) bool { return within(inner, e) })
	})
}

// kept returns all exceptions from Write.
func (c *Confinement) kept() []string {
	return slices.Concat(exceptions(c.Hide), exceptions(c.Keep), exceptions(c.repositories()))
}

// temporaryDir is the folder of the home that has the $TMPDIR of confined children.
const temporaryDir = "tmp"

// confined returns the confinement of a child with its own folder for temporary files. Its home
// is hidden.
func (h *Host) confined(c *Confinement, temporary string) *Confinement {
	if c == nil {
		return nil
	}
	own := *c
	if !c.Trusted {
		own.Hide = slices.Concat(c.Hide, []string{h.home}, h.hidden)
	}
	own.temporary = temporary
	return &own
}

// Intersect returns a confinement with the rights that both confinements allow. A nil one allows all. Lend and Trusted
// are taken from c.
func (c *Confinement) Intersect(o *Confinement) *Confinement {
	switch {
	case o == nil:
		return c
	case c == nil:
		own := *o
		return &own
	}
	both := *c
	both.Write, both.Read = common(c.Write, o.Write), common(slices.Concat(c.Read, c.Write), slices.Concat(o.Read, o.Write))
	both.Hide, both.Keep = slices.Concat(c.Hide, o.Hide), slices.Concat(c.Keep, o.Keep)
	both.BestEffort = c.BestEffort && o.BestEffort
	switch {
	case o.Limited && c.Limited:
		both.Ports = slices.DeleteFunc(slices.Clone(c.Ports), func(port int) bool { return !slices.Contains(o.Ports, port) })
	case o.Limited:
		both.Limited, both.Ports = true, o.Ports
	}
	return &both
}

// common returns the paths that are within both lists.
func common(a, b []string) (both []string) {
	for _, one := range a {
		for _, other := range b {
			switch {
			case within(one, other):
				both = append(both, one)
			case within(other, one):
				both = append(both, other)
			}
		}
	}
	slices.Sort(both)
	return slices.Compact(both)
}

// makeTemporary makes the $TMPDIR of a child.
func (h *Host) makeTemporary(u *User) (dir string, err error) {
	top := filepath.Join(h.home, temporaryDir)
	if u == nil {
		err = os.Mkdir(top, 0o700)
	} else if h.userDir == nil {
		err = os.ErrInvalid
	} else {
		top, err = h.userDir() // the home is closed to the user
	}
	if err != nil && !os.IsExist(err) {
		return "", err
	}
	if dir, err = os.MkdirTemp(top, "tmp-"); err != nil || u == nil {
		return dir, err
	}
	if err = os.Lchown(dir, u.UID, u.GID); err != nil {
		_ = os.Remove(dir)
	}
	return dir, err
}

// removeTemporary removes the child's $TMPDIR.
func (c *Child) removeTemporary() {
	if c.temporary != "" {
		_ = RemoveAll(c.temporary)
	}
}

// within reports whether path is folder or below it. Both are clean.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// resolve returns path without symbolic links. A missing path is returned unchanged.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolve(parent), filepath.Base(path))
}

// exceptions returns paths without symbolic links. For a path that is a link itself it returns
// the link, too: a child that could replace the link would reveal its target at the next start.
func exceptions(paths []string) []string {
	var all []string
	for _, path := range paths {
		path = filepath.Clean(path)
		all = append(all, filepath.Join(resolve(filepath.Dir(path)), filepath.Base(path)), resolve(path))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
