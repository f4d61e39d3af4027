package live

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardEnv is set in the environment of a guard.
const guardEnv = "ORC_TERMINAL_GUARD"

// IsGuard reports whether this process is a guard.
func IsGuard() bool { return os.Getenv(guardEnv) != "" }

// left restores a terminal after its program was killed: it leaves the full screen, the mouse,
// pasted text in brackets and the keyboard's extensions, and shows the cursor.
const left = "\x1b[?1049l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[<u\x1b[?25h\x1b[0m\r\n"

// A guarded terminal: its mode before, and the process group that had it.
type guarded struct {
	Mode  unix.Termios
	Group int64
}

// StartGuard starts a process that gives the terminal back if this one is killed. The returned function ends it.
// Without a guard, a killed program leaves the terminal as it was.
func StartGuard(terminal *os.File) (end func()) {
	nothing := func() {}
	mode, err := unix.IoctlGetTermios(int(terminal.Fd()), readMode)
	if err != nil {
		return nothing
	}
	self, err := os.Executable()
	if err != nil {
		return nothing
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nothing
	}
	process, err := os.StartProcess(self, []string{self}, &os.ProcAttr{
		Dir: "/", Env: append(os.Environ(), guardEnv+"=1"), Files: []*os.File{in, terminal, nil}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	_ = in.Close()
	if err != nil {
		_ = out.Close()
		return nothing
	}
	var state bytes.Buffer
	_ = binary.Write(&state, binary.NativeEndian, guarded{Mode: *mode, Group: int64(unix.Getpgrp())})
	_, _ = out.Write(state.Bytes())
	return sync.OnceFunc(func() {
		_, _ = out.Write([]byte{'.'})
		_ = out.Close()
		_, _ = process.Wait()
	})
}

// Guard waits until the program that started this process has ended, and gives the terminal back if it was killed.
func Guard() {
	signal.Ignore(unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGTSTP, unix.SIGTTOU, unix.SIGTTIN, unix.SIGPIPE)
	var before guarded
	if binary.Read(os.Stdin, binary.NativeEndian, &before) != nil {
		return
	}
	if rest, _ := io.ReadAll(os.Stdin); len(rest) > 0 {
		return // it ended in order
	}
	_, _ = os.Stdout.WriteString(left)
	group, err := unix.IoctlGetInt(1, unix.TIOCGPGRP)
	if err != nil {
		return
	}
	if int64(group) != before.Group { // a shell with job control has the terminal
		time.Sleep(shellSets)
		now, err := unix.IoctlGetTermios(1, readMode)
		if err != nil || now.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) != 0 {
			return // as most shells do, it has set the mode itself; dash leaves it raw
		}
	}
	_ = unix.IoctlSetTermios(1, setMode, &before.Mode)
}

// shellSets is how long a shell has to set the mode of its terminal.
const shellSets = 200 * time.Millisecond
