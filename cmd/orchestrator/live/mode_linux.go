package live

import "golang.org/x/sys/unix"

// How the mode of a terminal is read and set.
const (
	readMode = unix.TCGETS
	setMode  = unix.TCSETS
)

// disabled is a key that there is not.
const disabled = 0
