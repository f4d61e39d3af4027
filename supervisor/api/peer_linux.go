package api

import "golang.org/x/sys/unix"

// credOf returns the credentials of the other end of a unix socket.
func credOf(fd uintptr) (*unix.Ucred, error) {
	return unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
}
