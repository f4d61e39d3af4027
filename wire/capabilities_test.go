package wire

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/hub"
)

// Rows.
func TestCapabilitiesAreRead(t *testing.T) {
	for _, test := range []struct {
		doc  string
		want hub.Capabilities
	}{
		{`{}`, hub.Capabilities{Capacity: 1}},
		{`{"repos":null,"max_concurrent_tasks":null,"later":[]}`, hub.Capabilities{Capacity: 1}},
		{`{"max_concurrent_tasks":0}`, hub.Capabilities{Capacity: 0}},
		{`{"max_concurrent_tasks":1e1}`, hub.Capabilities{Capacity: 10}},
		{`{"max_concurrent_tasks":9007199254740991}`, hub.Capabilities{Capacity: math.MaxInt32}},
		{
			`{"$schema":"orchestratia/capabilities/v1","languages":["go"],"tools":["git","git"],"environments":["plan9"],"tags":["a"],"max_concurrent_tasks":2}`,
			hub.Capabilities{Languages: []string{"go"}, Tools: []string{"git"}, Environments: []string{"plan9"}, Tags: []string{"a"}, Capacity: 2},
		},
		{
			`{"repos":{"z":{},"a/b ~":{"path":"/srv","languages":["go"],"tools":["make"],"later":1},"gone":null,"":{"path":null}}}`,
			hub.Capabilities{
				Capacity: 1,
				Repos:    []hub.Repo{{}, {Name: "a/b ~", Path: "/srv", Languages: []string{"go"}, Tools: []string{"make"}}, {Name: "z"}},
			},
		},
	} {
		o := slotOf(t, test.doc)
		got := hub.CapabilitiesIn(o, "doc")
		require.Empty(t, complaint(o.Err()), test.doc)
		test.want.Document = Raw(test.doc)
		require.Equal(t, &test.want, got, test.doc)
	}
}

// Rows, K-23.
func TestCapabilitiesAreRefused(t *testing.T) {
	const p = "invalid /payload/doc"
	for _, test := range []struct{ doc, want string }{
		{`"all"`, p + ": doc must be an object"},
		{`{"$schema":"orchestratia/capability/v1"}`, p + `/$schema: doc.$schema must be orchestratia/capabilities/v1, not "orchestratia/capability/v1"`},
		{`{"repos":[]}`, p + "/repos: doc.repos must be an object"},
		{`{"repos":{"a/b":"x"}}`, p + "/repos/a~1b: doc.repos.a/b must be an object"},
		{`{"repos":{"":[]}}`, p + "/repos/: doc.repos. must be an object"},
		{`{"repos":{"a":{"path":1}}}`, p + "/repos/a/path: doc.repos.a.path must be a string"},
		{`{"repos":{"a":{"languages":"go"}}}`, p + "/repos/a/languages: doc.repos.a.languages must be a list"},
		{`{"repos":{"a/b":{"tools":[1]}}}`, p + "/repos/a~1b/tools/0: doc.repos.a/b.tools[0] must be a string"},
		{`{"repos":{"a":{},"a":{}}}`, p + "/repos/a: doc.repos.a stands twice"},
		{`{"languages":"go"}`, p + "/languages: doc.languages must be a list"},
		{`{"tools":7}`, p + "/tools: doc.tools must be a list"},
		{`{"environments":{}}`, p + "/environments: doc.environments must be a list"},
		{`{"tags":[[]]}`, p + "/tags/0: doc.tags[0] must be a string"},
		{`{"max_concurrent_tasks":-1}`, p + "/max_concurrent_tasks: doc.max_concurrent_tasks must be a whole number from 0 to 9007199254740991"},
		{`{"max_concurrent_tasks":1.5}`, p + "/max_concurrent_tasks: doc.max_concurrent_tasks must be a whole number from 0 to 9007199254740991"},
		{`{"max_concurrent_tasks":"2"}`, p + "/max_concurrent_tasks: doc.max_concurrent_tasks must be a number"},
		{`{"max_concurrent_tasks":2,"max_concurrent_tasks":3}`, p + "/max_concurrent_tasks: doc.max_concurrent_tasks stands twice"},
	} {
		o := slotOf(t, test.doc)
		hub.CapabilitiesIn(o, "doc")
		require.Equal(t, test.want, complaint(o.Err()), test.doc)
	}
}

// Rows, K-17.
func TestCapabilitiesOfOtherVersions(t *testing.T) {
	o := slotOf(t, `{"$schema":"orchestratia/capabilities/v9","repos":{"a":{"path":"/a"},"b":{"path":[]},"c":7},"languages":{},"tags":["x"],"max_concurrent_tasks":{"go":2}}`)
	c := hub.CapabilitiesIn(o, "doc")
	require.Nil(t, o.Err())
	require.Equal(t, []hub.Repo{{Name: "a", Path: "/a"}}, c.Repos)
	require.Empty(t, c.Languages)
	require.Equal(t, []string{"x"}, c.Tags)
	require.Equal(t, 1, c.Capacity)
	require.Len(t, c.Oddities, 1)
}

// TestManyReposAreRead checks that many repositories are read quickly: names must not be
// searched one by one.
//
// Rows: A-108.
func TestManyReposAreRead(t *testing.T) {
	const many = 50_000
	doc := []byte(`{"repos":{"r0":{}`)
	for i := 1; i < many; i++ {
		doc = fmt.Appendf(doc, `,"r%d":{}`, i)
	}
	o := slotOf(t, string(append(doc, "}}"...)))
	require.Len(t, hub.CapabilitiesIn(o, "doc").Repos, many)
	require.Nil(t, o.Err())
}
