package team

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// Wrong input to any operation is refused with a status of 400 or more, and below 500. Agents are not affected, also
// not when a request names none.
func TestWrongInputIsRefused(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "agent \"a\" {\n  command = [\"cat\"]\n}\n").Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "a")
	odd := []string{`null`, `[]`, `{}`, `"x"`, `7`, `-1`, `1e400`, `true`, `{"a":{"b":[null]}}`, `"\u0000\ud800"`}
	members := map[string][]string{
		"": {"agents", "no_deps", "of", "role", "task", "taskId", "task_id", "host", "program", "force", "dry_run", "expect", "into", "name", "id"},
	}
	for _, o := range wire.Operations {
		for _, example := range o.Examples {
			var document map[string]any
			if json.Unmarshal([]byte(example), &document) == nil {
				for name := range document {
					members[o.Name] = append(members[o.Name], name)
				}
			}
		}
	}
	for _, list := range [][]*wire.Operation{wire.Operations, wire.ControlOperations} {
		for _, o := range list {
			bodies := []string{`null`, `[]`, `"x"`, `7`, `{`, `{"x":1`, `{"no such member":1}`}
			if o.Name != "down" && o.Name != "upgrade" && o.Name != "start-agent" { // these need no member
				bodies = append(bodies, `{}`)
			}
			names := members[o.Name]
			if len(names) == 0 { // package control declares them
				names = members[""]
			}
			for _, name := range names {
				for _, value := range odd {
					text, _ := json.Marshal(name)
					bodies = append(bodies, "{"+string(text)+":"+value+"}")
				}
			}
			if o.Name == "down" || o.Name == "upgrade" {
				bodies = []string{`[]`, `"x"`, `7`, `{`, `{"force":null`, `{"force":7,"program":7}`}
			}
			for _, body := range bodies {
				status, text := s.Operate(o.Name, body)
				require.Less(t, status, http.StatusInternalServerError, "%s %s: %s", o.Name, body, text)
			}
		}
	}
	require.Equal(t, 1, s.Agent("a").Starts, "nobody has asked for it by name")
	require.Equal(t, "running", string(s.Agent("a").State))
	for _, operation := range []string{"stop-agent", "restart-agent"} {
		for _, body := range []string{`{}`, `{"agents":[]}`, `{"agents":null}`, `{"agents":["a"],"all":true}`} {
			status, text := s.Operate(operation, body)
			require.Equal(t, http.StatusBadRequest, status, "%s %s: %s", operation, body, text)
			require.Contains(t, string(text), `"all\": true`)
		}
	}
	status, text := s.Operate("stop-agent", `{"all":true}`)
	require.Equal(t, http.StatusOK, status, "%s", text)
	s.Stop()
}
