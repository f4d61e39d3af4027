package stdio

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

const entryAt = "2026-02-04T12:00:00.123Z"

// TestEntriesOfTheLog checks that an entry of the log is the message with the members of the
// log, without repeated keys.
//
// Rows: C-98, C-99, C-100.
func TestEntriesOfTheLog(t *testing.T) {
	const ours = `"logged_at":"2026-02-04T12:00:00.123Z","processing_duration_ms":0.25,`
	unnumbered := strings.Replace(shortAssignment, `"sequence_number":7,`, ``, 1)
	lying := strings.TrimSuffix(shortAssignment, "}") + `,"logged_at":1,"refused":"yes","validation_errors":[],"log_seq":-1,"log\u005fseq":2,"processing_duration_ms":null}`
	short := strings.TrimSuffix(shortAssignment, "}") + ","
	for _, test := range []struct {
		entry session.Entry
		want  string
	}{
		{session.Entry{Document: wire.Raw(shortAssignment)}, short + ours + `"log_seq":57}`},
		{session.Entry{Document: wire.Raw(shortAssignment), Sequence: 9, Chain: "c"}, short + `"correlation_id":"c",` + ours + `"log_seq":57}`},
		{session.Entry{Document: wire.Raw(shortResult), Sequence: 9, Chain: "c"}, strings.TrimSuffix(shortResult, "}") + "," + ours + `"log_seq":57}`},
		{
			session.Entry{Document: wire.Raw(unnumbered), Sequence: 9, Chain: `"`, Errors: []string{"a", `"b"`}},
			strings.TrimSuffix(unnumbered, "}") + `,"sequence_number":9,"correlation_id":"\"",` + ours + `"validation_errors":["a","\"b\""],"log_seq":57}`,
		},
		{session.Entry{Document: wire.Raw(lying)}, short + ours + `"log_seq":57}`},
		{session.Entry{Document: wire.Raw(lying), Refused: "no", Errors: []string{"e"}}, short + ours + `"validation_errors":["e"],"log_seq":57,"refused":"no"}`},
		{session.Entry{Document: wire.Raw(`{"x":1.0,"x":2}`), Refused: "no"}, `{"x":1.0,"x":2,` + ours + `"log_seq":57,"refused":"no"}`},
		{session.Entry{Document: wire.Raw(`{}`), Refused: "no"}, `{` + ours + `"log_seq":57,"refused":"no"}`},
		{session.Entry{Document: wire.Raw(`{ }`), MessageID: "m"}, `{` + ours + `"log_seq":57}`},
		{session.Entry{Document: wire.Raw(`[1]`), MessageID: "m"}, `{"message_id":"m",` + ours + `"log_seq":57}`},
		{session.Entry{Refused: "no"}, `{` + ours + `"log_seq":57,"refused":"no"}`},
		{
			session.Entry{MessageID: "m", Type: "abort", From: `le"ad`, Chain: "c"},
			`{"message_id":"m","message_type":"abort","from_agent":{"agent_id":"le\"ad"},"correlation_id":"c",` + ours + `"log_seq":57}`,
		},
	} {
		test.entry.Seq, test.entry.LoggedAt, test.entry.TookMS = 57, entryAt, 0.25
		text, err := object.Encode(&wire.SessionView{Messages: []session.Entry{test.entry}})
		require.NoError(t, err)
		require.Contains(t, string(text), `"messages":[`+test.want+`]`)
		text, err = object.Encode(test.entry)
		require.NoError(t, err)
		require.Equal(t, test.want, string(text))
		requireEntry(t, &test.entry, text)
	}
}

// requireEntry requires that an entry is decoded and encoded without a change.
func requireEntry(t *testing.T, entry *session.Entry, text []byte) {
	t.Helper()
	require.NoError(t, validators(t)["session-entry"].Validate(decoded(t, text)))
	var back session.Entry
	require.NoError(t, object.DecodeOwn(text, &back))
	require.Equal(t, string(text), string(back.Document))
	require.Equal(t, []any{entry.Seq, entry.LoggedAt, entry.TookMS, entry.Errors, entry.Refused}, []any{back.Seq, back.LoggedAt, back.TookMS, back.Errors, back.Refused})
	if m, err := session.Read(entry.Document, 64); err == nil {
		require.Equal(t, []any{m.MessageID, m.MessageType, m.From.AgentID}, []any{back.MessageID, back.Type, back.From})
	} else if entry.Document == nil {
		require.Equal(t, []any{entry.MessageID, entry.Type, entry.From, entry.Chain}, []any{back.MessageID, back.Type, back.From, back.Chain})
	}
	again, err := object.Encode(&back)
	require.NoError(t, err)
	require.JSONEq(t, string(text), string(again))
}

// Rows: C-99.
func TestEntriesAreReadAsFarAsTheyMakeSense(t *testing.T) {
	var e session.Entry
	const odd = `{"message_id":7,"message_type":[],"from_agent":"lead","sequence_number":"x","correlation_id":{},"logged_at":"a","processing_duration_ms":1.5,"log_seq":3,"refused":"r","validation_errors":["v"]}`
	require.NoError(t, object.Decode([]byte(odd), &e))
	require.Equal(t, session.Entry{Document: wire.Raw(odd), Seq: 3, LoggedAt: "a", TookMS: 1.5, Errors: []string{"v"}, Refused: "r"}, e)
	const known = `{"message_id":"m","message_type":"abort","from_agent":{"agent_id":"lead"},"sequence_number":4,"correlation_id":"c","log_seq":3}`
	require.NoError(t, object.Decode([]byte(known), &e))
	require.Equal(t, session.Entry{Document: wire.Raw(known), Seq: 3, MessageID: "m", Type: "abort", From: "lead", Sequence: 4, Chain: "c"}, e)
	for _, bad := range []string{`[]`, `"x"`, `{"log_seq":"3"}`, `{"logged_at":1}`, `{"validation_errors":"v"}`, `{"processing_duration_ms":true}`, `{`} {
		require.Error(t, object.Decode([]byte(bad), &e), bad)
	}
}

// TestSessionsAreToldAsTheirSchemasSay checks that all views of a session are valid.
func TestSessionsAreToldAsTheirSchemasSay(t *testing.T) {
	spec := session.Spec{
		ID: "kitchen", Members: []session.Member{{AgentID: "lead", AgentType: session.AgentArchitect}}, Validation: session.ValidationStandard, MaxIterations: session.DefaultIterations, OnMax: session.EscalateAbort,
	}
	review := session.ReviewView{ReviewID: "r", SessionID: "kitchen", TaskID: "t", Reviewer: "critic", Iteration: 1, RequestedAt: entryAt}
	task := wire.SessionTask{
		TaskID: "t", Phase: session.PhaseHeld, State: wire.TaskPending, MaxIterations: 3, Findings: []session.FindingView{{ID: "f", Severity: session.SeverityMajor, Category: session.CategoryBug, Found: 1}},
		Error: &session.ExecutionError{TaskID: "t", ErrorType: session.ExecutionTimeout, SuggestedAction: session.SuggestRetry},
	}
	whole := wire.SessionView{
		Spec: spec, State: session.Open, Source: session.FromFile, Standing: []session.MemberView{{Member: spec.Members[0], Status: "idle"}},
		Tasks: []wire.SessionTask{task}, Reviews: []session.ReviewView{review}, Messages: []session.Entry{{Seq: 1, Document: wire.Raw(shortAssignment), LoggedAt: entryAt}},
	}
	compiled := validators(t)
	for name, value := range map[string]any{"session": &whole, "review": &review, "session-task": &task} {
		text, err := object.Encode(value)
		require.NoError(t, err)
		require.NoError(t, compiled[name].Validate(decoded(t, text)), "%s", text)
	}
	for _, answer := range []any{
		&whole, &wire.SessionView{Spec: spec, State: session.Closed, Reason: "over", Source: session.ByHand}, &session.ReviewList{Reviews: []session.ReviewView{review}},
		&session.List{Sessions: []session.Brief{{ID: "kitchen", State: session.Open, Source: session.ByHand}}},
		&session.Said{MessageID: "m", SessionID: "kitchen", Seq: 1, Notes: []string{"n"}, Held: true, Duplicate: true, CorrelationID: "c"},
	} {
		requireValid(t, "response:success", noon.AppendAnswer(nil, "1", answer, nil))
	}
}
