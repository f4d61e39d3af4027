package api

import (
	"errors"

	"golang.org/x/sys/unix"
)

// credOf returns the user and the process at the other end of a unix socket.
func credOf(fd uintptr) (uid, pid int, err error) {
	cred, err := unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return -1, 0, err
	}
	pid, err = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	return int(cred.Uid), pid, err
}

// hold reports whether the process at the other end of a socket still exists. Its pid may have been reused.
func hold(_ uintptr, pid int) (there func() bool, err error) {
	return func() bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }, nil
}
