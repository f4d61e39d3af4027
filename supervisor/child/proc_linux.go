package child

import (
	"cmp"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// How the settings of a terminal are read and written, and the code of a character that it does
// not have.
const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
	noChar     = 0
)

// adoptOrphans makes the kernel reparent the orphans among the descendants to this process.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// conceal keeps other processes of the user from reading the environment, the memory and the files of this one, and
// from tracing it. It ends with this program: a program that it executes is like any other process.
func conceal() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

func cloexecPipe(ends *[2]int) error { return unix.Pipe2(ends[:], unix.O_CLOEXEC) }

// widen enlarges a pipe if the user's limit on pipe memory allows it.
func widen(fd, size int) { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, size) }

// attributes returns how the child is started: in its own group or, with a terminal or as another
// user, session, and in its leaf. It gets SIGKILL when this process dies. In a session of
// its own, another user cannot type into the terminal of this process.
func (c *Child) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	switch {
	case c.spec.Pty:
		attr.Setsid, attr.Setctty, attr.Ctty = true, true, 0
	case c.spec.User != nil:
		attr.Setsid = true
	default:
		attr.Setpgid = true
	}
	if c.leaf != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, c.leaf.fd
	}
	return attr
}

// A sight watches a leader through a pidfd.
type sight struct{ fd int }

// open opens the pidfd of a leader that was not reaped, so that the pid is its own. The thread that forks would get the
// pidfd of a clone in its own table.
func (s *sight) open(pid int) (err error) {
	s.fd, err = unix.PidfdOpen(pid, 0)
	return os.NewSyscallError("pidfd_open", err)
}

// await returns how the leader ended, and waits for that. The leader stays a zombie.
func (s *sight) await(int) Exit {
	var info unix.Siginfo
	err := unix.EINTR
	for errors.Is(err, unix.EINTR) {
		info = unix.Siginfo{}
		err = errno(unix.Waitid(unix.P_PIDFD, s.fd, &info, unix.WEXITED|unix.WNOWAIT, nil))
	}
	return exitOf(&info)
}

// An exitWatch waits for the ends of all leaders, with one goroutine and no thread.
type exitWatch struct {
	pidfds *os.File // an epoll of pidfds, which is on the runtime's poller itself

	mu       sync.Mutex
	children map[int32]*Child // by pidfd
	over     bool             // run has ended
}

func newExitWatch() (*exitWatch, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, os.NewSyscallError("epoll_create", err)
	}
	return &exitWatch{pidfds: os.NewFile(uintptr(fd), "pidfds"), children: make(map[int32]*Child)}, nil
}

// add calls c.attend in a goroutine when the leader of c has ended.
func (w *exitWatch) add(c *Child) {
	fd := int32(c.sight.fd)
	w.mu.Lock()
	w.children[fd] = c
	over := w.over
	w.mu.Unlock()
	err := os.ErrClosed
	if !over {
		err = w.control(func(pidfds int) error {
			return unix.EpollCtl(pidfds, unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: fd})
		})
	}
	if err != nil && w.remove(fd) != nil { // the kernel cannot wait for pidfds: use a thread
		go c.attend()
	}
}

func (w *exitWatch) control(do func(pidfds int) error) error {
	conn, err := w.pidfds.SyscallConn()
	if err != nil {
		return err
	}
	done := conn.Control(func(fd uintptr) { err = do(int(fd)) })
	return cmp.Or(done, err)
}

func (w *exitWatch) remove(fd int32) *Child {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.children[fd]
	delete(w.children, fd)
	return c
}

// run attends to the children that end, until close is called. The remaining ones get a thread each.
func (w *exitWatch) run() {
	conn, err := w.pidfds.SyscallConn()
	for ended := make([]unix.EpollEvent, 64); err == nil; {
		n := 0
		err = conn.Read(func(fd uintptr) bool {
			n, _ = unix.EpollWait(int(fd), ended, 0)
			return n > 0
		})
		for i := range max(n, 0) {
			if c := w.remove(ended[i].Fd); c != nil {
				go c.attend()
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for fd, c := range w.children {
		delete(w.children, fd)
		go c.attend()
	}
}

func (w *exitWatch) close() { _ = w.pidfds.Close() }

func errno(err error) syscall.Errno {
	var e syscall.Errno
	errors.As(err, &e)
	return e
}

// The codes of a SIGCHLD, from the kernel's siginfo.h.
const (
	cldExited  = 1
	cldStopped = 5
	sigStatus  = 2 * unsafe.Sizeof(int32(0)) // offset of si_status behind si_pid
)

// Package unix does not declare the part of siginfo that depends on the signal: si_pid, si_uid
// and si_status. They follow the three common fields, aligned like a pointer.
const (
	sigCommon = 3 * unsafe.Sizeof(int32(0))
	sigAlign  = unsafe.Sizeof(uintptr(0))
	sigUnion  = (sigCommon + sigAlign - 1) / sigAlign * sigAlign
)

// pidOf returns the process that a SIGCHLD is about, or 0.
func pidOf(info *unix.Siginfo) int {
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), sigUnion)))
}

// exitOf returns how the leader ended.
func exitOf(info *unix.Siginfo) Exit {
	status := int(*(*int32)(unsafe.Add(unsafe.Pointer(info), sigUnion+sigStatus)))
	exit := Exit{At: time.Now(), Code: status}
	if info.Code != cldExited {
		exit.Code, exit.Signal = -1, syscall.Signal(status)
	}
	return exit
}

// signal signals the leader, even if it has left its group.
func (s *sight) signal(_ int, sig syscall.Signal) {
	_ = unix.PidfdSendSignal(s.fd, sig, nil, 0)
}

func (s *sight) close() { closeAll(s.fd) }

// signalGroup signals the group of an unreaped leader.
func signalGroup(pid int, sig syscall.Signal) { _ = unix.Kill(-pid, sig) }

// Unread returns how many bytes of its stdin the child has not read yet.
func (c *Child) Unread() int64 {
	if c.stdin == nil || c.spec.Pty {
		return 0
	}
	var n int
	conn, err := c.stdin.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return int64(n)
}
