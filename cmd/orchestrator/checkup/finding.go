// Package checkup judges how a program behaves as an agent.
//
// A [Run] records one life of the program under a real supervisor: its lines, the events
// about it, and the audit of its requests. The supervisor and package wire decide what a
// line is and whether a request is valid. This package states what that means for the
// author of the program, and how to fix it. Where possible, a verdict depends on the order
// of events and not on durations.
//
// The package starts nothing and sends no requests. Package check does that.
package checkup

import (
	"fmt"
	"slices"
)

// A Verdict is the result of a check.
type Verdict string

const (
	OK   Verdict = "ok"
	Fail Verdict = "fail" // the program does not work as an agent
	Warn Verdict = "warn" // the program works, but not as intended
	Note Verdict = "note" // information, or a check that was not possible
)

// A Finding is the result of one check.
type Finding struct {
	Check   string  `json:"check"` // machine-readable name
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
	Cure    string  `json:"cure,omitzero"`
}

// Findings is a list of findings.
type Findings []Finding

func (f *Findings) add(verdict Verdict, check, cure, format string, args ...any) {
	*f = append(*f, Finding{Check: check, Verdict: verdict, Text: fmt.Sprintf(format, args...), Cure: cure})
}

func (f *Findings) ok(check, format string, args ...any) { f.add(OK, check, "", format, args...) }

// Count returns the number of findings with a verdict.
func (f Findings) Count(verdict Verdict) (n int) {
	for i := range f {
		if f[i].Verdict == verdict {
			n++
		}
	}
	return n
}

// Buffered reports whether the output of the program is delayed by its own buffer.
func (f Findings) Buffered() bool { return f.has("buffering") }

// has reports whether one of the checks has failed or has a warning.
func (f Findings) has(checks ...string) bool {
	return slices.ContainsFunc(f, func(one Finding) bool {
		return one.Verdict != OK && one.Verdict != Note && slices.Contains(checks, one.Check)
	})
}
