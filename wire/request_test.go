package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/hub"
)

// readAs reads a payload and returns the result, or where it is wrong and why.
func readAs(t *testing.T, operation, payload string) (any, string) {
	t.Helper()
	body, err := ReadRequest(operation, []byte(payload), 64)
	if err != nil {
		require.Equal(t, CodeInvalid, err.Code)
		pointer, _ := err.Details["pointer"].(string)
		return nil, pointer + ": " + err.Message
	}
	return body, ""
}

// TestRequestsAreRead checks the result of every operation's payload.
//
// Rows: B-33, B-34, B-35, B-38, B-39, B-40, B-43, B-44, B-45, B-46, B-47, B-48, B-49, B-50, B-52, B-58, B-59, B-60.
func TestRequestsAreRead(t *testing.T) {
	for _, test := range []struct {
		operation, payload string
		want               any
	}{
		{"query-agents", `{}`, &QueryAgents{}},
		{"query-agents", `{"role":null,"status":null,"capabilities":null,"later":1}`, &QueryAgents{}},
		{"query-agents", `{"role":"worker","status":"idle","capabilities":["go","sh","go"]}`, &QueryAgents{Role: "worker", Status: "idle", Capabilities: []string{"go", "sh"}}},
		{"query-tasks", `{"status":"queued","requiredRole":"worker","limit":10}`, &QueryTasks{Status: "queued", RequiredRole: "worker", Limit: 10}},
		{"query-tasks", `{"status":"in_review","limit":1e1}`, &QueryTasks{Status: "in_review", Limit: 10}},
		{"submit-task", `{"type":"review","name":"n"}`, &SubmitTask{Type: "review", Name: "n"}},
		{
			"submit-task",
			`{"type":"review","name":"n","description":"d","payload":{"payload": {"n":1e400}},"requiredRole":"planner","requiredCapabilities":["go"],"dependencies":["a","b"],"priority":2.50}`,
			&SubmitTask{
				Type: "review", Name: "n", Description: "d", Payload: Raw(`{"payload": {"n":1e400}}`), RequiredRole: "planner",
				RequiredCapabilities: []string{"go"}, Dependencies: []hub.Dependency{{On: "a", Type: "blocks"}, {On: "b", Type: "blocks"}}, Priority: Raw("2.50"),
			},
		},
		{
			"submit-task",
			`{"type":"t","name":"n","priority":"high","dependencies":["a",{"depends_on_task_id":"b","dependency_type":"input","contract_key":"k"}],"targetRepo":"shop","acceptanceCriteria":["c"],"projectId":"p","sessionId":"s"}`,
			&SubmitTask{
				Type: "t", Name: "n", Priority: Raw(`"high"`),
				Dependencies: []hub.Dependency{{On: "a", Type: "blocks"}, {On: "b", Type: "input", Contract: "k"}},
				TargetRepo:   "shop", AcceptanceCriteria: []string{"c"}, ProjectID: "p", SessionID: "s",
			},
		},
		{"query-tasks", `{"projectId":"p"}`, &QueryTasks{ProjectID: "p"}},
		{"get-task", `{"taskId":"\u0061 "}`, &TaskID{TaskID: "a "}},
		{"start-task", `{"taskId":"a"}`, &TaskID{TaskID: "a"}},
		{"complete-task", `{"taskId":"a"}`, &CompleteTask{TaskID: "a"}},
		{"complete-task", `{"taskId":"a","result":{"n":1.0}}`, &CompleteTask{TaskID: "a", Result: &hub.Result{Document: Raw(`{"n":1.0}`)}}},
		{"complete-task", `{"taskId":"a","result":[1.0,{"n":2}]}`, &CompleteTask{TaskID: "a", Result: &hub.Result{Document: Raw(`[1.0,{"n":2}]`)}}},
		{"complete-task", `{"taskId":"a","result":false}`, &CompleteTask{TaskID: "a", Result: &hub.Result{Document: Raw(`false`)}}},
		{"complete-task", `{"taskId":"a","result":"done"}`, &CompleteTask{TaskID: "a", Result: &hub.Result{Document: Raw(`"done"`)}}},
		{"fail-task", `{"taskId":"a","error":"e"}`, &FailTask{TaskID: "a", Error: "e"}},
		{"cancel-task", `{"taskId":"a","reason":"r"}`, &CancelTask{TaskID: "a", Reason: "r"}},
		{"ask-user", `{"question":"?"}`, &AskUser{Question: "?"}},
		{
			"ask-user", `{"question":"?","options":[{"label":"A","value":"a"},{"value":"b"}],"timeout":300000}`,
			&AskUser{Question: "?", Options: []Option{{Label: "A", Value: "a"}, {Label: "b", Value: "b"}}, Timeout: 300000},
		},
		{"list-questions", `{"anything":[]}`, &Nothing{}},
		{"answer-question", `{"questionId":"q1","answer":""}`, &AnswerQuestion{QuestionID: "q1"}},
		{"issue-key", `{"agent":"coder"}`, &IssueKey{Agent: "coder"}},
	} {
		body, wrong := readAs(t, test.operation, test.payload)
		require.Empty(t, wrong, "%s %s", test.operation, test.payload)
		require.Equal(t, test.want, body, "%s %s", test.operation, test.payload)
	}
}

// TestRequestsAreRefused checks where a payload is wrong, and the message for people.
//
// Rows: B-27, B-33, B-38, B-40, B-43, B-44, B-52, B-58, B-59, B-60, B-76.
func TestRequestsAreRefused(t *testing.T) {
	for _, test := range []struct{ operation, payload, want string }{
		{"query-agents", `{"role":""}`, "/payload/role: Invalid role specified"},
		{"query-agents", `{"role":""}`, "/payload/role: Invalid role specified"},
		{"query-agents", `{"role":7}`, "/payload/role: role must be a string"},
		{"query-agents", `{"capabilities":"go"}`, "/payload/capabilities: capabilities must be a list"},
		{"query-agents", `{"capabilities":["go"," "]}`, "/payload/capabilities/1: capabilities[1] must not be empty"},
		{"query-agents", `{"capabilities":[null]}`, "/payload/capabilities/0: capabilities[0] must be a string"},
		{"query-tasks", `{"status":"open"}`, `/payload/status: status must be one of queued, running, completed, failed, cancelled, pending, assigned, planning, plan_review, needs_human, in_review, verifying or done, not "open"`},
		{"query-tasks", `{"limit":0}`, "/payload/limit: limit must be a whole number from 1 to 9007199254740991"},
		{"query-tasks", `{"limit":-1}`, "/payload/limit: limit must be a whole number from 1 to 9007199254740991"},
		{"query-tasks", `{"limit":1.5}`, "/payload/limit: limit must be a whole number from 1 to 9007199254740991"},
		{"query-tasks", `{"limit":1e300}`, "/payload/limit: limit must be a whole number from 1 to 9007199254740991"},
		{"query-tasks", `{"limit":"10"}`, "/payload/limit: limit must be a number"},
		{"submit-task", `{"name":"n"}`, "/payload/type: type is missing"},
		{"submit-task", `{"type":"t"}`, "/payload/name: name is missing"},
		{"submit-task", `{"type":"t","name":" \t\n"}`, "/payload/name: name must not be empty"},
		{"submit-task", `{"type":"t","Name":"n"}`, "/payload/name: name is missing"},
		{"submit-task", `{"type":"t","name":"n","name":"m"}`, "/payload/name: name stands twice"},
		{"submit-task", `{"type":"t","name":"n","payload":[]}`, "/payload/payload: payload must be an object"},
		{"submit-task", `{"type":"t","name":"n","priority":[1]}`, "/payload/priority: priority must be a number"},
		{"submit-task", `{"type":"t","name":"n","priority":" "}`, "/payload/priority: priority must not be empty"},
		{"submit-task", `{"type":"t","name":"n","dependencies":["a",{"dependency_type":"blocks"}]}`, "/payload/dependencies/1/depends_on_task_id: dependencies[1].depends_on_task_id is missing"},
		{"submit-task", `{"type":"t","name":"n","acceptanceCriteria":[""]}`, "/payload/acceptanceCriteria/0: acceptanceCriteria[0] must not be empty"},
		{"submit-task", `{"type":"t","name":"n","targetRepo":1}`, "/payload/targetRepo: targetRepo must be a string"},
		{"submit-task", `{"type":"t","name":"n","structured_spec":{"$schema":"orchestratia/task-spec/v1","requirements":[]}}`, "/payload/structured_spec/requirements: structured_spec.requirements must have at least one item"},
		{"submit-task", `{"type":"t","name":"n","requirements":{"tools":{}}}`, "/payload/requirements/tools: requirements.tools must be a list"},
		{"get-task", `{}`, "/payload/taskId: taskId is missing"},
		{"complete-task", `{"taskId":"a","result":[{"k":1,"k":2}]}`, "/payload/result/0/k: result[0].k stands twice"},
		{"fail-task", `{"taskId":"a"}`, "/payload/error: error is missing"},
		{"ask-user", `{}`, "/payload/question: question is missing"},
		{"ask-user", `{"question":"?","timeout":0}`, "/payload/timeout: timeout must be a whole number from 1 to 9007199254740991"},
		{"ask-user", `{"question":"?","timeout":1e12}`, "/payload/timeout: timeout is longer than a year, in milliseconds"},
		{"ask-user", `{"question":"?","options":[{"label":"A"}]}`, "/payload/options/0/value: options[0].value is missing"},
		{"ask-user", `{"question":"?","options":[{"value":"a"},{"value":"a"}]}`, "/payload/options/1/value: options[1].value stands twice"},
		{"answer-question", `{"questionId":"q1"}`, "/payload/answer: answer is missing"},
		{"issue-key", `{"agent":null}`, "/payload/agent: agent is missing"},
	} {
		_, wrong := readAs(t, test.operation, test.payload)
		require.Equal(t, test.want, wrong, "%s %s", test.operation, test.payload)
	}
}

// TestOptions checks that the options of a question may be texts.
func TestOptions(t *testing.T) {
	require.Equal(t, []Option{{Label: "tea", Value: "tea"}, {Label: "coffee", Value: "coffee"}}, Options("tea", "coffee"))
	require.Empty(t, Options())
}
