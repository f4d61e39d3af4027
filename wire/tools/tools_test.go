package tools

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// The result of a task has all that the model reports, whether it names outputs or not.
func TestResultOfATask(t *testing.T) {
	for args, want := range map[string]string{
		`{"summary":"done"}`: `{"summary":"done"}`,
		`{"summary":"done","artifacts":["a.png"],"evidence":[{"command":"go test","exit":0}]}`: `{"summary":"done","artifacts":["a.png"],"evidence":[{"command":"go test","exit":0}]}`,
		`{"summary":"done","outputs":{"api":{"n":1}}}`:                                         `{"$schema":"orchestratia/task-result/v1","summary":"done","contracts":{"api":{"status":"fulfilled","data":{"n":1}}}}`,
		`{"summary":"done","outputs":{"api":1},"artifacts":["a.png"],"evidence":[{"command":"go test","exit":1}]}`: `{"$schema":"orchestratia/task-result/v1","summary":"done","contracts":{"api":{"status":"fulfilled","data":1}},` +
			`"artifacts":{"a.png":"a.png"},"evidence":[{"command":"go test","exit":1}]}`,
	} {
		r, err := Prepare("task_complete", wire.Raw(args), Caller{Task: "t-1"})
		require.NoError(t, err)
		text, err := object.Encode(r.Payload)
		require.NoError(t, err)
		require.Equal(t, `{"taskId":"t-1","result":`+want+`}`, string(text))
		read, refused := wire.ReadRequest("complete-task", text, 64)
		require.Nil(t, refused)
		require.Nil(t, read.(*wire.CompleteTask).Result.Breach)
	}
}

// Missing arguments are named in the words of the tool.
func TestMissingArguments(t *testing.T) {
	for tool, want := range map[string]string{
		"task_add":      "title is missing: describe the task in one line",
		"task_complete": "summary is missing: describe your work",
		"task_fail":     "reason is missing: say why it cannot be done",
	} {
		_, err := Prepare(tool, wire.Raw(`{"title":" ","summary":"","reason":""}`), Caller{Task: "t-1"})
		require.EqualError(t, err, want)
	}
}

// TestArtifactsAreHandedIn checks that the files that a model names are handed in with the result,
// if the orchestrator knows the folder of the agent.
func TestArtifactsAreHandedIn(t *testing.T) {
	const args = `{"summary":"done","artifacts":["a.md","b.md","a.md"]}`
	for files, want := range map[bool]string{
		true:  `{"taskId":"t","result":{"summary":"done","artifacts":["a.md","b.md","a.md"]},"artifacts":[{"path":"a.md"},{"path":"b.md"}]}`,
		false: `{"taskId":"t","result":{"summary":"done","artifacts":["a.md","b.md","a.md"]}}`,
	} {
		request, err := Prepare("task_complete", wire.Raw(args), Caller{Task: "t", Files: files})
		require.NoError(t, err)
		text, err := object.Encode(request.Payload)
		require.NoError(t, err)
		require.JSONEq(t, want, string(text))
		_, refused := wire.ReadRequest(request.Operation, text, 64)
		require.Nil(t, refused)
	}
}

// TestRequests checks that the orchestrator can read the request of each tool.
func TestRequests(t *testing.T) {
	for _, tool := range All {
		if tool.Name == ForReviews { // a message of a session
			continue
		}
		const args = `{"message":"m","progress":0.5,"summary":"s","artifacts":["a.md"],"reason":"r","title":"t","spec":"s","role":"author",` +
			`"needs":["t-0"],"status":"queued","question":"q","options":["a"],"to":"coder","text":"hi"}`
		r, err := Prepare(tool.Name, wire.Raw(args), Caller{Task: "t-1", Files: true})
		require.NoError(t, err)
		text, err := object.Encode(r.Payload)
		require.NoError(t, err)
		_, refused := wire.ReadRequest(r.Operation, text, 64)
		require.Nil(t, refused, tool.Name)
	}
}

// TestWrongArguments checks that a model hears which argument is wrong.
func TestWrongArguments(t *testing.T) {
	for _, test := range []struct{ tool, args, want string }{
		{"ask_human", `{"question": 17}`, "question does not fit the schema of the tool: it must be a string"},
		{"task_progress", `{"message": "m", "progress": "half"}`, "progress does not fit the schema of the tool: it must be a number"},
		{"ask_human", `{"question": "?", "options": "red"}`, "options does not fit the schema of the tool: it must be an array"},
		{"task_complete", `{"summary": "s", "outputs": ["api"]}`, "outputs does not fit the schema of the tool: it must be an object"},
		{"task_complete", `{"summary": "s", "evidence": [{"command": "go test", "exit": "0"}]}`, "evidence/0/exit does not fit the schema of the tool: it must be a whole number"},
		{"task_add", `{"retry": "t", "dependents": "no"}`, "dependents does not fit the schema of the tool: it must be true or false"},
		{"task_add", `{"retry": "t", "title": "again"}`, "retry takes no title, spec, role or needs: the task keeps its own"},
		{"task_add", `{"title": "new", "dependents": false}`, "dependents needs retry, the id of the task to retry"},
		{"task_fail", `{"reason": "r", "reason": "s"}`, "reason appears twice"},
		{"ask_human", `[]`, errUnreadable.Error()},
	} {
		_, err := Prepare(test.tool, []byte(test.args), Caller{Task: "t"})
		require.EqualError(t, err, test.want, test.args)
	}
	r, err := Prepare("message_send", []byte(`{"to":"coder","text":"hi"}`), Caller{})
	require.NoError(t, err)
	require.Equal(t, "message.direct", r.Payload.(wire.SendMessage).Topic)
}

// TestWrongArgumentsOfWork checks that the same holds for the tools of a session.
func TestWrongArgumentsOfWork(t *testing.T) {
	work := &WorkItem{Assignment: &session.Assignment{}}
	review := &WorkItem{Review: &session.ReviewRequest{}}
	for _, test := range []struct {
		work             *WorkItem
		tool, args, want string
	}{
		{work, "task_complete", `{"summary": "s", "created": "a.go"}`, "created does not fit the schema of the tool: it must be an array"},
		{review, ForReviews, `{"verdict": true}`, "verdict does not fit the schema of the tool: it must be a string"},
		{review, "task_fail", `{"reason": 7}`, "reason does not fit the schema of the tool: it must be a string"},
	} {
		_, _, err := test.work.Report(test.tool, []byte(test.args))
		require.EqualError(t, err, test.want, test.args)
	}
	_, err := work.Progress([]byte(`{"progress": "half"}`), 0)
	require.EqualError(t, err, "progress does not fit the schema of the tool: it must be a number")
}

// TestRefusedArguments checks that the refusal of a request names the argument of the tool.
func TestRefusedArguments(t *testing.T) {
	for _, test := range []struct{ operation, message, pointer, want string }{
		{"submit-task", `requiredRole must be one of author, not "x"`, "/payload/requiredRole", `role must be one of author, not "x"`},
		{"submit-task", `task "x" to depend on does not exist`, "/payload/dependencies/0", `needs: task "x" to depend on does not exist`},
		{"query-tasks", `status must be one of queued, not "open"`, "/payload/status", `status must be one of queued, not "open"`},
		{"complete-task", "the tests fail", "", "the tests fail"},
		{"retry-task", `there is no task "x"`, "", `retry: there is no task "x"`},
	} {
		require.Equal(t, test.want, (&Request{Operation: test.operation}).Refused(test.message, test.pointer))
	}
}
