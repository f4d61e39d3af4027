package tools

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/session"
)

// A finding is a finding of a model in a review.
type finding struct {
	Severity    string `json:"severity"`
	Category    string `json:"category"`
	File        string `json:"file"`
	Line        int64  `json:"line"`
	Description string `json:"description"`
	Rationale   string `json:"rationale"`
	Suggestion  string `json:"suggestion"`
}

// completion returns the completion of a task in a session that a call of task_complete or
// task_fail makes. The error is for the model.
func completion(tool string, args wire.Raw, task string) (*session.Completion, error) {
	a, err := argumentsOf(args)
	if err != nil {
		return nil, err
	}
	c := &session.Completion{TaskID: task, Status: session.OutcomeCompleted, Summary: Clip(a.Summary, MaxText), Changes: session.FileChanges{Deleted: list(a.Deleted)}}
	if tool == "task_fail" {
		c.Status, c.Summary, c.Blockers = session.OutcomeFailed, Clip(a.Reason, MaxText), []string{Clip(a.Reason, MaxText)}
	}
	if strings.TrimSpace(c.Summary) == "" {
		return nil, errors.New("say in a few words what was done, or why it cannot be done")
	}
	c.Changes.Created = changes(a.Created, session.ChangeCreated)
	c.Changes.Modified = changes(a.Modified, session.ChangeModified)
	failed := false
	for _, e := range a.Evidence {
		c.Notes += fmt.Sprintf("%s: exit %d\n", e.Command, e.Exit)
		failed = failed || e.Exit != 0
	}
	c.SelfReview.TestsRun = len(a.Evidence) > 0
	c.SelfReview.TestsPassed = c.SelfReview.TestsRun && !failed
	c.SelfReview.TypeCheckPassed = c.SelfReview.TestsPassed
	return c, nil
}

func changes(paths []string, kind string) []session.FileChange {
	files := []session.FileChange{}
	for _, path := range paths {
		files = append(files, session.FileChange{Path: path, Type: kind})
	}
	return files
}

// list returns a list that is not nil, because documents have an empty list.
func list(texts []string) []string { return append([]string{}, texts...) }

// review returns the result that a call of the tool review makes. A check that the request does
// not ask for has passed. The error is for the model.
func review(args wire.Raw, request *session.ReviewRequest) (*session.ReviewResult, error) {
	a, err := argumentsOf(args)
	if err != nil {
		return nil, err
	}
	if a.ReviewID != "" && a.ReviewID != request.ReviewID {
		return nil, fmt.Errorf("review %.80q is not open: you are asked for %.80q", a.ReviewID, request.ReviewID)
	}
	if strings.TrimSpace(a.Summary) == "" || a.Verdict == "" {
		return nil, errors.New("verdict or summary is missing: say how you judge the work, and why")
	}
	passed := func(wanted bool, said *bool) session.CheckResult {
		return session.CheckResult{Passed: said != nil && *said || !wanted && said == nil}
	}
	criteria := &request.Criteria
	r := &session.ReviewResult{
		ReviewID: request.ReviewID, TaskID: request.TaskID, Verdict: a.Verdict, Summary: Clip(a.Summary, MaxText), Findings: []session.Finding{},
		Verification: session.Verification{
			Tests: passed(criteria.MustPassTests, a.TestsPassed), TypeCheck: passed(criteria.MustPassTypeCheck, a.TypeCheckPassed),
			Custom: make(map[string]session.CheckResult),
		},
	}
	if criteria.MustPassLint || a.LintPassed != nil {
		lint := passed(criteria.MustPassLint, a.LintPassed)
		r.Verification.Lint = &lint
	}
	for _, check := range criteria.CustomChecks {
		r.Verification.Custom[check.Name] = session.CheckResult{Passed: a.Checks[check.Name]}
	}
	for i, f := range a.Findings {
		addFinding(r, f, strconv.Itoa(i+1))
	}
	return r, nil
}

// addFinding adds a finding, and the change that it wants if the work is not approved.
func addFinding(r *session.ReviewResult, f finding, number string) {
	r.Findings = append(r.Findings, session.Finding{
		FindingID: "finding-" + number, Severity: f.Severity, Category: f.Category,
		Location:    session.Location{File: cmp.Or(f.File, "."), LineStart: f.Line},
		Description: f.Description, Rationale: cmp.Or(f.Rationale, f.Description), Suggestion: f.Suggestion,
	})
	fix := map[string]string{
		session.SeverityCritical: session.FixMust, session.SeverityMajor: session.FixMust, session.SeverityMinor: session.FixShould,
	}[f.Severity]
	if r.Verdict == session.VerdictApproved || fix == "" {
		return
	}
	r.RequiredChanges = append(r.RequiredChanges, session.RequiredChange{
		ChangeID: "change-" + number, Priority: fix, Findings: []string{"finding-" + number}, Description: cmp.Or(f.Suggestion, f.Description),
	})
}
