package term

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/control"
)

// ShownPayload is the width of a payload in a line. A payload can be of any size.
const ShownPayload = 60

// EntryText returns a line for people. Lines of event:log begin with a level above info and
// end with their context.
func EntryText(level, text string, context wire.Raw, p Paint) string {
	text = wire.Visible(text)
	switch level {
	case "warn":
		text = p.Warn("warn:") + " " + text
	case "error":
		text = p.Bad("error:") + " " + text
	}
	if len(context) > 0 {
		text += " " + p.Dim(wire.Visible(string(context)))
	}
	return text
}

// TaskCell returns the current task of an agent, or the one with the most progress.
func TaskCell(tasks []control.TaskLabel) string {
	if len(tasks) == 0 {
		return "-"
	}
	first := slices.MaxFunc(tasks, func(a, b control.TaskLabel) int { return cmp.Compare(begun(a), begun(b)) })
	said := ID(first.ID) + " " + Clip(OneLine(first.Name), 24)
	if progress := Percent(first.Progress); progress != "" {
		said += " " + progress
	}
	if len(tasks) > 1 {
		said += fmt.Sprintf(" +%d", len(tasks)-1)
	}
	return said
}

// begun returns the progress of a task. Tasks that are not started come last.
func begun(t control.TaskLabel) float64 {
	if t.State == wire.TaskAssigned {
		return -1
	}
	return t.Progress
}

// NeedsCell returns the ids of a few of the tasks that a task waits for.
func NeedsCell(ids []string) string {
	const few = 3
	var shown []string
	for _, id := range ids[:min(few, len(ids))] {
		shown = append(shown, ID(id))
	}
	if len(ids) > few {
		shown = append(shown, fmt.Sprintf("+%d", len(ids)-few))
	}
	return strings.Join(shown, " ")
}

// OptionWords returns the options of a question as they are typed, with differing labels.
func OptionWords(options []wire.Option) string {
	var words []string
	for i := range options {
		words = append(words, "["+OptionWord(&options[i])+"]")
	}
	return strings.Join(words, " ")
}

// OptionWord returns an option as it is typed, and its label if that differs.
func OptionWord(o *wire.Option) string {
	word := OneLine(o.Value)
	if o.Label != "" && o.Label != o.Value {
		word += ": " + OneLine(o.Label)
	}
	return word
}
