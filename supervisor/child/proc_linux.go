package child

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes the kernel hand us the orphans of our tree.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

func cloexecPipe(ends *[2]int) error { return unix.Pipe2(ends[:], unix.O_CLOEXEC) }

// widen enlarges a pipe, if the user's share of pipe memory allows.
func widen(fd, size int) { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, size) }

// plainEcho sees to it that a program which turns the echo of its terminal on
// again has our lines echoed as they are: not as ^J, which no line reader and
// no echo guard would know again.
func plainEcho(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Lflag &^= unix.ECHOCTL
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}

// typeEnd types the end-of-file character, if the terminal behind master takes
// lines and has one. It does not wait for room.
func typeEnd(master *stdin) bool {
	conn, err := master.SyscallConn()
	if err != nil {
		return false
	}
	typed := false
	_ = conn.Control(func(fd uintptr) {
		t, err := unix.IoctlGetTermios(int(fd), unix.TCGETS) // the program's side of it
		if err == nil && t.Lflag&unix.ICANON != 0 && t.Cc[unix.VEOF] != 0 {
			n, _ := unix.Write(int(fd), t.Cc[unix.VEOF:unix.VEOF+1])
			typed = n == 1
		}
	})
	return typed
}

// attributes are how the child is made: a group (or, with a terminal, a
// session) of its own, dying with us, held by a pidfd, in its leaf.
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

// sight watches a leader through a pidfd on the runtime's poller: a goroutine
// each, but no thread.
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

// await returns when the leader is dead. It stays a zombie.
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
	if err != nil { // no poller for pidfds here: a thread then
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

// The package unix does not spell out the part of siginfo that depends on the signal:
// si_pid, si_uid, si_status follow the three common fields, aligned as a pointer is.
const (
	sigCommon = 3 * unsafe.Sizeof(int32(0))
	sigAlign  = unsafe.Sizeof(uintptr(0))
	sigUnion  = (sigCommon + sigAlign - 1) / sigAlign * sigAlign
)

// pidOf reads which process a SIGCHLD is about; 0: none.
func pidOf(info *unix.Siginfo) int {
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), sigUnion)))
}

// exitOf reads how the leader ended.
func exitOf(info *unix.Siginfo) Exit {
	status := int(*(*int32)(unsafe.Add(unsafe.Pointer(info), sigUnion+sigStatus)))
	exit := Exit{At: time.Now(), Code: status}
	if info.Code != cldExited {
		exit.Code, exit.Signal = -1, syscall.Signal(status)
	}
	return exit
}

// signal reaches the leader also when it left its group.
func (s *sight) signal(_ int, sig syscall.Signal) {
	_ = unix.PidfdSendSignal(s.fd, sig, nil, 0)
}

func (s *sight) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}

// signalGroup signals the group of a leader that is not reaped.
func signalGroup(pid int, sig syscall.Signal) { _ = unix.Kill(-pid, sig) }

// Unread is how many bytes of its stdin the child has not read yet.
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
