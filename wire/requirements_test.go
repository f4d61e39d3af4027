package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// Rows, K-15.
func TestRequirementsAreRead(t *testing.T) {
	for _, test := range []struct {
		doc  string
		want hub.Requirements
	}{
		{`{}`, hub.Requirements{}},
		{`{"$schema":null,"repo":null,"languages":null,"later":{"a":1}}`, hub.Requirements{}},
		{`{"$schema":"orchestratia/requirements/v1","repo":""}`, hub.Requirements{}},
		{
			`{"repo":"shop","languages":["go","sql","go"],"tools":["make"],"environments":["linux"],"tags":["a","B"],"prefer_server":"coder"}`,
			hub.Requirements{
				Repo: "shop", Languages: []string{"go", "sql"}, Environments: []string{"linux"},
				Tools: []string{"make"}, Tags: []string{"a", "B"}, Prefer: "coder",
			},
		},
	} {
		o := slotOf(t, test.doc)
		got := hub.RequirementsIn(o, "doc")
		require.Empty(t, complaint(o.Err()), test.doc)
		test.want.Document = Raw(test.doc)
		require.Equal(t, &test.want, got, test.doc)
		require.Equal(t, test.want.Repo == "", got.Empty())
	}
	var none *hub.Requirements
	require.True(t, none.Empty())
}

// Rows, K-23.
func TestRequirementsAreRefused(t *testing.T) {
	const p = "invalid /payload/doc"
	for _, test := range []struct{ doc, want string }{
		{`["go"]`, p + ": doc must be an object"},
		{`{"$schema":1}`, p + "/$schema: doc.$schema must be a string"},
		{`{"$schema":"orchestratia/task-spec/v1"}`, p + `/$schema: doc.$schema must be orchestratia/requirements/v1, not "orchestratia/task-spec/v1"`},
		{`{"repo":[]}`, p + "/repo: doc.repo must be a string"},
		{`{"languages":"rust"}`, p + "/languages: doc.languages must be a list"},
		{`{"languages":["rust",null]}`, p + "/languages/1: doc.languages[1] must be a string"},
		{`{"tools":{}}`, p + "/tools: doc.tools must be a list"},
		{`{"environments":[1]}`, p + "/environments/0: doc.environments[0] must be a string"},
		{`{"tags":[" "]}`, p + "/tags/0: doc.tags[0] must not be empty"},
		{`{"prefer_server":7}`, p + "/prefer_server: doc.prefer_server must be a string"},
		{`{"repo":"a","repo":"b"}`, p + "/repo: doc.repo stands twice"},
	} {
		o := slotOf(t, test.doc)
		hub.RequirementsIn(o, "doc")
		require.Equal(t, test.want, complaint(o.Err()), test.doc)
	}
}

// TestRequirementsOfOtherVersions checks that members of another form are ignored.
//
// Rows: A-07, K-17.
func TestRequirementsOfOtherVersions(t *testing.T) {
	o := slotOf(t, `{"$schema":"orchestratia/requirements/v3","repo":["a"],"languages":["go",7],"tools":"make","tags":["x"]}`)
	r := hub.RequirementsIn(o, "doc")
	require.Nil(t, o.Err())
	require.Empty(t, r.Repo)
	require.Equal(t, []string{"go"}, r.Languages)
	require.Empty(t, r.Tools)
	require.Equal(t, []string{"x"}, r.Tags)
	require.Equal(t, events.SchemaVersionUnknown, r.Oddities[0].Kind)
}
