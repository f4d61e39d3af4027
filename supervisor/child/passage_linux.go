package child

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A passage takes file descriptors to the thread that forks, which has a table of its own. A fork copies the table of
// its thread, and the new program closes the copy: 75 ns for each descriptor, of which an orchestrator has four for each
// agent. With a passage the start of an agent costs the same with any number of agents, and no child gets the files of
// another one even for the moment until its exec. The thread shares the table of the process on a kernel before 5.9.
type passage struct {
	mu    sync.Mutex // held from send until the thread has the request
	out   int        // the end of the process; -1: the thread shares its table
	spare int        // the other end in the table of the process; -1: it was closed

	// Used only by the thread that forks.
	in   int         // the other end in its table
	held map[int]int // its file descriptors for a new program, by the numbers that the program expects
}

// newPassage gives the calling thread a table with only the standard files and those that the runtime of Go needs on
// each thread: its poller, which must be in use, and the event that wakes the poller. A collection of garbage may begin
// on this thread, and looks at the poller. The thread must be locked, and must never be used for other work.
func newPassage() *passage {
	p := &passage{out: -1, spare: -1, held: make(map[int]int)}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return p
	}
	kept, err := ofRuntime()
	if err == nil {
		kept = append(kept, 2, ends[1])
		slices.Sort(kept)
		err = unix.CloseRange(uint(kept[len(kept)-1]+1), math.MaxUint32, unix.CLOSE_RANGE_UNSHARE)
	}
	if err != nil {
		closeAll(ends[:]...)
		return p
	}
	for i, fd := range kept[1:] {
		if kept[i]+1 < fd {
			_ = unix.CloseRange(uint(kept[i]+1), uint(fd-1), 0)
		}
	}
	p.out, p.in, p.spare = ends[0], ends[1], ends[1]
	return p
}

// ofRuntime returns the file descriptors of epolls and events.
func ofRuntime() (kept []int, err error) {
	entries, err := names("/proc/thread-self/fd")
	for _, entry := range entries {
		kind, _ := os.Readlink("/proc/thread-self/fd/" + entry)
		if fd, wrong := strconv.Atoi(entry); wrong == nil && (kind == "anon_inode:[eventpoll]" || kind == "anon_inode:[eventfd]") {
			kept = append(kept, fd)
		}
	}
	return kept, err
}

// settle closes the thread's end in the table of the process.
func (p *passage) settle() {
	closeAll(p.spare)
	p.spare = -1
}

// close closes the end of the process. The end of the thread is closed with the thread.
func (p *passage) close() { closeAll(p.out) }

// maxPassed is the most file descriptors that the kernel passes in one message.
const maxPassed = 253

// ask sends the files of a request to the thread, and then the request.
func (p *passage) ask(f fork, to chan<- fork) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if files := f.files(); p.out >= 0 && len(files) > 0 {
		if err := unix.Sendmsg(p.out, []byte{0}, unix.UnixRights(files...), nil, 0); err != nil {
			return os.NewSyscallError("sendmsg", err)
		}
	}
	to <- f
	return nil
}

// files returns the file descriptors of the process that a request is about.
func (f *fork) files() []int {
	if f.attr == nil || f.exec {
		return f.keep
	}
	var files []int
	for _, fd := range f.attr.Files {
		files = append(files, int(fd))
	}
	if f.attr.Sys.UseCgroupFD {
		files = append(files, f.attr.Sys.CgroupFD)
	}
	return files
}

// take returns the file descriptors of a request, as the thread has them.
func (p *passage) take(n int) ([]int, error) {
	rights := make([]byte, unix.CmsgSpace(4*n))
	_, size, flags, _, err := unix.Recvmsg(p.in, make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:size])
	var files []int
	for i := range messages {
		more, _ := unix.ParseUnixRights(&messages[i])
		files = append(files, more...)
	}
	if err != nil || flags&unix.MSG_CTRUNC != 0 || len(files) != n {
		closeAll(files...)
		return nil, os.NewSyscallError("recvmsg", unix.EMFILE)
	}
	return files, nil
}

// fork starts a child. The files of f.attr, and its cgroup if it has one, are those of the process.
func (p *passage) fork(f *fork) (pid int, err error) {
	if p.out >= 0 {
		files, err := p.take(len(f.files()))
		if err != nil {
			return 0, err
		}
		defer closeAll(files...)
		attr, sys := *f.attr, *f.attr.Sys
		attr.Files = slices.Clone(attr.Files)
		for i := range attr.Files {
			attr.Files[i] = uintptr(files[i])
		}
		if sys.UseCgroupFD {
			sys.CgroupFD = files[len(attr.Files)]
		}
		attr.Sys = &sys
		f.attr = &attr
	}
	pid, _, err = syscall.StartProcess(f.path, f.argv, f.attr)
	return pid, err
}

// keep takes files for exec, which gets them at their numbers in the process. Without numbers it closes those that it
// has taken.
func (p *passage) keep(numbers []int) error {
	if len(numbers) == 0 {
		for _, fd := range p.held {
			if fd > 2 {
				closeAll(fd)
			}
		}
		clear(p.held)
	}
	if p.out < 0 || len(numbers) == 0 {
		return nil
	}
	files, err := p.take(len(numbers))
	for i, fd := range files {
		p.held[numbers[i]] = fd
	}
	return err
}

// exec replaces the program of this process. It returns only with an error.
func (p *passage) exec(f *fork) error {
	if err := p.place(); err != nil {
		return err
	}
	return syscall.Exec(f.path, f.argv, f.attr.Env)
}

// place moves the kept files to their numbers, and lets the next program have them.
func (p *passage) place() error {
	numbers := make(map[int]int, len(p.held)) // of the files, by the file descriptors that they have
	for number, fd := range p.held {
		numbers[fd] = number
	}
	for number, fd := range p.held {
		if fd = p.held[number]; fd == number {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
				return fmt.Errorf("keeping file %d open: %w", number, err)
			}
			continue
		}
		if other, taken := numbers[number]; taken || number == p.in {
			free, err := unix.FcntlInt(uintptr(number), unix.F_DUPFD_CLOEXEC, 3)
			if err != nil {
				return fmt.Errorf("making room for file %d: %w", number, err)
			}
			if taken {
				p.held[other], numbers[free] = free, other
			} else {
				p.in = free
			}
		}
		if err := unix.Dup3(fd, number, 0); err != nil {
			return fmt.Errorf("keeping file %d open: %w", number, err)
		}
		closeAll(fd)
		delete(numbers, fd)
		delete(numbers, number)
		p.held[number] = number
	}
	return nil
}
