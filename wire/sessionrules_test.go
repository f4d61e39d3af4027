package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/session"
)

// TestMessagesThatAreMisdirected checks which agent types may send each type of message to which
// others.
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
				require.Equal(t, CodeDenied, err.Code)
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
			require.Equal(t, CodeConflict, err.Code)
			require.Equal(t, test.pointer, err.Details["pointer"])
		}
	}
}
