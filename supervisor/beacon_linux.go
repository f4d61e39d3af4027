package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lightBeacon takes a second lock of a state directory that no program can delete: an
// abstract unix socket that is named after the directory and disappears with the
// process. The lock file alone is not enough, because another orchestrator that makes a
// deleted directory again would kill the agents of the first.
func lightBeacon(dir string) (io.Closer, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(path))
	name := fmt.Sprintf("@orchestrator-%d-%s", os.Geteuid(), hex.EncodeToString(sum[:16]))
	l, err := net.Listen("unix", name)
	if err == nil {
		return l, nil
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return nil, nil // no abstract sockets here: the lock file has to do
	}
	pid, uid := listenerOf(name)
	if uid != os.Geteuid() {
		return nil, nil // somebody else took the name, to keep us out
	}
	return nil, &BusyError{Dir: dir, PID: pid}
}

// listenerOf returns which process of which user listens at a unix socket.
func listenerOf(name string) (pid, uid int) {
	conn, err := net.DialTimeout("unix", name, time.Second)
	if err != nil {
		return 0, os.Geteuid()
	}
	defer conn.Close()
	uid = -1
	if raw, err := conn.(*net.UnixConn).SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
				pid, uid = int(cred.Pid), int(cred.Uid)
			}
		})
	}
	return pid, uid
}
