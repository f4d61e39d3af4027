package child

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A stat holds the state of a process from /proc.
type stat struct {
	program string
	state   byte
	threads int
	parent  int
	group   int
	session int
	ticks   int64 // CPU time, in clock ticks
	born    uint64
	stack   int64 // where its stack begins: another place after an exec; 0 if it is not ours to see
	memory  bool  // it has memory; a dying process has none
	pages   int64
	loaded  bool // its environment has its place; not ours to see if it is not ours to read
}

var errStat = errors.New("unreadable /proc stat")

// readStat reads /proc/PID/stat.
func readStat(pid int) (stat, error) { return readStatOf(pid, "stat") }

// readStatOf reads a stat file of a process or of one of its threads. The program's name may
// contain brackets, so it ends at the last one.
func readStatOf(pid int, name string) (stat, error) {
	text, err := readProc(pid, name)
	if err != nil {
		return stat{}, err
	}
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return stat{}, errStat
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) < 49 {
		return stat{}, errStat
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
		return n
	}
	return stat{
		program: string(text[open+1 : end]),
		state:   fields[0][0],
		parent:  int(number(1)),
		group:   int(number(2)),
		session: int(number(3)),
		ticks:   number(11) + number(12),
		threads: int(number(17)),
		born:    uint64(number(19)),
		memory:  string(fields[20]) != "0",
		pages:   number(21),
		stack:   number(25),
		loaded:  string(fields[48]) != "0",
	}, nil
}

// dead reports whether no thread of the process runs. The state describes the main thread: if that ended first, a
// living process is shown as a zombie.
func (s stat) dead() bool { return s.state == 'X' || s.state == 'Z' && s.threads <= 1 }

func (s stat) process(pid int) Process {
	return Process{PID: pid, Program: s.program, born: s.born, group: s.group}
}

// readLiving is readStat, but also reports whether the process is alive.
func readLiving(pid int) (s stat, living bool, err error) {
	s, err = readStat(pid)
	if vanished(err) {
		return s, false, nil
	}
	return s, err == nil && !s.dead(), err
}

// vanished reports whether an error of /proc means that the process is gone. Other errors, such
// as a lack of file descriptors, do not show that.
func vanished(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }

// maxProc limits how much of a file of the kernel is read, such as an environment.
const maxProc = 4 << 20

// readProc reads a file of /proc/PID.
func readProc(pid int, name string) ([]byte, error) {
	return readKernel("/proc/" + strconv.Itoa(pid) + "/" + name)
}

// readKernel reads a file of /proc or of a cgroup, which shows a size of zero. It does without os.File, which needs
// seven more system calls to try the file with the poller.
func readKernel(path string) ([]byte, error) {
	fd, err := openKernel(path, 0)
	if err != nil {
		return nil, err
	}
	defer closeAll(fd)
	text := make([]byte, 0, 512)
	for len(text) < maxProc {
		n, err := readFD(fd, text[len(text):cap(text)])
		if n <= 0 || err != nil {
			return text, err
		}
		text = slices.Grow(text[:len(text)+n], 512)
	}
	return text, nil
}

// openKernel opens a file or a folder of the kernel for reading.
func openKernel(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// marks returns the marks in the environment that a process was started with. An environment
// that may not be read counts as unmarked.
func marks(pid int) (home, run string, err error) {
	text, err := environment(pid)
	if vanished(err) || errors.Is(err, fs.ErrPermission) {
		return "", "", nil
	}
	for _, entry := range bytes.Split(text, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(EnvHome+"=")); ok {
			home = string(value)
		}
		if value, ok := bytes.CutPrefix(entry, []byte(EnvRun+"=")); ok {
			run = string(value)
		}
	}
	return home, run, err
}

// environment returns the environment of a process. If the main thread has ended, it reads the environment of another
// thread, because the files of the main thread are empty and belong to root. While a process dies or calls exec, its
// environment is empty, and environment returns errUnsettled.
func environment(pid int) ([]byte, error) {
	text, err := readProc(pid, "environ")
	foreign := errors.Is(err, fs.ErrPermission)
	if len(text) > 0 || err != nil && !vanished(err) && !foreign {
		return text, err
	}
	s, err := readStat(pid)
	switch {
	case err != nil || s.dead():
		return nil, err
	case s.memory && (s.loaded || foreign):
		return nil, nil
	case s.memory || s.state != 'Z':
		return nil, errUnsettled
	}
	threads, err := threadsOf(pid)
	if err != nil {
		return nil, err
	}
	for _, thread := range threads {
		s, err := readStatOf(pid, "task/"+thread+"/stat")
		if err == nil && s.memory {
			return readProc(pid, "task/"+thread+"/environ")
		}
		if err != nil && !vanished(err) {
			return nil, err
		}
	}
	return nil, errUnsettled
}

func threadsOf(pid int) ([]string, error) {
	return names("/proc/" + strconv.Itoa(pid) + "/task")
}

// names lists a folder of the kernel's, in no order.
func names(folder string) ([]string, error) {
	fd, err := openKernel(folder, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer closeAll(fd)
	var found []string
	for buf := make([]byte, 8<<10); ; {
		n, err := unix.ReadDirent(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			return found, err
		}
		_, _, found = unix.ParseDirent(buf[:n], -1, found)
	}
}

// childrenOf returns the children of all threads of a process. A process that is gone has none.
func childrenOf(pid int) ([]int, error) {
	threads, err := threadsOf(pid)
	if vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, thread := range threads {
		text, err := readProc(pid, "task/"+thread+"/children")
		switch {
		case vanished(err):
			if _, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/task/" + thread); err == nil {
				return childrenByScan(pid) // the thread exists, but has no list
			}
		case err != nil:
			return nil, err
		}
		pids = append(pids, numbers(text)...)
	}
	return pids, nil
}

// numbers parses a list of process ids. It skips zero, which stands for a process outside this
// namespace.
func numbers(text []byte) []int {
	var pids []int
	for word := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// childrenByScan is childrenOf for kernels without lists of children.
func childrenByScan(parent int) ([]int, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, pid := range all {
		s, err := readStat(pid)
		switch {
		case err == nil && s.parent == parent:
			pids = append(pids, pid)
		case err != nil && !vanished(err) && !errors.Is(err, fs.ErrPermission):
			return nil, err
		}
	}
	return pids, nil
}

// processes returns the process ids of all processes.
func processes() ([]int, error) {
	entries, err := names("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// holds reports whether a process has one of the pipes as its stdout or stderr.
func holds(pid int, pipes []string) bool {
	for _, fd := range []string{"1", "2"} {
		target, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/" + fd)
		if err != nil {
			continue
		}
		for _, pipe := range pipes {
			if pipe != "" && pipe == target {
				return true
			}
		}
	}
	return false
}

// holders lists the processes that have a pipe as their stdout or stderr.
func holders(pipe string) []Process {
	var found []Process
	all, _ := processes()
	for _, pid := range all {
		if !holds(pid, []string{pipe}) {
			continue
		}
		if s, err := readStat(pid); err == nil {
			found = append(found, Process{PID: pid, Program: s.program, Held: true, born: s.born})
		}
	}
	return found
}

// pipeName returns the name that /proc shows for the pipe.
func (p *pump) pipeName() string {
	var name string
	_ = p.raw.Control(func(fd uintptr) {
		name, _ = os.Readlink(fmt.Sprintf("/proc/thread-self/fd/%d", fd))
	})
	return name
}

// ticksPerSecond is USER_HZ, the same on every Linux that Go runs on.
const ticksPerSecond = 100

// Usage returns the CPU time and the memory of the leader.
func (c *Child) Usage() (cpuMS, rss int64) {
	s, err := readStat(c.pid)
	if err != nil {
		return 0, 0
	}
	return s.ticks * 1000 / ticksPerSecond, s.pages * int64(os.Getpagesize())
}

// signalProcess signals exactly p. It opens the pidfd first and checks the start time, because
// the process id may have been reused.
func signalProcess(p Process, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if s, err := readStat(p.PID); err != nil || s.born != p.born {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// parentOf returns the parent of a process, and the name of its program.
func parentOf(pid int) (parent int, program string, err error) {
	s, err := readStat(pid)
	return s.parent, s.program, err
}

// A program is a process between two calls of exec.
type program struct {
	pid   int
	born  uint64
	stack int64
	name  string
}

// maxPrograms bounds a hostMemory.
const maxPrograms = 1024

// A hostMemory remembers which programs are Hosts. The ancestors of callers are mostly the same shells and terminals,
// and looking through the children of all their threads took 0.4 ms of each connection. A Host starts its watchdog
// before its first child, so an ancestor of a caller without a watchdog does not become a Host later.
type hostMemory struct {
	mu    sync.Mutex
	known map[program]bool
}

// has reports whether a process is a Host: it is the parent of a watchdog.
func (m *hostMemory) has(pid int) bool {
	s, err := readStat(pid)
	if err != nil {
		return false // it has ended
	}
	p := program{pid, s.born, s.stack, s.program}
	m.mu.Lock()
	is, known := m.known[p]
	m.mu.Unlock()
	if known {
		return is
	}
	is = hasWatchdog(pid)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) == maxPrograms {
		m.known = make(map[program]bool)
	}
	m.known[p] = is
	return is
}

// hasWatchdog reports whether a process is a Host: it is the parent of a watchdog.
func hasWatchdog(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, thread := range threads {
		text, _ := os.ReadFile(thread) // else the thread has ended
		for _, field := range strings.Fields(string(text)) {
			child, _ := strconv.Atoi(field)
			if s, err := readStat(child); err == nil && s.program == watchdogName {
				return true
			}
		}
	}
	return false
}
