package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/activity"
	"orchestrator/wire/object"
)

func TestMeantType(t *testing.T) {
	for wrong, right := range map[string]string{
		"complete-task":         "request:complete-task",
		"request:complete_task": "request:complete-task",
		"request:completeTask":  "request:complete-task",
		"request:sumbit-task":   "request:submit-task",
		"event:progres":         "event:progress",
		"request:no-such-thing": "",
		"info":                  "",
		"":                      "",
	} {
		require.Equal(t, right, MeantType(wrong), wrong)
	}
}

// Rows: B-64, B-65, B-66, B-67.
func TestReportsAreRead(t *testing.T) {
	for _, test := range []struct {
		name, payload string
		want          any
	}{
		{"progress", `{"taskId":"a","progress":0.75,"message":"m"}`, &activity.Progress{TaskID: "a", Progress: 0.75, Message: "m"}},
		{"progress", `{"taskId":"a","progress":0}`, &activity.Progress{TaskID: "a"}},
		{"progress", `{"taskId":"a","progress":1.0}`, &activity.Progress{TaskID: "a", Progress: 1}},
		{"log", `{"level":"warn","message":"","context":{"rows": 1000}}`, &activity.LogEntry{Level: "warn", Context: Raw(`{"rows": 1000}`)}},
		{"log", `{"level":"debug","message":"m"}`, &activity.LogEntry{Level: "debug", Message: "m"}},
		{"error", `{"taskId":"a","error":"e","stack":"s","recoverable":false}`, &activity.Trouble{TaskID: "a", Error: "e", Stack: "s"}},
		{"error", `{"error":"e"}`, &activity.Trouble{Error: "e", Recoverable: true}},
		{"error", `{"error":"e","recoverable":null}`, &activity.Trouble{Error: "e", Recoverable: true}},
		{"question", `{"question":"?","context":{}}`, &activity.OpenQuestion{Question: "?", Context: Raw(`{}`)}},
	} {
		body, err := ReadReport(test.name, []byte(test.payload), 64)
		require.Nil(t, err, "%s %s", test.name, test.payload)
		require.Equal(t, test.want, body, "%s %s", test.name, test.payload)
	}
}

// Rows: B-64, B-65, B-66, B-67.
func TestReportsAreRefused(t *testing.T) {
	for _, test := range []struct{ name, payload, pointer string }{
		{"progress", `{"taskId":"a"}`, "/payload/progress"},
		{"progress", `{"taskId":"a","progress":-0.1}`, "/payload/progress"},
		{"progress", `{"taskId":"a","progress":1.1}`, "/payload/progress"},
		{"progress", `{"taskId":"a","progress":"0.5"}`, "/payload/progress"},
		{"progress", `{"progress":0.5}`, "/payload/taskId"},
		{"log", `{"message":"m"}`, "/payload/level"},
		{"log", `{"level":"info"}`, "/payload/message"},
		{"log", `{"level":"info","message":"m","context":"c"}`, "/payload/context"},
		{"error", `{}`, "/payload/error"},
		{"error", `{"error":"e","recoverable":"no"}`, "/payload/recoverable"},
		{"question", `{"question":" "}`, "/payload/question"},
	} {
		_, err := ReadReport(test.name, []byte(test.payload), 64)
		require.NotNil(t, err, "%s %s", test.name, test.payload)
		require.Equal(t, test.pointer, err.Details["pointer"], "%s %s", test.name, test.payload)
	}
}

// TestCheckLog checks that an event:log is judged as Report judges it.
//
// Rows: B-65.
func TestCheckLog(t *testing.T) {
	texts := []string{`"info"`, `"I"`, `" "`, `""`, `"\u0020"`, `"é"`, `"["`, `1`, `null`, `{}`, `["a"]`}
	for _, level := range texts {
		for _, message := range texts {
			for _, payload := range []string{
				`{"level":` + level + `,"message":` + message + `}`, `{"message":` + message + `,"level":` + level + `}`,
				`{"level":` + level + `,"message":` + message + `,"context":{}}`, `{"level":` + level + `,"message":` + message + `,"level":` + level + `}`,
				`{"level":` + level + `,"level":` + message + `}`, `{"level":` + level + `}`,
			} {
				members, _, ok := object.Scan([]byte(payload), object.AnyDepth, nil)
				require.True(t, ok)
				_, want := ReadReport("log", []byte(payload), 64)
				require.Equal(t, want, (&Payloads{Depth: 64}).CheckLog(&AgentEvent{Name: "log", Payload: []byte(payload), Members: members}), payload)
			}
		}
	}
}
