package child

import (
	"os"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// openPty creates a terminal for the child's stdin and stdout. It is raw before the child gets
// it. Otherwise the line discipline would cut lines at 4095 bytes, change line ends, and echo
// messages as if the child had sent them.
//
// The master that package pty opens is blocking and supports neither deadlines nor Close while
// it is read. A non-blocking duplicate supports both.
func (c *Child) openPty(e *ends) error {
	master, slave, err := pty.Open()
	if err != nil {
		return err
	}
	defer master.Close()
	defer slave.Close()
	if _, err := term.MakeRaw(int(slave.Fd())); err != nil {
		return err
	}
	if err := plainEcho(int(slave.Fd())); err != nil {
		return err
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		return err
	}
	fd, err := dupFD(int(master.Fd()))
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "terminal")
	if c.stdin, err = newStdin(file); err != nil {
		return err
	}
	theirs, err := dupFD(int(slave.Fd()))
	if err != nil {
		return err
	}
	e.theirs = append(e.theirs, theirs)
	if err := unix.SetNonblock(theirs, false); err != nil {
		return err
	}
	e.stdin, e.stdout = theirs, theirs
	c.out, err = newPump(Stdout, file, c.spec.Output)
	return err
}

// dupFD returns a non-blocking duplicate of fd that is closed on exec.
func dupFD(fd int) (int, error) {
	dup, err := unix.FcntlInt(uintptr(fd), syscall.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("fcntl", err)
	}
	if err := unix.SetNonblock(dup, true); err != nil {
		closeAll(dup)
		return -1, os.NewSyscallError("fcntl", err)
	}
	return dup, nil
}

// Resize sets the window size of a child's terminal.
func (c *Child) Resize(rows, cols uint16) error {
	if !c.spec.Pty {
		return nil
	}
	conn, err := c.stdin.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = conn.Control(func(fd uintptr) {
		set = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	})
	if err != nil {
		return err
	}
	return set
}
