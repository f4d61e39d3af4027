package stdio

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// fullResponse returns a response with all members of a completed task.
const unasked = "The agent needs input to continue, and did not specify it"

func fullResponse(t testing.TB) map[string]any { return delegatedExamples(t, "task-response")[0] }

// responded reads a valid response.
func responded(t testing.TB, line string) *delegation.Response {
	t.Helper()
	r, err := wire.ReadTaskResponse([]byte(line), 64)
	require.Nil(t, err, "%v\n%s", err, line)
	return r
}

// Rows: D-18, D-19, D-22, D-27, D-31, D-32, D-33, D-34, D-35, K-14.
func TestTaskResponsesAreRead(t *testing.T) {
	took, tries := int64(3250), int64(1)
	line := string(encoded(t, fullResponse(t)))
	require.Equal(t, &delegation.Response{
		ID: "3c1f7a52-8d04-4b6e-9a1f-5e2b7c90d114", Status: delegation.Completed, Result: wire.Raw(`{"grams":7.50}`),
		Metadata: delegation.Metadata{StartedAt: "2026-11-20T09:15:01Z", CompletedAt: "2026-11-20T09:15:04.250Z", DurationMS: &took, Agent: "scale", RetryCount: &tries},
		Artifacts: []delegation.Artifact{
			{Name: "label.txt", Type: "text/plain", Content: "Assam, 7.5 g\n"},
			{Name: "weights.json", Type: "application/json", Content: "[7.5]"},
			{Name: "photo.png", Type: "image/png", Ref: "file:///srv/tea/photo.png"},
		},
		Document: wire.Raw(line),
	}, responded(t, " "+line+"\r"))
}

// TestTaskResponsesThatSayLittle checks that two members are enough for every status, and that
// null counts as missing.
//
// Rows: D-18, D-19, D-20, D-21, D-22, D-23, D-24, D-25, K-23.
func TestTaskResponsesThatSayLittle(t *testing.T) {
	notes := map[string][]string{
		"completed":      {`/result: result is missing, and the status is completed: it defaults to {"success":true}`},
		"failed":         {"/error: error is missing, and the status is failed: it should give the reason"},
		"input_required": {"/message: message is missing, and the status is input_required: it should have the question"},
	}
	for _, status := range delegation.Statuses {
		bare := `{"id":"t-1","status":"` + status + `"}`
		r := responded(t, bare)
		require.Equal(t, notes[status], r.Notes)
		require.Equal(t, status == "failed", r.Fault != nil)
		require.Equal(t, status == "input_required", r.Question != "")
		for _, more := range []string{
			`"result":null,"error":null,"metadata":null,"artifacts":null`, `"metadata":{},"artifacts":[]`,
			`"metadata":{"startedAt":null,"completedAt":null,"duration_ms":null,"agent":null,"retryCount":null}`,
			`"input":null,"message":null`,
		} {
			said := responded(t, strings.Replace(bare, "}", ","+more+"}", 1))
			said.Document = r.Document
			require.Equal(t, r, said, more)
		}
	}
	for pointer := range places(fullResponse(t), "") {
		err := refusedResponse(encoded(t, with(fullResponse(t), pointer, gone)))
		switch pointer {
		case "/id", "/status", "/artifacts/0/name", "/artifacts/0/type", "/artifacts/0/content", "/artifacts/1/name", "/artifacts/1/type", "/artifacts/1/content", "/artifacts/2/name", "/artifacts/2/type":
			require.Equal(t, []string{pointer + ": " + spokenOf(pointer) + " is missing"}, complaintsOf(err))
		case "/artifacts/2/ref":
			require.Equal(t, []string{"/artifacts/2/content: artifacts[2].content is missing"}, complaintsOf(err))
		case "/artifacts/0", "/artifacts/1", "/artifacts/2": // items of a list
		default:
			require.Nil(t, err, pointer)
		}
	}
}

// Rows: D-18, D-19, D-29, D-31..D-35, K-23.
func TestEveryKindOfValueInTaskResponsesIsChecked(t *testing.T) {
	requireKindsChecked(t, fullResponse(t), refusedResponse, "/result", "/artifacts/2/ref")
	for _, example := range delegatedExamples(t, "task-response")[1:] {
		requireKindsChecked(t, example, refusedResponse, "/error/details/", "/message", "/input")
	}
}

// TestResultsOfTasks checks that only a completed task has a result, of any type.
//
// Rows: D-22, D-27, T-33, T-48.
func TestResultsOfTasks(t *testing.T) {
	for _, status := range delegation.Statuses {
		for _, result := range []string{`{}`, `{"n":12345678901234567890,"h":"<a&b>"}`, `[]`, `""`, `0`, `false`} {
			line := `{"id":"1","result":` + result + `,"status":"` + status + `"}`
			if status == "completed" {
				require.Equal(t, result, string(responded(t, line).Result))
				continue
			}
			require.Equal(t, []string{"/result: result must not be set with the status " + status + ": only completed has it"}, complaintsOf(refusedResponse([]byte(line))))
		}
	}
}

// Rows: D-18, D-19, D-31, D-32, D-34, D-35, K-10, T-33.
func TestTaskResponsesAreRefused(t *testing.T) {
	line := string(encoded(t, fullResponse(t)))
	const statuses = "status must be one of pending, in_progress, completed, failed, cancelled or input_required, not "
	for _, test := range []struct{ from, to, want string }{
		{`"id":"3c1f7a52-8d04-4b6e-9a1f-5e2b7c90d114"`, `"id":""`, "/id: id must not be empty"},
		{`"id":"3c1f7a52-8d04-4b6e-9a1f-5e2b7c90d114"`, `"id":"` + strings.Repeat("a", 4097) + `"`, "/id: id must not be longer than 4096 bytes"},
		{`"status":"completed"`, `"status":"done"`, "/status: " + statuses + `"done"`},
		{`"status":"completed"`, `"status":"Completed"`, "/status: " + statuses + `"Completed"`},
		{`"status":"completed"`, `"status":"in-progress"`, "/status: " + statuses + `"in-progress"`},
		{`"status":"completed"`, `"status":null`, "/status: status must not be null"},
		{`"status":"completed"`, `"status":"completed","status":"failed"`, "/status: status stands twice"},
		{`"status":"completed"`, `"status":"completed","type":"t"`, "/type: type must not be in a response: only a request has it"},
		{`"status":"completed"`, `"status":"completed","type":"notify:shutdown"`, "/type: type must not be in a response: only a request has it"},
		{`"duration_ms":3250`, `"duration_ms":-1`, "/metadata/duration_ms: metadata.duration_ms must be a whole number from 0 to 9007199254740991"},
		{`"duration_ms":3250`, `"duration_ms":0.5`, "/metadata/duration_ms: metadata.duration_ms must be a whole number from 0 to 9007199254740991"},
		{`"duration_ms":3250`, `"duration_ms":"3250"`, "/metadata/duration_ms: metadata.duration_ms must be a number"},
		{`"retryCount":1`, `"retryCount":-1`, "/metadata/retryCount: metadata.retryCount must be a whole number from 0 to 9007199254740991"},
		{`2026-11-20T09:15:01Z`, `09:15`, `/metadata/startedAt: metadata.startedAt must be an ISO 8601 time, not "09:15"`},
		{`"content":"[7.5]"`, `"content":[7.5]`, "/artifacts/1/content: artifacts[1].content must be a string"},
		{`"content":"[7.5]"`, `"content":null`, "/artifacts/1/content: artifacts[1].content must not be null"},
		{`"name":"label.txt"`, `"name":" "`, "/artifacts/0/name: artifacts[0].name must not be empty"},
		{`"result":{"grams":7.50}`, `"error":{"recoverable":"no"}`, "/error/recoverable: error.recoverable must be true or false"},
		{`"result":{"grams":7.50}`, `"error":"it broke"`, "/error: error must be an object"},
		{`"result":{"grams":7.50}`, `"result":1,"result":2`, "/result: result stands twice"},
	} {
		require.Contains(t, line, test.from)
		require.Equal(t, []string{test.want}, complaintsOf(refusedResponse([]byte(strings.Replace(line, test.from, test.to, 1)))), test.to)
	}
	require.Equal(t, []string{"the message: it must be an object"}, complaintsOf(refusedResponse([]byte(`7`))))
}

// TestKeysOfMetadata checks that keys changed by a converter are noted.
//
// Rows: D-32, D-34, K-10, T-33.
func TestKeysOfMetadata(t *testing.T) {
	r := responded(t, `{"id":"1","status":"completed","result":1,"metadata":{"durationMs":1,"retry_count":2,"started_at":"x","later":3},"Artifacts":7}`)
	require.Empty(t, r.Metadata)
	require.Equal(t, []string{
		"/metadata/durationMs: metadata.durationMs is ignored: it is spelled duration_ms",
		"/metadata/retry_count: metadata.retry_count is ignored: it is spelled retryCount",
		"/metadata/started_at: metadata.started_at is ignored: it is spelled startedAt",
		"/Artifacts: Artifacts is ignored: it is spelled artifacts",
	}, r.Notes)
	r = responded(t, `{"id":"1","status":"completed","result":1,"metadata":{"duration_ms":0,"retryCount":0}}`)
	require.Zero(t, *r.Metadata.DurationMS)
	require.Zero(t, *r.Metadata.RetryCount)
	r = responded(t, `{"id":"1","status":"completed","result":1,"metadata":{"startedAt":"2026-11-20T09:15:00Z","completedAt":"2026-11-20T10:14:59+01:00"}}`)
	require.Equal(t, []string{"/metadata/completedAt: metadata.completedAt is before startedAt"}, r.Notes)
}

// TestFaultsOfTasks checks that a failed task is failed even if its error is incomplete.
//
// Rows: D-23, D-29, D-30, D-41, K-06.
func TestFaultsOfTasks(t *testing.T) {
	const generic = "The task failed, and its agent gave no reason"
	for _, test := range []struct {
		said  string
		want  *delegation.Fault
		notes string
	}{
		{
			`"status":"failed","error":{"code":"MCP_NOT_CONNECTED","message":"No power","details":{"n":1.50},"recoverable":true}`,
			&delegation.Fault{Code: delegation.FaultMCPNotConnected, Message: "No power", Details: wire.Raw(`{"n":1.50}`), Recoverable: true}, "",
		},
		{`"status":"failed","error":{"code":"OUT_OF_TEA","message":"None","recoverable":false}`, &delegation.Fault{Code: "OUT_OF_TEA", Message: "None"}, ""},
		{`"status":"failed","error":{"code":"TIMEOUT","message":"Too long"}`, &delegation.Fault{Code: delegation.FaultTimeout, Message: "Too long"}, ""},
		{`"status":"failed","error":{"message":"Too long","details":null,"recoverable":null}`, &delegation.Fault{Code: delegation.FaultInternal, Message: "Too long"}, "/error/code: error.code is missing: it defaults to INTERNAL_ERROR"},
		{`"status":"failed","error":{"code":"TIMEOUT","message":" "}`, &delegation.Fault{Code: delegation.FaultTimeout, Message: generic}, "/error/message: error.message is missing: it should describe the error"},
		{`"status":"failed"`, &delegation.Fault{Code: delegation.FaultInternal, Message: generic}, "/error: error is missing, and the status is failed: it should give the reason"},
		{`"status":"cancelled","error":{"code":"TIMEOUT","message":"Too long"}`, &delegation.Fault{Code: delegation.FaultTimeout, Message: "Too long"}, "/error: error does not fit the status cancelled, and is dropped"},
		{`"status":"cancelled"`, nil, ""},
		{`"status":"completed","result":1,"error":{"code":"TIMEOUT","message":"Too long"}`, nil, "/error: error does not fit the status completed, and is dropped"},
		{`"status":"in_progress","error":{"code":"TIMEOUT","message":"Too long"}`, nil, "/error: error does not fit the status in_progress, and is dropped"},
	} {
		r := responded(t, `{"id":"1",`+test.said+`}`)
		require.Equal(t, test.want, r.Fault, test.said)
		require.Equal(t, test.notes, strings.Join(r.Notes, "\n"), test.said)
	}
}

// Rows: D-25, D-38.
func TestQuestionsOfTasks(t *testing.T) {
	const missing = "/message: message is missing, and the status is input_required: it should have the question"
	yesNo := []wire.Option{{Label: "Yes, please", Value: "yes"}, {Label: "no", Value: "no"}}
	for _, test := range []struct {
		said, question string
		options        []wire.Option
		notes          string
	}{
		{`"message":"With milk?"`, "With milk?", nil, ""},
		{`"message":"With milk?","input":{"question":"Sugar?"},"error":{"code":"X","message":"Lemon?"}`, "With milk?", nil, ""},
		{`"message":" ","input":{"question":"Sugar?"},"error":{"code":"X","message":"Lemon?"}`, "Sugar?", nil, ""},
		{`"message":{"text":"hm"},"input":{"question":7},"error":{"code":"X","message":"Lemon?"}`, "Lemon?", nil, ""},
		{`"input":{"question":"Milk?","options":[{"label":"Yes, please","value":"yes"},{"value":"no"}]}`, "Milk?", yesNo, ""},
		{`"message":"Milk?","input":{"options":["yes","no"]}`, "Milk?", []wire.Option{{Label: "yes", Value: "yes"}, {Label: "no", Value: "no"}}, ""},
		{`"message":"Milk?","input":{"options":["yes","no","no"]}`, "Milk?", nil, "/input: input has options that are ignored: input.options has a duplicate text"},
		{`"message":"Milk?","input":{"options":[{"value":"no"},{"label":"No","value":"no"}]}`, "Milk?", nil, "/input: input has options that are ignored: input.options[1].value stands twice"},
		{`"message":"Milk?","input":{"options":[]}`, "Milk?", nil, ""},
		{`"message":"Milk?","input":{"options":null}`, "Milk?", nil, ""},
		{`"message":"Milk?","input":{"options":"yes or no"}`, "Milk?", nil, "/input: input has options that are ignored: input.options must be a list"},
		{`"message":"Milk?","input":{"options":["yes",7]}`, "Milk?", nil, "/input: input has options that are ignored: input.options[1] must be a string"},
		{`"message":"Milk?","input":{"options":[{"label":"yes"}]}`, "Milk?", nil, "/input: input has options that are ignored: input.options[0].value is missing"},
		{`"message":"Milk?","input":"yes or no"`, "Milk?", nil, "/input: input is ignored: it is not an object with a question"},
		{`"message":"Milk?","message":"Sugar?"`, unasked, nil, missing},
		{`"error":{}`, unasked, nil, "/error/code: error.code is missing: it defaults to INTERNAL_ERROR\n/error/message: error.message is missing: it should describe the error\n" + missing},
	} {
		r := responded(t, `{"id":"1","status":"input_required",`+test.said+`}`)
		require.Equal(t, test.question, r.Question, test.said)
		require.Equal(t, test.options, r.Options, test.said)
		require.Equal(t, test.notes, strings.Join(r.Notes, "\n"), test.said)
		require.Nil(t, r.Fault)
	}
	r := responded(t, `{"id":"1","status":"in_progress","message":"half done","input":7}`)
	require.Empty(t, r.Question)
	require.Empty(t, r.Notes, "nobody looks there")
}

// Rows: D-20..D-25.
func TestStatesAsDelegatorsSeeThem(t *testing.T) {
	seen := make(map[string]string)
	for _, state := range wire.TaskStates {
		seen[state.Response()] += " " + string(state)
	}
	require.Equal(t, map[string]string{
		"pending": " pending assigned", "in_progress": " planning plan_review running in_review verifying", "input_required": " needs_human",
		"completed": " done", "failed": " failed", "cancelled": " cancelled",
	}, seen)
	require.Len(t, delegation.Statuses, len(seen))
}

// TestResponsesAreNormalized checks that all readers of a response get the same: the members
// that its status needs, and no error that it does not allow.
func TestResponsesAreNormalized(t *testing.T) {
	const generic = `"message":"The task failed, and its agent gave no reason"`
	for said, want := range map[string]string{
		`{"id":"1","status":"failed"}`:                                                     `{"id":"1","status":"failed","error":{"code":"INTERNAL_ERROR",` + generic + `,"recoverable":false}}`,
		`{"id":"1","status":"failed","error":{}}`:                                          `{"id":"1","status":"failed","error":{"code":"INTERNAL_ERROR",` + generic + `,"recoverable":false}}`,
		`{"id":"1","status":"failed","error":null}`:                                        `{"id":"1","status":"failed","error":{"code":"INTERNAL_ERROR",` + generic + `,"recoverable":false}}`,
		`{"id":"1","status":"failed","error":{"code":"","x":1.50}}`:                        `{"id":"1","status":"failed","error":{"code":"INTERNAL_ERROR","x":1.50,` + generic + `,"recoverable":false}}`,
		`{"id":"1","status":"failed","error":{"code":"T","message":"m"}}`:                  `{"id":"1","status":"failed","error":{"code":"T","message":"m","recoverable":false}}`,
		`{"id":"1","status":"completed"}`:                                                  `{"id":"1","status":"completed","result":{"success":true}}`,
		`{"id":"1","status":"completed","result":1.50,"error":{"code":"T","message":"m"}}`: `{"id":"1","status":"completed","result":1.50}`,
		`{"id":"1","error":{"code":"T","message":"m"},"status":"in_progress","n":1.50}`:    `{"id":"1","status":"in_progress","n":1.50}`,
		`{"id":"1","status":"input_required","error":{"message":"Milk?"}}`:                 `{"id":"1","status":"input_required","message":"Milk?"}`,
		`{ "id":"1" , "status":"completed","result":{"n": 1.50} }`:                         `{ "id":"1" , "status":"completed","result":{"n": 1.50} }`,
	} {
		require.Equal(t, want, string(responded(t, said).Document), said)
	}
}
