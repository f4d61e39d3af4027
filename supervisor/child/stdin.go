package child

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A stdin is the write end of a child's stdin.
type stdin struct {
	*os.File
	conn syscall.RawConn
}

func newStdin(file *os.File) (*stdin, error) {
	conn, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &stdin{File: file, conn: conn}, nil
}

// TryWrite writes as much as fits without blocking. It ignores the deadline of earlier writes.
func (s *stdin) TryWrite(text []byte) (n int, err error) {
	closed := s.conn.Control(func(fd uintptr) {
		for {
			if n, err = unix.Write(int(fd), text); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	switch {
	case closed != nil:
		return 0, os.ErrClosed
	case errors.Is(err, unix.EAGAIN):
		return 0, nil
	case err != nil:
		return 0, os.NewSyscallError("write", err)
	}
	return n, nil
}
