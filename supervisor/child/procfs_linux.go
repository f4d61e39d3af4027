package child

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stat is what /proc says of a process.
type stat struct {
	program string
	state   byte
	parent  int
	group   int
	session int
	ticks   int64 // CPU time, in clock ticks
	born    uint64
	pages   int64
}

var errStat = errors.New("unreadable /proc stat")

// readStat reads /proc/PID/stat. The program's name may hold anything,
// brackets too: the last one ends it.
func readStat(pid int) (stat, error) {
	text, err := readProc(pid, "stat")
	if err != nil {
		return stat{}, err
	}
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return stat{}, errStat
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) < 22 {
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
		born:    uint64(number(19)),
		pages:   number(21),
	}, nil
}

func (s stat) dead() bool { return s.state == 'Z' || s.state == 'X' }

// readProc reads a file of /proc/PID, which says its size is zero.
func readProc(pid int, name string) ([]byte, error) {
	file, err := os.Open("/proc/" + strconv.Itoa(pid) + "/" + name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var buf bytes.Buffer
	_, err = buf.ReadFrom(io.LimitReader(file, 4<<20)) // an environment may be long, not endless
	return buf.Bytes(), err
}

// marks reads the environment that a process was started with.
func marks(pid int) (home, run string) {
	text, err := readProc(pid, "environ")
	if err != nil {
		return "", ""
	}
	for _, entry := range bytes.Split(text, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(EnvHome+"=")); ok {
			home = string(value)
		}
		if value, ok := bytes.CutPrefix(entry, []byte(EnvRun+"=")); ok {
			run = string(value)
		}
	}
	return home, run
}

// childrenOf lists the children of a process, of all its threads.
func childrenOf(pid int) []int {
	folder := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var pids []int
	for _, thread := range threads {
		text, err := os.ReadFile(folder + "/" + thread.Name() + "/children")
		if errors.Is(err, os.ErrNotExist) && len(threads) == 1 {
			return childrenByScan(pid)
		}
		for _, word := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// childrenByScan is childrenOf for kernels that keep no lists of children.
func childrenByScan(parent int) []int {
	var pids []int
	for pid := range processes() {
		if s, err := readStat(pid); err == nil && s.parent == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// processes yields the number of every process there is.
func processes() func(func(int) bool) {
	return func(yield func(int) bool) {
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		for _, entry := range entries {
			if pid, err := strconv.Atoi(entry.Name()); err == nil && !yield(pid) {
				return
			}
		}
	}
}

// holds says whether a process has one of the pipes as its stdout or stderr.
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
	for pid := range processes() {
		if !holds(pid, []string{pipe}) {
			continue
		}
		if s, err := readStat(pid); err == nil {
			found = append(found, Process{PID: pid, Program: s.program, Held: true, born: s.born})
		}
	}
	return found
}

// pipeName is how /proc names the pipe behind one of our ends of it.
func (p *pump) pipeName() string {
	var name string
	_ = p.raw.Control(func(fd uintptr) {
		name, _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	})
	return name
}

// Usage is what the leader costs now.
func (c *Child) Usage() (cpuMS, rss int64) {
	s, err := readStat(c.pid)
	if err != nil {
		return 0, 0
	}
	const ticksPerSecond = 100 // USER_HZ, the same on every Linux that Go runs on
	return s.ticks * 1000 / ticksPerSecond, s.pages * int64(os.Getpagesize())
}

// signalProcess signals exactly p: its pidfd is opened first and checked to be
// the process that was seen, so that a number given out again meets no
// stranger.
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
