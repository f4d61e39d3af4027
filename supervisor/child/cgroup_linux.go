package child

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// delegation is a cgroup (v2) in which we may make leaves. Their names begin
// with what stands for our home, so that a later host finds those of an
// earlier one: a cgroup marks also who clears its environment.
type delegation struct {
	dir    string
	prefix string // of our leaves' names
	memory bool   // leaves can bound memory
}

// leaf is the cgroup of one child. All its methods take a nil leaf for a child
// without one.
type leaf struct {
	dir string
	fd  int
}

// findDelegation looks whether a cgroup is ours to divide: we own it, or, for
// root, it was delegated explicitly or is the root of what we can see. A
// cgroup that merely lets root write belongs to the service manager.
func findDelegation(home string) *delegation {
	path, err := ownCgroup()
	if err != nil {
		return nil
	}
	mount := cgroupMount()
	if mount == "" {
		return nil
	}
	dir := filepath.Join(mount, path)
	if !mayDivide(dir, path) {
		return nil
	}
	hash := sha256.Sum256([]byte(home))
	d := &delegation{dir: dir, prefix: "orc-" + hex.EncodeToString(hash[:4]) + "-"}
	trial := filepath.Join(dir, d.prefix+"trial")
	if err := os.Mkdir(trial, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil
	}
	defer os.Remove(trial)
	if _, err := os.Stat(filepath.Join(trial, "cgroup.kill")); err != nil {
		return nil // a kernel before 5.14
	}
	controllers, _ := os.ReadFile(filepath.Join(trial, "cgroup.controllers"))
	d.memory = bytes.Contains(controllers, []byte("memory"))
	return d
}

func mayDivide(dir, path string) bool {
	if os.Geteuid() != 0 {
		return unix.Access(dir, unix.W_OK) == nil && unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil
	}
	if path == "/" {
		return true
	}
	var value [8]byte
	n, err := unix.Getxattr(dir, "trusted.delegate", value[:])
	return err == nil && n > 0 && value[0] == '1'
}

// ownCgroup is our path in the unified hierarchy.
func ownCgroup() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path, nil
		}
	}
	return "", errors.New("no unified hierarchy")
}

// cgroupMount is where the unified hierarchy is mounted.
func cgroupMount() string {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer file.Close()
	for scan := bufio.NewScanner(file); scan.Scan(); {
		before, after, found := strings.Cut(scan.Text(), " - ")
		fields := strings.Fields(before)
		if found && strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 {
			return fields[4]
		}
	}
	return ""
}

// leaf makes the cgroup of one child.
func (d *delegation) leaf(run string, memory int64) (*leaf, error) {
	if d == nil {
		return nil, nil
	}
	dir := filepath.Join(d.dir, d.prefix+run)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	if memory > 0 && d.memory {
		if err := os.WriteFile(filepath.Join(dir, "memory.max"), strconv.AppendInt(nil, memory, 10), 0o644); err != nil {
			_ = os.Remove(dir)
			return nil, err
		}
	}
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = os.Remove(dir)
		return nil, err
	}
	return &leaf{dir: dir, fd: fd}, nil
}

// leaves are those of our home that an earlier host left.
func (d *delegation) leaves() []*leaf {
	if d == nil {
		return nil
	}
	entries, err := names(d.dir)
	if err != nil {
		return nil
	}
	var found []*leaf
	for _, name := range entries {
		if strings.HasPrefix(name, d.prefix) {
			found = append(found, &leaf{dir: filepath.Join(d.dir, name), fd: -1})
		}
	}
	return found
}

// boundsMemory reports whether the leaf's own limit does the work of a limit on
// the address space.
func (l *leaf) boundsMemory() bool {
	if l == nil {
		return false
	}
	_, err := os.Stat(filepath.Join(l.dir, "memory.max"))
	return err == nil
}

// members lists the processes in the leaf, and in what the child has divided
// it into. The kernel's word for "empty" is trusted, an empty list is not.
func (l *leaf) members() ([]int, error) {
	if l == nil {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(l.dir, "cgroup.events"))
	if vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if bytes.Contains(text, []byte("populated 0")) {
		return nil, nil
	}
	var pids []int
	for _, dir := range l.parts() {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil && !vanished(err) && !errors.Is(err, unix.EOPNOTSUPP) { // a threaded part: listed above it
			return nil, err
		}
		pids = append(pids, numbers(text)...)
	}
	if len(pids) == 0 {
		return nil, errUnsettled // they die just now, or our namespace cannot name them
	}
	return pids, nil
}

// parts are the leaf's directory and those that the child made in it, the
// inner ones last.
func (l *leaf) parts() []string {
	var dirs []string
	_ = filepath.WalkDir(l.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // what vanishes meanwhile is none
	})
	return dirs
}

// kill ends everything in the leaf at once, whatever it forks meanwhile.
func (l *leaf) kill() {
	if l != nil {
		_ = os.WriteFile(filepath.Join(l.dir, "cgroup.kill"), []byte("1"), 0)
	}
}

// remove takes the leaf away. The kernel refuses while one in it is dying, so
// there are a few tries; a leaf that stays is empty, and the next host of this
// home removes it.
func (l *leaf) remove() {
	if l == nil {
		return
	}
	closeAll(l.fd)
	for try := 0; l.rmdir() == unix.EBUSY && try < 10; try++ {
		time.Sleep(time.Millisecond << try)
	}
}

// rmdir removes an empty leaf, and what the child has divided it into.
func (l *leaf) rmdir() error {
	err := unix.Rmdir(l.dir)
	if err != unix.EBUSY && err != unix.ENOTEMPTY {
		return err
	}
	for _, dir := range slices.Backward(l.parts()) {
		err = unix.Rmdir(dir)
	}
	return err
}
