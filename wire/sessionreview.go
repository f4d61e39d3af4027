package wire

import (
	"fmt"
	"slices"
)

// ReviewRequest is the payload of review_request. The checks in it are commands
// of strangers: they are passed on to the reviewer, and not read here.
type ReviewRequest struct {
	ReviewID string
	TaskID   string
	Files    []string
	Wanted   []string // verifications that must have been made, as Verification names them
}

func (p *decoder) reviewRequest() *ReviewRequest {
	r := &ReviewRequest{ReviewID: p.id("review_id", needed), TaskID: p.id("task_id", needed)}
	p.inside("scope", needed, func(in *decoder) {
		r.Files = in.names("files", needed)
		in.words("focus_areas", needed, focusAreas)
		in.names("ignore_patterns", optional)
	})
	p.inside("criteria", needed, func(in *decoder) {
		r.want("tests", in.truth("must_pass_tests", needed))
		r.want("type_check", in.truth("must_pass_type_check", needed))
		r.want("lint", in.truth("must_pass_lint", optional))
		in.each("custom_checks", optional, func(check *decoder) {
			r.want("custom/"+check.name("name", needed), true)
			check.name("command", needed)
			check.whole("expected_exit_code", needed, -mostWhole)
		})
	})
	p.inside("context", needed, func(in *decoder) {
		in.text("task_description", needed)
		in.texts("acceptance_criteria", needed)
		in.each("previous_reviews", optional, func(review *decoder) {
			review.whole("review_number", needed, 0)
			review.text("verdict", needed)
			review.texts("key_findings", needed)
		})
	})
	return r
}

// want notes a verification that must have been made.
func (r *ReviewRequest) want(name string, wanted bool) {
	if wanted && !slices.Contains(r.Wanted, name) {
		r.Wanted = append(r.Wanted, name)
	}
}

// ReviewResult is the payload of review_result.
type ReviewResult struct {
	ReviewID     string
	TaskID       string
	Verdict      string // Verdict… above
	Findings     []Finding
	Verification []Verification // tests, type_check, lint if there is one, and those of their own
	Summary      string
	Changes      []RequiredChange
}

// Finding is something that a reviewer found.
type Finding struct {
	ID       string
	Severity string // Severity… above
	Category string // Category… above
	File     string // where it is
	Text     string // what it is
	FixedIn  int64  // the iteration; 0: it is open
}

// Verification is whether a check passed.
type Verification struct {
	Name   string // tests, type_check, lint or custom/NAME
	Passed bool
}

// RequiredChange is what a reviewer wants changed.
type RequiredChange struct {
	ID       string
	Priority string   // Fix… above
	Findings []string // whose change it is
}

// Objection is why a result cannot approve, nil if it can or does not: something
// bad is still open, or a check has not passed.
func (r *ReviewResult) Objection() *Error {
	if r.Verdict != VerdictApproved {
		return nil
	}
	for i, f := range r.Findings {
		if f.FixedIn == 0 && (f.Severity == SeverityCritical || f.Severity == SeverityMajor) {
			return r.contradicted(fmt.Sprintf("/payload/findings/%d", i), fmt.Sprintf("the finding %.80q is %s and not fixed", f.ID, f.Severity))
		}
	}
	for _, v := range r.Verification {
		if !v.Passed {
			return r.contradicted("/payload/verification", fmt.Sprintf("the verification %.80q has not passed", v.Name))
		}
	}
	return nil
}

// Lacks is why a result cannot approve that leaves out verifications which its request
// asked for; nil if it can.
func (r *ReviewResult) Lacks(wanted []string) *Error {
	if r.Verdict != VerdictApproved {
		return nil
	}
	var missing []string
	for _, name := range wanted {
		if !slices.ContainsFunc(r.Verification, func(v Verification) bool { return v.Name == name }) {
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return nil
	}
	err := r.contradicted("/payload/verification", fmt.Sprintf("the request asks for the verification %.80q, and it is missing", missing[0]))
	err.Details["missing"] = missing
	return err
}

func (r *ReviewResult) contradicted(pointer, why string) *Error {
	return &Error{
		Code: CodeConflict, Message: "the verdict cannot be " + r.Verdict + ": " + why,
		Details: map[string]any{"pointer": pointer},
	}
}

func (p *decoder) reviewResult() *ReviewResult {
	r := &ReviewResult{ReviewID: p.id("review_id", needed), TaskID: p.id("task_id", needed), Verdict: p.word("verdict", needed, verdicts)}
	known := make(map[string]bool)
	p.each("findings", needed, func(in *decoder) {
		f := in.finding()
		if known[f.ID] {
			in.wrong("finding_id", "stands twice")
		}
		known[f.ID] = f.ID != ""
		r.Findings = append(r.Findings, f)
	})
	p.inside("verification", needed, func(in *decoder) {
		r.verify(in, "tests", needed)
		r.verify(in, "type_check", needed)
		r.verify(in, "lint", optional)
		in.inside("custom", excusable, func(custom *decoder) {
			custom.eachMember(func(key string, v *decoder) { r.verified("custom/"+key, v) })
		})
	})
	r.Summary = p.text("summary", needed)
	p.each("required_changes", optional, func(in *decoder) { r.Changes = append(r.Changes, in.requiredChange(known)) })
	must := func(c RequiredChange) bool { return c.Priority == FixMust }
	if r.Verdict == VerdictApproved && slices.ContainsFunc(r.Changes, must) {
		p.odd("required_changes", "has what must be fixed, and the work is approved")
	}
	p.texts("commendations", optional)
	if r.Verdict == VerdictChangesRequested {
		if len(r.Findings) == 0 {
			p.odd("findings", "is empty, and changes are requested")
		}
		if len(r.Changes) == 0 {
			p.odd("required_changes", "says nothing, and changes are requested")
		}
	}
	return r
}

func (p *decoder) finding() Finding {
	f := Finding{
		ID: p.id("finding_id", needed), Severity: p.word("severity", needed, severities), Category: p.word("category", needed, categories),
	}
	p.inside("location", needed, func(in *decoder) {
		f.File = in.name("file", needed)
		from, begins := in.whole("line_start", optional, 0)
		to, ends := in.whole("line_end", optional, 0)
		if begins && ends && to < from {
			in.wrong("line_end", fmt.Sprintf("must not be less than line_start, which is %d", from))
		}
		in.text("code_snippet", optional)
	})
	f.Text = p.text("description", needed)
	p.text("rationale", excusable)
	p.text("suggestion", optional)
	f.FixedIn, _ = p.whole("fixed_in_iteration", optional, 1)
	return f
}

func (r *ReviewResult) verify(p *decoder, name string, must need) {
	p.inside(name, must, func(in *decoder) { r.verified(name, in) })
}

func (r *ReviewResult) verified(name string, p *decoder) {
	r.Verification = append(r.Verification, Verification{Name: name, Passed: p.truth("passed", needed)})
	p.text("output", optional)
	p.text("error", optional)
}

// requiredChange reads a change. One that refers to nothing is odd and no more:
// the finding may be one of an earlier review.
func (p *decoder) requiredChange(known map[string]bool) RequiredChange {
	c := RequiredChange{ID: p.id("change_id", needed), Priority: p.word("priority", needed, fixes), Findings: p.names("related_findings", needed)}
	p.text("description", needed)
	for i, id := range c.Findings {
		if !known[id] {
			p.all.note(p.belowItem("related_findings", i), fmt.Sprintf("related_findings: no finding is called %.80q", id))
		}
	}
	return c
}
