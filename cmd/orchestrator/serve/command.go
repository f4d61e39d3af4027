package serve

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/first/form"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// commands runs the command lines that programs pass to this orchestrator: see package first.
type commands struct {
	up               *cli.App // which runs this orchestrator
	file             string
	stateDir, socket string
}

// Run runs a command line.
func (c *commands) Run(ctx context.Context, text []byte, again http.RoundTripper, begin func() (io.Writer, error)) *wire.Error {
	command, ok := form.Read(text)
	switch {
	case !ok, !filepath.IsAbs(command.Dir), slices.ContainsFunc(command.Environ, isUnknown):
		return &wire.Error{Code: wire.CodeMalformed, Message: "the command line cannot be read"}
	case command.Program != form.Program() || zone(command.Environ) != zone(os.Environ()):
		return &wire.Error{Code: wire.CodeConflict, Message: "the command was sent by another program, or from another time zone"}
	}
	to, err := begin()
	if err != nil { // the caller has gone
		return nil
	}
	s := &screens{to: to}
	served := &cli.Served{File: c.file, StateDir: c.stateDir, Socket: c.socket}
	served.Through = &started{RoundTripper: again, screens: s}
	a := cli.New(cli.Env{
		Stdin:      strings.NewReader(""),
		Stdout:     s.stream(form.Stdout, command.Columns[0]),
		Stderr:     s.stream(form.Stderr, command.Columns[1]),
		Environ:    command.Environ,
		Dir:        command.Dir,
		Over:       ctx.Done(),
		SocketPath: c.up.SocketPath,
		Root:       c.up.Root,
		OpenRecord: c.up.OpenRecord,
		Served:     served,
	})
	exit := a.Run(command.Args)
	if served.Declined {
		s.decline()
	} else {
		s.exit(exit)
	}
	return nil
}

// isUnknown reports whether a variable is not one that programs pass on.
func isUnknown(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return !slices.Contains(form.Variables, name)
}

// zone returns the variable that selects the time zone of an environment.
func zone(environ []string) string {
	i := slices.IndexFunc(environ, func(variable string) bool { return strings.HasPrefix(variable, "TZ=") })
	if i < 0 {
		return ""
	}
	return environ[i]
}

// maxUnsent bounds the output that waits until it is sent.
const maxUnsent = 64 << 10

// screens are the stdout and stderr of a command in another process. Output waits for the end of the command, so
// that it is sent at once, and not at all if the command is declined. Progress on stderr does not wait.
type screens struct {
	mu      sync.Mutex
	to      io.Writer
	unsent  []byte
	started bool // the command has made a request
	err     error
}

// stream returns the writer for frames of a kind. It is a terminal if it has columns.
func (s *screens) stream(kind byte, columns int) io.Writer {
	w := &frames{screens: s, kind: kind}
	if columns > 0 {
		return term.Screen{Writer: w, Wide: columns}
	}
	return w
}

// start makes progress visible from now on.
func (s *screens) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true
}

// write adds a frame.
func (s *screens) write(kind byte, text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsent = form.AppendFrame(s.unsent, kind, text)
	if len(s.unsent) > maxUnsent || kind == form.Stderr && s.started {
		s.send()
	}
	return s.err
}

// send sends what waits. The lock is held.
func (s *screens) send() {
	if s.err == nil {
		_, s.err = s.to.Write(s.unsent)
	}
	s.unsent = s.unsent[:0]
}

func (s *screens) exit(code int) { s.end(form.Exit, strconv.Itoa(code)) }

// decline drops the output and leaves the command to its caller.
func (s *screens) decline() {
	s.mu.Lock()
	s.unsent = s.unsent[:0]
	s.mu.Unlock()
	s.end(form.Decline, "")
}

func (s *screens) end(kind byte, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsent = form.AppendFrame(s.unsent, kind, []byte(text))
	s.send()
}

// frames writes the frames of one stream. Frames are small enough for the buffer of the caller.
type frames struct {
	screens *screens
	kind    byte
}

func (f *frames) Write(text []byte) (n int, err error) {
	for chunk := range slices.Chunk(text, maxUnsent) {
		if err := f.screens.write(f.kind, chunk); err != nil {
			return n, err
		}
		n += len(chunk)
	}
	return n, nil
}

// started tells the screens about the first request of a command.
type started struct {
	http.RoundTripper
	screens *screens
}

func (s *started) RoundTrip(r *http.Request) (*http.Response, error) {
	s.screens.start()
	return s.RoundTripper.RoundTrip(r)
}
