package child

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// shimName is the name under which this binary sets limits on itself and then becomes the
// child. Limits that are set from outside would come too late: the child could fork before.
const shimName = "orchestrator-limits"

// forShim returns the limits that the shim must set, in text form, or "".
func (l Limits) forShim(leaf *leaf) string {
	var words []string
	if l.OpenFiles > 0 {
		words = append(words, "files="+strconv.Itoa(l.OpenFiles))
	}
	if l.Memory > 0 && !leaf.boundsMemory() {
		words = append(words, "memory="+strconv.FormatInt(l.Memory, 10))
	}
	return strings.Join(words, ",")
}

// shimCommand wraps a command in the shim.
func shimCommand(limits, path string, argv []string) (string, []string) {
	self, err := os.Executable()
	if err != nil {
		self = "/proc/self/exe"
	}
	return self, append([]string{shimName, limits, path}, argv...)
}

// Shim does the work of the shim or of the watchdog if this process was started as one; then it
// does not return. Every program with a Host must call it first in main.
func Shim() {
	if len(os.Args) == 1 && os.Args[0] == watchdogName {
		keepWatch(os.Stdin)
		os.Exit(0)
	}
	if len(os.Args) < 4 || os.Args[0] != shimName {
		return
	}
	path, argv := os.Args[2], os.Args[3:]
	if err := setLimits(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "orchestrator: cannot set the limits of this agent (%s): %v\n", os.Args[1], err)
		os.Exit(126)
	}
	err := syscall.Exec(path, argv, os.Environ())
	fmt.Fprintf(os.Stderr, "orchestrator: %v\n", startError(path, err))
	os.Exit(126)
}

func setLimits(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(word, "=")
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return err
		}
		resource := unix.RLIMIT_NOFILE
		if name == "memory" {
			resource = unix.RLIMIT_AS
		}
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
