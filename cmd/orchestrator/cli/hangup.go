package cli

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/term"
)

// Hangups watches the terminals that this program was started in. A terminal is hung up
// when its window is closed or its connection ends.
type Hangups struct {
	terminals []unix.PollFd
	Wake      [2]*os.File // closing the second one ends Watch
}

// Hangups returns the terminals among stdin and stdout, or nil if there are none.
func (a *App) Hangups() *Hangups {
	g := new(Hangups)
	for _, stream := range []any{a.Stdin, a.Stdout} {
		if file, ok := stream.(*os.File); ok && term.IsTerminal(file) {
			g.terminals = append(g.terminals, unix.PollFd{Fd: int32(file.Fd())})
		}
	}
	var err error
	if len(g.terminals) == 0 {
		return nil
	}
	if g.Wake[0], g.Wake[1], err = os.Pipe(); err != nil {
		return nil
	}
	return g
}

// Happened reports whether a terminal is hung up now.
func (h *Hangups) Happened() bool {
	if h == nil {
		return false
	}
	now := append([]unix.PollFd(nil), h.terminals...)
	n, err := unix.Poll(now, 0)
	return err == nil && n > 0 && hungUp(now)
}

// Watch waits for a hangup or for Close, and reports whether a terminal was hung up. It
// reads no input.
func (h *Hangups) Watch() bool {
	of := append([]unix.PollFd{{Fd: int32(h.Wake[0].Fd()), Events: unix.POLLIN}}, h.terminals...)
	for {
		_, err := unix.Poll(of, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || of[0].Revents != 0:
			return false
		default: // includes POLLNVAL of systems that cannot poll terminals
			return hungUp(of[1:])
		}
	}
}

func hungUp(terminals []unix.PollFd) bool {
	for i := range terminals {
		if terminals[i].Revents&unix.POLLHUP != 0 {
			return true
		}
	}
	return false
}

func (h *Hangups) Close() {
	if h != nil {
		_ = h.Wake[1].Close()
	}
}
