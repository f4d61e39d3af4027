package child

import (
	"errors"
	"os"
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

func cloexecPipe(ends *[2]int) error { return unix.Pipe2(ends[:], unix.O_CLOEXEC) }

// widen enlarges a pipe if the user's limit on pipe memory allows it.
func widen(fd, size int) { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, size) }

// attributes returns how the child is started: in its own group or, with a terminal, session,
// in its leaf, and with a pidfd. It gets SIGKILL when this process dies.
func (c *Child) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, PidFD: &c.sight.fd}
	if c.spec.Pty {
		attr.Setsid, attr.Setctty, attr.Ctty = true, true, 0
	} else {
		attr.Setpgid = true
	}
	if c.leaf != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, c.leaf.fd
	}
	return attr
}

// A sight watches a leader through a pidfd on the runtime's poller. Each one needs a goroutine,
// but no thread.
type sight struct {
	fd   int
	file *os.File
}

func (s *sight) open(int) error {
	if err := unix.SetNonblock(s.fd, true); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	s.file = os.NewFile(uintptr(s.fd), "pidfd")
	return nil
}

// await returns how the leader ended. The leader stays a zombie.
func (s *sight) await(pid int) Exit {
	var info unix.Siginfo
	look := func(fd uintptr) bool {
		info = unix.Siginfo{}
		err := unix.EINTR
		for errors.Is(err, unix.EINTR) {
			err = errno(unix.Waitid(unix.P_PIDFD, int(fd), &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil))
		}
		return err != 0 || info.Signo != 0
	}
	conn, err := s.file.SyscallConn()
	if err == nil {
		err = conn.Read(look)
	}
	if err != nil { // the poller does not support pidfds here: use a thread
		_ = unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
	}
	return exitOf(&info)
}

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

func (s *sight) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}

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
