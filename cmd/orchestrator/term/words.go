package term

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// Ago returns how long ago a timestamp was.
func Ago(stamp string, now time.Time) string {
	passed, ok := Between(stamp, object.Timestamp(now))
	if !ok {
		return "-"
	}
	return Duration(max(0, passed)) + " ago"
}

// VerdictWord returns the word for a verdict.
func VerdictWord(r *session.ReviewView) string { return cmp.Or(OneLine(r.Verdict), "open") }

// AgentNote returns the remark on an agent in the table of agents.
func AgentNote(v control.AgentView) string {
	said := wire.Visible(v.Reason)
	if v.State == control.StateBackoff && v.NextStartMS > 0 {
		if said != "" {
			said += ", "
		}
		said += "starts in " + MS(v.NextStartMS)
	}
	if v.Awaited != "" {
		if said != "" {
			said += ", "
		}
		said += "awaited by up: it " + v.Awaited
	}
	return said
}

// HeldUp returns the reason why a coding agent does not work: "limited until 17:00: 5 hours",
// "waits for you q7", or "".
func HeldUp(v *control.Activity, now time.Time) string {
	switch {
	case v == nil:
		return ""
	case v.LimitedUntil != "":
		return "limited until " + Clock(v.LimitedUntil, now, "15:04") + Clip(Colon(v.LimitedBy), 60)
	case v.Question != "":
		return "waits for you " + wire.Visible(v.Question)
	}
	return ""
}

// Used returns the usage in words: "900 tokens in, 180 out, 0.7500 USD", or "".
func Used(u *activity.Used) string {
	if u == nil || *u == (activity.Used{}) {
		return ""
	}
	note := fmt.Sprintf("%d tokens in, %d out", u.Input, u.Output)
	if u.Cost > 0 {
		note += strings.TrimRight(fmt.Sprintf(", %.4f %s", u.Cost, OneLine(u.Currency)), " ")
	}
	return note
}

// TextsOf returns the strings of a list in the details of an error.
func TextsOf(detail any) []string {
	var texts []string
	items, _ := detail.([]any)
	for _, item := range items {
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// WholeID reports whether a word has the form of a full id of the orchestrator.
func WholeID(word string) bool {
	return len(word) == 36 && word[8] == '-' && word[13] == '-' && word[18] == '-' && word[23] == '-'
}

// TaskLabel returns the short id and the name of a task for use in a sentence.
func TaskLabel(id, name string) string {
	return fmt.Sprintf("%s \"%s\"", ID(id), Clip(OneLine(name), 40))
}

// Colon returns a text after a colon, or "" for an empty text.
func Colon(why string) string {
	if why == "" {
		return ""
	}
	return ": " + OneLine(why)
}

// Between returns the time from one timestamp to another. It reports false if either is
// invalid.
func Between(from, to string) (time.Duration, bool) {
	start, err := time.Parse(time.RFC3339Nano, from)
	if err != nil {
		return 0, false
	}
	end, err := time.Parse(time.RFC3339Nano, to)
	return end.Sub(start), err == nil
}

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

// NotBefore returns the time before which a task is not given out, or "" if it may be now.
func NotBefore(t *wire.Task, now time.Time, layout string) string {
	if t.Details == nil || t.After == "" {
		return ""
	}
	return Clock(t.After, now, layout)
}

// OptionWords returns the options of a question as they are typed, with differing labels.
func OptionWords(options []wire.Option) string {
	var words []string
	for i := range options {
		words = append(words, "["+OptionWord(&options[i])+"]")
	}
	return strings.Join(words, " ")
}

// OptionWord returns an option in its typed form, and its label if that differs.
func OptionWord(o *wire.Option) string {
	word := OneLine(o.Value)
	if o.Label != "" && o.Label != o.Value {
		word += ": " + OneLine(o.Label)
	}
	return word
}

// OwnMark returns the mark of a line that the orchestrator writes about an agent.
func OwnMark(l *control.LogLine) string {
	if l.Trouble {
		return "!"
	}
	return "."
}

// Redundant reports whether another line already tells people the same. Each exit is
// followed by an end, and each session message by its delivery.
func Redundant(l *control.LogLine) bool {
	return l.Kind == events.AgentEnded || l.Kind == events.SessionDelivered
}

// OfMail reports whether a kind of event is about messages and actors. There are too many of
// them to print them all; "bus tail" does.
func OfMail(kind string) bool {
	switch kind {
	case events.MessageSent, events.MessageAcked, events.ActorSeen, events.ActorStale:
		return true
	}
	return false
}

// Mark returns the mark of a task's state, one or two columns wide.
func Mark(s wire.TaskState) string {
	switch s {
	case wire.TaskRunning:
		return ">"
	case wire.TaskInReview:
		return "r"
	case wire.TaskVerifying:
		return "v"
	case wire.TaskNeedsHuman:
		return "?"
	case wire.TaskPlanning, wire.TaskPlanReview:
		return "p"
	case wire.TaskDone:
		return "ok"
	case wire.TaskFailed:
		return "x"
	case wire.TaskCancelled:
		return "-"
	}
	return "."
}

// lastLines is how many lines of the output of a failed command are shown.
const lastLines = 3

// FirstAndLast returns the first line of a text, and the last of the further lines that are not
// blank, for output of a command that has failed.
func FirstAndLast(text string) (first string, last []string) {
	first, rest, _ := strings.Cut(text, "\n")
	for line := range strings.Lines(rest) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" {
			last = append(last, wire.Visible(line))
		}
	}
	return wire.Visible(first), last[max(0, len(last)-lastLines):]
}
