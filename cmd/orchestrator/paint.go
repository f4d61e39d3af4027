package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"orchestrator/wire"
)

// paint colours words; false leaves them as they are. Colour never says
// anything that the words do not.
type paint bool

func (p paint) ink(code, text string) string {
	if !p || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p paint) bad(text string) string    { return p.ink("1;31", text) }
func (p paint) good(text string) string   { return p.ink("32", text) }
func (p paint) warn(text string) string   { return p.ink("33", text) }
func (p paint) strong(text string) string { return p.ink("1", text) }
func (p paint) dim(text string) string    { return p.ink("2", text) }

// state is the colour of an agent's state.
func (p paint) state(s wire.State, text string) string {
	switch s {
	case wire.StateRunning:
		return p.good(text)
	case wire.StateStarting, wire.StateWaiting, wire.StateStopping, wire.StateBackoff:
		return p.warn(text)
	case wire.StateFailed, wire.StateStalled:
		return p.bad(text)
	}
	return p.dim(text)
}

// task is the colour of a task's state.
func (p paint) task(s wire.TaskState, text string) string {
	switch s {
	case wire.TaskDone, wire.TaskRunning:
		return p.good(text)
	case wire.TaskPlanReview, wire.TaskNeedsHuman, wire.TaskInReview:
		return p.warn(text)
	case wire.TaskFailed:
		return p.bad(text)
	case wire.TaskCancelled:
		return p.dim(text)
	}
	return text
}

// agent is the colour of a name in a stream of lines: the same name has the
// same colour every time.
func (p paint) agent(name, text string) string {
	hues := [...]string{"36", "35", "34", "32", "33", "96", "95", "94"}
	sum := uint32(2166136261)
	for _, c := range []byte(name) {
		sum = (sum ^ uint32(c)) * 131
	}
	return p.ink(hues[sum>>6%uint32(len(hues))], text) // the lowest bits are those of the last letter
}

// paint reports whether a stream takes colour: --color, then NO_COLOR and TERM,
// then whether it is a terminal.
func (a *app) paint(w io.Writer) paint {
	switch {
	case a.flags.color.value == "always":
		return true
	case a.flags.color.value == "never" || a.env("NO_COLOR") != "" || a.env("TERM") == "dumb":
		return false
	}
	return paint(isTerminal(w))
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// columns returns the width of the terminal behind a stream, or fallback.
func columns(stream any, fallback int) int {
	if known, ok := stream.(interface{ columns() int }); ok {
		return known.columns()
	}
	file, ok := stream.(*os.File)
	if !ok {
		return fallback
	}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		return width
	}
	return fallback
}
