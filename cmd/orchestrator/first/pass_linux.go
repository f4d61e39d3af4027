package first

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"orchestrator/cmd/orchestrator/first/form"
)

// pass passes a command line to the running orchestrator, prints the answer, and exits. It returns nil if main must
// run the command.
func pass(args []string) *Failure {
	environ, ok := environment()
	if !ok {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil
	}
	socket := socketAbove(dir)
	if socket == "" {
		return nil
	}
	fd, ok := dial(socket)
	if !ok {
		return nil
	}
	defer syscall.Close(fd)
	wide := [2]int{columns(1), columns(2)}
	c := form.Command{Program: form.Program(), Dir: dir, Columns: wide, Args: args, Environ: environ}
	if c.Program == "" || !send(fd, request(&c)) {
		return nil
	}
	a := answer{fd: fd}
	if !a.begins(isQuiet(args)) {
		return nil
	}
	return a.print(socket, &screen{to: os.Stdout, terminal: wide[0] > 0}, &screen{to: os.Stderr, terminal: wide[1] > 0})
}

// environment returns the variables that plain commands read. It reports false if another variable may select
// another team, or changes its file.
func environment() (kept []string, ok bool) {
	for _, variable := range os.Environ() {
		name, _, _ := bytes.Cut([]byte(variable), []byte("="))
		if bytes.HasPrefix(name, []byte("ORC_")) {
			return nil, false
		}
		if slices.Contains(form.Variables, string(name)) {
			kept = append(kept, variable)
		}
	}
	return kept, true
}

// socketAbove returns the socket of the team whose file is in a folder or the nearest one above, or "". It only
// guesses: the orchestrator there checks that the folder selects it.
func socketAbove(dir string) string {
	for {
		if _, err := os.Lstat(dir + "/orchestrator.hcl"); err == nil {
			socket := dir + "/.orchestrator/api.sock"
			if len(socket) >= 100 {
				return ""
			}
			return socket
		}
		end := len(dir) - 1
		for end > 0 && dir[end] != '/' {
			end--
		}
		if end <= 0 {
			return ""
		}
		dir = dir[:end]
	}
}

// isQuiet reports whether a command prints no progress.
func isQuiet(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return arg == "-q" || arg == "--quiet" || arg == "--json" })
}

// dial connects to a socket of this user or of root.
func dial(socket string) (fd int, ok bool) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, false
	}
	err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: socket})
	if err == nil {
		var peer *syscall.Ucred
		peer, err = syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		if err == nil && (int(peer.Uid) == os.Geteuid() || peer.Uid == 0) {
			return fd, true
		}
	}
	_ = syscall.Close(fd)
	return -1, false
}

// columns returns the width of the terminal at a stream, or 0 if it is none or its width is unknown.
func columns(fd uintptr) int {
	var size struct{ rows, columns, x, y uint16 }
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size))); errno != 0 {
		return 0
	}
	return int(size.columns)
}

// request returns the request that passes a command. In HTTP 1.0 the answer has no chunks and ends with the
// connection.
func request(c *form.Command) []byte {
	body := c.Append(nil)
	b := []byte("POST " + form.Path + " HTTP/1.0\r\nHost: localhost\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n")
	return append(b, body...)
}

// send writes a request. It reports false if that failed.
func send(fd int, text []byte) bool {
	for len(text) > 0 {
		n, err := syscall.Write(fd, text)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return false
		}
		text = text[n:]
	}
	return true
}

// An answer is read from a socket.
type answer struct {
	fd   int
	text []byte // read and not used yet
}

// begins waits for the head of the answer. The orchestrator sends it before it runs the command. Without a
// success, begins reports false.
func (a *answer) begins(quiet bool) bool {
	began := time.Now()
	a.patience(1200 * time.Millisecond)
	for {
		if head, rest, ok := bytes.Cut(a.text, []byte("\r\n\r\n")); ok {
			a.text = rest
			a.patience(0)
			return bytes.HasPrefix(head, []byte("HTTP/1.0 200 "))
		}
		switch err := a.read(); {
		case err == syscall.EAGAIN && !quiet:
			seconds := int(time.Since(began).Seconds())
			_, _ = os.Stderr.WriteString("Waiting for the orchestrator to answer, " + strconv.Itoa(seconds) + "s\n")
			a.patience(10 * time.Second)
		case err == syscall.EAGAIN:
		case err != nil:
			return false
		}
	}
}

// patience sets how long a read may wait; 0: for ever.
func (a *answer) patience(d time.Duration) {
	limit := syscall.NsecToTimeval(int64(d))
	_ = syscall.SetsockoptTimeval(a.fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &limit)
}

// read reads more of the answer. It returns ENOTCONN at the end.
func (a *answer) read() error {
	if cap(a.text)-len(a.text) < 4<<10 {
		a.text = append(make([]byte, 0, 2*len(a.text)+64<<10), a.text...)
	}
	n, err := syscall.Read(a.fd, a.text[len(a.text):cap(a.text)])
	switch {
	case err == syscall.EINTR:
		return nil
	case err != nil:
		return err
	case n == 0:
		return syscall.ENOTCONN
	}
	a.text = a.text[:len(a.text)+n]
	return nil
}

// print prints the answer and exits. It returns nil if the orchestrator declines the command.
func (a *answer) print(socket string, stdout, stderr *screen) *Failure {
	var failed error // of the first write to stdout; the exit code of a failure comes before it
	for {
		kind, text, rest, ok := form.NextFrame(a.text)
		if !ok {
			if err := a.read(); err != nil {
				return &Failure{Socket: socket}
			}
			continue
		}
		switch kind {
		case form.Stdout:
			if failed == nil {
				failed = stdout.write(text)
			}
		case form.Stderr:
			_ = stderr.write(text)
		case form.Decline:
			return nil
		case form.Exit:
			code, err := strconv.Atoi(string(text))
			switch {
			case err != nil:
				return &Failure{Socket: socket}
			case code == 0 && failed != nil:
				return &Failure{Socket: socket, Err: failed}
			}
			os.Exit(code)
		}
		a.text = rest
	}
}
