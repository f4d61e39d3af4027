package review

import (
	"slices"
)

// Verdict is the verdict of a review result.
type Verdict string

// The verdicts.
const (
	Approved         Verdict = "approved"
	ChangesRequested Verdict = "changes_requested"
	Rejected         Verdict = "rejected"
)

// Policy decides the next step if the last allowed review still requests changes.
type Policy string

// The policies.
const (
	ThenAbort        Policy = "abort"
	ThenForceApprove Policy = "force_approve"
	ThenHumanReview  Policy = "human_review"
)

// Step is the consequence of a result.
type Step string

// The steps.
const (
	Approve      Step = "approve"       // the work is done
	Revise       Step = "revise"        // the work is changed and reviewed again
	Redesign     Step = "redesign"      // the work is planned anew
	Abort        Step = "abort"         // the task is aborted
	ForceApprove Step = "force_approve" // the work is accepted with its open findings
	AskHuman     Step = "ask_human"     // a person decides
)

// UsualMax is the default number of results.
const UsualMax = 3

// Loop tracks the reviews of one task. The zero value has no results, allows UsualMax, and then
// asks a person.
type Loop struct {
	Iteration int       `json:"iteration,omitzero"` // results so far
	Max       int       `json:"max,omitzero"`       // as assigned; below 1 means UsualMax
	Extra     int       `json:"extra,omitzero"`     // further results that a person has allowed
	Policy    Policy    `json:"policy,omitzero"`    // an unknown policy means ThenHumanReview
	Findings  []Finding `json:"findings,omitzero"`  // in the order of their discovery
}

// Limit returns how many results are allowed now.
func (l *Loop) Limit() int {
	most := l.Max
	if most < 1 {
		most = UsualMax
	}
	return most + l.Extra
}

// MayRequest reports whether another review may be requested.
func (l *Loop) MayRequest() bool { return l.Iteration < l.Limit() }

// Extend allows at least one more result, even if Max was reduced below Iteration.
func (l *Loop) Extend() {
	l.Extra++
	if short := l.Iteration + 1 - l.Limit(); short > 0 {
		l.Extra += short
	}
}

// Decide records a result and returns the next step. A result beyond the limit counts as part
// of the last iteration. An unknown verdict requests changes, because it must not end the loop.
func (l *Loop) Decide(v Verdict, found []Finding) Step {
	if l.MayRequest() {
		l.Iteration++
	}
	l.note(found)
	switch {
	case v == Approved:
		return Approve
	case v == Rejected:
		return Redesign
	case l.MayRequest():
		return Revise
	}
	return l.escalate()
}

func (l *Loop) escalate() Step {
	switch l.Policy {
	case ThenAbort:
		return Abort
	case ThenForceApprove:
		return ForceApprove
	}
	return AskHuman
}

// Finding is a finding of a review, tracked over all results.
type Finding struct {
	ID       string `json:"id"`
	Severity string `json:"severity,omitzero"`
	Category string `json:"category,omitzero"`
	File     string `json:"file,omitzero"`
	Text     string `json:"text,omitzero"`
	Found    int    `json:"found,omitzero"` // the iteration that first reported it
	Fixed    int    `json:"fixed,omitzero"` // the iteration that fixed it; 0: open
}

// IsOpen reports whether the finding is not fixed.
func (f *Finding) IsOpen() bool { return f.Fixed < 1 }

func (f *Finding) size() int {
	return len(f.ID) + len(f.Severity) + len(f.Category) + len(f.File) + len(f.Text)
}

// Bounds of a ledger.
const (
	maxFindings = 2000
	maxBytes    = 1 << 20 // of texts, if a finding is closed
)

// Open returns the open findings, in the order of their discovery.
func (l *Loop) Open() (open []Finding) {
	for _, f := range l.Findings {
		if f.IsOpen() {
			open = append(open, f)
		}
	}
	return open
}

// note updates the ledger with a result. A known finding is replaced, but keeps its first
// iteration. If a result has a finding twice, the last one counts.
func (l *Loop) note(found []Finding) {
	l.Findings = slices.Clone(l.Findings) // a copy of the Loop does not change
	places := make(map[string]int, len(l.Findings)+len(found))
	for i := range l.Findings {
		f := &l.Findings[i]
		places[f.ID] = i
		if f.IsOpen() {
			f.Fixed = l.Iteration // unless it is mentioned
		}
	}
	for _, f := range found {
		f.Fixed = max(f.Fixed, 0)
		if i, known := places[f.ID]; known {
			f.Found = l.Findings[i].Found
			l.Findings[i] = f
			continue
		}
		f.Found = l.Iteration
		places[f.ID] = len(l.Findings)
		l.Findings = append(l.Findings, f)
	}
	l.shorten()
}

// shorten drops closed findings, oldest first, until the ledger is within its bounds. If that
// is not enough, it drops the latest open ones, which the next result reports again.
func (l *Loop) shorten() {
	count, bytes := len(l.Findings), 0
	for i := range l.Findings {
		bytes += l.Findings[i].size()
	}
	l.Findings = slices.DeleteFunc(l.Findings, func(f Finding) bool {
		if f.IsOpen() || count <= maxFindings && bytes <= maxBytes {
			return false
		}
		count--
		bytes -= f.size()
		return true
	})
	if count > maxFindings {
		l.Findings = slices.Delete(l.Findings, maxFindings, count)
	}
}
