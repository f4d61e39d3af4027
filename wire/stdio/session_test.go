package stdio

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// sessionExamples returns the examples of the schema, one of each type, with all optional
// members.
func sessionExamples(t testing.TB) map[string]map[string]any {
	t.Helper()
	found := make(map[string]map[string]any)
	for _, example := range schemaOf(t, "session-message")["examples"].([]any) {
		message := example.(map[string]any)
		found[message["message_type"].(string)] = message
	}
	require.Equal(t, slices.Sorted(slices.Values(session.Types)), slices.Sorted(maps.Keys(found)))
	return found
}

// heard reads a valid message.
func heard(t testing.TB, line string, strict bool) *session.Message {
	t.Helper()
	m, err := session.Read([]byte(line), 64)
	require.Nil(t, err, "%v\n%s", err, line)
	if strict {
		require.Nil(t, m.Strictly())
	}
	return m
}

// judged returns the error of a message, optionally in strict mode.
func judged(line []byte, strict bool) *wire.Error {
	m, err := session.Read(line, 64)
	if err == nil && strict {
		return m.Strictly()
	}
	return err
}

// Messages as agents often write them: with a short id and without the members that are omitted
// most.
const (
	shortAssignment = `{"message_id":"msg-7-kettle","timestamp":"2026-11-20T09:15:00Z","sequence_number":7,` +
		`"from_agent":{"agent_id":"lead","agent_type":"architect"},"to_agent":{"agent_id":"coder","agent_type":"developer","instance_id":"coder-2"},` +
		`"message_type":"task_assignment","payload":{"task":{"task_id":"kettle-1","task_description":"Stop when it is empty",` +
		`"context":{"specs":[],"reference_files":[{"path":"kettle/heat.go","reason":"The heater"}]},` +
		`"constraints":{"scope":["kettle/**"],"testing_required":true},"acceptance_criteria":["It stops"]},"priority":"low"}}`
	shortResult = `{"message_id":"msg-19","timestamp":"2026-11-20T10:15:00Z","sequence_number":19,` +
		`"from_agent":{"agent_id":"critic","agent_type":"reviewer"},"to_agent":{"agent_id":"lead","agent_type":"architect"},` +
		`"message_type":"review_result","correlation_id":"kettle","payload":{"review_id":"kettle-1-a","task_id":"kettle-1","verdict":"changes_requested",` +
		`"findings":[{"finding_id":"k-1","severity":"major","category":"logic","location":{"file":"kettle/heat.go","line_start":17},"description":"0 is not below 0"}],` +
		`"verification":{"tests":{"passed":true},"type_check":{"passed":true}},"summary":"Nearly there",` +
		`"required_changes":[{"change_id":"c-1","priority":"must_fix","related_findings":["k-1"],"description":"Stop at 0"}]}}`
)

// TestSessionMessagesAreRead checks the value of each type of message, with all its members.
//
// Rows: C-01, C-08, C-09, C-15, C-20, C-21, C-26, C-29, C-31, C-37, C-42, C-43, C-49, C-50, C-51, C-59, C-65, C-68, C-69, C-73, C-80, K-12, T-31, T-56.
func TestSessionMessagesAreRead(t *testing.T) {
	want := map[string]any{
		"task_assignment": &session.Assignment{
			Task: session.TaskInput{
				TaskID: "kettle-1", Description: "The kettle has to stop when it is empty",
				Context: session.TaskContext{
					Specs:            []session.ContextFile{{Path: "docs/kettle.txt", Reason: "How hot is hot", Sections: []string{"Limits"}}},
					ReferenceFiles:   []session.ContextFile{{Path: "kettle/heat.go", Reason: "The heater", Sections: []string{}}},
					PreviousAttempts: []session.Attempt{{Number: 1, Outcome: "It stopped too late", Feedback: "Ask the sensor more often"}},
				},
				Constraints: session.Constraints{
					Scope: []string{"kettle/**"}, TestingRequired: true, MustNotBreak: []string{"Tea"}, StyleGuide: "docs/style.txt",
				},
				AcceptanceCriteria: []string{"It stops within a second"},
			},
			Priority: "high", Deadline: "2026-11-21T18:00:00+01:00", MaxIterations: 2,
			Dependencies: []session.Dependency{
				{TaskID: "kettle-1", DependsOn: []string{"sensor-4"}, Type: "hard"}, {TaskID: "kettle-1", DependsOn: []string{"lid-2"}, Type: "soft"},
			},
		},
		"task_progress": &session.Progress{
			TaskID: "kettle-1", Percent: 62.5, Step: "Writes the test", Files: []string{"kettle/heat.go"}, Remaining: "ten minutes", Blockers: []string{"The sensor is slow"},
		},
		"task_completion": &session.Completion{
			TaskID: "kettle-1", Status: "partial",
			Changes: session.FileChanges{
				Created:  []session.FileChange{{Path: "kettle/heat_test.go", Type: "created", LinesAdded: 40, Description: "An empty kettle"}},
				Modified: []session.FileChange{{Path: "kettle/heat.go", Type: "modified", LinesAdded: 12, LinesRemoved: 3}}, Deleted: []string{"kettle/old.go"},
			},
			Summary: "It stops, and says why", Notes: "The sensor is asked ten times a second", Blockers: []string{"The lid is not there yet"},
			SelfReview:  session.SelfReview{TestsRun: true, TestsPassed: true, TypeCheckPassed: true, KnownIssues: []string{"It hums"}},
			Suggestions: []string{"A quieter relay"},
			Error: &session.ExecutionError{
				TaskID: "kettle-1", ErrorType: session.ExecutionResourceLimit, ErrorMessage: "The lid has no room", Recoverable: true, SuggestedAction: session.SuggestManual,
			},
		},
		"review_request": &session.ReviewRequest{
			ReviewID: "kettle-1-a", TaskID: "kettle-1",
			Scope: session.ReviewScope{Files: []string{"kettle/heat.go"}, FocusAreas: []string{"logic", "error_handling"}, IgnorePatterns: []string{"**/*.txt"}},
			Criteria: session.ReviewCriteria{
				MustPassTests: true, MustPassTypeCheck: true, CustomChecks: []session.CustomCheck{{Name: "dry", Command: "make dry-run"}},
			},
			Context: session.ReviewContext{
				TaskDescription: "The kettle has to stop when it is empty", AcceptanceCriteria: []string{"It stops within a second"},
				PreviousReviews: []session.ReviewSummary{{Number: 1, Verdict: "changes_requested", KeyFindings: []string{"It hums"}}},
			},
		},
		"review_result": &session.ReviewResult{
			ReviewID: "kettle-1-a", TaskID: "kettle-1", Verdict: "changes_requested", Summary: "Nearly there",
			Findings: []session.Finding{
				{
					FindingID: "k-1", Severity: "major", Category: "logic",
					Location:    session.Location{File: "kettle/heat.go", LineStart: 17, LineEnd: 19, Snippet: "if level < 0 {"},
					Description: "A level of 0 is not below 0", Rationale: "An empty kettle goes on heating", Suggestion: "Use <=", FixedIn: 2,
				},
				{
					FindingID: "k-2", Severity: "suggestion", Category: "style", Location: session.Location{File: "kettle/heat.go"},
					Description: "The name is long", Rationale: "It is read often",
				},
			},
			Verification: session.Verification{
				Tests:     session.CheckResult{Output: "1 of 12 failed", Error: "exit status 1"},
				TypeCheck: session.CheckResult{Passed: true}, Lint: &session.CheckResult{Passed: true},
				Custom: map[string]session.CheckResult{"dry": {Passed: true, Output: "fine"}},
			},
			RequiredChanges: []session.RequiredChange{{ChangeID: "c-1", Priority: "must_fix", Findings: []string{"k-1"}, Description: "Stop at 0"}},
			Commendations:   []string{"The test is easy to read"},
		},
		"feedback":        &session.Feedback{Type: "question", Subject: "The hum", Content: "Does it matter?", TaskID: "kettle-1"},
		"status_query":    &session.StatusQuery{TaskID: "kettle-1"},
		"status_response": &session.StatusResponse{},
		"abort":           &session.Abort{Scope: "task", TargetID: "kettle-1", Reason: "There is coffee instead", CleanupRequired: true},
		"acknowledgment":  &session.Acknowledgment{},
	}
	for kind, example := range sessionExamples(t) {
		m := heard(t, string(encoded(t, example)), true)
		require.Equal(t, kind, m.MessageType)
		require.EqualExportedValues(t, want[kind], m.Body)
		require.Empty(t, m.Notes, kind)
		require.Equal(t, example["message_id"], m.MessageID)
	}
	request := want["review_request"].(*session.ReviewRequest)
	require.Equal(t, []string{"tests", "type_check", "custom/dry"}, request.Wanted())
	completion := want["task_completion"].(*session.Completion)
	require.Equal(t, []string{"kettle/heat_test.go", "kettle/heat.go", "kettle/old.go"}, completion.Changes.Touched())
}

// Rows: C-03, C-04, C-05, C-06, C-07, C-10, C-11, C-12, C-13, C-14, K-09.
func TestSessionEnvelopesAreRead(t *testing.T) {
	m := heard(t, string(encoded(t, sessionExamples(t)["task_assignment"])), true)
	require.NotZero(t, m.Sum)
	m.Document, m.Body, m.Sum = nil, nil, 0
	require.Equal(t, &session.Message{
		MessageID: "0c8e2f14-5b7a-4d39-8f21-6a9e0b3c4d01", Timestamp: "2026-11-20T09:11:00Z", SequenceNumber: 1, Sequenced: true,
		From: session.Agent{AgentID: "lead", AgentType: "architect"}, To: session.Agent{AgentID: "coder", AgentType: "developer", InstanceID: "coder-2"},
		MessageType: "task_assignment", CorrelationID: "kettle", SessionID: "kitchen",
	}, m)
	m = heard(t, string(encoded(t, sessionExamples(t)["acknowledgment"])), true)
	require.Equal(t, "0c8e2f14-5b7a-4d39-8f21-6a9e0b3c4d01", m.ReplyTo)
	m = heard(t, strings.Replace(shortResult, `"sequence_number":19`, `"sequence_number":0`, 1), false)
	require.True(t, m.Sequenced, "0 is a number")
	m = heard(t, strings.Replace(shortResult, `"sequence_number":19,`, ``, 1), false)
	require.False(t, m.Sequenced)
}

// TestWhatSessionsForgive checks that exactly the members that are often omitted are forgiven
// and noted. In strict mode none is.
//
// Rows: C-30, C-55, C-64, C-101, C-102, K-23, T-25.
func TestWhatSessionsForgive(t *testing.T) {
	m := heard(t, shortAssignment, false)
	require.Equal(t, []string{"/payload/task/constraints/must_not_break: task.constraints.must_not_break is missing, which is tolerated"}, m.Notes)
	require.Equal(t, []string{}, m.Body.(*session.Assignment).Task.Constraints.MustNotBreak)
	require.Zero(t, m.Body.(*session.Assignment).MaxIterations)
	m = heard(t, shortResult, false)
	require.Equal(t, []string{
		"/payload/findings/0/rationale: findings[0].rationale is missing, which is tolerated",
		"/payload/verification/custom: verification.custom is missing, which is tolerated",
	}, m.Notes)
	m = heard(t, strings.Replace(shortResult, `"sequence_number":19,`, ``, 1), false)
	require.Equal(t, "/sequence_number: sequence_number is missing, which is tolerated", m.Notes[0])

	for line, want := range map[string][]string{
		shortAssignment: {
			`/message_id: message_id must be a UUID of version 4, not "msg-7-kettle"`,
			"/payload/task/constraints/must_not_break: task.constraints.must_not_break is missing",
		},
		shortResult: {
			`/message_id: message_id must be a UUID of version 4, not "msg-19"`,
			"/payload/findings/0/rationale: findings[0].rationale is missing",
			"/payload/verification/custom: verification.custom is missing",
		},
	} {
		err := judged([]byte(line), true)
		require.NotNil(t, err)
		require.Equal(t, wire.CodeInvalid, err.Code)
		require.Equal(t, want, err.Complaints())
		require.Equal(t, "/message_id", err.Details["pointer"])
		require.Equal(t, strings.TrimPrefix(want[0], "/message_id: "), err.Message)
	}
}

// Rows: C-03, T-25.
func TestIDsOfSessionMessages(t *testing.T) {
	for id, want := range map[string]string{
		"0c8e2f14-5b7a-4d39-8f21-6a9e0b3c4d01": "both", "0C8E2F14-5B7A-4D39-BF21-6A9E0B3C4D01": "both",
		"msg-1": "short", "msg-001": "short", "msg-0012-a1B2": "short",
		"0c8e2f14-5b7a-1d39-8f21-6a9e0b3c4d01": "no", "0c8e2f14-5b7a-4d39-cf21-6a9e0b3c4d01": "no", "0c8e2f145b7a4d398f216a9e0b3c4d01": "no",
		"{0c8e2f14-5b7a-4d39-8f21-6a9e0b3c4d01}": "no", "00000000-0000-0000-0000-000000000000": "no",
		"x": "no", "": "no", " ": "no", "msg-": "no", "msg-a": "no", "msg-1-": "no", "msg-1-a-b": "no", "msg-1-é": "no", "msg--1": "no", "MSG-1": "no", "msg-1 ": "no", "msg-1\n": "no",
		"msg-1_a": "no", "m-1": "no", "msg1": "no", "msg-" + strings.Repeat("1", 197): "no",
	} {
		line := encoded(t, with(sessionExamples(t)["abort"], "/message_id", id))
		for _, strict := range []bool{false, true} {
			err := judged(line, strict)
			require.Equal(t, want == "no" || strict && want == "short", err != nil, "%q, strictly %v", id, strict)
			if err != nil {
				require.Equal(t, "/message_id", err.Details["pointer"])
			}
		}
	}
}

// TestWhatIsOddAboutSessionMessages checks that odd messages are accepted unchanged with a note,
// also in strict mode.
//
// Rows: C-11, C-42, C-43, C-44, C-58, C-66, C-85, C-92.
func TestWhatIsOddAboutSessionMessages(t *testing.T) {
	for _, test := range []struct{ kind, from, to, want string }{
		{"task_completion", `"tests_run":true`, `"tests_run":false`, "/payload/self_review/tests_passed: self_review.tests_passed is true, and tests_run is false: they cannot have passed"},
		{"task_completion", `"change_type":"created"`, `"change_type":"deleted"`, `/payload/changes/files_created/0/change_type: changes.files_created[0].change_type is "deleted", but is listed in files_created`},
		{"task_completion", `"change_type":"modified"`, `"change_type":"created"`, `/payload/changes/files_modified/0/change_type: changes.files_modified[0].change_type is "created", but is listed in files_modified`},
		{"task_completion", `"blockers":["The lid is not there yet"],`, ``, "/payload/blockers: blockers is empty: it should give the reason for the status partial"},
		{"task_completion", `"error_type":"resource_limit"`, `"error_type":"hunger"`, `/payload/error/error_type: error.error_type must be one of timeout, exception, scope_violation or resource_limit, not "hunger"; the error is passed over`},
		{"task_completion", `"suggested_action":"manual"`, `"suggested_action":"sleep"`, `/payload/error/suggested_action: error.suggested_action must be one of retry, reassign, abort or manual, not "sleep"; the error is passed over`},
		{"task_completion", `"error_message":`, `"message":`, "/payload/error/error_message: error.error_message is missing; the error is passed over"},
		{"task_completion", `"recoverable":true`, `"recoverable":"yes"`, "/payload/error/recoverable: error.recoverable must be true or false; the error is passed over"},
		{"task_completion", `"recoverable":true`, `"later":[]`, ""},
		{"task_completion", `"error":{`, `"error":null,"x":{`, "/payload/error: error must not be null; the error is passed over"},
		{"task_completion", `"error":{`, `"error":"no room","x":{`, "/payload/error: error must be an object; the error is passed over"},
		{"task_completion", `"error":{`, `"error":{},"error":{`, "/payload/error: error stands twice; the error is passed over"},
		{"review_result", `"related_findings":["k-1"]`, `"related_findings":["k-1","k-9"]`, `/payload/required_changes/0/related_findings/1: related_findings: no finding is called "k-9"`},
		{"review_result", `"priority":"must_fix"`, `"priority":"consider"`, ""},
		{"acknowledgment", `"reply_to":"0c8e2f14-5b7a-4d39-8f21-6a9e0b3c4d01"`, `"reply_to":"yours"`, `/reply_to: reply_to is not a message id: "yours"`},
		{"acknowledgment", `"reply_to":"0c8e2f14-5b7a-4d39-8f21-6a9e0b3c4d01"`, `"reply_to":"msg-1"`, ""},
	} {
		line := string(encoded(t, sessionExamples(t)[test.kind]))
		require.Contains(t, line, test.from)
		m := heard(t, strings.Replace(line, test.from, test.to, 1), true)
		require.Equal(t, test.want, strings.Join(m.Notes, "\n"))
		if done, ok := m.Body.(*session.Completion); ok {
			require.Equal(t, strings.Contains(test.want, "passed over"), done.Error == nil)
		}
	}
	bare := strings.Replace(shortResult[:strings.Index(shortResult, `"findings"`)], "changes_requested", "%", 1) +
		`"findings":[],"verification":{"tests":{"passed":true},"type_check":{"passed":true},"custom":{}},"summary":""}}`
	require.Empty(t, heard(t, strings.Replace(bare, "%", "approved", 1), false).Notes)
	require.Equal(t, []string{
		"/payload/findings: findings is empty, but changes are requested",
		"/payload/required_changes: required_changes is empty, but changes are requested",
	}, heard(t, strings.Replace(bare, "%", "changes_requested", 1), false).Notes)
}

// TestEverythingThatIsWrongIsTold checks that all errors of a message are reported together.
//
// Rows: C-97, C-98.
func TestEverythingThatIsWrongIsTold(t *testing.T) {
	_, err := session.Read([]byte(`{"message_type":"abort","payload":{"scope":"all","target_id":7,"reason":null,"cleanup_required":"no","cleanup_required":true}}`), 64)
	require.Equal(t, []object.Problem{
		{Pointer: "/message_id", Message: "message_id is missing"},
		{Pointer: "/timestamp", Message: "timestamp is missing"},
		{Pointer: "/from_agent", Message: "from_agent is missing"},
		{Pointer: "/to_agent", Message: "to_agent is missing"},
		{Pointer: "/payload/scope", Message: `scope must be one of task or session, not "all"`},
		{Pointer: "/payload/target_id", Message: "target_id must be a string"},
		{Pointer: "/payload/reason", Message: "reason must not be null"},
		{Pointer: "/payload/cleanup_required", Message: "cleanup_required stands twice"},
	}, err.Details["errors"])
	require.Equal(t, "/message_id", err.Details["pointer"])
	require.Equal(t, "message_id is missing", err.Message)

	many := `{"message_type":"task_progress","payload":{"files_modified_so_far":[` + strings.Repeat("1,", 99) + `1]}}`
	_, err = session.Read([]byte(many), 64)
	require.Len(t, err.Details["errors"], 20)
	odd := strings.Replace(shortResult, `"related_findings":["k-1"]`, `"related_findings":["x"`+strings.Repeat(`,"x"`, 99)+`]`, 1)
	require.Len(t, heard(t, odd, false).Notes, 20)
	careless := strings.Replace(strings.Repeat(`,{"finding_id":"%","severity":"minor","category":"bug","location":{"file":"a"},"description":""}`, 99), ",", "", 1)
	for i := range 99 {
		careless = strings.Replace(careless, "%", strconv.Itoa(i), 1)
	}
	m := heard(t, shortResult[:strings.Index(shortResult, `{"finding_id"`)]+careless+shortResult[strings.Index(shortResult, `],"verification"`):], false)
	require.Len(t, m.Strictly().Details["errors"], 20)

	for line, want := range map[string]string{
		``: "the message: it must be an object", `[]`: "the message: it must be an object", `null`: "the message: it must be an object",
		`{"a":`: "the message: it is not valid JSON", `{"a":{"b":{}}}`: "the message: it nests too deeply", `{}{}`: "the message: more text follows the object: write one message a line, with one writer a stream",
	} {
		_, err := session.Read([]byte(line), 2)
		require.Equal(t, wire.CodeInvalid, err.Code)
		require.Equal(t, want, err.Message)
		require.Equal(t, []string{want}, err.Complaints())
	}
}

// TestSessionMessagesAreRefused checks errors that involve several members, and places that the
// examples do not reach.
//
// Rows: C-21, C-27, C-34, C-48, C-56, C-60, C-61, C-62, C-63, K-10, T-31.
func TestSessionMessagesAreRefused(t *testing.T) {
	for _, test := range []struct{ kind, from, to, want string }{
		{"task_assignment", `"max_iterations":2`, `"max_iterations":0`, "/payload/max_iterations: max_iterations must be a whole number from 1 to 9007199254740991"},
		{"task_assignment", `"max_iterations":2`, `"max_iterations":-3`, "/payload/max_iterations: max_iterations must be a whole number from 1 to 9007199254740991"},
		{"task_assignment", `"scope":["kettle/**"]`, `"scope":["kettle/**"," "]`, "/payload/task/constraints/scope/1: task.constraints.scope[1] must not be empty"},
		{"task_assignment", `"specs":[`, `"specs":[{"path":"a"},`, "/payload/task/context/specs/0/reason: task.context.specs[0].reason is missing"},
		{"task_assignment", `when it is empty","task_id":`, `when it is empty","Task_ID":`, "/payload/task/task_id: task.task_id is missing"},
		{"task_assignment", `when it is empty","task_id":"kettle-1"`, `when it is empty","task_id":"a\u0000"`, "/payload/task/task_id: task.task_id must not have control characters in it"},
		{"task_assignment", `"dependency_type":"soft"`, `"dependency_type":"blocks"`, `/payload/dependencies/1/dependency_type: dependencies[1].dependency_type must be one of hard or soft, not "blocks"`},
		{"task_progress", `62.5`, `-1`, "/payload/progress_percent: progress_percent must be a number from 0 to 100"},
		{"task_progress", `62.5`, `100.5`, "/payload/progress_percent: progress_percent must be a number from 0 to 100"},
		{"task_progress", `62.5`, `"62"`, "/payload/progress_percent: progress_percent must be a number"},
		{"review_request", `"must_pass_tests":true`, `"mustPassTests":true`, "/payload/criteria/must_pass_tests: criteria.must_pass_tests is missing"},
		{"review_result", `"line_end":19`, `"line_end":16`, "/payload/findings/0/location/line_end: findings[0].location.line_end must not be less than line_start, which is 17"},
		{"review_result", `"line_end":19`, `"line_end":18.5`, "/payload/findings/0/location/line_end: findings[0].location.line_end must be a whole number from 0 to 9007199254740991"},
		{"review_result", `"finding_id":"k-2"`, `"finding_id":"k-1"`, "/payload/findings/1/finding_id: findings[1].finding_id stands twice"},
		{"review_result", `"severity":"major"`, `"severity":"Major"`, `/payload/findings/0/severity: findings[0].severity must be one of critical, major, minor or suggestion, not "Major"`},
		{"review_result", `"category":"logic"`, `"category":"test_coverage"`, `/payload/findings/0/category: findings[0].category must be one of bug, security, performance, style, logic or test, not "test_coverage"`},
		{"review_result", `"dry":{`, `"a/b~c":{"passed":"yes"},"dry":{`, "/payload/verification/custom/a~1b~0c/passed: verification.custom.a/b~c.passed must be true or false"},
		{"review_result", `"dry":{`, `"dry":{"passed":true},"dry":{`, "/payload/verification/custom/dry: verification.custom.dry stands twice"},
		{"review_result", `"dry":{`, `"wet":null,"dry":{`, "/payload/verification/custom/wet: verification.custom.wet must be an object"},
		{"feedback", `"message_type":"feedback"`, `"message_type":"error"`, `/message_type: message_type must be one of task_assignment, task_progress, task_completion, review_request, review_result, feedback, status_query, status_response, abort or acknowledgment, not "error"`},
		{"abort", `"agent_id":"lead"`, `"agent_id":""`, "/from_agent/agent_id: from_agent.agent_id must not be empty"},
	} {
		line := string(encoded(t, sessionExamples(t)[test.kind]))
		require.Contains(t, line, test.from)
		err := judged([]byte(strings.Replace(line, test.from, test.to, 1)), false)
		require.NotNil(t, err, test.to)
		require.Equal(t, []string{test.want}, err.Complaints())
	}
}

// TestTypesThatAreNone checks that an unknown word is an unknown type, and that any other error
// in a type is invalid.
//
// Rows: C-08, K-06, T-53.
func TestTypesThatAreNone(t *testing.T) {
	for line, want := range map[string]wire.Code{
		strings.Replace(shortResult, "review_result", "error", 1):              wire.CodeUnknownType,
		strings.Replace(shortResult, "review_result", "acknowledgement", 1):    wire.CodeUnknownType,
		strings.Replace(shortResult, `"review_result"`, `""`, 1):               wire.CodeInvalid,
		strings.Replace(shortResult, `"review_result"`, `7`, 1):                wire.CodeInvalid,
		strings.Replace(shortResult, `"message_type":"review_result",`, ``, 1): wire.CodeInvalid,
	} {
		_, err := session.Read([]byte(line), 64)
		require.NotNil(t, err)
		require.Equal(t, want, err.Code, line)
		require.Equal(t, "/message_type", err.Details["pointer"])
	}
}

// TestSessionMessagesAreKeptDigitForDigit checks that unknown members are kept unchanged and are
// not an error.
//
// Rows: C-10, C-16, C-23, K-23.
func TestSessionMessagesAreKeptDigitForDigit(t *testing.T) {
	const strange = `"payload":{"x":1,"x":2,"n":1.00,"big":12345678901234567890,"e":1E+2,"u":"\u00e9\/<&>","later":[{"severity":null}],`
	line := strings.Replace(shortAssignment, `"payload":{`, strange, 1)
	require.Equal(t, line, string(heard(t, " \t"+line+" \r", false).Document))
	spread := strings.ReplaceAll(line, `,"`, ",\r\n\t\"")
	require.Equal(t, line, string(heard(t, spread, false).Document), "on one line, wherever it came from")
	text := []byte(line)
	m, err := session.Read(text, 64)
	require.Nil(t, err)
	clear(text)
	require.Equal(t, line, string(m.Document), "it outlives its line")
	require.Equal(t, "kettle-1", m.Body.(*session.Assignment).Task.TaskID)
}

// TestSessionMessagesAreDeliveredAsTheyCame checks that a delivered message is the one that was
// sent, with at most two members filled in.
//
// Rows: C-05, C-10, C-16.
func TestSessionMessagesAreDeliveredAsTheyCame(t *testing.T) {
	unnumbered := strings.Replace(shortAssignment, `"sequence_number":7,`, ``, 1)
	for _, test := range []struct {
		line        string
		sequence    int64
		correlation string
		more        string
	}{
		{shortAssignment, 0, "", ""},
		{shortAssignment, 42, "", ""},
		{shortAssignment, 42, `c"1`, `,"correlation_id":"c\"1"`},
		{unnumbered, 42, "", `,"sequence_number":42`},
		{unnumbered, 42, "c", `,"sequence_number":42,"correlation_id":"c"`},
		{unnumbered, 0, "c", `,"correlation_id":"c"`},
		{shortResult, 42, "c", ""},
	} {
		m := heard(t, test.line, false)
		require.Equal(t, strings.TrimSuffix(test.line, "}")+test.more+"}", string(m.Delivered(test.sequence, test.correlation)))
		require.Equal(t, test.line, string(m.Document), "delivering it changes nothing")
	}
}

// TestMessagesThatAreMisdirected checks which agent types may send each type of message to which
// types.
//
// Rows: C-17, C-67.
func TestMessagesThatAreMisdirected(t *testing.T) {
	for _, kind := range session.Types {
		var may []string
		for _, from := range session.AgentTypes {
			for _, to := range session.AgentTypes {
				m := session.Message{MessageType: kind, From: session.Agent{AgentType: from}, To: session.Agent{AgentType: to}}
				err := m.Misdirected()
				if err == nil {
					may = append(may, from[:1]+to[:1])
					continue
				}
				require.Equal(t, wire.CodeDenied, err.Code)
				require.Contains(t, []any{"/from_agent/agent_type", "/to_agent/agent_type"}, err.Details["pointer"])
			}
		}
		want := map[string]string{
			"task_assignment": "ad", "task_progress": "da", "task_completion": "da", "review_request": "ar", "review_result": "ra", "abort": "aa ad ar",
		}[kind]
		if want == "" {
			want = "aa ad ar da dd dr ra rd rr"
		}
		require.Equal(t, want, strings.Join(may, " "), kind)
	}
}

// Rows: C-84, T-30.
func TestObjectionsToAnApproval(t *testing.T) {
	passed := session.CheckResult{Passed: true}
	verified := func(change func(v *session.Verification)) session.Verification {
		v := session.Verification{Tests: passed, TypeCheck: passed, Lint: &passed, Custom: map[string]session.CheckResult{"dry": passed}}
		change(&v)
		return v
	}
	fine := verified(func(*session.Verification) {})
	for _, test := range []struct {
		result  session.ReviewResult
		pointer any
	}{
		{session.ReviewResult{Verification: fine}, nil},
		{session.ReviewResult{Verification: fine, Findings: []session.Finding{{Severity: "minor"}, {Severity: "suggestion"}}}, nil},
		{session.ReviewResult{Verification: fine, Findings: []session.Finding{{Severity: "major", FixedIn: 2}, {Severity: "critical", FixedIn: 1}}}, nil},
		{session.ReviewResult{Verification: fine, Findings: []session.Finding{{Severity: "minor"}, {Severity: "major"}}}, "/payload/findings/1"},
		{session.ReviewResult{Verification: fine, Findings: []session.Finding{{Severity: "critical"}}}, "/payload/findings/0"},
		{session.ReviewResult{Verification: verified(func(v *session.Verification) { v.Tests.Passed = false })}, "/payload/verification"},
		{session.ReviewResult{Verification: verified(func(v *session.Verification) { v.Lint = &session.CheckResult{} })}, "/payload/verification"},
		{session.ReviewResult{Verification: verified(func(v *session.Verification) { v.Custom["dry"] = session.CheckResult{} })}, "/payload/verification"},
	} {
		for _, verdict := range session.Verdicts {
			test.result.Verdict = verdict
			err := test.result.Objection()
			if verdict != session.VerdictApproved || test.pointer == nil {
				require.Nil(t, err)
				continue
			}
			require.NotNil(t, err)
			require.Equal(t, wire.CodeConflict, err.Code)
			require.Equal(t, test.pointer, err.Details["pointer"])
		}
	}
}

// TestSumsOfSessionMessages checks that a repeat has the same sum, although its time and its
// number may differ.
//
// Rows: C-02.
func TestSumsOfSessionMessages(t *testing.T) {
	sum := func(from, to string) uint64 {
		line := strings.Replace(shortAssignment, from, to, 1)
		require.True(t, from == to || line != shortAssignment, from)
		return heard(t, line, false).Sum
	}
	same := sum("", "")
	for from, to := range map[string]string{
		`"sequence_number":7,`: ``, `"sequence_number":7`: `"sequence_number":8`, `2026-11-20T09:15:00Z`: `2026-11-20T09:16:00Z`, `{"message_id"`: "{ \n\"message_id\"",
		`"message_id":"msg-7-kettle"`: `"message_id":"msg-8"`, `coder-2`: `coder-3`, `"payload"`: `"correlation_id":"c","payload"`, `"payload":`: `"payload" : `,
	} {
		require.Equal(t, same, sum(from, to), to)
	}
	for from, to := range map[string]string{
		`"lead"`: `"leader"`, `"coder"`: `"decoder"`, `"low"`: `"high"`, `"priority":"low"`: `"priority":"low","later":1`,
	} {
		require.NotEqual(t, same, sum(from, to), to)
	}
}
