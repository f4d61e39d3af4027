package api

import (
	"errors"

	"golang.org/x/sys/unix"
)

// credOf returns the user and the process at the other end of a unix socket.
func credOf(fd uintptr) (uid, pid int, err error) {
	cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return -1, 0, err
	}
	return int(cred.Uid), int(cred.Pid), nil
}

// hold pins the process at the other end of a socket, so that a reused pid is not taken for it. The returned function
// reports whether the process still exists, and releases it. Kernels before 6.5 cannot name the process at the other
// end; there the pid is opened.
func hold(fd uintptr, pid int) (there func() bool, err error) {
	handle, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if errors.Is(err, unix.ENOPROTOOPT) {
		handle, err = unix.PidfdOpen(pid, 0)
	}
	if err != nil {
		return nil, err
	}
	return func() bool {
		defer unix.Close(handle)
		return !errors.Is(unix.PidfdSendSignal(handle, 0, nil, 0), unix.ESRCH)
	}, nil
}
