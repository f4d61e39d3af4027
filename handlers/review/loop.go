package review

// Verdict is what a result says.
type Verdict string

// The verdicts.
const (
	Approved         Verdict = "approved"
	ChangesRequested Verdict = "changes_requested"
	Rejected         Verdict = "rejected"
)

// Policy is what happens when the last result still asks for changes.
type Policy string

// The policies.
const (
	ThenAbort        Policy = "abort"
	ThenForceApprove Policy = "force_approve"
	ThenHumanReview  Policy = "human_review"
)

// Step is what follows from a result.
type Step string

// The steps.
const (
	Approve      Step = "approve"       // the work is done
	Revise       Step = "revise"        // the work is changed, and reviewed again
	Redesign     Step = "redesign"      // the work is planned anew
	Abort        Step = "abort"         // the work is given up
	ForceApprove Step = "force_approve" // the work is done, whatever is open
	AskHuman     Step = "ask_human"     // a person decides
)

// UsualMax is how many results there may be by default.
const UsualMax = 3

// Loop is the reviews of one task. Its zero value has had none, may have
// UsualMax, and asks a person then.
type Loop struct {
	Iteration int       `json:"iteration,omitzero"` // results so far
	Max       int       `json:"max,omitzero"`       // as it was assigned; below 1 it is UsualMax
	Extra     int       `json:"extra,omitzero"`     // what a person has allowed beyond
	Policy    Policy    `json:"policy,omitzero"`    // an unknown one asks a person
	Findings  []Finding `json:"findings,omitzero"`  // in the order in which they were found
}

// Limit is how many results there may be by now.
func (l *Loop) Limit() int {
	most := l.Max
	if most < 1 {
		most = UsualMax
	}
	return most + l.Extra
}

// MayRequest reports whether another review may be requested.
func (l *Loop) MayRequest() bool { return l.Iteration < l.Limit() }

// Extend allows one more result. It is never in vain, even when Max was made less
// than there had been already.
func (l *Loop) Extend() {
	l.Extra++
	if short := l.Iteration + 1 - l.Limit(); short > 0 {
		l.Extra += short
	}
}

// Decide takes a result, and says what follows. A result that no reviewer may have
// requested any more is one more of the last iteration. An unknown verdict
// requests changes: it must not end anything.
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
