package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// resultOf returns a structured result with further members.
func resultOf(members string) string {
	return `{"$schema":"orchestratia/task-result/v1","summary":"s"` + members + `}`
}

func resultIn(t testing.TB, doc string) *hub.Result {
	t.Helper()
	o := slotOf(t, doc)
	r := hub.ResultIn(o, "doc")
	require.Nil(t, o.Err(), doc)
	return r
}

// Rows, K-13, K-14, K-15, T-16, T-17, T-48.
func TestResultsAreRead(t *testing.T) {
	odd := func(place, text string) []hub.Oddity {
		return []hub.Oddity{{Kind: events.DocumentOdd, Pointer: "/payload/doc/contracts" + place, Text: text}}
	}
	for _, test := range []struct {
		doc  string
		want hub.Result
	}{
		{resultOf(``), hub.Result{}},
		{resultOf(`,"changes":null,"contracts":null,"tests":null,"artifacts":null,"later":1`), hub.Result{}},
		{resultOf(`,"changes":{},"contracts":{},"tests":{},"artifacts":{}`), hub.Result{}},
		{resultOf(`,"changes":{"files_modified":["a","b","a"],"files_created":["c","\u0061"],"files_deleted":[],"lines_added":342,"lines_removed":0}`), hub.Result{Files: 3}},
		{resultOf(`,"tests":{"framework":"go","total":1,"passed":0,"failed":9,"skipped":0,"coverage_percent":94.20},"artifacts":{"html":"x","log":{"at":[]}}`), hub.Result{}},
		{resultOf(`,"tests":{"coverage_percent":-1e999}`), hub.Result{}},
		{
			resultOf(`,"contracts":{"z":{"status":"partial","data":{"endpoints":[]}},"a":{"status":"fulfilled","data":{"n":12345678901234567890, "t":"<a&b>"}},"m":{"status":"skipped","data":{"reason":"no \"API\"","more":1}}}`),
			hub.Result{Contracts: []hub.Contract{
				{Key: "a", Status: "fulfilled", Data: Raw(`{"n":12345678901234567890, "t":"<a&b>"}`)},
				{Key: "m", Status: "skipped", Data: Raw(`{"reason":"no \"API\"","more":1}`), Reason: `no "API"`},
				{Key: "z", Status: "partial", Data: Raw(`{"endpoints":[]}`)},
			}},
		},
		{
			resultOf(`,"contracts":{"k":{"status":"fulfilled"}}`),
			hub.Result{
				Contracts: []hub.Contract{{Key: "k", Status: "fulfilled"}},
				Oddities:  odd("/k/data", "it is fulfilled and has no data: a task that needs it gets null"),
			},
		},
		{
			resultOf(`,"contracts":{"k":{"status":"fulfilled","data":null}}`),
			hub.Result{
				Contracts: []hub.Contract{{Key: "k", Status: "fulfilled"}},
				Oddities:  odd("/k/data", "it is fulfilled and has no data: a task that needs it gets null"),
			},
		},
		{resultOf(`,"contracts":{"k":{"status":"partial"}}`), hub.Result{Contracts: []hub.Contract{{Key: "k", Status: "partial"}}}},
		{
			resultOf(`,"contracts":{"k":{"status":"partial","data":[1.0,"x"]}}`),
			hub.Result{
				Contracts: []hub.Contract{{Key: "k", Status: "partial", Data: Raw(`[1.0,"x"]`)}},
				Oddities:  odd("/k/data", "data should be an object; it is delivered unchanged"),
			},
		},
		{
			resultOf(`,"contracts":{"a/b":{"status":"partial","data":{}}}`),
			hub.Result{
				Contracts: []hub.Contract{{Key: "a/b", Status: "partial", Data: Raw(`{}`)}},
				Oddities:  odd("/a~1b", `the key "a/b" should have letters from a to z, digits and underscores alone, and one of them at least`),
			},
		},
	} {
		test.want.Document, test.want.Structured = Raw(test.doc), true
		require.Equal(t, &test.want, resultIn(t, test.doc), test.doc)
	}
}

// TestLegacyResults checks that a result without $schema may have any form, however the key is
// escaped.
//
// Rows, T-18.
func TestLegacyResults(t *testing.T) {
	for _, doc := range []string{
		`"done"`, `""`, `"\u00e9"`, `{}`, `{"success":true}`, `{"$schema":null,"summary":7}`, `{"$Schema":"orchestratia/task-result/v1"}`,
		`{"summary":"x","contracts":{"k":{"status":"fulfilled","data":{}}}}`, `{"contracts":[],"summary":null}`,
		`{"a":{"$schema":"orchestratia/task-result/v1"}}`, `{"\u0024":"\n"}`,
	} {
		require.Equal(t, &hub.Result{Document: Raw(doc)}, resultIn(t, doc), doc)
	}
	require.True(t, resultIn(t, `{"\u0024schema":"orchestratia\/task-result\/v1","summary":"s"}`).Structured)
	for _, doc := range []string{`7`, `true`, `[]`, `["done"]`, `-1`} {
		require.Equal(t, &hub.Result{Document: Raw(doc)}, resultIn(t, doc), doc)
	}
}

// TestResultsThatBreakTheirForm checks that an error in a result is reported separately from one
// in the request. A lenient caller can use the rest of the result.
//
// Rows, K-23, T-20, T-42.
func TestResultsThatBreakTheirForm(t *testing.T) {
	const p = "invalid /payload/doc"
	good := `"good":{"status":"fulfilled","data":{"n":1}}`
	kept := []hub.Contract{{Key: "good", Status: "fulfilled", Data: Raw(`{"n":1}`)}}
	for _, test := range []struct{ members, want string }{
		{`"$schema":7,"summary":"s"`, p + "/$schema: doc.$schema must be a string"},
		{`"$schema":"foo/v1","summary":"s"`, p + `/$schema: doc.$schema must be orchestratia/task-result/v1, not "foo/v1"`},
		{`"$schema":"orchestratia/task-result/v1"`, p + "/summary: doc.summary is missing"},
		{`"$schema":"orchestratia/task-result/v1","summary":null`, p + "/summary: doc.summary is missing"},
		{`"$schema":"orchestratia/task-result/v1","summary":{}`, p + "/summary: doc.summary must be a string"},
		{`"$schema":"orchestratia/task-result/v1","summary":"\t"`, p + "/summary: doc.summary must not be empty"},
	} {
		r := resultIn(t, `{`+test.members+`,"contracts":{`+good+`}}`)
		require.Equal(t, test.want, complaint(r.Breach))
		require.True(t, r.Structured)
		require.Equal(t, kept, r.Contracts, test.members)
	}
	for _, test := range []struct{ members, want string }{
		{`"changes":[]`, p + "/changes: doc.changes must be an object"},
		{`"changes":{"files_modified":"a"}`, p + "/changes/files_modified: doc.changes.files_modified must be a list"},
		{`"changes":{"files_created":["a",{"path":"b"}]}`, p + "/changes/files_created/1: doc.changes.files_created[1] must be a string"},
		{`"changes":{"files_deleted":[" "]}`, p + "/changes/files_deleted/0: doc.changes.files_deleted[0] must not be empty"},
		{`"changes":{"lines_added":1.5}`, p + "/changes/lines_added: doc.changes.lines_added must be a whole number from 0 to 9007199254740991"},
		{`"changes":{"lines_removed":-1}`, p + "/changes/lines_removed: doc.changes.lines_removed must be a whole number from 0 to 9007199254740991"},
		{`"tests":7`, p + "/tests: doc.tests must be an object"},
		{`"tests":{"framework":[]}`, p + "/tests/framework: doc.tests.framework must be a string"},
		{`"tests":{"total":"15"}`, p + "/tests/total: doc.tests.total must be a number"},
		{`"tests":{"skipped":-1}`, p + "/tests/skipped: doc.tests.skipped must be a whole number from 0 to 9007199254740991"},
		{`"tests":{"coverage_percent":"94.2"}`, p + "/tests/coverage_percent: doc.tests.coverage_percent must be a number"},
		{`"artifacts":["a"]`, p + "/artifacts: doc.artifacts must be an object"},
	} {
		r := resultIn(t, resultOf(`,`+test.members+`,"contracts":{`+good+`}`))
		require.Equal(t, test.want, complaint(r.Breach))
		require.Equal(t, kept, r.Contracts, test.members)
	}
	for doc, want := range map[string]string{
		`{"summary":"s","summary":"t"}`: p + "/summary: doc.summary stands twice",
		resultOf(`,"contracts":{"b~/d":{"status":"partial"},"b~/d":{"status":"partial"}}`): p + "/contracts/b~0~1d: doc.contracts.b~/d stands twice",
	} {
		o := slotOf(t, doc)
		hub.ResultIn(o, "doc")
		require.Equal(t, want, complaint(o.Err()), "it is refused as a whole")
	}
	for _, test := range []struct{ contract, want string }{
		{`"bad":"x"`, "/bad: doc.contracts.bad must be an object"},
		{`"bad":{}`, "/bad/status: doc.contracts.bad.status is missing"},
		{`"bad":{"status":"done","data":{}}`, `/bad/status: doc.contracts.bad.status must be one of fulfilled, partial or skipped, not "done"`},
		{`"bad":{"status":1}`, "/bad/status: doc.contracts.bad.status must be a string"},
		{`"bad":{"status":"skipped"}`, "/bad/data: doc.contracts.bad.data is missing: it must have the reason for skipping"},
		{`"bad":{"status":"skipped","data":"why"}`, "/bad/data: doc.contracts.bad.data must be an object"},
		{`"bad":{"status":"skipped","data":{}}`, "/bad/data/reason: doc.contracts.bad.data.reason is missing"},
		{`"bad":{"status":"skipped","data":{"reason":" "}}`, "/bad/data/reason: doc.contracts.bad.data.reason must not be empty"},
		{`"bad":{"status":"skipped","data":{"reason":["why"]}}`, "/bad/data/reason: doc.contracts.bad.data.reason must be a string"},
	} {
		r := resultIn(t, resultOf(`,"contracts":{`+test.contract+`,`+good+`}`))
		require.Equal(t, p+"/contracts"+test.want, complaint(r.Breach))
		require.Equal(t, kept, r.Contracts, test.contract)
	}
	require.Equal(t, p+"/contracts: doc.contracts must be an object", complaint(resultIn(t, resultOf(`,"contracts":[]`)).Breach))
	require.Equal(t, 1, resultIn(t, resultOf(`,"changes":{"files_created":["a",7]}`)).Files)
}

// Rows, K-17, T-42.
func TestResultsOfOtherVersionsDeliver(t *testing.T) {
	r := resultIn(t, `{"$schema":"orchestratia/task-result/v2","summary":{"en":"s"},"changes":{"files_created":["a"]},
		"contracts":{"a-b":{"status":"fulfilled","data":[1]},"c":{"status":"fulfilled"},"d":{"status":"waived"},"e":7},"tests":[]}`)
	require.True(t, r.Structured)
	require.Nil(t, r.Breach)
	require.Equal(t, []hub.Contract{{Key: "a-b", Status: "fulfilled", Data: Raw(`[1]`)}, {Key: "c", Status: "fulfilled"}}, r.Contracts)
	require.Equal(t, 1, r.Files)
	require.Equal(t, []hub.Oddity{{
		Kind: events.SchemaVersionUnknown, Pointer: "/payload/doc/$schema", Text: "orchestratia/task-result/v2 is unknown: it is read like v1",
	}}, r.Oddities)
}

// benchResult is a typical result of an agent.
var benchResult = resultOf(`,"changes":{"files_modified":["src/login.ts","src/types.ts"],"files_created":["src/login.test.ts"],"files_deleted":[],"lines_added":342,"lines_removed":18},
	"contracts":{"form_fields":{"status":"fulfilled","data":{"fields":["name","password"],"usage":"app.use(form())"}}},
	"tests":{"framework":"vitest","total":15,"passed":15,"failed":0,"skipped":0,"coverage_percent":94.2},"artifacts":{"html":"out/index.html"}`)

// TestReadingAResultAllocatesLittle bounds the allocations of a result, because one is read for
// every completed task.
//
// Rows.
func TestReadingAResultAllocatesLittle(t *testing.T) {
	o := slotOf(t, strings.ReplaceAll(benchResult, "\n", ""))
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { hub.ResultIn(o, "doc") }), 40.0)
	o = slotOf(t, `{"success":true}`)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { hub.ResultIn(o, "doc") }), 2.0)
}

func BenchmarkResult(b *testing.B) {
	for name, doc := range map[string]string{"structured": strings.ReplaceAll(benchResult, "\n", ""), "legacy": `{"success":true}`, "text": `"All tests pass."`} {
		o := slotOf(b, doc)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				hub.ResultIn(o, "doc")
			}
		})
	}
}

// TestArtifactsAreRead checks the members that an artifact of a result needs, and the limits.
func TestArtifactsAreRead(t *testing.T) {
	body, wrong := readAs(t, "complete-task", `{"taskId":"a","artifacts":[{"name":"n","type":"text/markdown","content":"é"},{"path":"p"},{"name":"r","ref":"https://x"}]}`)
	require.Empty(t, wrong)
	require.Equal(t, []hub.Artifact{
		{Name: "n", Type: "text/markdown", Size: 2, Content: "é", Pointer: "/payload/artifacts/0"},
		{Name: "p", Type: "text/plain", Path: "p", Pointer: "/payload/artifacts/1"},
		{Name: "r", Type: "text/plain", Ref: "https://x", Pointer: "/payload/artifacts/2"},
	}, body.(*CompleteTask).Artifacts)
	many := strings.TrimPrefix(strings.Repeat(`,{"name":"%d","content":""}`, hub.MaxArtifacts+1), ",")
	numbers := make([]any, hub.MaxArtifacts+1)
	for i := range numbers {
		numbers[i] = i
	}
	for list, want := range map[string]string{
		`7`:              "/payload/artifacts: artifacts must be a list",
		`["x"]`:          "/payload/artifacts/0: artifacts[0]: it must be an object",
		`[{"name":"x"}]`: "/payload/artifacts/0/content: artifacts[0].content is required, unless path or ref is set",
		`[{"path":""}]`:  "/payload/artifacts/0/path: artifacts[0].path must not be empty, nor must ref",
		`[{"ref":"x"}]`:  "/payload/artifacts/0/name: artifacts[0].name is missing",
		`[{"path":7}]`:   "/payload/artifacts/0/path: artifacts[0].path must be a string",
		`[{"name":"` + strings.Repeat("n", 1001) + `","content":""}]`: "/payload/artifacts/0/name: artifacts[0].name must be at most 1000 bytes long",
		`[{"name":"x","content":""},{"path":"x"}]`:                    `/payload/artifacts/1/name: artifacts[1].name is in the list twice: "x"`,
		"[" + fmt.Sprintf(many, numbers...) + "]":                     "/payload/artifacts: artifacts must have at most 100 items, not 101",
	} {
		_, wrong := readAs(t, "complete-task", `{"taskId":"a","artifacts":`+list+`}`)
		require.Equal(t, want, wrong, "%.80s", list)
	}
}
