package live

import "golang.org/x/sys/unix"

// The ioctl requests that read and set the mode of a terminal.
const (
	readMode = unix.TIOCGETA
	setMode  = unix.TIOCSETA
)

// disabled is the control character that turns a special key off.
const disabled = 0xff
