package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
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
		require.Equal(t, right, meantType(wrong), wrong)
	}
}

func TestNearlyAMessage(t *testing.T) {
	r := Reader{Agent: "a", Depth: 64}
	for line, nearly := range map[string]string{
		`{"type":"request:get-task","id":"1",}`:     "it is no JSON object in one line: let a library spell it",
		`{'type': 'event:progress', 'id': '1'}`:     "it is no JSON object in one line: let a library spell it",
		`{"type":5,"id":"1","payload":{}}`:          "its type is no text",
		`{"type":"complete_task","payload":{}}`:     `there is no message type "complete_task": did you mean "request:complete-task"?`,
		`{"type":"error","message":"no such page"}`: "",
		`{"level":"info","msg":"hello"}`:            "",
		`{"type":"info","payload":{}}`:              "",
		`sent "request:get-task"`:                   "",
	} {
		log, ok := r.Parse([]byte(line)).(Log)
		require.True(t, ok, line)
		require.Equal(t, nearly, log.Nearly, line)
	}
}
