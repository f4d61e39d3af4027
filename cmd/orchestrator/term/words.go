package term

import (
	"cmp"
	"fmt"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/object"
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
func VerdictWord(r *wire.ReviewView) string { return cmp.Or(OneLine(r.Verdict), "open") }

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

// Colon returns a text after a colon, or nothing for an empty text.
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
