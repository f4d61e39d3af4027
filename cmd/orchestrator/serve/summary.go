package serve

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// maxNamed is how many agents the summary names.
const maxNamed = 5

// text returns the summary of a run, or "" for an empty one.
func (y *runSummary) text(p term.Paint) string {
	var b strings.Builder
	b.WriteString(y.outcome(p))
	b.WriteString(y.byWhom())
	b.WriteString(y.unfinished(p))
	b.WriteString(y.talk())
	return b.String()
}

// outcome returns the number of tasks by result.
func (y *runSummary) outcome(p term.Paint) string {
	_, open := y.team.Super.Left(0)
	all := y.before + y.created
	took := term.Duration(time.Since(y.began))
	switch {
	case all == 0:
		return ""
	case y.done == all:
		return p.Good("Done in "+took) + fmt.Sprintf(": %d of %s\n", y.done, term.Count(all, "task"))
	}
	var parts []string
	add := func(n int, word string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	add(y.done, "done")
	add(y.failed, "failed")
	add(y.cancelled, "cancelled")
	add(open, "not done")
	head := fmt.Sprintf("%s in %s: ", term.Count(all, "task"), took)
	if y.failed+y.cancelled > 0 {
		head = p.Bad(head)
	}
	return head + strings.Join(parts, ", ") + "\n"
}

// byWhom returns a table of agents with their results.
func (y *runSummary) byWhom() string {
	names := y.busiest()
	var rows [][]term.Cell
	for _, name := range names[:min(maxNamed, len(names))] {
		d := y.deeds[name]
		worked := ""
		if d.worked >= 100*time.Millisecond {
			worked = term.Duration(d.worked) + " at work"
		}
		rows = append(rows, []term.Cell{term.Text("  " + term.OneLine(name)), term.Text(d.count()), term.Figure(worked), term.Text(strings.Join(d.remarks(), ", "))})
	}
	said := term.Table(rows)
	if more := len(names) - maxNamed; more > 0 {
		said += fmt.Sprintf("  … %s\n", term.Count(more, "more agent"))
	}
	return said
}

// count returns how many tasks and reviews an agent has finished.
func (d *agentStats) count() string {
	var parts []string
	if n := d.done + d.failed; n > 0 {
		parts = append(parts, term.Count(n, "task"))
	}
	if n := d.approved + d.changes + d.rejected; n > 0 {
		parts = append(parts, term.Count(n, "review"))
	}
	return strings.Join(parts, ", ")
}

func (d *agentStats) remarks() (said []string) {
	if d.changes > 0 {
		said = append(said, fmt.Sprintf("%d asked for changes", d.changes))
	}
	if d.rejected > 0 {
		said = append(said, fmt.Sprintf("%d rejected", d.rejected))
	}
	if d.approved > 0 {
		said = append(said, fmt.Sprintf("%d approved", d.approved))
	}
	if d.failed > 0 {
		said = append(said, fmt.Sprintf("%d failed", d.failed))
	}
	switch {
	case d.crashes == 1:
		said = append(said, "1 crash")
	case d.crashes > 1:
		said = append(said, fmt.Sprintf("%d crashes", d.crashes))
	}
	switch {
	case d.returned == 1 && d.crashes == 1:
		said = append(said, "its task came back")
	case d.returned > 0:
		said = append(said, term.Count(d.returned, "task")+" came back")
	}
	if d.gaveUp {
		said = append(said, "gave up")
	}
	return said
}

// unfinished returns the failed and open tasks, and the next command.
func (y *runSummary) unfinished(p term.Paint) string {
	var b strings.Builder
	for _, text := range y.wrong {
		fmt.Fprintf(&b, "  %s %s\n", p.Bad("x"), term.Clip(term.OneLine(text), 120))
	}
	if more := y.failed + y.cancelled - len(y.wrong); more > 0 {
		fmt.Fprintf(&b, "    … %d more\n", more)
	}
	left, open := y.team.Super.Left(wrongNamed)
	for i := range left {
		fmt.Fprintf(&b, "  %s %s\n", term.Mark(left[i].State), term.Clip(labelCell(&left[i])+", "+openWords(&left[i]), 120))
	}
	if more := open - len(left); more > 0 {
		fmt.Fprintf(&b, "    … %d more\n", more)
	}
	var about string
	switch {
	case len(left) > 0:
		about = term.ID(left[0].ID)
	case y.task != "" && len(y.wrong) > 0:
		about, _, _ = strings.Cut(y.wrong[0], " ")
	}
	if about != "" && y.team.config.Store.Kind != "memory" { // a record in memory is lost with the process
		fmt.Fprintf(&b, "  Why: orchestrator why %s\n", wire.Visible(about))
	}
	return b.String()
}

// openWords returns what an open task waits for at the end, or its state.
func openWords(t *wire.Task) string {
	if len(t.WaitsFor) > 0 {
		return "waits for " + task.NeedsCell(t.WaitsFor)
	}
	return string(t.State)
}

// talk returns the number of questions and messages, and what was lost.
func (y *runSummary) talk() string {
	var parts []string
	if said := y.questions(); said != "" {
		parts = append(parts, said)
	}
	heard, refused := y.team.heard.Load(), y.team.refusals.Load()
	losses := y.losses()
	if heard == 0 && len(losses) == 0 {
		return strings.Join(append(parts, ""), ".\n")
	}
	said := term.Count(int(heard), "message")
	if refused > 0 {
		said += fmt.Sprintf(", %d refused", refused)
	} else {
		said += ", nothing refused"
	}
	if len(losses) == 0 {
		losses = []string{"nothing lost"}
	}
	parts = append(parts, said+", "+strings.Join(losses, ", "))
	return strings.Join(parts, ". ") + ".\n"
}

// questions returns how many questions were answered.
func (y *runSummary) questions() string {
	if y.asks == 0 && y.said == 0 && y.vain == 0 {
		return ""
	}
	var parts []string
	if y.said > 0 {
		parts = append(parts, fmt.Sprintf("%d answered", y.said))
	}
	if y.vain > 0 {
		text := "no answer"
		if y.asks > 1 {
			text = fmt.Sprintf("%d without an answer", y.vain)
		}
		if y.waited > 0 {
			text += " within " + term.Duration(y.waited.Round(100*time.Millisecond))
		}
		parts = append(parts, text)
	}
	if open := len(y.asked); open > 0 {
		parts = append(parts, fmt.Sprintf("%d still open", open))
	}
	asked := term.Count(max(y.asks, y.said+y.vain), "question")
	return asked + ": " + cmp.Or(strings.Join(parts, ", "), "not needed any more")
}

// losses returns what was lost, from the counters of the supervisor and of this summary.
func (y *runSummary) losses() (said []string) {
	l := y.team.Super.Losses()
	add := func(n int64, noun, what string) {
		if n > 0 {
			said = append(said, term.Count(int(n), noun)+" "+what)
		}
	}
	add(max(l.Refused, y.undelivered), "message", "not delivered")
	add(l.Cut, "line", "cut")
	add(l.Unlogged, "line", "in no log file")
	add(y.missed, "line", "not shown here")
	if y.trouble && l.Cut+l.Unlogged == 0 {
		said = append(said, "lines of agents that are gone were lost")
	}
	return said
}
