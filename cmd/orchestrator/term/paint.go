// Package term formats text for a terminal: colors, tables, cards, widths, durations, sizes and
// pages of the manual. It also writes output that may have lost its reader.
//
// ID, OneLine and Clock escape the control characters of untrusted text. Clip, Pad and
// Width expect text that is escaped already.
package term

import (
	"os"

	"golang.org/x/term"

	"orchestrator/wire"
	"orchestrator/wire/control"
)

// A Paint colors words if it is true. Color never adds information to the words.
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

// State paints a text in the color of an agent's state.
func (p Paint) State(s control.State, text string) string {
	switch s {
	case control.StateRunning:
		return p.Good(text)
	case control.StateStarting, control.StateWaiting, control.StateStopping, control.StateBackoff:
		return p.Warn(text)
	case control.StateFailed, control.StateStalled:
		return p.Bad(text)
	}
	return p.Dim(text)
}

// Task paints a text in the color of a task's state.
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

// Agent paints a text in the color of an agent's name. A name always has the same color.
func (p Paint) Agent(name, text string) string {
	hues := [...]string{"36", "35", "34", "32", "33", "96", "95", "94"}
	sum := uint32(2166136261)
	for _, c := range []byte(name) {
		sum = (sum ^ uint32(c)) * 131
	}
	return p.ink(hues[sum>>6%uint32(len(hues))], text) // the lowest bits depend only on the last letter
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
