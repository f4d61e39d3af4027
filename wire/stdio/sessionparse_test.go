package stdio

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
)

// as parses a line of an agent.
func as(agent, line string) wire.Message {
	return (&Reader{Agent: agent, Depth: 64}).Parse([]byte(line))
}

// sessionOf parses a line that is a session message, valid or not.
func sessionOf(t *testing.T, agent, line string) *wire.Session {
	t.Helper()
	s, ok := as(agent, line).(*wire.Session)
	require.True(t, ok, "%#v\n%s", as(agent, line), line)
	return s
}

// Rows: C-01, C-15, C-16, C-98.
func TestSessionMessagesOnALine(t *testing.T) {
	s := sessionOf(t, "lead", " "+shortAssignment+" \r")
	require.Nil(t, s.Err)
	require.Equal(t, heard(t, shortAssignment, false), s.Message)
	require.Equal(t, "msg-7-kettle", s.ID)
	require.Equal(t, `"msg-7-kettle"`, string(s.RawID))
	require.Equal(t, "task_assignment", s.Type)
	require.Equal(t, shortAssignment, string(s.Document))
	require.Equal(t, s.Message.Notes, s.Complaints())
	for kind, example := range sessionExamples(t) {
		from := example["from_agent"].(map[string]any)["agent_id"].(string)
		s := sessionOf(t, from, string(encoded(t, example)))
		require.Nil(t, s.Err)
		require.Equal(t, kind, s.Message.MessageType)
		require.Empty(t, s.Complaints())
	}
}

// TestSessionMessagesOutliveTheirLine checks that a message does not refer to its line, because
// it is passed on.
func TestSessionMessagesOutliveTheirLine(t *testing.T) {
	for _, text := range []string{shortAssignment, strings.Replace(shortAssignment, "low", "urgent", 1)} {
		line := []byte(text)
		s := (&Reader{Agent: "lead", Depth: 64}).Parse(line).(*wire.Session)
		want := sessionOf(t, "lead", text)
		clear(line)
		require.Equal(t, want, s)
	}
}

// TestSessionMessagesThatAreWrongOnALine checks that an invalid message is refused, and still
// has its content for the log.
//
// Rows: C-03, C-08, C-09, C-97, C-98, K-06.
func TestSessionMessagesThatAreWrongOnALine(t *testing.T) {
	urgent := strings.Replace(shortAssignment, `"low"`, `"urgent"`, 1)
	s := sessionOf(t, "lead", urgent)
	require.Nil(t, s.Message)
	require.Equal(t, wire.CodeInvalid, s.Err.Code)
	require.Equal(t, []string{`/payload/priority: priority must be one of high, medium or low, not "urgent"`}, s.Complaints())
	require.Equal(t, urgent, string(s.Document))
	require.Equal(t, "msg-7-kettle", s.ID)
	for _, test := range []struct{ line, id, raw, pointer string }{
		{`{"message_type":"abort"}`, ``, ``, "/message_id"},
		{`{"message_type":"abort","message_id":7}`, ``, `7`, "/message_id"},
		{`{"message_type":"abort","message_id":null}`, ``, ``, "/message_id"},
		{`{"message_type":"abort","message_id":{}}`, ``, ``, "/message_id"},
		{`{"message_type":"abort","message_id":"x"}`, `x`, `"x"`, "/message_id"},
		{`{"message_type":"abort","message_id":"\u006dsg-1"}`, `msg-1`, `"\u006dsg-1"`, "/timestamp"},
		{strings.Replace(shortAssignment, "task_assignment", "anything", 1), `msg-7-kettle`, `"msg-7-kettle"`, "/message_type"},
	} {
		s := sessionOf(t, "lead", test.line)
		require.Equal(t, test.id, s.ID)
		require.Equal(t, test.raw, string(s.RawID))
		require.Equal(t, test.pointer, s.Err.Details["pointer"])
		require.Equal(t, test.line, string(s.Document))
	}
}

// TestSessionMessagesAreReadAsTheyAreKept checks that the kept document is the one that was
// read, even if the line has CRs in it.
func TestSessionMessagesAreReadAsTheyAreKept(t *testing.T) {
	s := sessionOf(t, "lead", strings.Replace(shortAssignment, `"task":`, " \r\"task\" : ", 1))
	require.Equal(t, shortAssignment, string(s.Document))
	require.Equal(t, heard(t, shortAssignment, false), s.Message)
}

// TestSessionMessagesOfOthers checks that a message with another sender than the agent of the
// pipe is refused, whatever else is wrong. A message addressed to this agent may be an echo of a
// delivered one, and is log output.
//
// Rows: C-06, K-18, T-02.
func TestSessionMessagesOfOthers(t *testing.T) {
	require.Equal(t, wire.Log{Why: "an echo of a session message"}, as("coder", shortAssignment))
	delivered := heard(t, strings.Replace(shortAssignment, `"sequence_number":7,`, ``, 1), false).Delivered(9, "c")
	require.Equal(t, wire.Log{Why: "an echo of a session message"}, as("coder", string(delivered)))

	for _, line := range []string{shortAssignment, strings.Replace(shortAssignment, `"low"`, `"urgent"`, 1)} {
		s := sessionOf(t, "critic", line)
		require.Nil(t, s.Message)
		require.Equal(t, wire.CodeDenied, s.Err.Code)
		require.Equal(t, "/from_agent/agent_id", s.Err.Details["pointer"])
		require.Equal(t, `agent_id is "lead", but this is the stream of "critic"`, s.Err.Message)
		require.Equal(t, "msg-7-kettle", s.ID)
		require.Equal(t, line, string(s.Document))
		require.Equal(t, []string{"/from_agent/agent_id: " + s.Err.Message}, s.Complaints())
	}
	for name, line := range map[string]string{
		"nobody to speak to":           `{"message_type":"abort","from_agent":{"agent_id":"lead"}}`,
		"nobody who could be":          `{"message_type":"abort","from_agent":{"agent_id":"lead"},"to_agent":{"agent_id":["coder"]}}`,
		"two to which agent it is for": `{"message_type":"abort","from_agent":{"agent_id":"lead"},"to_agent":{"agent_id":"coder","agent_id":"coder"}}`,
	} {
		require.Equal(t, wire.CodeDenied, sessionOf(t, "coder", line).Err.Code, name)
	}
	for name, line := range map[string]string{
		"no sender":         `{"message_type":"abort","to_agent":{"agent_id":"coder"}}`,
		"no name":           `{"message_type":"abort","from_agent":{},"to_agent":{"agent_id":"coder"}}`,
		"two names":         `{"message_type":"abort","from_agent":{"agent_id":"coder","agent_id":"lead"},"to_agent":{"agent_id":"coder"}}`,
		"a name of nothing": `{"message_type":"abort","from_agent":{"agent_id":""},"to_agent":{"agent_id":"coder"}}`,
		"no object":         `{"message_type":"abort","from_agent":"lead","to_agent":{"agent_id":"coder"}}`,
	} {
		require.Equal(t, wire.CodeInvalid, sessionOf(t, "coder", line).Err.Code, name)
	}
	own := strings.Replace(shortAssignment, `"agent_id":"coder"`, `"agent_id":"lead"`, 1)
	require.Nil(t, sessionOf(t, "lead", own).Err, "who speaks to themselves is no echo")
}

// TestSessionMessagesInWhichAKeyStandsTwice checks that a repeated key is refused if the line
// must be a message of this agent. Otherwise the line is log output.
//
// Rows: C-98, K-10.
func TestSessionMessagesInWhichAKeyStandsTwice(t *testing.T) {
	for key, id := range map[string]string{"message_id": "", "timestamp": "msg-7-kettle", "to_agent": "msg-7-kettle", "message_type": "msg-7-kettle", "payload": "msg-7-kettle"} {
		line := twice(shortAssignment, key)
		s := sessionOf(t, "lead", line)
		require.Equal(t, wire.CodeInvalid, s.Err.Code)
		require.Equal(t, "the message cannot be taken: the key "+key+" stands twice", s.Err.Message)
		require.Equal(t, id, s.ID)
		require.Equal(t, id == "", s.RawID == nil)
		require.Equal(t, line, string(s.Document))
		require.Equal(t, wire.Log{Why: "the key " + key + " stands twice"}, as("coder", line))
	}
	for _, other := range []string{"timestamp", "payload"} { // whichever of the two comes last
		s := sessionOf(t, "lead", twice(twice(shortAssignment, "message_id"), other))
		require.Empty(t, s.ID)
		require.Nil(t, s.RawID)
		require.IsType(t, wire.Log{}, as("lead", twice(twice(shortAssignment, "from_agent"), other)))
	}
	require.IsType(t, wire.Log{}, as("lead", twice(shortAssignment, "from_agent")))
	require.IsType(t, wire.Log{}, as("lead", strings.Replace(twice(shortAssignment, "payload"), "{", `{"type":"notify:x",`, 1)))
	require.IsType(t, wire.Log{}, as("lead", strings.Replace(twice(shortAssignment, "payload"), "{", `{"jsonrpc":"2.0","method":"ping",`, 1)))
	s := sessionOf(t, "lead", twice(shortResultOf("lead"), "correlation_id"))
	require.Equal(t, []string{"/correlation_id: correlation_id stands twice"}, s.Complaints())
}

// twice returns a line with one of its members repeated.
func twice(line, key string) string {
	members, _, _ := object.Scan([]byte(line), 64, nil)
	for _, m := range members {
		if string(m.Key) == key {
			return strings.Replace(line, "{", `{"`+key+`":`+string(m.Value)+",", 1)
		}
	}
	panic("there is no " + key)
}

func shortResultOf(agent string) string {
	return strings.Replace(shortResult, `"agent_id":"critic"`, `"agent_id":"`+agent+`"`, 1)
}

// TestUnfinishedSessionMessages checks that a truncated message is refused if its sender is
// known.
//
// Rows: C-98, T-02.
func TestUnfinishedSessionMessages(t *testing.T) {
	head := shortAssignment[:strings.Index(shortAssignment, `"task":`)]
	s, ok := (&Reader{Agent: "lead", Depth: 64}).ParseHead([]byte(head), "its line is 17 MiB long").(*wire.Session)
	require.True(t, ok)
	require.Equal(t, &wire.Session{
		ID: "msg-7-kettle", Type: "task_assignment", Err: object.Invalid("", "the message cannot be taken: its line is 17 MiB long"), RawID: []byte(`"msg-7-kettle"`),
	}, s)
	for _, spoiled := range []string{
		strings.Replace(shortAssignment, `"reason":"The heater"`, `"reason":"\ud800"`, 1),
		strings.Replace(shortAssignment, `"priority":`, `"x":`+strings.Repeat("[", 64)+strings.Repeat("]", 64)+`,"priority":`, 1),
	} {
		s := sessionOf(t, "lead", spoiled)
		require.Equal(t, wire.CodeInvalid, s.Err.Code)
		require.Contains(t, s.Err.Message, "the message cannot be taken: ")
		require.Nil(t, s.Document)
		require.IsType(t, wire.Log{}, as("coder", spoiled))
		require.IsType(t, wire.Log{}, as("critic", spoiled), "to which agent it is for may be among the rest")
	}
	for cut := range shortAssignment {
		require.IsType(t, wire.Log{}, (&Reader{Agent: "coder", Depth: 64}).ParseHead([]byte(shortAssignment[:cut]), "cut"))
	}
	require.IsType(t, wire.Log{}, new(Reader).ParseHead([]byte(head), "cut"), "nobody's")
}

// TestCheckReadsSessionMessages checks that Check returns the errors of a message, whatever
// agent sends it.
//
// Rows: C-97.
func TestCheckReadsSessionMessages(t *testing.T) {
	for _, agent := range []string{"", "me", "lead"} {
		r := &Reader{Agent: agent, Depth: 64}
		s, ok := r.Check([]byte(shortAssignment)).(*wire.Session)
		require.True(t, ok, agent)
		require.Nil(t, s.Err)
		require.Equal(t, "lead", s.Message.From.AgentID)
		refused, ok := r.Check([]byte(strings.Replace(shortAssignment, `"low"`, `"urgent"`, 1))).(*wire.Refused)
		require.True(t, ok, agent)
		require.Equal(t, "task_assignment", refused.Type)
		require.Equal(t, `"msg-7-kettle"`, string(refused.ID))
		require.Equal(t, dialect.Session, refused.Form)
		require.Equal(t, "/payload/priority", refused.Err.Details["pointer"])
	}
}
