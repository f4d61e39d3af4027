package child

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A delegation is a cgroup (v2) where this process may create leaves. The names of its leaves begin with a hash of the
// home, so that a later host finds the leaves of an earlier one. A leaf also holds processes that have cleared their
// environment.
type delegation struct {
	dir    string
	path   string   // of dir, as /proc/PID/cgroup names it
	prefix string   // begins the names of the leaves
	bounds []string // the limits that leaves can set: "memory", "pids", "cpu"
}

// A leaf is the cgroup of one child. A nil leaf stands for a child without one.
type leaf struct {
	dir  string
	fd   int  // for the start of a process in it; -1: none
	gone bool // left has removed it
}

// findDelegation returns the cgroup of this process if the process may divide it, or nil. The
// user must own the cgroup. For root, it must be delegated explicitly, or be the root of the
// visible hierarchy: other cgroups that root can write belong to the service manager.
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
	d := &delegation{dir: dir, path: path, prefix: "orc-" + hex.EncodeToString(hash[:4]) + "-"}
	trial := filepath.Join(dir, d.prefix+"trial")
	if err := os.Mkdir(trial, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil
	}
	defer os.Remove(trial)
	if _, err := os.Stat(filepath.Join(trial, "cgroup.kill")); err != nil {
		return nil // a kernel before 5.14
	}
	controllers, _ := os.ReadFile(filepath.Join(trial, "cgroup.controllers"))
	d.bounds = strings.Fields(string(controllers))
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

// ownCgroup returns the path of this process in the unified hierarchy.
func ownCgroup() (string, error) { return cgroupOf(os.Getpid()) }

// cgroupOf returns the path of a process in the unified hierarchy.
func cgroupOf(pid int) (string, error) {
	text, err := readProc(pid, "cgroup")
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

// cgroupMount returns the mount point of the unified hierarchy, or "".
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

// has reports whether leaves can set a limit.
func (d *delegation) has(bound string) bool { return d != nil && slices.Contains(d.bounds, bound) }

// cpuPeriod is the time in microseconds within which a tree may use its share of the processors.
const cpuPeriod = 100_000

// write writes a limit into a file of a leaf.
func write(dir, name string, n int64, more string) error {
	return os.WriteFile(filepath.Join(dir, name), append(strconv.AppendInt(nil, n, 10), more...), 0o644)
}

// limit sets the limits of a leaf.
func (d *delegation) limit(dir string, l Limits) error {
	var errs []error
	if l.Memory > 0 && d.has("memory") {
		errs = append(errs, write(dir, "memory.max", l.Memory, ""))
	}
	if l.Processes > 0 {
		errs = append(errs, write(dir, "pids.max", int64(l.Processes), ""))
	}
	if l.CPU > 0 {
		errs = append(errs, write(dir, "cpu.max", max(1000, int64(l.CPU*cpuPeriod)), fmt.Sprintf(" %d", cpuPeriod)))
	}
	return errors.Join(errs...)
}

// leaf creates the cgroup of one child.
func (d *delegation) leaf(run string, l Limits) (*leaf, error) {
	if d == nil {
		return nil, nil
	}
	dir := filepath.Join(d.dir, d.prefix+run)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	if err := d.limit(dir, l); err != nil {
		_ = os.Remove(dir)
		return nil, err
	}
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = os.Remove(dir)
		return nil, err
	}
	return &leaf{dir: dir, fd: fd}, nil
}

// runOf returns the run of the leaf that a process is in, or "". The child may have made cgroups in the leaf.
func (d *delegation) runOf(pid int) string {
	if d == nil {
		return ""
	}
	path, err := cgroupOf(pid)
	below, ours := strings.CutPrefix(path, filepath.Join(d.path, d.prefix))
	if err != nil || !ours {
		return ""
	}
	run, _, _ := strings.Cut(below, "/")
	return run
}

// leaves returns the leaves of this home that an earlier host left.
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

// boundsMemory reports whether the leaf limits memory, so that no limit on the address space is
// needed.
func (l *leaf) boundsMemory() bool {
	if l == nil {
		return false
	}
	_, err := os.Stat(filepath.Join(l.dir, "memory.max"))
	return err == nil
}

// left removes the leaf if no process is in it, and otherwise returns the processes. The kernel
// refuses to remove a cgroup with a living process, so no look at a list is needed for most leaves.
// Only the goroutine that clears the tree calls left and remove.
func (l *leaf) left() ([]int, error) {
	if l == nil || l.gone {
		return nil, nil
	}
	if unix.Rmdir(l.dir) == nil {
		l.gone = true
		return nil, nil
	}
	return l.members()
}

// members returns the processes in the leaf and in the cgroups below it. The leaf is empty only
// if the kernel reports so; an empty list does not prove it.
func (l *leaf) members() ([]int, error) {
	if l == nil {
		return nil, nil
	}
	text, err := readKernel(l.dir + "/cgroup.events")
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
		text, err := readKernel(dir + "/cgroup.procs")
		if err != nil && !vanished(err) && !errors.Is(err, unix.EOPNOTSUPP) { // a threaded cgroup: its parent lists the processes
			return nil, err
		}
		pids = append(pids, numbers(text)...)
	}
	if len(pids) == 0 {
		return nil, errUnsettled // they are dying, or are not visible in this namespace
	}
	return pids, nil
}

// parts returns the leaf's directory and the ones that the child created in it, inner ones
// last.
func (l *leaf) parts() []string {
	var dirs []string
	_ = filepath.WalkDir(l.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // skip directories that vanish during the walk
	})
	return dirs
}

// kill kills every process in the leaf at once, including those being forked.
func (l *leaf) kill() {
	if l != nil {
		_ = os.WriteFile(filepath.Join(l.dir, "cgroup.kill"), []byte("1"), 0)
	}
}

// close closes the descriptor for starting a process in the leaf. Each executed program closes the descriptors of all
// leaves, so few should be open.
func (l *leaf) close() {
	if l != nil {
		closeAll(l.fd)
		l.fd = -1
	}
}

// remove removes the leaf. The kernel refuses while a process in it is dying, so remove tries
// several times. A leaf that remains is empty, and the next host of this home removes it.
func (l *leaf) remove() {
	if l == nil {
		return
	}
	for try := 0; !l.gone && l.rmdir() == unix.EBUSY && try < 10; try++ {
		time.Sleep(time.Millisecond << try)
	}
}

// rmdir removes an empty leaf and the cgroups that the child created in it.
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
