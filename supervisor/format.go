package supervisor

import (
	"fmt"
	"strings"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/wire"
)

// short formats a duration: 0.4s, 31.2s, 12m05s, 1h02m.
func short(d time.Duration) string {
	switch {
	case d < 59950*time.Millisecond: // longer ones round to a minute
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		d = max(d, time.Minute)
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// count formats a number with its noun.
func count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// leftOvers formats processes: "2 left-overs (41290 node, 41311 esbuild)".
func leftOvers(processes []child.Process) string {
	return fmt.Sprintf("%s (%s)", count(len(processes), "left-over"), names(processes))
}

// names formats a list of processes and elides all but the first few.
func names(processes []child.Process) string {
	const few = 8
	var words []string
	for _, p := range processes[:min(len(processes), few)] {
		word := fmt.Sprintf("%d %s", p.PID, wire.Visible(p.Program))
		if p.Held {
			word += " holding its output open"
		}
		words = append(words, word)
	}
	if len(processes) > few {
		words = append(words, fmt.Sprintf("and %d more", len(processes)-few))
	}
	return strings.Join(words, ", ")
}

func heldBy(processes []child.Process) string {
	if len(processes) == 0 {
		return ""
	}
	return " (by " + names(processes) + ")"
}

// views converts processes to their form in documents.
func views(processes []child.Process) []wire.LeftOver {
	var list []wire.LeftOver
	for _, p := range processes {
		list = append(list, wire.LeftOver{PID: p.PID, Program: p.Program, HeldOpen: p.Held})
	}
	return list
}
