package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// Rows.
func TestDependenciesAreRead(t *testing.T) {
	useless := func(i string) []hub.Oddity {
		return []hub.Oddity{{
			Kind: events.DocumentOdd, Pointer: "/payload/doc/" + i + "/contract_key", Text: "a contract_key has no effect on a dependency that is not an input",
		}}
	}
	for _, test := range []struct {
		doc  string
		want []hub.Dependency
	}{
		{`[]`, []hub.Dependency{}},
		{`["a","b","a"]`, []hub.Dependency{{On: "a", Type: hub.DependsBlocks}, {On: "b", Type: hub.DependsBlocks}}},
		{`[{"depends_on_task_id":"a"},"a",{"depends_on_task_id":"a","dependency_type":"blocks"}]`, []hub.Dependency{{On: "a", Type: hub.DependsBlocks}}},
		{`[{"depends_on_task_id":"a","dependency_type":null,"contract_key":null,"later":1}]`, []hub.Dependency{{On: "a", Type: hub.DependsBlocks}}},
		{`[{"depends_on_task_id":"a","dependency_type":"related"},"a"]`, []hub.Dependency{{On: "a", Type: hub.DependsRelated}, {On: "a", Type: hub.DependsBlocks}}},
		{
			`[{"depends_on_task_id":"a","dependency_type":"input","contract_key":"x"},{"depends_on_task_id":"a","dependency_type":"input","contract_key":"y_z"},{"contract_key":"\u0078","dependency_type":"input","depends_on_task_id":"a"}]`,
			[]hub.Dependency{{On: "a", Type: hub.DependsInput, Contract: "x"}, {On: "a", Type: hub.DependsInput, Contract: "y_z"}},
		},
		{
			`["b",{"depends_on_task_id":"a","contract_key":"x"},{"depends_on_task_id":"a","dependency_type":"related","contract_key":""},{"depends_on_task_id":"b","contract_key":"k"}]`,
			[]hub.Dependency{
				{On: "b", Type: hub.DependsBlocks, Oddities: useless("3")},
				{On: "a", Type: hub.DependsBlocks, Oddities: useless("1")},
				{On: "a", Type: hub.DependsRelated, Oddities: useless("2")},
			},
		},
	} {
		o := slotOf(t, test.doc)
		got := hub.DependenciesIn(o, "doc")
		require.Empty(t, complaint(o.Err()), test.doc)
		require.Equal(t, test.want, got, test.doc)
	}
}

// Rows, K-03, K-23.
func TestDependenciesAreRefused(t *testing.T) {
	const p = "invalid /payload/doc"
	for _, test := range []struct{ doc, want string }{
		{`"a"`, p + ": doc must be a list"},
		{`{}`, p + ": doc must be a list"},
		{`["a",7]`, p + "/1: doc[1] must be an id or an object"},
		{`[null]`, p + "/0: doc[0] must be an id or an object"},
		{`[["a"]]`, p + "/0: doc[0] must be an id or an object"},
		{`[" "]`, p + "/0: doc[0] must not be empty"},
		{`[{}]`, p + "/0/depends_on_task_id: doc[0].depends_on_task_id is missing"},
		{`["a",{"depends_on_task_id":""}]`, p + "/1/depends_on_task_id: doc[1].depends_on_task_id must not be empty"},
		{`[{"depends_on_task_id":7}]`, p + "/0/depends_on_task_id: doc[0].depends_on_task_id must be a string"},
		{`[{"depends_on_task_id":"a","depends_on_task_id":"b"}]`, p + "/0/depends_on_task_id: doc[0].depends_on_task_id stands twice"},
		{`[{"depends_on_task_id":"a","dependency_type":"soft"}]`, p + `/0/dependency_type: doc[0].dependency_type must be one of blocks, input or related, not "soft"`},
		{`[{"depends_on_task_id":"a","dependency_type":""}]`, p + `/0/dependency_type: doc[0].dependency_type must be one of blocks, input or related, not ""`},
		{`[{"depends_on_task_id":"a","dependency_type":"input"}]`, p + "/0/contract_key: doc[0].contract_key is missing"},
		{`[{"depends_on_task_id":"a","dependency_type":"input","contract_key":"\n"}]`, p + "/0/contract_key: doc[0].contract_key must not be empty"},
		{`[{"depends_on_task_id":"a","dependency_type":"input","contract_key":["x"]}]`, p + "/0/contract_key: doc[0].contract_key must be a string"},
		{`[{"depends_on_task_id":"a","contract_key":7}]`, p + "/0/contract_key: doc[0].contract_key must be a string"},
	} {
		o := slotOf(t, test.doc)
		hub.DependenciesIn(o, "doc")
		require.Equal(t, test.want, complaint(o.Err()), test.doc)
	}
}

// Rows.
func TestDependencyIDs(t *testing.T) {
	o := slotOf(t, `["a","b","a"]`)
	require.Equal(t, []hub.Dependency{{On: "a", Type: hub.DependsBlocks}, {On: "b", Type: hub.DependsBlocks}}, hub.DependencyIDsIn(o, "doc"))
	require.Nil(t, o.Err())
	o = slotOf(t, `[]`)
	require.Equal(t, []hub.Dependency{}, hub.DependencyIDsIn(o, "doc"))
	for doc, want := range map[string]string{
		`"a"`:                            "invalid /payload/doc: doc must be a list",
		`["a",{"depends_on_task_id":1}]`: "invalid /payload/doc/1: doc[1] must be a string",
		`[""]`:                           "invalid /payload/doc/0: doc[0] must not be empty",
	} {
		o := slotOf(t, doc)
		hub.DependencyIDsIn(o, "doc")
		require.Equal(t, want, complaint(o.Err()))
	}
}
