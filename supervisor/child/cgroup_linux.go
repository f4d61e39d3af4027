package child

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// delegation is a cgroup (v2) in which we may make leaves.
type delegation struct {
	dir    string
	memory bool // leaves can bound memory
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
func findDelegation() *delegation {
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
	trial := filepath.Join(dir, "orc-trial-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(trial, 0o755); err != nil {
		return nil
	}
	defer os.Remove(trial)
	if _, err := os.Stat(filepath.Join(trial, "cgroup.kill")); err != nil {
		return nil // a kernel before 5.14
	}
	controllers, _ := os.ReadFile(filepath.Join(trial, "cgroup.controllers"))
	return &delegation{dir: dir, memory: bytes.Contains(controllers, []byte("memory"))}
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
	dir := filepath.Join(d.dir, "orc-"+run)
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

func (d *delegation) close() {}

// boundsMemory says whether the leaf's own limit does the work of a limit on
// the address space.
func (l *leaf) boundsMemory() bool {
	if l == nil {
		return false
	}
	_, err := os.Stat(filepath.Join(l.dir, "memory.max"))
	return err == nil
}

// members lists the processes in the leaf.
func (l *leaf) members() []int {
	if l == nil {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(l.dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for _, word := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// kill ends everything in the leaf at once, whatever it forks meanwhile.
func (l *leaf) kill() {
	if l != nil {
		_ = os.WriteFile(filepath.Join(l.dir, "cgroup.kill"), []byte("1"), 0)
	}
}

// remove takes the leaf away. The kernel refuses while a zombie is in it, so
// there are a few tries; a leaf that stays is empty and costs nothing.
func (l *leaf) remove() {
	if l == nil {
		return
	}
	closeAll(l.fd)
	for try := 0; unix.Rmdir(l.dir) == unix.EBUSY && try < 10; try++ {
		time.Sleep(time.Millisecond << try)
	}
}
