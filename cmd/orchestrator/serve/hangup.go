package serve

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/term"
)

// hangups watches the terminals that this program was started in. A terminal is hung up
// when its window is closed or its connection ends.
type hangups struct {
	terminals []unix.PollFd
	wake      [2]*os.File // closing the second one ends watch
}

// newHangups returns the terminals among streams, or nil if there are none.
func newHangups(streams ...any) *hangups {
	h := new(hangups)
	for _, stream := range streams {
		if file, ok := stream.(*os.File); ok && term.IsTerminal(file) {
			h.terminals = append(h.terminals, unix.PollFd{Fd: int32(file.Fd())})
		}
	}
	var err error
	if len(h.terminals) == 0 {
		return nil
	}
	if h.wake[0], h.wake[1], err = os.Pipe(); err != nil {
		return nil
	}
	return h
}

// happened reports whether a terminal is hung up now.
func (h *hangups) happened() bool {
	if h == nil {
		return false
	}
	now := append([]unix.PollFd(nil), h.terminals...)
	n, err := unix.Poll(now, 0)
	return err == nil && n > 0 && hungUp(now)
}

// watch waits for a hangup or for close, and reports whether a terminal was hung up. It
// reads no input.
func (h *hangups) watch() bool {
	of := append([]unix.PollFd{{Fd: int32(h.wake[0].Fd()), Events: unix.POLLIN}}, h.terminals...)
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

func (h *hangups) close() {
	if h != nil {
		_ = h.wake[1].Close()
	}
}
