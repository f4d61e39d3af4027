package api

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// peer returns the user at the other end of a unix socket.
func peer(conn net.Conn) (uid int, err error) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return -1, errors.New("not a unix socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return -1, err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, failed); err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}
