package cli

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/term"
)

// Hangups are the terminals that this program was started in. When one is hung up,
// the person at it is gone: its window was closed, or its connection
// has ended.
type Hangups struct {
	terminals []unix.PollFd
	Wake      [2]*os.File // the end of the second one ends watch
}

// Hangups finds the terminals among stdin and stdout; nil where there is none.
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

// Happened reports whether one is hung up now.
func (g *Hangups) Happened() bool {
	if g == nil {
		return false
	}
	now := append([]unix.PollFd(nil), g.terminals...)
	n, err := unix.Poll(now, 0)
	return err == nil && n > 0 && hungUp(now)
}

// Watch waits until one is hung up, which is what it says, or until Close. It asks
// for nothing else of a terminal: what is typed is for others.
func (g *Hangups) Watch() bool {
	of := append([]unix.PollFd{{Fd: int32(g.Wake[0].Fd()), Events: unix.POLLIN}}, g.terminals...)
	for {
		_, err := unix.Poll(of, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || of[0].Revents != 0:
			return false
		default: // systems that cannot wait for terminals say so here
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

func (g *Hangups) Close() {
	if g != nil {
		_ = g.Wake[1].Close()
	}
}
