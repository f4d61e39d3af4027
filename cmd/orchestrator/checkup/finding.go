// Package checkup judges how a program behaves as an agent.
//
// A Run is what was heard of the program in one life under a real supervisor: its
// lines, the events about it, and the trail of its requests. What a line is, and
// whether a request makes sense, the supervisor and package wire have decided; here
// it is only said what that means for the author of the program, and what would
// cure it. Where it can, a verdict depends on what came before what, and not on how
// long anything took.
//
// The package starts nothing and asks nothing: that is done in cmd/orchestrator.
package checkup

import (
	"fmt"
	"slices"
)

// Verdict is what a finding means.
type Verdict string

// The verdicts.
const (
	OK   Verdict = "ok"
	Fail Verdict = "fail" // the program is no good agent before this is cured
	Warn Verdict = "warn" // it works, but not as its author thinks
	Note Verdict = "note" // something was not seen, or is good to know
)

// Finding is one thing that was looked at.
type Finding struct {
	Check   string  `json:"check"` // a word for programs
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
	Cure    string  `json:"cure,omitzero"`
}

// Findings is a list that grows.
type Findings []Finding

func (f *Findings) add(verdict Verdict, check, cure, format string, args ...any) {
	*f = append(*f, Finding{Check: check, Verdict: verdict, Text: fmt.Sprintf(format, args...), Cure: cure})
}

func (f *Findings) ok(check, format string, args ...any) { f.add(OK, check, "", format, args...) }

// Count is how many of them have a verdict.
func (f Findings) Count(verdict Verdict) (n int) {
	for i := range f {
		if f[i].Verdict == verdict {
			n++
		}
	}
	return n
}

// Buffered reports whether what the program says comes when it is too late.
func (f Findings) Buffered() bool { return f.has("buffering") }

// has reports whether something is wrong under one of these words.
func (f Findings) has(checks ...string) bool {
	return slices.ContainsFunc(f, func(one Finding) bool {
		return one.Verdict != OK && one.Verdict != Note && slices.Contains(checks, one.Check)
	})
}
