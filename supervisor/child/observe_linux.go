package child

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// An Observed is a process that is not a child of this one.
type Observed struct{ fd int }

// Observe returns a process that can be asked whether it has ended. The pid may be used again later.
func Observe(pid int) (*Observed, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	return &Observed{fd: fd}, nil
}

// Ended reports whether the process has ended. how is "" if the kernel does not tell: before Linux
// 6.15, and until the parent of the process has read it. Of a nil Observed it reports no end.
func (o *Observed) Ended() (how string, ended bool) {
	if o == nil {
		return "", false
	}
	ready := []unix.PollFd{{Fd: int32(o.fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(ready, 0); err != nil || n == 0 {
		return "", false
	}
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	if err := unix.IoctlPidfdInfo(o.fd, &info); err != nil || info.Mask&unix.PIDFD_INFO_EXIT == 0 {
		return "", true
	}
	status := syscall.WaitStatus(info.Exit_code)
	if status.Signaled() {
		return Exit{Signal: status.Signal()}.String(), true
	}
	return Exit{Code: status.ExitStatus()}.String(), true
}

// Close closes the descriptor of Observe.
func (o *Observed) Close() { _ = unix.Close(o.fd) }
