// Package term lays text out for a terminal: colors, tables, cards of labels and values,
// widths, durations, sizes, pages of the manual, and output that may have lost its reader.
//
// ID, OneLine and Clock make a text of an agent inert: a terminal obeys nothing in it.
// Clip, Pad and Width take text that is inert already.
package term

import (
	"os"

	"golang.org/x/term"

	"orchestrator/wire"
)

// Paint colours words; false leaves them as they are. Colour never says
// anything that the words do not.
type Paint bool

func (p Paint) ink(code, text string) string {
	if !p || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bad paints a text as a failure.
func (p Paint) Bad(text string) string { return p.ink("1;31", text) }

// Good paints a text as a success.
func (p Paint) Good(text string) string { return p.ink("32", text) }

// Warn paints a text as a warning.
func (p Paint) Warn(text string) string { return p.ink("33", text) }

// Strong makes a text stand out.
func (p Paint) Strong(text string) string { return p.ink("1", text) }

// Dim makes a text recede.
func (p Paint) Dim(text string) string { return p.ink("2", text) }

// State is the colour of an agent's state.
func (p Paint) State(s wire.State, text string) string {
	switch s {
	case wire.StateRunning:
		return p.Good(text)
	case wire.StateStarting, wire.StateWaiting, wire.StateStopping, wire.StateBackoff:
		return p.Warn(text)
	case wire.StateFailed, wire.StateStalled:
		return p.Bad(text)
	}
	return p.Dim(text)
}

// Task is the colour of a task's state.
func (p Paint) Task(s wire.TaskState, text string) string {
	switch s {
	case wire.TaskDone, wire.TaskRunning:
		return p.Good(text)
	case wire.TaskPlanReview, wire.TaskNeedsHuman, wire.TaskInReview:
		return p.Warn(text)
	case wire.TaskFailed:
		return p.Bad(text)
	case wire.TaskCancelled:
		return p.Dim(text)
	}
	return text
}

// Agent is the colour of a name in a stream of lines: the same name has the
// same colour every time.
func (p Paint) Agent(name, text string) string {
	hues := [...]string{"36", "35", "34", "32", "33", "96", "95", "94"}
	sum := uint32(2166136261)
	for _, c := range []byte(name) {
		sum = (sum ^ uint32(c)) * 131
	}
	return p.ink(hues[sum>>6%uint32(len(hues))], text) // the lowest bits are those of the last letter
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// Columns returns the width of the terminal behind a stream, or fallback.
func Columns(stream any, fallback int) int {
	if known, ok := stream.(interface{ Columns() int }); ok {
		return known.Columns()
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
