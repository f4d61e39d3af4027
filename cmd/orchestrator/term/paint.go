// Package term formats text for a terminal: colors, tables, cards, widths, durations, sizes and
// pages of the manual. It also writes output that may have lost its reader.
//
// ID, OneLine and Clock escape the control characters of untrusted text. Clip, Pad and
// Width expect text that is escaped already.
package term

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"orchestrator/wire"
	"orchestrator/wire/control"
)

// A Paint colors words if it is true. Color never adds information to the words.
type Paint bool

// An Ink is a color or another style: the parameters of an escape sequence. The zero Ink is
// none.
type Ink string

// The inks of package term.
const (
	InkBad    Ink = "1;31"
	InkGood   Ink = "32"
	InkWarn   Ink = "33"
	InkStrong Ink = "1"
	InkDim    Ink = "2"
)

// Ink paints a text.
func (p Paint) Ink(ink Ink, text string) string {
	if !p || text == "" || ink == "" {
		return text
	}
	return "\x1b[" + string(ink) + "m" + text + "\x1b[0m"
}

// Bad paints a text as a failure.
func (p Paint) Bad(text string) string { return p.Ink(InkBad, text) }

// Good paints a text as a success.
func (p Paint) Good(text string) string { return p.Ink(InkGood, text) }

// Warn paints a text as a warning.
func (p Paint) Warn(text string) string { return p.Ink(InkWarn, text) }

// Strong makes a text stand out.
func (p Paint) Strong(text string) string { return p.Ink(InkStrong, text) }

// Dim makes a text recede.
func (p Paint) Dim(text string) string { return p.Ink(InkDim, text) }

// State paints a text in the color of an agent's state.
func (p Paint) State(s control.State, text string) string { return p.Ink(StateInk(s), text) }

// DiffInk returns the color of a line of a diff.
func DiffInk(line string) Ink {
	switch {
	case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		return InkStrong
	case strings.HasPrefix(line, "+"):
		return InkGood
	case strings.HasPrefix(line, "-"):
		return InkBad
	case strings.HasPrefix(line, "@@"):
		return InkDim
	}
	return ""
}

// StateInk returns the color of an agent's state.
func StateInk(s control.State) Ink {
	switch s {
	case control.StateRunning:
		return InkGood
	case control.StateStarting, control.StateWaiting, control.StateStopping, control.StateBackoff:
		return InkWarn
	case control.StateFailed, control.StateStalled:
		return InkBad
	}
	return InkDim
}

// Task paints a text in the color of a task's state.
func (p Paint) Task(s wire.TaskState, text string) string { return p.Ink(TaskInk(s), text) }

// Tally returns the number of tasks in each state, or "" without tasks.
func (p Paint) Tally(n control.TaskCounts) string {
	tally := ""
	add := func(number int, state wire.TaskState, more string) {
		if number > 0 {
			tally += "  " + p.Task(state, fmt.Sprintf("%d %s", number, state)) + more
		}
	}
	blocked := ""
	if n.Blocked > 0 {
		blocked = fmt.Sprintf(" (%d blocked)", n.Blocked)
	}
	add(n.Running, wire.TaskRunning, "")
	add(n.Assigned, wire.TaskAssigned, "")
	add(n.Planning, wire.TaskPlanning, "")
	add(n.PlanReview, wire.TaskPlanReview, "")
	add(n.NeedsHuman, wire.TaskNeedsHuman, "")
	add(n.InReview, wire.TaskInReview, "")
	add(n.Verifying, wire.TaskVerifying, "")
	add(n.Pending, wire.TaskPending, blocked)
	add(n.Done, wire.TaskDone, "")
	add(n.Failed, wire.TaskFailed, "")
	add(n.Cancelled, wire.TaskCancelled, "")
	return strings.TrimPrefix(tally, "  ")
}

// TaskInk returns the color of a task's state.
func TaskInk(s wire.TaskState) Ink {
	switch s {
	case wire.TaskDone, wire.TaskRunning, wire.TaskVerifying:
		return InkGood
	case wire.TaskPlanReview, wire.TaskNeedsHuman, wire.TaskInReview:
		return InkWarn
	case wire.TaskFailed:
		return InkBad
	case wire.TaskCancelled:
		return InkDim
	}
	return ""
}

// Agent paints a text in the color of an agent's name. A name always has the same color.
func (p Paint) Agent(name, text string) string {
	hues := [...]Ink{"36", "35", "34", "32", "33", "96", "95", "94"}
	sum := uint32(2166136261)
	for _, c := range []byte(name) {
		sum = (sum ^ uint32(c)) * 131
	}
	return p.Ink(hues[sum>>6%uint32(len(hues))], text) // the lowest bits depend only on the last letter
}

// A Screen is the terminal of another process, to which a writer leads.
type Screen struct {
	io.Writer
	Wide int
}

// Columns returns the width of the terminal.
func (s Screen) Columns() int { return s.Wide }

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	if _, ok := stream.(Screen); ok {
		return true
	}
	file, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// Rows returns the height of the terminal behind a stream, or 0.
func Rows(stream any) int {
	file, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	_, height, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return height
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
