package term

import (
	"cmp"
	"fmt"
	"time"

	"orchestrator/wire"
)

// Ago is how long something is over.
func Ago(stamp string, now time.Time) string {
	passed, ok := Between(stamp, wire.Timestamp(now))
	if !ok {
		return "-"
	}
	return Duration(max(0, passed)) + " ago"
}

// VerdictWord returns the word for a verdict.
func VerdictWord(r *wire.ReviewView) string { return cmp.Or(OneLine(r.Verdict), "open") }

// AgentNote is what is worth saying about an agent in the table.
func AgentNote(v wire.AgentView) string {
	said := wire.Visible(v.Reason)
	if v.State == wire.StateBackoff && v.NextStartMS > 0 {
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

// TextsOf reads a list of texts out of the details of a refusal.
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

// WholeID reports whether a word is as long and looks as the ids that the
// orchestrator makes.
func WholeID(word string) bool {
	return len(word) == 36 && word[8] == '-' && word[13] == '-' && word[18] == '-' && word[23] == '-'
}

// TaskLabel is how a sentence speaks of a task.
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

// Between is the time from one moment to another, if both are known.
func Between(from, to string) (time.Duration, bool) {
	start, err := time.Parse(time.RFC3339Nano, from)
	if err != nil {
		return 0, false
	}
	end, err := time.Parse(time.RFC3339Nano, to)
	return end.Sub(start), err == nil
}
