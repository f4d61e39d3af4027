package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orchestrator/wire/object"
)

// The names of verifications. The name of a custom check follows customCheck.
const (
	checkTests  = "tests"
	checkTypes  = "type_check"
	checkLint   = "lint"
	customCheck = "custom/"
)

func readReviewRequest(p *object.Decoder) *ReviewRequest {
	r := &ReviewRequest{ReviewID: p.ID("review_id", object.Required), TaskID: p.ID("task_id", object.Required)}
	p.Inside("scope", object.Required, func(in *object.Decoder) {
		r.Scope = ReviewScope{
			Files: in.Names("files", object.Required), FocusAreas: in.ManyOf("focus_areas", object.Required, FocusAreas),
			IgnorePatterns: in.Names("ignore_patterns", object.Optional),
		}
	})
	p.Inside("criteria", object.Required, func(in *object.Decoder) {
		r.Criteria = ReviewCriteria{
			MustPassTests: in.Bool("must_pass_tests", object.Required), MustPassTypeCheck: in.Bool("must_pass_type_check", object.Required),
			MustPassLint: in.Bool("must_pass_lint", object.Optional),
		}
		in.Objects("custom_checks", object.Optional, func(check *object.Decoder) {
			c := CustomCheck{Name: check.Name("name", object.Required), Command: check.Name("command", object.Required)}
			c.ExitCode, _ = check.Whole("expected_exit_code", object.Required, -object.MaxWhole)
			r.Criteria.CustomChecks = append(r.Criteria.CustomChecks, c)
		})
	})
	p.Inside("context", object.Required, func(in *object.Decoder) {
		r.Context = ReviewContext{
			TaskDescription: in.Text("task_description", object.Required), AcceptanceCriteria: in.Texts("acceptance_criteria", object.Required),
		}
		in.Objects("previous_reviews", object.Optional, func(review *object.Decoder) {
			number, _ := review.Whole("review_number", object.Required, 0)
			r.Context.PreviousReviews = append(r.Context.PreviousReviews, ReviewSummary{
				Number: number, Verdict: review.Text("verdict", object.Required), KeyFindings: review.Texts("key_findings", object.Required),
			})
		})
	})
	return r
}

// Wanted returns the names of the verifications that must have been made.
func (r *ReviewRequest) Wanted() (names []string) {
	for _, check := range []struct {
		name   string
		wanted bool
	}{{checkTests, r.Criteria.MustPassTests}, {checkTypes, r.Criteria.MustPassTypeCheck}, {checkLint, r.Criteria.MustPassLint}} {
		if check.wanted {
			names = append(names, check.name)
		}
	}
	for _, check := range r.Criteria.CustomChecks {
		if name := customCheck + check.Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// check returns the verification with a name, or nil if it was not made.
func (v *Verification) check(name string) *CheckResult {
	switch name {
	case checkTests:
		return &v.Tests
	case checkTypes:
		return &v.TypeCheck
	case checkLint:
		return v.Lint
	}
	if result, made := v.Custom[strings.TrimPrefix(name, customCheck)]; made {
		return &result
	}
	return nil
}

// verified returns the names of the verifications that were made.
func (r *ReviewResult) verified() []string {
	names := []string{checkTests, checkTypes}
	if r.Verification.Lint != nil {
		names = append(names, checkLint)
	}
	custom := r.custom
	if custom == nil {
		custom = slices.Sorted(maps.Keys(r.Verification.Custom))
	}
	for _, name := range custom {
		names = append(names, customCheck+name)
	}
	return names
}

// Objection returns an error if an approving result contradicts itself: a severe finding is
// open, or a check has not passed.
func (r *ReviewResult) Objection() *object.Error {
	if r.Verdict != VerdictApproved {
		return nil
	}
	for i, f := range r.Findings {
		if f.FixedIn == 0 && (f.Severity == SeverityCritical || f.Severity == SeverityMajor) {
			return r.contradicted(fmt.Sprintf("/payload/findings/%d", i), fmt.Sprintf("the finding %.80q is %s and not fixed", f.FindingID, f.Severity))
		}
	}
	for _, name := range r.verified() {
		if !r.Verification.check(name).Passed {
			return r.contradicted("/payload/verification", fmt.Sprintf("the verification %.80q has not passed", name))
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
		if r.Verification.check(name) == nil {
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
		if known[f.FindingID] {
			in.Refuse("finding_id", "stands twice")
		}
		known[f.FindingID] = f.FindingID != ""
		r.Findings = append(r.Findings, f)
	})
	p.Inside("verification", object.Required, func(in *object.Decoder) { r.readVerification(in) })
	r.Summary = p.Text("summary", object.Required)
	p.Objects("required_changes", object.Optional, func(in *object.Decoder) { r.RequiredChanges = append(r.RequiredChanges, readRequiredChange(in, known)) })
	must := func(c RequiredChange) bool { return c.Priority == FixMust }
	if r.Verdict == VerdictApproved && slices.ContainsFunc(r.RequiredChanges, must) {
		p.Note("required_changes", "lists required fixes, but the work is approved")
	}
	r.Commendations = p.Texts("commendations", object.Optional)
	if r.Verdict == VerdictChangesRequested {
		if len(r.Findings) == 0 {
			p.Note("findings", "is empty, but changes are requested")
		}
		if len(r.RequiredChanges) == 0 {
			p.Note("required_changes", "is empty, but changes are requested")
		}
	}
	return r
}

func (r *ReviewResult) readVerification(p *object.Decoder) {
	p.Inside(checkTests, object.Required, func(in *object.Decoder) { r.Verification.Tests = readCheckResult(in) })
	p.Inside(checkTypes, object.Required, func(in *object.Decoder) { r.Verification.TypeCheck = readCheckResult(in) })
	p.Inside(checkLint, object.Optional, func(in *object.Decoder) {
		lint := readCheckResult(in)
		r.Verification.Lint = &lint
	})
	p.Inside("custom", object.Forgivable, func(custom *object.Decoder) {
		r.Verification.Custom = make(map[string]CheckResult)
		custom.EachMember(func(name string, in *object.Decoder) {
			r.Verification.Custom[name] = readCheckResult(in)
			r.custom = append(r.custom, name)
		})
	})
}

func readCheckResult(p *object.Decoder) CheckResult {
	return CheckResult{Passed: p.Bool("passed", object.Required), Output: p.Text("output", object.Optional), Error: p.Text("error", object.Optional)}
}

func readFinding(p *object.Decoder) Finding {
	f := Finding{
		FindingID: p.ID("finding_id", object.Required), Severity: p.OneOf("severity", object.Required, Severities), Category: p.OneOf("category", object.Required, Categories),
	}
	p.Inside("location", object.Required, func(in *object.Decoder) {
		at := Location{File: in.Name("file", object.Required)}
		var begins, ends bool
		at.LineStart, begins = in.Whole("line_start", object.Optional, 0)
		at.LineEnd, ends = in.Whole("line_end", object.Optional, 0)
		if begins && ends && at.LineEnd < at.LineStart {
			in.Refuse("line_end", fmt.Sprintf("must not be less than line_start, which is %d", at.LineStart))
		}
		at.Snippet = in.Text("code_snippet", object.Optional)
		f.Location = at
	})
	f.Description = p.Text("description", object.Required)
	f.Rationale = p.Text("rationale", object.Forgivable)
	f.Suggestion = p.Text("suggestion", object.Optional)
	f.FixedIn, _ = p.Whole("fixed_in_iteration", object.Optional, 1)
	return f
}

// readRequiredChange reads a change. An unknown finding gets only a note, since it may belong to
// an earlier review.
func readRequiredChange(p *object.Decoder, known map[string]bool) RequiredChange {
	c := RequiredChange{
		ChangeID: p.ID("change_id", object.Required), Priority: p.OneOf("priority", object.Required, Fixes),
		Findings: p.Names("related_findings", object.Required), Description: p.Text("description", object.Required),
	}
	for i, id := range c.Findings {
		if !known[id] {
			p.Issues.Note(p.BelowItem("related_findings", i), fmt.Sprintf("related_findings: no finding is called %.80q", id))
		}
	}
	return c
}
