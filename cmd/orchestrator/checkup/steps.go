package checkup

import (
	"strings"

	"orchestrator/cmd/orchestrator/term"
)

// A Step is a test of whether a working program continues after an event.
type Step struct {
	Check string
	What  string // the event: "a notification that it does not know"
	Cure  string
}

var (
	Again = Step{
		Check: "again", What: "the first",
		Cure: "Go on reading after a task: an agent is there for many, and exit 0 is for one that is done with all",
	}
	Unknown = Step{
		Check: "unknown", What: "a notification that it does not know",
		Cure: "Pass over each type that it does not know, and look for no member before it knows the type",
	}
	Long = Step{
		Check: "long-input", What: "a line of 1 MiB",
		Cure: "Read whole lines of any length: bufio.Reader and not Scanner, readline and not a fixed buffer",
	}
	Cancelled = Step{
		Check: "cancelled", What: "a task that is taken away (notify:task-cancelled, and a response:error to what it says of it then)",
		Cure: "Take a response:error for an answer like any other, and go on with the next task",
	}
	Pieces = Step{
		Check: "pieces", What: "a line that comes in pieces",
		Cure: "Read up to the line end, however many reads that takes",
	}
	Many = Step{
		Check: "many", What: "ten tasks one after the other",
		Cure: "Go on reading after a task: the next one comes when the one before has ended",
	}
	Killed = Step{
		Check: "killed", What: "a kill -9 with a task in its hands",
		Cure: "Keep nothing that a second start cannot do without: no lock files, no half-written state",
	}
)

// An Outcome is the result of a step.
type Outcome int

const (
	WentOn Outcome = iota // it did the next task, or only read its input if it does no tasks
	Died
	Fell   // it runs, but does not do the next task
	Unread // it does not read its input
)

// After judges the outcome of a step.
func After(s Step, o Outcome, r *Run, works bool) Finding {
	var f Findings
	switch {
	case o == Died && s.Check == Again.Check:
		f.add(Fail, s.Check, "Each request is answered on stdin, by response:success or response:error: pass over what is not waited for. "+s.Cure,
			"dies after its first task%s", r.death())
	case o != WentOn && s.Check == Again.Check:
		f.add(Fail, s.Check, s.Cure, "does one task, and no other after it")
	case o == Died:
		f.add(Fail, s.Check, s.Cure, "dies of %s%s", s.What, r.death())
	case o == Fell:
		f.add(Fail, s.Check, s.Cure, "does no task any more after %s", s.What)
	case o == Unread:
		f.add(Note, s.Check, "", "did not read %s", s.What)
	case s.Check == Again.Check:
		f.ok(s.Check, "does its next task after the first")
	case works && s.Check == Many.Check:
		f.ok(s.Check, "does %s", s.What)
	case works:
		f.ok(s.Check, "does its next task after %s", s.What)
	default:
		f.ok(s.Check, "lives on after %s", s.What)
	}
	return f[0]
}

// death describes an unexpected end of the program.
func (r *Run) death() string {
	x, gone := r.exit()
	if !gone {
		return ""
	}
	return ": " + x.Text + r.lastWords()
}

// Crashed reports whether the program ended before it was asked to, or with a nonzero exit
// code.
func (r *Run) Crashed() bool {
	x, gone := r.exit()
	return gone && (r.ByItself() || x.Code != nil && *x.Code != 0)
}

// Unsteady judges the differences between two lives that should have been alike.
func Unsteady(first, second Findings) Finding {
	var f Findings
	var differ []string
	for _, one := range second {
		if one.Verdict != OK && !first.same(one) {
			differ = append(differ, one.Text)
		}
	}
	for _, one := range first {
		if one.Verdict != OK && !second.same(one) {
			differ = append(differ, "not any more: "+one.Text)
		}
	}
	if len(differ) == 0 {
		f.ok("repeats", "does the same when it is run again")
	} else {
		f.add(Warn, "repeats", "Look for what it keeps between its runs, and for what it leaves to chance",
			"does not do the same when it is run again: %s", term.OneLine(strings.Join(differ, "; ")))
	}
	return f[0]
}

// same reports whether the findings have one with the same check and verdict.
func (f Findings) same(one Finding) bool {
	for _, other := range f {
		if other.Check == one.Check && other.Verdict == one.Verdict {
			return true
		}
	}
	return false
}

// News returns the faults that only a later life has shown.
func (f Findings) News(later Findings) (news Findings) {
	for _, one := range later {
		if one.Verdict != OK && one.Verdict != Note && !f.same(one) {
			news = append(news, one)
		}
	}
	return news
}

// Later judges a life with steps: its messages, its end and its processes.
func Later(r *Run, terms Terms) Findings {
	var f Findings
	f.says(r)
	f.stops(r, terms)
	f.leaves(r)
	return f
}
