package watch

import (
	"os"

	"golang.org/x/sys/unix"
)

// shellBehind reports whether a shell would wake this process, were it put to sleep: a
// shell that has jobs, of the same session. Without one, as in a terminal that was
// opened only for this program, it would not even fall asleep, and wait for ever to
// be woken.
func shellBehind() bool {
	parent := os.Getppid()
	theirs, err := unix.Getsid(parent)
	ours, failed := unix.Getsid(0)
	group, gone := unix.Getpgid(parent)
	return err == nil && failed == nil && gone == nil && theirs == ours && group != unix.Getpgrp()
}
