package stdio

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// saying returns a request to send a message, valid or not.
func saying(t *testing.T, sessionID, message string) *wire.SaySession {
	t.Helper()
	body, err := wire.ReadRequest("send-session-message", []byte(`{"session_id":"`+sessionID+`","message":`+message+`}`), 64)
	require.Nil(t, err)
	return body.(*wire.SaySession)
}

// TestSessionMessagesInRequests checks that a message is read in the same way in a request and
// on a line. It is kept as one line.
//
// Rows: C-01, C-16, T-25.
func TestSessionMessagesInRequests(t *testing.T) {
	s := saying(t, "kitchen", shortAssignment)
	line := sessionOf(t, "lead", shortAssignment)
	require.Equal(t, "kitchen", s.SessionID)
	require.Nil(t, s.Err)
	require.Equal(t, []any{line.ID, line.Type, line.Document, line.RawID}, []any{s.ID, s.Type, s.Document, s.RawID})
	require.Equal(t, line.Message.Body, s.Message.Body)
	require.Equal(t, line.Message.Sum, s.Message.Sum)
	require.Equal(t, []string{"/payload/message/payload/task/constraints/must_not_break: task.constraints.must_not_break is missing, which is tolerated"}, s.Complaints())
	require.Equal(t, []string{
		`/payload/message/message_id: message_id must be a UUID of version 4, not "msg-7-kettle"`,
		"/payload/message/payload/task/constraints/must_not_break: task.constraints.must_not_break is missing",
	}, s.Message.Strictly().Complaints())
	spread := saying(t, "", strings.ReplaceAll(shortAssignment, `,"`, ",\r\n\t\""))
	require.Equal(t, shortAssignment, string(spread.Document))
	require.Equal(t, s.Message, spread.Message)
}

// TestSessionMessagesThatAreWrongInRequests checks that an invalid message does not refuse its
// request, because it is for the log of its session.
//
// Rows: C-90, C-97, C-98.
func TestSessionMessagesThatAreWrongInRequests(t *testing.T) {
	urgent := strings.Replace(shortAssignment, `"low"`, `"urgent"`, 1)
	s := saying(t, "", urgent)
	require.Nil(t, s.Message)
	require.Equal(t, "msg-7-kettle", s.ID)
	require.Equal(t, "task_assignment", s.Type)
	require.Equal(t, urgent, string(s.Document))
	require.Equal(t, "/payload/message/payload/priority", s.Err.Details["pointer"])
	require.Equal(t, []string{`/payload/message/payload/priority: priority must be one of high, medium or low, not "urgent"`}, s.Complaints())
	for message, want := range map[string]string{
		`{}`:                        "/payload/message/message_id",
		twice(urgent, "message_id"): "/payload/message/message_id",
		twice(urgent, "payload"):    "/payload/message/payload",
		`{"message_id":7}`:          "/payload/message/message_id",
	} {
		s := saying(t, "", message)
		require.Nil(t, s.Message)
		require.Equal(t, want, s.Err.Details["pointer"], message)
		require.Equal(t, message, string(s.Document))
	}
	require.Empty(t, saying(t, "", twice(urgent, "message_id")).ID)
	require.Equal(t, wire.CodeUnknownType, saying(t, "", strings.Replace(shortAssignment, "task_assignment", "nope", 1)).Err.Code)
}

// TestErrorsPointIntoWhatAMessageCameIn checks that a pointer into a message becomes a pointer
// into the request that held it.
func TestErrorsPointIntoWhatAMessageCameIn(t *testing.T) {
	from := strings.Replace(shortAssignment, "architect", "reviewer", 1)
	in, alone := saying(t, "", from).Message, heard(t, from, false)
	require.Equal(t, "/payload/message/from_agent/agent_type", in.Misdirected().Details["pointer"])
	require.Equal(t, "/from_agent/agent_type", alone.Misdirected().Details["pointer"])
	wrong := &wire.Error{Code: wire.CodeConflict, Message: "m", Details: map[string]any{"pointer": "/payload/task", "reason": "r"}}
	placed := in.Placed(wrong)
	require.Equal(t, map[string]any{"pointer": "/payload/message/payload/task", "reason": "r"}, placed.Details)
	require.Equal(t, "/payload/task", wrong.Details["pointer"])
	require.Same(t, placed, in.Placed(placed))
	require.Same(t, wrong, alone.Placed(wrong))
	bare := &wire.Error{Code: wire.CodeConflict}
	require.Same(t, bare, in.Placed(bare))
}
