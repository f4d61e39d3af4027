package stdio

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// TestDeliveryErrors checks that the outcome of a refused message has the form of a reply, with
// the error of the protocol as details.
//
// Rows: C-90, K-06, K-09, T-53.
func TestDeliveryErrors(t *testing.T) {
	s := sessionOf(t, "lead", strings.Replace(shortAssignment, `"low"`, `"urgent"`, 1))
	line := noon.AppendDeliveryError([]byte("before "), s.RawID, session.Undelivered(s.ID, s.Err), s.Err)
	require.Equal(t, `before {"type":"response:error","id":"res-1","correlationId":"msg-7-kettle","timestamp":"2026-02-04T12:00:00.123Z","error":{"code":"INVALID_REQUEST",`+
		`"message":"priority must be one of high, medium or low, not \"urgent\"","details":{`+
		`"error_type":"malformed","errors":[{"pointer":"/payload/priority","message":"priority must be one of high, medium or low, not \"urgent\""}],`+
		`"max_retries":3,"original_message_id":"msg-7-kettle","pointer":"/payload/priority","retry_count":0}}}`+"\n", string(line))
	require.Len(t, s.Err.Details, 2, "the error is as it was")

	full := &session.DeliveryError{OriginalMessageID: "m", ErrorType: session.DeliveryTimeout, RetryCount: 1, MaxRetries: 3, NextRetryAt: object.Timestamp(noon.At)}
	line = noon.AppendDeliveryError(nil, nil, full, &wire.Error{Code: wire.CodeTimeout, Message: "m", Hint: "h"})
	require.Contains(t, string(line), `"correlationId":null,`)
	require.Contains(t, string(line), `"code":"TIMEOUT",`)
	require.JSONEq(t,
		`{"original_message_id":"m","error_type":"timeout","retry_count":1,"max_retries":3,"next_retry_at":"2026-02-04T12:00:00.123Z","hint":"h"}`,
		string(detailsOf(t, line)))
	var back session.DeliveryError
	require.NoError(t, object.Decode(detailsOf(t, line), &back))
	require.Equal(t, full, &back)
	final := *full
	final.NextRetryAt = ""
	why := &wire.Error{Code: wire.CodeTimeout, Details: map[string]any{"next_retry_at": "x", "error_type": "mine", "scope": []string{"a"}}}
	line = noon.AppendDeliveryError(nil, []byte("7"), &final, why)
	require.JSONEq(t, `{"original_message_id":"m","error_type":"timeout","retry_count":1,"max_retries":3,"scope":["a"]}`, string(detailsOf(t, line)))
	for _, said := range [][]byte{line, noon.AppendDeliveryError(nil, nil, full, s.Err)} {
		requireValid(t, "response:error", said)
		require.IsType(t, wire.Log{}, as("lead", string(said[:len(said)-1])), "whoever says it back is not heard")
	}
}

// detailsOf returns the details of a response:error.
func detailsOf(t *testing.T, line []byte) []byte {
	t.Helper()
	var failed struct{ Details json.RawMessage }
	require.NoError(t, json.Unmarshal(keysOf(t, line)["error"], &failed))
	return failed.Details
}

// Rows: C-90, K-06.
func TestWhyMessagesAreNotDelivered(t *testing.T) {
	for code, want := range map[wire.Code]string{
		wire.CodeInvalid: "malformed", wire.CodeUnknownType: "malformed", wire.CodeMalformed: "malformed", wire.CodeTooLarge: "malformed", wire.CodeMediaType: "malformed",
		wire.CodeTimeout: "timeout",
		wire.CodeDenied:  "rejected", wire.CodeNotFound: "rejected", wire.CodeConflict: "rejected", wire.CodeLimited: "rejected", wire.CodeUnauthenticated: "rejected", wire.CodeInternal: "rejected",
	} {
		require.Equal(t, &session.DeliveryError{OriginalMessageID: "m", ErrorType: want, MaxRetries: 3}, session.Undelivered("m", &wire.Error{Code: code}), code)
	}
}

var sessionHead = session.Head{
	MessageID: "0c8e2f14-5b7a-4d39-8f21-6a9e0b3c4dff", At: noon.At, SequenceNumber: 12, From: session.Agent{AgentID: `co"der`, AgentType: session.AgentDeveloper, InstanceID: "i"},
	To: session.Agent{AgentID: "lead", AgentType: session.AgentArchitect}, CorrelationID: "kettle", ReplyTo: "msg-1",
}

// TestMessagesThatAreSaidForAgents checks that a message sent for an agent is valid.
//
// Rows: C-69, K-08.
func TestMessagesThatAreSaidForAgents(t *testing.T) {
	schema := validators(t)["session-message"]
	bare := sessionHead
	bare.CorrelationID, bare.ReplyTo, bare.From.InstanceID, bare.SequenceNumber = "", "", "", 0
	for _, head := range []session.Head{sessionHead, bare} {
		for _, m := range []*session.Message{
			head.Completion("kettle-1", session.OutcomeFailed, "its process\nended", nil), head.Completion("kettle-1", session.OutcomePartial, "", nil),
			head.Completion("kettle-1", session.OutcomeCompleted, "it was approved", nil), head.StatusResponse(wire.Raw(`{"n":1.0}`)), head.StatusResponse(wire.Raw(`{}`)),
		} {
			require.Equal(t, heard(t, string(m.Document), true), m)
			require.NoError(t, schema.Validate(decoded(t, m.Document)))
			require.Nil(t, m.Misdirected())
			require.Equal(t, head.CorrelationID, m.CorrelationID)
		}
	}
	require.Equal(t, `{"message_id":"0c8e2f14-5b7a-4d39-8f21-6a9e0b3c4dff","timestamp":"2026-02-04T12:00:00.123Z","sequence_number":12,`+
		`"from_agent":{"agent_id":"co\"der","agent_type":"developer","instance_id":"i"},"to_agent":{"agent_id":"lead","agent_type":"architect"},`+
		`"message_type":"status_response","payload":{"n":1.0},"correlation_id":"kettle","reply_to":"msg-1"}`, string(sessionHead.StatusResponse(wire.Raw(`{"n":1.0}`)).Document))
	for outcome, blockers := range map[string][]string{session.OutcomeCompleted: {}, session.OutcomePartial: {"why"}, session.OutcomeFailed: {"why"}} {
		done := sessionHead.Completion("kettle-1", outcome, "why", nil).Body.(*session.Completion)
		require.Equal(t, outcome, done.Status)
		require.Equal(t, "why", done.Summary)
		require.Equal(t, blockers, done.Blockers)
		require.Empty(t, done.Changes.Touched())
	}
}

// Rows: C-92.
func TestTaskExecutionErrors(t *testing.T) {
	text, err := object.Encode(&session.ExecutionError{
		TaskID: "kettle-1", ErrorType: session.ExecutionScopeViolation, ErrorMessage: "lid/lid.go is not to be changed", Recoverable: true, SuggestedAction: session.SuggestRetry,
	})
	require.NoError(t, err)
	require.Equal(t,
		`{"task_id":"kettle-1","error_type":"scope_violation","error_message":"lid/lid.go is not to be changed","recoverable":true,"suggested_action":"retry"}`, string(text))
	require.Equal(t, []string{"timeout", "exception", "scope_violation", "resource_limit"},
		[]string{session.ExecutionTimeout, session.ExecutionException, session.ExecutionScopeViolation, session.ExecutionResourceLimit})
	require.Equal(t, []string{"retry", "reassign", "abort", "manual"}, []string{session.SuggestRetry, session.SuggestReassign, session.SuggestAbort, session.SuggestManual})
	require.Equal(t, []string{"abort", "force_approve", "human_review"}, session.Escalations)
	require.EqualValues(t, []any{3, 3}, []any{session.DefaultIterations, session.DeliveryRetries})
}
