package handlers

import (
	"fmt"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/session"
)

// What developers and reviewers send about their work.

// develop returns a message of a developer.
func (w *world) develop(s *sitting, name string) *draft {
	j := w.someJob(s, func(j *job) bool {
		return j.developer == name && (j.phase == wire.PhaseAssigned || j.phase == wire.PhaseWorking || j.phase == wire.PhaseReviewing && !j.done)
	})
	if w.chance.IntN(30) == 0 {
		j = w.someJob(s, func(*job) bool { return true }) // any task, of any developer
	}
	if j == nil {
		return nil
	}
	d := &draft{to: w.one(j.architect, j.architect, w.memberOf(s, session.AgentArchitect)), chain: w.one(j.chain, j.chain, "")}
	switch n := w.chance.IntN(10); {
	case j.phase == wire.PhaseAssigned && n < 6:
		d.kind, d.payload, d.reply = session.TypeAcknowledgment, `{}`, w.one(j.message, j.message, "")
	case n < 8:
		d.kind, d.payload = session.TypeTaskProgress, w.progress(j)
	default:
		d.kind, d.payload = session.TypeTaskCompletion, w.completion(j)
	}
	return d
}

func (w *world) progress(j *job) string {
	return fmt.Sprintf(`{"task_id":%q,"progress_percent":%d,"current_step":"step %d","files_modified_so_far":[%q]}`,
		j.id, w.chance.IntN(101), w.steps, w.one("src/a.go", "src/b.go", "secret"))
}

// completion returns the outcome of a task, with files inside or outside its scope.
func (w *world) completion(j *job) string {
	status, more, file := session.OutcomeCompleted, "", "src/a.go"
	switch n := w.chance.IntN(20); {
	case n < 3:
		file = w.one("secret", "../src/a.go", "/src/a.go")
	case n < 4:
		status, more = session.OutcomePartial, `,"blockers":["no time"]`
	case n < 6:
		status, more = session.OutcomeFailed, `,"blockers":["no idea"]`
	case n < 10:
		status = w.one(session.OutcomeFailed, session.OutcomeFailed, session.OutcomeFailed, session.OutcomeCompleted)
		kind := w.one(session.ExecutionException, session.ExecutionException, session.ExecutionTimeout, session.ExecutionScopeViolation, session.ExecutionResourceLimit, "odd")
		more = fmt.Sprintf(`,"error":{"error_type":%q,"error_message":"oh"}`, kind)
	}
	return fmt.Sprintf(`{"task_id":%q,"status":%q,"changes":{"files_created":[],"files_modified":[{"path":%q,"change_type":"modified"}],"files_deleted":[]},
		"summary":"step %d","self_review":{"tests_run":true,"tests_passed":true,"type_check_passed":true}%s}`, j.id, status, file, w.steps, more)
}

func (w *world) reviewRequest(j *job) string {
	w.ids++
	id := fmt.Sprintf("r%d", w.ids)
	if w.chance.IntN(40) == 0 && len(j.sitting.asked) > 0 {
		id = j.sitting.asked[0].id
	}
	named := j.id
	if j.revises != nil && w.chance.IntN(3) == 0 {
		named = j.revises.id // stands for its latest revision
	}
	return fmt.Sprintf(`{"review_id":%q,"task_id":%q,"scope":{"files":["src/a.go"],"focus_areas":["logic"]},
		"criteria":{"must_pass_tests":true,"must_pass_type_check":true,"custom_checks":[{"name":"n","command":"rm -rf /","expected_exit_code":0}]},
		"context":{"task_description":"d","acceptance_criteria":[]}}`, id, named)
}

// judge returns a message of a reviewer.
func (w *world) judge(s *sitting, name string) *draft {
	if len(s.asked) == 0 {
		return nil
	}
	v := s.asked[w.chance.IntN(len(s.asked))]
	for _, o := range s.asked {
		if o.reviewer == name && w.chance.IntN(20) > 0 {
			v = o
			break
		}
	}
	if v.reviewer != name && w.chance.IntN(8) > 0 {
		return nil
	}
	return &draft{to: w.one(v.job.architect, v.job.architect, w.memberOf(s, session.AgentArchitect)), kind: session.TypeReviewResult, chain: v.job.chain, payload: w.result1(v)}
}

func (w *world) result1(v *judged) string {
	verdict := w.one(session.VerdictApproved, session.VerdictApproved, session.VerdictChangesRequested, session.VerdictChangesRequested, session.VerdictChangesRequested, session.VerdictRejected)
	var findings []string
	for i := range w.chance.IntN(4) {
		severity := w.one(session.SeverityCritical, session.SeverityMajor, session.SeverityMinor, session.SeveritySuggestion)
		fixed := ""
		if verdict == session.VerdictApproved && w.chance.IntN(4) > 0 || w.chance.IntN(4) == 0 {
			fixed = `,"fixed_in_iteration":1`
		}
		findings = append(findings, fmt.Sprintf(`{"finding_id":"f%d","severity":%q,"category":"bug","location":{"file":"src/a.go"},"description":"step %d","rationale":"r"%s}`,
			i, severity, w.steps, fixed))
	}
	return fmt.Sprintf(`{"review_id":%q,"task_id":%q,"verdict":%q,"findings":[%s],
		"verification":{"tests":{"passed":%t},"type_check":{"passed":true},"custom":{%s}},"summary":"s"}`,
		v.id, w.one(v.job.id, v.job.id, v.job.id, "other"), verdict, strings.Join(findings, ","), w.chance.IntN(10) > 0, w.one(`"n":{"passed":true}`, `"n":{"passed":true}`, `"n":{"passed":true}`, ""))
}
