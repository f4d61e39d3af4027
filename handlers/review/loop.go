package review

// Verdict is the verdict of a review result.
type Verdict string

// The verdicts.
const (
	Approved         Verdict = "approved"
	ChangesRequested Verdict = "changes_requested"
	Rejected         Verdict = "rejected"
)

// Policy decides what happens if the last allowed review still requests changes.
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
	Findings  []Finding `json:"findings,omitzero"`  // in the order in which they were found
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
