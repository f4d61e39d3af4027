package watch

import (
	"os"

	"golang.org/x/sys/unix"
)

// shellBehind reports whether a shell with job control would continue this process after a
// stop. Such a shell is the parent, in the same session and in another process group.
// Without one, the process would not stop, and would wait forever to be continued.
func shellBehind() bool {
	parent := os.Getppid()
	theirs, err := unix.Getsid(parent)
	ours, failed := unix.Getsid(0)
	group, gone := unix.Getpgid(parent)
	return err == nil && failed == nil && gone == nil && theirs == ours && group != unix.Getpgrp()
}
