package session

import (
	"fmt"
	"slices"

	"orchestrator/wire/object"
)

// ReviewRequest is the payload of review_request. Its checks are untrusted commands. They are
// passed on to the reviewer and not read here.
type ReviewRequest struct {
	ReviewID string
	TaskID   string
	Files    []string
	Wanted   []string // verifications that must have been made, as Verification names them
}

func readReviewRequest(p *object.Decoder) *ReviewRequest {
	r := &ReviewRequest{ReviewID: p.ID("review_id", object.Required), TaskID: p.ID("task_id", object.Required)}
	p.Inside("scope", object.Required, func(in *object.Decoder) {
		r.Files = in.Names("files", object.Required)
		in.ManyOf("focus_areas", object.Required, FocusAreas)
		in.Names("ignore_patterns", object.Optional)
	})
	p.Inside("criteria", object.Required, func(in *object.Decoder) {
		r.want("tests", in.Bool("must_pass_tests", object.Required))
		r.want("type_check", in.Bool("must_pass_type_check", object.Required))
		r.want("lint", in.Bool("must_pass_lint", object.Optional))
		in.Objects("custom_checks", object.Optional, func(check *object.Decoder) {
			r.want("custom/"+check.Name("name", object.Required), true)
			check.Name("command", object.Required)
			check.Whole("expected_exit_code", object.Required, -object.MaxWhole)
		})
	})
	p.Inside("context", object.Required, func(in *object.Decoder) {
		in.Text("task_description", object.Required)
		in.Texts("acceptance_criteria", object.Required)
		in.Objects("previous_reviews", object.Optional, func(review *object.Decoder) {
			review.Whole("review_number", object.Required, 0)
			review.Text("verdict", object.Required)
			review.Texts("key_findings", object.Required)
		})
	})
	return r
}

// want records a required verification.
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
	Verification []Verification // tests, type_check, lint if present, and custom ones
	Summary      string
	Changes      []RequiredChange
}

// A Finding is a defect that a reviewer found.
type Finding struct {
	ID       string
	Severity string // Severity… above
	Category string // Category… above
	File     string // where it is
	Text     string // what it is
	FixedIn  int64  // the iteration; 0: it is open
}

// A Verification is the result of a check.
type Verification struct {
	Name   string // tests, type_check, lint or custom/NAME
	Passed bool
}

// A RequiredChange is a change that a reviewer requires.
type RequiredChange struct {
	ID       string
	Priority string   // Fix… above
	Findings []string // the findings that it fixes
}

// Objection returns an error if an approving result contradicts itself: a severe finding is
// open, or a check has not passed.
func (r *ReviewResult) Objection() *object.Error {
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

// Lacks returns an error if an approving result lacks verifications that its request required.
func (r *ReviewResult) Lacks(wanted []string) *object.Error {
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

func (r *ReviewResult) contradicted(pointer, why string) *object.Error {
	return &object.Error{
		Code: object.CodeConflict, Message: "the verdict cannot be " + r.Verdict + ": " + why,
		Details: map[string]any{"pointer": pointer},
	}
}

func readReviewResult(p *object.Decoder) *ReviewResult {
	r := &ReviewResult{ReviewID: p.ID("review_id", object.Required), TaskID: p.ID("task_id", object.Required), Verdict: p.OneOf("verdict", object.Required, Verdicts)}
	known := make(map[string]bool)
	p.Objects("findings", object.Required, func(in *object.Decoder) {
		f := readFinding(in)
		if known[f.ID] {
			in.Refuse("finding_id", "stands twice")
		}
		known[f.ID] = f.ID != ""
		r.Findings = append(r.Findings, f)
	})
	p.Inside("verification", object.Required, func(in *object.Decoder) {
		r.verify(in, "tests", object.Required)
		r.verify(in, "type_check", object.Required)
		r.verify(in, "lint", object.Optional)
		in.Inside("custom", object.Forgivable, func(custom *object.Decoder) {
			custom.EachMember(func(key string, v *object.Decoder) { r.verified("custom/"+key, v) })
		})
	})
	r.Summary = p.Text("summary", object.Required)
	p.Objects("required_changes", object.Optional, func(in *object.Decoder) { r.Changes = append(r.Changes, readRequiredChange(in, known)) })
	must := func(c RequiredChange) bool { return c.Priority == FixMust }
	if r.Verdict == VerdictApproved && slices.ContainsFunc(r.Changes, must) {
		p.Note("required_changes", "has what must be fixed, and the work is approved")
	}
	p.Texts("commendations", object.Optional)
	if r.Verdict == VerdictChangesRequested {
		if len(r.Findings) == 0 {
			p.Note("findings", "is empty, and changes are requested")
		}
		if len(r.Changes) == 0 {
			p.Note("required_changes", "says nothing, and changes are requested")
		}
	}
	return r
}

func readFinding(p *object.Decoder) Finding {
	f := Finding{
		ID: p.ID("finding_id", object.Required), Severity: p.OneOf("severity", object.Required, Severities), Category: p.OneOf("category", object.Required, Categories),
	}
	p.Inside("location", object.Required, func(in *object.Decoder) {
		f.File = in.Name("file", object.Required)
		from, begins := in.Whole("line_start", object.Optional, 0)
		to, ends := in.Whole("line_end", object.Optional, 0)
		if begins && ends && to < from {
			in.Refuse("line_end", fmt.Sprintf("must not be less than line_start, which is %d", from))
		}
		in.Text("code_snippet", object.Optional)
	})
	f.Text = p.Text("description", object.Required)
	p.Text("rationale", object.Forgivable)
	p.Text("suggestion", object.Optional)
	f.FixedIn, _ = p.Whole("fixed_in_iteration", object.Optional, 1)
	return f
}

func (r *ReviewResult) verify(p *object.Decoder, name string, must object.Presence) {
	p.Inside(name, must, func(in *object.Decoder) { r.verified(name, in) })
}

func (r *ReviewResult) verified(name string, p *object.Decoder) {
	r.Verification = append(r.Verification, Verification{Name: name, Passed: p.Bool("passed", object.Required)})
	p.Text("output", object.Optional)
	p.Text("error", object.Optional)
}

// readRequiredChange reads a change. An unknown finding gets only a note, since it may belong to
// an earlier review.
func readRequiredChange(p *object.Decoder, known map[string]bool) RequiredChange {
	c := RequiredChange{ID: p.ID("change_id", object.Required), Priority: p.OneOf("priority", object.Required, Fixes), Findings: p.Names("related_findings", object.Required)}
	p.Text("description", object.Required)
	for i, id := range c.Findings {
		if !known[id] {
			p.Issues.Note(p.BelowItem("related_findings", i), fmt.Sprintf("related_findings: no finding is called %.80q", id))
		}
	}
	return c
}
