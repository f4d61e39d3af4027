package stdio

import (
	"cmp"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// taskSpec returns a task spec with its required members and more.
func taskSpec(members string) string {
	return `{"$schema":"orchestratia/task-spec/v1","requirements":[{"description":"d","priority":"must"}]` + members + `}`
}

// specWith returns a task spec with contracts.
func specWith(contracts string) string {
	return taskSpec(`,"output_expectations":{"contracts":` + contracts + `}`)
}

// refusals maps each document schema to a function that returns why its reader refuses a
// document, or nil.
var refusals = map[string]func(o *object.Reader) *wire.Error{
	"task-spec":    func(o *object.Reader) *wire.Error { hub.SpecIn(o, "doc"); return o.Err() },
	"requirements": func(o *object.Reader) *wire.Error { hub.RequirementsIn(o, "doc"); return o.Err() },
	"capabilities": func(o *object.Reader) *wire.Error { hub.CapabilitiesIn(o, "doc"); return o.Err() },
	"task-result": func(o *object.Reader) *wire.Error {
		r := hub.ResultIn(o, "doc")
		switch {
		case r == nil:
			return cmp.Or(o.Err(), object.Invalid("/doc", "no result"))
		case !r.Structured:
			return object.Invalid("/doc", "nobody looks into it")
		}
		return r.Breach
	},
	"dependency": func(o *object.Reader) *wire.Error {
		item := o.Find("doc")
		var list object.Reader
		if err := list.Read(append(append([]byte(`{"list":[`), item...), "]}"...), 64, ""); err != nil {
			return err
		}
		hub.DependenciesIn(&list, "list")
		return list.Err()
	},
}

// requireVerdict requires that a schema and its reader agree on a document.
func requireVerdict(t *testing.T, name string, schema *jsonschema.Schema, doc any) bool {
	t.Helper()
	text := string(encoded(t, doc))
	if doc == nil {
		return false // null is not a document
	}
	var o object.Reader
	require.Nil(t, o.Read([]byte(`{"doc":`+text+`}`), 64, "/payload"), text)
	why := refusals[name](&o)
	if err := schema.Validate(doc); why == nil {
		require.NoError(t, err, "%s: the reader takes it\n%s", name, text)
	} else {
		require.Error(t, err, "%s: the schema takes it, the reader says: %s\n%s", name, why.Message, text)
	}
	return why == nil
}

// TestSchemasOfDocumentsAndReadersAgree checks that schemas and readers agree on every single
// change of the examples. A schema does not describe documents of other versions.
//
// Rows.
func TestSchemasOfDocumentsAndReadersAgree(t *testing.T) {
	compiled := validators(t)
	for name := range refusals {
		good, bad := 0, 0
		for _, example := range schemaOf(t, name)["examples"].([]any) {
			require.True(t, requireVerdict(t, name, compiled[name], example), "%s: an example is wrong", name)
			for changed := range changes(example) {
				if requireVerdict(t, name, compiled[name], changed) {
					good++
				} else {
					bad++
				}
			}
		}
		require.Greater(t, good, 10, name)
		require.Greater(t, bad, 10, name)
	}
}

// TestSchemasOfDocumentsAndReadersAgreeOnTheRest checks documents that need more than one change
// to an example.
//
// Rows.
func TestSchemasOfDocumentsAndReadersAgreeOnTheRest(t *testing.T) {
	result := func(contracts string) string {
		return `{"$schema":"orchestratia/task-result/v1","summary":"s","contracts":` + contracts + `}`
	}
	compiled := validators(t)
	for _, test := range []struct {
		name, doc string
		want      bool
	}{
		{"task-spec", specWith(`{"a-b":{"description":"d"}}`), false},
		{"task-spec", specWith(`{"a-b":null}`), false},
		{"task-spec", specWith(`{"":null}`), false},
		{"task-spec", specWith(`{"":{"description":"d"}}`), false},
		{"task-spec", specWith("{\"a\\n\":{\"description\":\"d\"}}"), false},
		{"task-spec", specWith(`{"_":{"description":"d"}}`), true},
		{"task-spec", taskSpec(`,"input_context":{"references":[{"type":"url","id":"x"}]}`), false},
		{"task-spec", taskSpec(`,"input_context":{"references":[{"type":"file","url":"x"}]}`), false},
		{"task-spec", taskSpec(`,"input_context":{"references":[{"type":"file","id":"x","url":null}]}`), true},
		{"task-result", result(`{"a-b":{"status":"partial"}}`), true},
		{"task-result", result(`{"a":{"status":"fulfilled"}}`), true},
		{"task-result", result(`{"a":{"status":"fulfilled","data":[1]}}`), true},
		{"task-result", result(`{"a":{"status":"skipped"}}`), false},
		{"task-result", result(`{"a":{"status":"skipped","data":null}}`), false},
		{"task-result", result(`{"a":{"status":"skipped","data":"why"}}`), false},
		{"task-result", result(`{"a":{"status":"skipped","data":{"reason":" "}}}`), false},
		{"task-result", result(`{"a":{"status":"skipped","data":{"reason":"why"}}}`), true},
		{"task-result", result(`{"a":{"data":{}}}`), false},
		{"task-result", result(`{"a":null}`), false},
		{"capabilities", `{"max_concurrent_tasks":0}`, true},
		{"capabilities", `{"max_concurrent_tasks":-1}`, false},
		{"capabilities", `{"repos":{"a/b":{"path":1}}}`, false},
		{"capabilities", `{"repos":{"":{}}}`, true},
		{"dependency", `{"depends_on_task_id":"a","dependency_type":"input"}`, false},
		{"dependency", `{"depends_on_task_id":"a","dependency_type":"input","contract_key":"any key"}`, false},
		{"dependency", `{"depends_on_task_id":"a","dependency_type":"related","contract_key":""}`, true},
		{"dependency", `{"depends_on_task_id":"a","dependency_type":"soft"}`, false},
		{"dependency", `" "`, false},
		{"dependency", `7`, false},
	} {
		got := requireVerdict(t, test.name, compiled[test.name], decoded(t, []byte(test.doc)))
		require.Equal(t, test.want, got, "%s %s", test.name, test.doc)
	}
}

// TestSchemasOfDocumentsHaveTheWordsThatThereAre checks that the enumerations of schemas match the
// readers.
//
// Rows.
func TestSchemasOfDocumentsHaveTheWordsThatThereAre(t *testing.T) {
	spec := schemaOf(t, "task-spec")
	require.Equal(t, words(hub.SpecPriorities), at(spec, "properties", "requirements", "items", "properties", "priority", "enum"))
	require.Equal(t, words(hub.SpecReferences), at(spec, "properties", "input_context", "properties", "references", "items", "properties", "type", "enum"))
	require.Equal(t, append(words(hub.SpecTesting), nil), at(spec, "properties", "constraints", "properties", "testing", "enum"))
	require.Equal(t, words(hub.ContractStatuses), at(schemaOf(t, "task-result"), "properties", "contracts", "additionalProperties", "properties", "status", "enum"))
	require.Equal(t, append(words(hub.DependencyTypes), nil), at(schemaOf(t, "dependency"), "properties", "dependency_type", "enum"))
}
