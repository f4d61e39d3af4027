package api

import "golang.org/x/sys/unix"

// credOf returns the credentials of the other end of a unix socket.
func credOf(fd uintptr) (*unix.Xucred, error) {
	return unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
}
