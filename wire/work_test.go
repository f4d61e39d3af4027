package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/activity"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

func ptr[T any](value T) *T { return &value }

// TestWorkRequestsAreRead checks the operations on tasks besides the published requests.
//
// Rows.
func TestWorkRequestsAreRead(t *testing.T) {
	useless := []hub.Oddity{{
		Kind: events.DocumentOdd, Pointer: "/payload/contractKey", Text: "a contractKey has no effect on a dependency that is not an input",
	}}
	for _, test := range []struct {
		operation, payload string
		want               any
	}{
		{"assign-task", `{"taskId":"a","agent":"coder"}`, &AssignTask{TaskID: "a", Agent: "coder"}},
		{"assign-task", `{"taskId":"a","agent":"coder","requirePlan":true}`, &AssignTask{TaskID: "a", Agent: "coder", RequirePlan: true}},
		{"auto-assign", `{"taskId":"a"}`, &TaskID{TaskID: "a"}},
		{"match-agents", `{"taskId":"a"}`, &TaskID{TaskID: "a"}},
		{"approve-plan", `{"taskId":"a"}`, &TaskID{TaskID: "a"}},
		{"list-notes", `{"taskId":"a"}`, &TaskID{TaskID: "a"}},
		{"poll-tasks", `{"anything":1}`, &Nothing{}},
		{"query-servers", `{}`, &Nothing{}},
		{"check-tasks", `{}`, &CheckTasks{}},
		{"check-tasks", `{"sessionId":"coder"}`, &CheckTasks{SessionID: "coder"}},
		{"update-task", `{"taskId":"a"}`, &UpdateTask{TaskID: "a"}},
		{"update-task", `{"taskId":"a","id":null,"name":null,"description":null,"acceptanceCriteria":null}`, &UpdateTask{TaskID: "a"}},
		{
			"update-task",
			`{"taskId":"a","name":"n","description":"","type":"t","priority":"low","payload":{"n":1.0},"targetRepo":"","projectId":"p","acceptanceCriteria":[]}`,
			&UpdateTask{
				TaskID: "a", Name: ptr("n"), Description: ptr(""), Type: ptr("t"), Priority: Raw(`"low"`), Payload: Raw(`{"n":1.0}`),
				TargetRepo: ptr(""), ProjectID: ptr("p"), AcceptanceCriteria: &[]string{},
			},
		},
		{
			"update-task", `{"taskId":"a","structured_spec":null,"requirements":null}`,
			&UpdateTask{TaskID: "a", Without: []string{"structured_spec", "requirements"}},
		},
		{
			"update-task", `{"taskId":"a","requirements":{"repo":"shop"}}`,
			&UpdateTask{TaskID: "a", Requirements: &hub.Requirements{Document: Raw(`{"repo":"shop"}`), Repo: "shop"}},
		},
		{"add-dependency", `{"taskId":"a","dependsOnTaskId":"b"}`, &AddDependency{TaskID: "a", Dependency: hub.Dependency{On: "b", Type: "blocks"}}},
		{"add-dependency", `{"taskId":"a","dependsOnTaskId":"b","dependencyType":null,"contractKey":null}`, &AddDependency{TaskID: "a", Dependency: hub.Dependency{On: "b", Type: "blocks"}}},
		{
			"add-dependency", `{"taskId":"a","dependsOnTaskId":"b","dependencyType":"input","contractKey":"k"}`,
			&AddDependency{TaskID: "a", Dependency: hub.Dependency{On: "b", Type: "input", Contract: "k"}},
		},
		{
			"add-dependency", `{"taskId":"a","dependsOnTaskId":"b","dependencyType":"related","contractKey":""}`,
			&AddDependency{TaskID: "a", Dependency: hub.Dependency{On: "b", Type: "related", Oddities: useless}},
		},
		{"remove-dependency", `{"taskId":"a","dependencyId":"d1"}`, &RemoveDependency{TaskID: "a", DependencyID: "d1"}},
		{"add-note", `{"taskId":"a","content":"c","urgent":true}`, &AddNote{TaskID: "a", Content: "c", Urgent: true}},
		{"submit-plan", `{"taskId":"a","plan":{"steps":[1.0]}}`, &SubmitPlan{TaskID: "a", Plan: Raw(`{"steps":[1.0]}`)}},
		{"submit-plan", `{"taskId":"a","plan":"p"}`, &SubmitPlan{TaskID: "a", Plan: Raw(`"p"`)}},
		{"revise-plan", `{"taskId":"a","feedback":"f"}`, &RevisePlan{TaskID: "a", Feedback: "f"}},
		{"request-help", `{"taskId":"a","question":"?"}`, &RequestHelp{TaskID: "a", Question: "?"}},
		{"request-help", `{"taskId":"a","question":"?","context":[1]}`, &RequestHelp{TaskID: "a", Question: "?", Context: Raw(`[1]`)}},
		{"update-capabilities", `{}`, &UpdateCapabilities{}},
		{
			"update-capabilities", `{"capabilities":{"languages":["go"]},"system":{"load":0.50}}`,
			&UpdateCapabilities{
				Capabilities: &hub.Capabilities{Document: Raw(`{"languages":["go"]}`), Languages: []string{"go"}, Capacity: 1}, System: Raw(`{"load":0.50}`),
			},
		},
	} {
		body, wrong := readAs(t, test.operation, test.payload)
		require.Empty(t, wrong, "%s %s", test.operation, test.payload)
		require.Equal(t, test.want, body, "%s %s", test.operation, test.payload)
	}
}

// Rows.
func TestWorkRequestsAreRefused(t *testing.T) {
	for _, test := range []struct{ operation, payload, want string }{
		{"assign-task", `{"taskId":"a"}`, "/payload/agent: agent is missing"},
		{"assign-task", `{"taskId":"a","agent":"b","requirePlan":"yes"}`, "/payload/requirePlan: requirePlan must be true or false"},
		{"auto-assign", `{}`, "/payload/taskId: taskId is missing"},
		{"check-tasks", `{"sessionId":7}`, "/payload/sessionId: sessionId must be a string"},
		{"update-task", `{"name":"n"}`, "/payload/taskId: taskId is missing"},
		{"update-task", `{"taskId":"a","name":" "}`, "/payload/name: name must not be empty"},
		{"update-task", `{"taskId":"a","type":""}`, "/payload/type: type must not be empty"},
		{"update-task", `{"taskId":"a","status":"done"}`, "/payload/status: status cannot be set: other operations change it"},
		{"update-task", `{"taskId":"a","state":"done"}`, "/payload/state: state cannot be set: other operations change it"},
		{"update-task", `{"taskId":"a","result":{}}`, "/payload/result: result cannot be set: other operations change it"},
		{"update-task", `{"taskId":"a","assignedTo":"b"}`, "/payload/assignedTo: assignedTo cannot be set: other operations change it"},
		{"update-task", `{"taskId":"a","id":"b"}`, "/payload/id: id cannot be set: other operations change it"},
		{"update-task", `{"taskId":"a","priority":""}`, "/payload/priority: priority must not be empty"},
		{"update-task", `{"taskId":"a","payload":"p"}`, "/payload/payload: payload must be an object"},
		{"update-task", `{"taskId":"a","acceptanceCriteria":"c"}`, "/payload/acceptanceCriteria: acceptanceCriteria must be a list"},
		{"update-task", `{"taskId":"a","requirements":{"repo":[]}}`, "/payload/requirements/repo: requirements.repo must be a string"},
		{"update-task", `{"taskId":"a","structured_spec":{}}`, "/payload/structured_spec/$schema: structured_spec.$schema is missing"},
		{"update-task", `{"taskId":"a","structured_spec":null,"structured_spec":null}`, "/payload/structured_spec: structured_spec stands twice"},
		{"add-dependency", `{"taskId":"a"}`, "/payload/dependsOnTaskId: dependsOnTaskId is missing"},
		{"add-dependency", `{"taskId":"a","dependsOnTaskId":"\t"}`, "/payload/dependsOnTaskId: dependsOnTaskId must not be empty"},
		{"add-dependency", `{"taskId":"a","dependsOnTaskId":"b","dependencyType":"soft"}`, `/payload/dependencyType: dependencyType must be one of blocks, input or related, not "soft"`},
		{"add-dependency", `{"taskId":"a","dependsOnTaskId":"b","dependencyType":""}`, `/payload/dependencyType: dependencyType must be one of blocks, input or related, not ""`},
		{"add-dependency", `{"taskId":"a","dependsOnTaskId":"b","dependencyType":7}`, "/payload/dependencyType: dependencyType must be a string"},
		{"add-dependency", `{"taskId":"a","dependsOnTaskId":"b","dependencyType":"input"}`, "/payload/contractKey: contractKey is missing"},
		{"add-dependency", `{"taskId":"a","dependsOnTaskId":"b","dependencyType":"input","contractKey":" "}`, "/payload/contractKey: contractKey must not be empty"},
		{"add-dependency", `{"taskId":"a","dependsOnTaskId":"b","contractKey":["k"]}`, "/payload/contractKey: contractKey must be a string"},
		{"remove-dependency", `{"taskId":"a"}`, "/payload/dependencyId: dependencyId is missing"},
		{"add-note", `{"taskId":"a","content":""}`, "/payload/content: content must not be empty"},
		{"add-note", `{"taskId":"a","content":"c","urgent":1}`, "/payload/urgent: urgent must be true or false"},
		{"submit-plan", `{"taskId":"a"}`, "/payload/plan: plan is missing"},
		{"submit-plan", `{"taskId":"a","plan":"\n"}`, "/payload/plan: plan must not be empty"},
		{"submit-plan", `{"taskId":"a","plan":["p"]}`, "/payload/plan: plan must be an object or a text"},
		{"submit-plan", `{"taskId":"a","plan":"p","plan":"q"}`, "/payload/plan: plan stands twice"},
		{"revise-plan", `{"taskId":"a"}`, "/payload/feedback: feedback is missing"},
		{"request-help", `{"taskId":"a"}`, "/payload/question: question is missing"},
		{"update-capabilities", `{"capabilities":[]}`, "/payload/capabilities: capabilities must be an object"},
		{"update-capabilities", `{"capabilities":{"max_concurrent_tasks":-1}}`, "/payload/capabilities/max_concurrent_tasks: capabilities.max_concurrent_tasks must be a whole number from 0 to 9007199254740991"},
		{"update-capabilities", `{"system":"linux"}`, "/payload/system: system must be an object"},
	} {
		_, wrong := readAs(t, test.operation, test.payload)
		require.Equal(t, test.want, wrong, "%s %s", test.operation, test.payload)
	}
}

// TestPartialResults checks that a partial result is any value of a bounded size, in the event and
// in the request.
func TestPartialResults(t *testing.T) {
	output := func(size int) string { return `"` + strings.Repeat("x", size-2) + `"` }
	for _, value := range []string{`{"pages":["a"]}`, `[1,2.50]`, `"text"`, "7", "false", output(activity.MaxOutput)} {
		body, err := ReadReport("progress", []byte(`{"taskId":"a","progress":1,"output":`+value+`}`), 64)
		require.Nil(t, err)
		require.Equal(t, &activity.Progress{TaskID: "a", Progress: 1, Output: Raw(value)}, body)
		body, err = ReadRequest("report-progress", []byte(`{"taskId":"a","message":"m","output":`+value+`}`), 64)
		require.Nil(t, err)
		require.Equal(t, &ReportProgress{TaskID: "a", Message: "m", Output: Raw(value)}, body)
	}
	large := `,"output":` + output(activity.MaxOutput+1) + `}`
	_, err := ReadReport("progress", []byte(`{"taskId":"a","progress":1`+large), 64)
	require.Equal(t, "output must be at most 65536 bytes, not 65537", err.Message)
	_, err = ReadRequest("report-progress", []byte(`{"taskId":"a","message":"m"`+large), 64)
	require.Equal(t, "/payload/output", err.Details["pointer"])
}
