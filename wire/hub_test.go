package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// hubReaders maps each request body of the hub to its reader, for a task that the route names.
var hubReaders = map[string]func(o *object.Reader, body Raw) any{
	"create":   func(o *object.Reader, _ Raw) any { return ReadHubTask(o) },
	"update":   func(o *object.Reader, _ Raw) any { return ReadHubUpdate(o, "t") },
	"complete": func(o *object.Reader, _ Raw) any { return ReadHubComplete(o, "t") },
	"fail":     func(o *object.Reader, _ Raw) any { return ReadHubFail(o, "t") },
	"cancel": func(o *object.Reader, _ Raw) any {
		return OperationNamed("cancel-task").ReadBody(o, map[string]string{"task_id": "t"})
	},
	"help": func(o *object.Reader, _ Raw) any { return ReadHubHelp(o, "t") },
	"note": func(o *object.Reader, _ Raw) any {
		return OperationNamed("add-note").ReadBody(o, map[string]string{"task_id": "t"})
	},
	"plan": func(o *object.Reader, _ Raw) any {
		return OperationNamed("submit-plan").ReadBody(o, map[string]string{"task_id": "t"})
	},
	"revise": func(o *object.Reader, _ Raw) any {
		return OperationNamed("revise-plan").ReadBody(o, map[string]string{"task_id": "t"})
	},
	"assign":     func(o *object.Reader, _ Raw) any { return ReadHubAssign(o, "t") },
	"dependency": func(o *object.Reader, _ Raw) any { return ReadHubDependency(o, "t") },
	"heartbeat":  func(o *object.Reader, body Raw) any { return ReadHubHeartbeat(o, body) },
}

// readHub reads a body and returns the result, or where it is wrong and why.
func readHub(t *testing.T, what, body string) (any, string) {
	t.Helper()
	var o object.Reader
	require.Nil(t, o.Read([]byte(body), 64, ""), body)
	got := hubReaders[what](&o, Raw(body))
	return got, strings.TrimPrefix(complaint(o.Err()), "invalid ")
}

// Rows.
func TestHubBodiesAreRead(t *testing.T) {
	task := SubmitTask{Name: "n", Description: "s", Type: "feature", Patient: true}
	typed, full, bare := task, task, task
	bare.Dependencies = []hub.Dependency{{On: "a", Type: "blocks"}, {On: "b", Type: "blocks"}}
	typed.Dependencies = []hub.Dependency{{On: "a", Type: "input", Contract: "k"}, {On: "b", Type: "blocks"}}
	repo, upper := task, task // keys and ids as other clients write them
	repo.TargetRepo = "shop"
	upper.Dependencies = []hub.Dependency{{On: "7f3a9c1e-33b7-4c0e-8a4e-2b9d1c6f5e10", Type: "blocks"}, {On: "A", Type: "blocks"}}
	gated := task
	gated.Dependencies = []hub.Dependency{{On: "a", Type: "related"}, {On: "a", Type: "blocks"}}
	full.Type, full.Priority = "bugfix", Raw(`"high"`)
	full.TargetRepo, full.AcceptanceCriteria, full.ProjectID, full.SessionID = "shop", []string{"c"}, "p", "x"
	full.Requirements = &hub.Requirements{Document: Raw(`{"repo":"shop"}`), Repo: "shop"}
	for _, test := range []struct {
		what, body string
		want       any
	}{
		{"create", `{"title":"n","spec":"s","later":1}`, &task},
		{"create", `{"title":"n","spec":"s","dependency_ids":["a","b","a"]}`, &bare},
		{"create", `{"title":"n","spec":"s","dependency_ids":["a","b"],"dependencies":[{"depends_on_task_id":"a","dependency_type":"input","contract_key":"k"}]}`, &typed},
		{"create", `{"title":"n","spec":"s","dependency_ids":["a"],"dependencies":[{"depends_on_task_id":"a","dependency_type":"related"}]}`, &gated},
		{
			"create",
			`{"title":"n","spec":"s","type":"bugfix","priority":"high","target_repo":"shop","acceptance_criteria":["c"],"project_id":"p","session_id":"x","requirements":{"repo":"shop"}}`,
			&full,
		},
		{"create", `{"title":"n","spec":"s","repo":"shop"}`, &repo},
		{"create", `{"title":"n","spec":"s","dependency_ids":["7F3A9C1E-33B7-4C0E-8A4E-2B9D1C6F5E10","A"]}`, &upper},
		{"update", `{}`, &UpdateTask{TaskID: "t"}},
		{"update", `{"title":"n","spec":"s","target_repo":"","project_id":"p","acceptance_criteria":["c"],"structured_spec":null}`, &UpdateTask{
			TaskID: "t", Name: ptr("n"), Description: ptr("s"), TargetRepo: ptr(""), ProjectID: ptr("p"), AcceptanceCriteria: &[]string{"c"},
			Without: []string{"structured_spec"},
		}},
		{"complete", `{"result":"done"}`, &CompleteTask{TaskID: "t", Result: &hub.Result{Document: Raw(`"done"`)}}},
		{"complete", `{"result":{"n":1.0}}`, &CompleteTask{TaskID: "t", Result: &hub.Result{Document: Raw(`{"n":1.0}`)}}},
		{"fail", `{"error":"e"}`, &FailTask{TaskID: "t", Error: "e"}},
		{"fail", `{"error":" "}`, &FailTask{TaskID: "t", Error: "no reason was given"}},
		{"fail", `{}`, &FailTask{TaskID: "t", Error: "no reason was given"}},
		{"cancel", `{"reason":"r"}`, &CancelTask{TaskID: "t", Reason: "r"}},
		{"cancel", `{}`, &CancelTask{TaskID: "t"}},
		{"help", `{}`, &RequestHelp{TaskID: "t", Question: unspecified}},
		{"help", `{"question":"?","context":"c"}`, &RequestHelp{TaskID: "t", Question: "?", Context: Raw(`"c"`)}},
		{"note", `{"content":"c"}`, &AddNote{TaskID: "t", Content: "c"}},
		{"note", `{"content":"c","urgent":true}`, &AddNote{TaskID: "t", Content: "c", Urgent: true}},
		{"plan", `{"plan":{"a":1}}`, &SubmitPlan{TaskID: "t", Plan: Raw(`{"a":1}`)}},
		{"revise", `{"feedback":"f"}`, &RevisePlan{TaskID: "t", Feedback: "f"}},
		{"assign", `{"session_name":"coder","server_id":"s"}`, &AssignTask{TaskID: "t", Agent: "coder"}},
		{"assign", `{"server_id":"s","require_plan":true}`, &AssignTask{TaskID: "t", Agent: "s", RequirePlan: true}},
		{"dependency", `{"depends_on_task_id":"a"}`, &AddDependency{TaskID: "t", Dependency: hub.Dependency{On: "a", Type: "blocks"}}},
		{"dependency", `{"depends_on_task_id":"a","dependency_type":"input","contract_key":"k"}`, &AddDependency{TaskID: "t", Dependency: hub.Dependency{On: "a", Type: "input", Contract: "k"}}},
		{"heartbeat", `{}`, &UpdateCapabilities{}},
		{"heartbeat", `{"capabilities":{"tools":["sh"]},"$schema":"x"}`, &UpdateCapabilities{
			Capabilities: &hub.Capabilities{Document: Raw(`{"tools":["sh"]}`), Tools: []string{"sh"}, Capacity: 1},
		}},
		{"heartbeat", `{"load":0.50,"capabilities":null,"system":{"os":"linux"}}`, &UpdateCapabilities{System: Raw(`{"load":0.50,"system":{"os":"linux"}}`)}},
		{"heartbeat", "{\"a\\u0062\":\n[1,\n2]}", &UpdateCapabilities{System: Raw(`{"ab":[1,2]}`)}},
	} {
		got, wrong := readHub(t, test.what, test.body)
		require.Empty(t, wrong, "%s %s", test.what, test.body)
		require.Equal(t, test.want, got, "%s %s", test.what, test.body)
	}
}

// Rows.
func TestHubBodiesAreRefused(t *testing.T) {
	const set = " cannot be set: other operations change it"
	for _, test := range []struct{ what, body, want string }{
		{"create", `{"spec":"s"}`, "/title: title is missing"},
		{"create", `{"title":" ","spec":"s"}`, "/title: title must not be empty"},
		{"create", `{"title":"n"}`, "/spec: spec is missing"},
		{"create", `{"title":"n","spec":"s","type":1}`, "/type: type must be a string"},
		{"create", `{"title":"n","spec":"s","type":""}`, "/type: type must not be empty"},
		{"create", `{"title":"n","spec":"s","priority":{}}`, "/priority: priority must be a number"},
		{"create", `{"title":"n","spec":"s","dependency_ids":[{}]}`, "/dependency_ids/0: dependency_ids[0] must be a string"},
		{"create", `{"title":"n","spec":"s","dependencies":[{"depends_on_task_id":"a","dependency_type":"soft"}]}`, `/dependencies/0/dependency_type: dependencies[0].dependency_type must be one of blocks, input or related, not "soft"`},
		{"create", `{"title":"n","spec":"s","acceptance_criteria":"c"}`, "/acceptance_criteria: acceptance_criteria must be a list"},
		{"create", `{"title":"n","spec":"s","structured_spec":{"$schema":"foo/v1"}}`, `/structured_spec/$schema: structured_spec.$schema must be orchestratia/task-spec/v1, not "foo/v1"`},
		{"create", `{"title":"n","spec":"s","requirements":{"languages":"rust"}}`, "/requirements/languages: requirements.languages must be a list"},
		{"update", `{"title":""}`, "/title: title must not be empty"},
		{"update", `{"status":"done"}`, "/status: status" + set},
		{"update", `{"id":"x"}`, "/id: id" + set},
		{"update", `{"dependencies":[]}`, "/dependencies: dependencies" + set},
		{"update", `{"dependency_ids":[]}`, "/dependency_ids: dependency_ids" + set},
		{"update", `{"result":{}}`, "/result: result" + set},
		{"update", `{"resolved_inputs":{}}`, "/resolved_inputs: resolved_inputs" + set},
		{"complete", `{}`, "/result: result is missing"},
		{"complete", `{"result":null}`, "/result: result is missing"},
		{"fail", `{"error":{}}`, "/error: error must be a string"},
		{"cancel", `{"reason":1}`, "/reason: reason must be a string"},
		{"note", `{"content":"\t"}`, "/content: content must not be empty"},
		{"plan", `{"plan":7}`, "/plan: plan must be an object or a text"},
		{"revise", `{}`, "/feedback: feedback is missing"},
		{"assign", `{}`, "/session_name: session_name is missing"},
		{"assign", `{"session_name":"","server_name":"b"}`, "/session_name: session_name must not be empty"},
		{"assign", `{"session_name":"a","require_plan":"no"}`, "/require_plan: require_plan must be true or false"},
		{"dependency", `{}`, "/depends_on_task_id: depends_on_task_id is missing"},
		{"dependency", `{"depends_on_task_id":"a","dependency_type":"input"}`, "/contract_key: contract_key is missing"},
		{"dependency", `{"depends_on_task_id":"a","dependency_type":"input","contract_key":" "}`, "/contract_key: contract_key must not be empty"},
		{"heartbeat", `{"capabilities":{"tools":"sh"}}`, "/capabilities/tools: capabilities.tools must be a list"},
	} {
		_, wrong := readHub(t, test.what, test.body)
		require.Equal(t, test.want, wrong, "%s %s", test.what, test.body)
	}
}

// Rows: A-39.
func TestPrioritiesAsWords(t *testing.T) {
	for given, want := range map[string]string{
		"": "normal", "0": "critical", "1": "critical", "1.5": "high", "2": "high", "3": "normal", "2.50": "normal", "4": "low", "1e400": "normal",
		`"high"`: "high", `"urgent"`: "urgent", `"any word"`: "any word",
	} {
		require.Equal(t, want, hub.PriorityWord(Raw(given)), given)
	}
	for given, want := range map[string]uint8{`"critical"`: 0, `"urgent"`: 0, `"high"`: 1, `"normal"`: 2, `"low"`: 3, `"any word"`: 2} {
		require.Equal(t, want, hub.Urgency(Raw(given)), given)
	}
}
