package task

import (
	"strings"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// ShortIDs returns short ids for a command line.
func ShortIDs(ids []string) string {
	short := make([]string, len(ids))
	for i, id := range ids {
		short[i] = term.ID(id)
	}
	return strings.Join(short, " ")
}

// stateWords returns the state of a task. Needs names the tasks that it waits for.
func stateWords(t *wire.Task, needs string) string {
	switch {
	case t.State == wire.TaskDone:
		return joined("done", tookWords(" in ", t), resultWords(t.Result))
	case t.State == wire.TaskFailed:
		return joined("failed", tookWords(" after ", t), term.Colon(t.Error))
	case t.State == wire.TaskCancelled:
		return "cancelled" + term.Colon(t.Reason)
	case t.State == wire.TaskPending && needs != "":
		return "waits for " + needs
	case IsMatched(t):
		return "pending until it is matched with an agent"
	case t.State == wire.TaskPending && !AsksByName(t) && !HandedOn(t):
		return "queued until an agent takes it"
	case t.State == wire.TaskPending:
		return "queued"
	}
	return HeldWords(t)
}

// HeldWords returns the stored state of a task and its agent.
func HeldWords(t *wire.Task) string {
	if t.AssignedTo == "" || t.State.Final() {
		return wire.Visible(string(t.State))
	}
	on := " on "
	if t.State == wire.TaskAssigned {
		on = " to "
	}
	return wire.Visible(string(t.State)) + on + term.OneLine(t.AssignedTo)
}

func joined(parts ...string) string { return strings.Join(parts, "") }

// tookWords returns how long an ended task took, after the text before.
func tookWords(before string, t *wire.Task) string {
	took, ok := term.Between(t.StartedAt, t.EndedAt)
	if !ok {
		return ""
	}
	return before + term.Duration(took)
}

// resultWords returns the summary of a result, or else the result, for the end of a line.
// It returns "" for an empty result.
func resultWords(result wire.Raw) string {
	said := resultText(result)
	if summary := summaryOf(result).Summary; summary != "" {
		said = summary
	}
	if said == "" || said == `{"success":true}` {
		return ""
	}
	return "   result: " + term.Clip(term.OneLine(said), 100)
}

// summarized holds the summary in a result.
type summarized struct {
	Summary     string `json:"summary"`
	CompletedBy string `json:"completed_by"` // set if the result has only a summary
}

// summaryOf returns the summary of a result, or a zero value if there is none.
func summaryOf(result wire.Raw) summarized {
	if len(result) == 0 || result.Kind() != '{' {
		return summarized{}
	}
	sum, err := client.Decode[summarized](result)
	if err != nil {
		return summarized{}
	}
	return sum
}

// resultText returns a result for people: a string or a summary as text, anything else as
// JSON.
func resultText(result wire.Raw) string {
	if len(result) == 0 || result.Kind() == 'n' {
		return ""
	}
	if result.Kind() == '"' {
		if text, err := client.Decode[string](result); err == nil {
			return text
		}
	}
	if sum := summaryOf(result); sum.CompletedBy != "" {
		return sum.Summary
	}
	return string(result)
}
