package stdio

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/session"
)

// TestAssignmentsAreSaidAgain checks that a repeated assignment is the original with its earlier
// attempts.
//
// Rows: C-02, C-26, C-93, C-96.
func TestAssignmentsAreSaidAgain(t *testing.T) {
	const entry = `{"attempt_number":2,"outcome":"timeout","feedback":"it \"hung\""}`
	const first = `{"attempt_number":1,"outcome":"o","feedback":"f"}`
	const strange = `"x":1.00,"x":2,"u":"\u00e9\/","previous_attempts":[7],`
	changed := func(from, to string) string {
		line := strings.Replace(shortAssignment, from, to, 1)
		require.NotEqual(t, shortAssignment, line)
		return line
	}
	for _, test := range []struct{ line, from, to string }{
		{shortAssignment, `"The heater"}]}`, `"The heater"}],"previous_attempts":[` + entry + `]}`},
		{changed(`"The heater"}]}`, `"The heater"}] }`), `"The heater"}] }`, `"The heater"}] ,"previous_attempts":[` + entry + `]}`},
		{changed(`"specs":[]`, `"previous_attempts":[],"specs":[]`), `"previous_attempts":[`, `"previous_attempts":[` + entry},
		{changed(`"specs":[]`, `"previous_attempts": [ ] ,"specs":[]`), `[ ] ,`, `[ ` + entry + `] ,`},
		{changed(`"specs":[]`, `"previous\u005fattempts":[`+first+` ],"specs":[]`), first + ` ]`, first + ` ,` + entry + `]`},
		{changed(`"task":{`, strange+`"task":{`+strange), `"The heater"}]}`, `"The heater"}],"previous_attempts":[` + entry + `]}`},
		{changed(`"specs":[]`, `"later":{`+strange+`"y":{}},"specs":[]`), `"The heater"}]}`, `"The heater"}],"previous_attempts":[` + entry + `]}`},
	} {
		original := heard(t, test.line, false)
		again, err := sessionHead.Again(original, 2, "timeout", `it "hung"`)
		require.NoError(t, err)
		require.Equal(t, heard(t, string(again.Document), false), again)
		payload := test.line[strings.Index(test.line, `"payload":`):]
		payload = strings.TrimSuffix(strings.TrimPrefix(payload, `"payload":`), "}")
		require.Contains(t, payload, test.from)
		require.Equal(t, string(sessionHead.Say(session.TypeTaskAssignment, wire.Raw(strings.Replace(payload, test.from, test.to, 1)), nil).Document), string(again.Document))
		body := *original.Body.(*session.Assignment)
		body.Task.Context.PreviousAttempts = append(slices.Clone(body.Task.Context.PreviousAttempts), session.Attempt{Number: 2, Outcome: "timeout", Feedback: `it "hung"`})
		require.Equal(t, &body, again.Body)
		require.Equal(t, test.line, string(original.Document))
		require.NotEqual(t, original.Sum, again.Sum)
		require.Equal(t, sessionHead.MessageID, again.MessageID)
		require.Equal(t, []any{sessionHead.SequenceNumber, "kettle", "msg-1"}, []any{again.SequenceNumber, again.CorrelationID, again.ReplyTo})
	}
}

// TestAssignmentsAreSaidAgainAndAgain checks that an assignment with any content can be repeated
// several times.
func TestAssignmentsAreSaidAgainAndAgain(t *testing.T) {
	m := heard(t, string(encoded(t, sessionExamples(t)["task_assignment"])), true)
	body := *m.Body.(*session.Assignment)
	for n := range int64(3) {
		var err error
		m, err = sessionHead.Again(m, n+2, "exception", "")
		require.NoError(t, err)
		require.Nil(t, m.Strictly())
		body.Task.Context.PreviousAttempts = append(slices.Clone(body.Task.Context.PreviousAttempts), session.Attempt{Number: n + 2, Outcome: "exception"})
		require.Equal(t, &body, m.Body)
	}
	attempts := at(decoded(t, m.Document), "payload", "task", "context", "previous_attempts").([]any)
	require.Len(t, attempts, 4)
	require.Equal(t, "It stopped too late", at(attempts[0], "outcome"))
	require.Equal(t, "exception", at(attempts[3], "outcome"))
}

func TestWhatIsNotSaidAgain(t *testing.T) {
	for _, original := range []*session.Message{
		heard(t, shortResult, false), {MessageType: session.TypeTaskAssignment},
		{MessageType: session.TypeTaskAssignment, Document: wire.Raw(`{"payload":{"task":{"context":[]}}}`)},
		{MessageType: session.TypeTaskAssignment, Document: wire.Raw(`{"payload":{"task":{"context":{"previous_attempts":7}}}}`)},
		{MessageType: session.TypeTaskAssignment, Document: wire.Raw(`{"payload":{"task":{}}}`)},
	} {
		_, err := sessionHead.Again(original, 2, "o", "f")
		require.Error(t, err)
	}
	_, err := sessionHead.Again(heard(t, shortAssignment, false), -1, "o", "f")
	require.ErrorContains(t, err, "attempt_number must be a whole number")
	nobody := sessionHead
	nobody.MessageID = "x"
	_, err = nobody.Again(heard(t, shortAssignment, false), 1, "o", "f")
	require.ErrorContains(t, err, "message_id must be")
}
