package live

import "golang.org/x/sys/unix"

// How the mode of a terminal is read and set.
const (
	readMode = unix.TIOCGETA
	setMode  = unix.TIOCSETA
)

// disabled is a key that there is not.
const disabled = 0xff
