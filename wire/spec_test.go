package wire

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// slotOf returns a reader of a payload that holds a document.
func slotOf(t testing.TB, doc string) *object.Reader {
	t.Helper()
	var o object.Reader
	err := o.Read([]byte(`{"doc":`+doc+`}`), 64, "/payload")
	require.Nil(t, err, "%v: %s", err, doc)
	return &o
}

// complaint returns where an error is, and why.
func complaint(err *Error) string {
	if err == nil {
		return ""
	}
	pointer, _ := err.Details["pointer"].(string)
	return string(err.Code) + " " + pointer + ": " + err.Message
}

// specOf returns a task spec with its required members and more.
func specOf(members string) string {
	return `{"$schema":"orchestratia/task-spec/v1","requirements":[{"description":"d","priority":"must"}]` + members + `}`
}

// promising returns a task spec with contracts.
func promising(contracts string) string {
	return specOf(`,"output_expectations":{"contracts":` + contracts + `}`)
}

// Rows, K-15, K-23.
func TestSpecsAreRead(t *testing.T) {
	for _, test := range []struct {
		doc  string
		want hub.Spec
	}{
		{specOf(``), hub.Spec{}},
		{specOf(`,"input_context":null,"constraints":null,"output_expectations":null`), hub.Spec{}},
		{specOf(`,"input_context":{},"constraints":{},"output_expectations":{}`), hub.Spec{}},
		{specOf(`,"input_context":{"references":[]},"output_expectations":{"contracts":{},"artifacts":[]}`), hub.Spec{}},
		{specOf(`,"constraints":{"max_files_changed":15,"testing":"none","no_breaking_changes":false,"custom":{"n":1e999}}`), hub.Spec{MaxFiles: 15}},
		{specOf(`,"constraints":{"max_files_changed":2e1}`), hub.Spec{MaxFiles: 20}},
		{
			promising(`{"b":{"description":"d"},"A_1":{"description":"d","format":"any thing","required":true},"0":{"description":"d","required":false}}`),
			hub.Spec{Promises: []hub.Promise{{Key: "0"}, {Key: "A_1", Required: true}, {Key: "b"}}},
		},
		{promising(`{"\u0061":{"description":"d"}}`), hub.Spec{Promises: []hub.Promise{{Key: "a"}}}},
		{`{"\u0024schema":"orchestratia\/task-spec\/v1","requirements":[{"description":"d","priority":"could","category":null,"later":[]}]}`, hub.Spec{}},
	} {
		o := slotOf(t, test.doc)
		got := hub.SpecIn(o, "doc")
		require.Empty(t, complaint(o.Err()), test.doc)
		test.want.Document = Raw(test.doc)
		require.Equal(t, &test.want, got, test.doc)
	}
}

// Rows, K-23, T-42.
func TestSpecsAreRefused(t *testing.T) {
	const p = "invalid /payload/doc"
	context := func(reference string) string { return specOf(`,"input_context":{"references":[` + reference + `]}`) }
	for _, test := range []struct{ doc, want string }{
		{`[]`, p + ": doc must be an object"},
		{`"text"`, p + ": doc must be an object"},
		{`{}`, p + "/$schema: doc.$schema is missing"},
		{`{"$schema":null}`, p + "/$schema: doc.$schema is missing"},
		{`{"$schema":1}`, p + "/$schema: doc.$schema must be a string"},
		{`{"$schema":"orchestratia/task-spec/v1","$schema":"orchestratia/task-spec/v2"}`, p + "/$schema: doc.$schema stands twice"},
		{`{"$schema":"orchestratia/task-spec/v1"}`, p + "/requirements: doc.requirements is missing"},
		{`{"$schema":"orchestratia/task-spec/v1","requirements":null}`, p + "/requirements: doc.requirements is missing"},
		{`{"$schema":"orchestratia/task-spec/v1","requirements":{}}`, p + "/requirements: doc.requirements must be a list"},
		{`{"$schema":"orchestratia/task-spec/v1","requirements":[]}`, p + "/requirements: doc.requirements must have at least one item"},
		{`{"$schema":"orchestratia/task-spec/v1","requirements":["d"]}`, p + "/requirements/0: doc.requirements[0]: it must be an object"},
		{`{"$schema":"orchestratia/task-spec/v1","requirements":[{"priority":"must"}]}`, p + "/requirements/0/description: doc.requirements[0].description is missing"},
		{`{"$schema":"orchestratia/task-spec/v1","requirements":[{"description":" \n","priority":"must"}]}`, p + "/requirements/0/description: doc.requirements[0].description must not be empty"},
		{`{"$schema":"orchestratia/task-spec/v1","requirements":[{"description":7,"priority":"must"}]}`, p + "/requirements/0/description: doc.requirements[0].description must be a string"},
		{`{"$schema":"orchestratia/task-spec/v1","requirements":[{"description":"d"}]}`, p + "/requirements/0/priority: doc.requirements[0].priority is missing"},
		{`{"$schema":"orchestratia/task-spec/v1","requirements":[{"description":"d","priority":"must"},{"description":"d","priority":"wont"}]}`, p + `/requirements/1/priority: doc.requirements[1].priority must be one of must, should or could, not "wont"`},
		{`{"$schema":"orchestratia/task-spec/v1","requirements":[{"description":"d","priority":"MUST"}]}`, p + `/requirements/0/priority: doc.requirements[0].priority must be one of must, should or could, not "MUST"`},
		{`{"$schema":"orchestratia/task-spec/v1","requirements":[{"description":"d","priority":"must","category":1}]}`, p + "/requirements/0/category: doc.requirements[0].category must be a string"},
		{specOf(`,"requirements":[]`), p + "/requirements: doc.requirements stands twice"},
		{specOf(`,"input_context":[]`), p + "/input_context: doc.input_context must be an object"},
		{specOf(`,"input_context":{"references":{}}`), p + "/input_context/references: doc.input_context.references must be a list"},
		{context(`{"id":"x"}`), p + "/input_context/references/0/type: doc.input_context.references[0].type is missing"},
		{context(`{"type":"issue","id":"x"}`), p + `/input_context/references/0/type: doc.input_context.references[0].type must be one of task, file or url, not "issue"`},
		{context(`{"type":"task"}`), p + "/input_context/references/0/id: doc.input_context.references[0].id is missing"},
		{context(`{"type":"file","id":""}`), p + "/input_context/references/0/id: doc.input_context.references[0].id must not be empty"},
		{context(`{"type":"file","id":"f"},{"type":"url","id":"x"}`), p + "/input_context/references/1/url: doc.input_context.references[1].url is missing"},
		{context(`{"type":"url","url":[]}`), p + "/input_context/references/0/url: doc.input_context.references[0].url must be a string"},
		{context(`{"type":"url","url":"u","id":1}`), p + "/input_context/references/0/id: doc.input_context.references[0].id must be a string"},
		{context(`{"type":"file","id":"f","description":{}}`), p + "/input_context/references/0/description: doc.input_context.references[0].description must be a string"},
		{specOf(`,"constraints":"none"`), p + "/constraints: doc.constraints must be an object"},
		{specOf(`,"constraints":{"languages":"go"}`), p + "/constraints/languages: doc.constraints.languages must be a list"},
		{specOf(`,"constraints":{"languages":["go",1]}`), p + "/constraints/languages/1: doc.constraints.languages[1] must be a string"},
		{specOf(`,"constraints":{"frameworks":[""]}`), p + "/constraints/frameworks/0: doc.constraints.frameworks[0] must not be empty"},
		{specOf(`,"constraints":{"testing":"maybe"}`), p + `/constraints/testing: doc.constraints.testing must be one of required, recommended or none, not "maybe"`},
		{specOf(`,"constraints":{"no_breaking_changes":"yes"}`), p + "/constraints/no_breaking_changes: doc.constraints.no_breaking_changes must be true or false"},
		{specOf(`,"constraints":{"max_files_changed":3.5}`), p + "/constraints/max_files_changed: doc.constraints.max_files_changed must be a whole number from 0 to 9007199254740991"},
		{specOf(`,"constraints":{"max_files_changed":-1}`), p + "/constraints/max_files_changed: doc.constraints.max_files_changed must be a whole number from 0 to 9007199254740991"},
		{specOf(`,"constraints":{"custom":[]}`), p + "/constraints/custom: doc.constraints.custom must be an object"},
		{specOf(`,"output_expectations":[]`), p + "/output_expectations: doc.output_expectations must be an object"},
		{promising(`[]`), p + "/output_expectations/contracts: doc.output_expectations.contracts must be an object"},
		{promising(`{"auth-mw":{"description":"d"}}`), p + `/output_expectations/contracts/auth-mw: doc.output_expectations.contracts: the key "auth-mw" must have letters from a to z, digits and underscores alone, and one of them at least`},
		{promising(`{"":{"description":"d"}}`), p + `/output_expectations/contracts/: doc.output_expectations.contracts: the key "" must have letters from a to z, digits and underscores alone, and one of them at least`},
		{promising(`{"a/b~c":{"description":"d"}}`), p + `/output_expectations/contracts/a~1b~0c: doc.output_expectations.contracts: the key "a/b~c" must have letters from a to z, digits and underscores alone, and one of them at least`},
		{promising(`{"\u00e9":{"description":"d"}}`), p + `/output_expectations/contracts/é: doc.output_expectations.contracts: the key "é" must have letters from a to z, digits and underscores alone, and one of them at least`},
		{promising(`{"k":"text"}`), p + "/output_expectations/contracts/k: doc.output_expectations.contracts.k must be an object"},
		{promising(`{"k":{}}`), p + "/output_expectations/contracts/k/description: doc.output_expectations.contracts.k.description is missing"},
		{promising(`{"k":{"description":"d","format":1}}`), p + "/output_expectations/contracts/k/format: doc.output_expectations.contracts.k.format must be a string"},
		{promising(`{"k":{"description":"d","required":"yes"}}`), p + "/output_expectations/contracts/k/required: doc.output_expectations.contracts.k.required must be true or false"},
		{promising(`{"k":{"description":"d"},"\u006b":{"description":"e"}}`), p + "/output_expectations/contracts/k: doc.output_expectations.contracts.k stands twice"},
		{promising(`{"k":null,"k":null}`), p + "/output_expectations/contracts/k: doc.output_expectations.contracts.k stands twice"},
		{specOf(`,"output_expectations":{"artifacts":{}}`), p + "/output_expectations/artifacts: doc.output_expectations.artifacts must be a list"},
	} {
		o := slotOf(t, test.doc)
		hub.SpecIn(o, "doc")
		require.Equal(t, test.want, complaint(o.Err()), test.doc)
	}
}

// TestSchemasAreOfTheirFamily checks that every kind of document has the same rule for $schema.
//
// Rows, K-17, T-42.
func TestSchemasAreOfTheirFamily(t *testing.T) {
	readers := map[string]func(o *object.Reader) []hub.Oddity{
		hub.SchemaSpec:         func(o *object.Reader) []hub.Oddity { return hub.SpecIn(o, "doc").Oddities },
		hub.SchemaRequirements: func(o *object.Reader) []hub.Oddity { return hub.RequirementsIn(o, "doc").Oddities },
		hub.SchemaCapabilities: func(o *object.Reader) []hub.Oddity { return hub.CapabilitiesIn(o, "doc").Oddities },
		hub.SchemaResult: func(o *object.Reader) []hub.Oddity {
			r := hub.ResultIn(o, "doc")
			o.Fail(r.Breach)
			require.True(t, r.Structured)
			return r.Oddities
		},
	}
	for family, read := range readers {
		wrong := []string{
			"", "foo/v1", "v1", family,
			" " + family + "v1", "x" + family + "v1", strings.TrimSuffix(family, "/"), strings.TrimSuffix(family, "/") + "x/v1", strings.ToUpper(family) + "V1",
		}
		for other := range readers {
			if other != family {
				wrong = append(wrong, other+"v1")
			}
		}
		for _, name := range wrong {
			o := slotOf(t, `{"$schema":`+strconv.Quote(name)+`}`)
			require.Empty(t, read(o), name)
			require.Equal(t, `invalid /payload/doc/$schema: doc.$schema must be `+family+`v1, not `+strconv.Quote(name), complaint(o.Err()))
			require.Equal(t, `write "$schema": "`+family+`v1"`, o.Err().Hint)
		}
		o := slotOf(t, `{"$schema":["`+family+`v1"]}`)
		require.Empty(t, read(o))
		require.Equal(t, `invalid /payload/doc/$schema: doc.$schema must be a string`, complaint(o.Err()))
		for _, version := range []string{"v2", "v0", "v01", "v12345678901234567890", "v", "1", "V1", "v1.0", "v-1", "v1 ", "vx", "v2-draft", "v1/extra"} {
			o := slotOf(t, `{"$schema":"`+family+version+`","requirements":7,"summary":[],"languages":{},"contracts":[],"output_expectations":""}`)
			require.Equal(t, []hub.Oddity{{
				Kind: events.SchemaVersionUnknown, Pointer: "/payload/doc/$schema", Text: family + version + " is unknown: it is read like v1",
			}}, read(o))
			require.Empty(t, complaint(o.Err()), family+version)
		}
	}
}

// Rows: A-07, K-17, T-42.
func TestSpecsOfOtherVersionsAreReadAsFarAsTheyGo(t *testing.T) {
	doc := `{"$schema":"orchestratia/task-spec/v2","requirements":"many","input_context":{"references":[{"type":"task","id":"x"}]},
		"constraints":{"max_files_changed":3,"testing":"maybe"},
		"output_expectations":{"contracts":{"a":{"description":"d","required":true},"b-c":{"description":"d"},"d":[],"e":{"required":true}}}}`
	o := slotOf(t, doc)
	s := hub.SpecIn(o, "doc")
	require.Nil(t, o.Err())
	require.Equal(t, []hub.Promise{{Key: "a", Required: true}}, s.Promises)
	require.EqualValues(t, 3, s.MaxFiles)
	require.Len(t, s.Oddities, 1)
}

// Rows: A-16.
func TestReferencesToTasksShouldBeUUIDs(t *testing.T) {
	for id, odd := range map[string]bool{
		"3f0c7a52-6c1b-4d0e-9a4f-8b1d2c3e4f50": false,
		"3F0C7A52-6C1B-4D0E-9A4F-8B1D2C3E4F50": false,
		"00000000-0000-0000-0000-000000000000": false,
		"task-7":                               true,
		"3f0c7a526c1b4d0e9a4f8b1d2c3e4f50":     true,
		"3f0c7a52-6c1b-4d0e-9a4f-8b1d2c3e4f5g": true,
		"3f0c7a52-6c1b-4d0e-9a4f_8b1d2c3e4f50": true,
		"{f0c7a52-6c1b-4d0e-9a4f-8b1d2c3e4f5}": true,
	} {
		o := slotOf(t, specOf(`,"input_context":{"references":[{"type":"file","id":"f"},{"type":"task","id":"`+id+`"}]}`))
		s := hub.SpecIn(o, "doc")
		require.Nil(t, o.Err())
		if !odd {
			require.Empty(t, s.Oddities, id)
			continue
		}
		require.Equal(t, []hub.Oddity{{
			Kind: events.DocumentOdd, Pointer: "/payload/doc/input_context/references/1/id", Text: `"` + id + `" is not a UUID, which a task id is`,
		}}, s.Oddities)
	}
	reference := `{"type":"task","id":"x"},`
	o := slotOf(t, specOf(`,"input_context":{"references":[`+strings.Repeat(reference, 99)+`{"type":"file","id":"f"}]}`))
	require.Len(t, hub.SpecIn(o, "doc").Oddities, object.MaxNotes)
}

// Rows, T-48.
func TestDocumentsStayAsTheyCame(t *testing.T) {
	doc := specOf(`,"constraints":{"custom":{"node":">=18","html":"<a&b>","big":12345678901234567890,"n":1.0e+02,"e":"\u00e9\/"}},"later":[1, 2,{"a":1,"a":2}]`)
	o := slotOf(t, doc)
	require.Equal(t, doc, string(hub.SpecIn(o, "doc").Document))

	o = slotOf(t, "{\n \"languages\" : [\"a\\n\"],\r\n\t\"n\": 1.50\n}")
	require.Equal(t, `{"languages":["a\n"],"n":1.50}`, string(hub.RequirementsIn(o, "doc").Document))

	line := []byte(`{"doc":{"repos":{"shop":{"path":"/srv"}}}}`)
	o = new(object.Reader)
	require.Nil(t, o.Read(line, 64, ""))
	c := hub.CapabilitiesIn(o, "doc")
	clear(line)
	require.Equal(t, `{"repos":{"shop":{"path":"/srv"}}}`, string(c.Document), "it outlives its line")
	require.Equal(t, []hub.Repo{{Name: "shop", Path: "/srv"}}, c.Repos)
}

// Rows.
func TestDocumentsCanBeMissing(t *testing.T) {
	for _, key := range []string{"doc", "other"} {
		o := slotOf(t, `null`)
		require.Nil(t, hub.SpecIn(o, key))
		require.Nil(t, hub.RequirementsIn(o, key))
		require.Nil(t, hub.CapabilitiesIn(o, key))
		require.Nil(t, hub.ResultIn(o, key))
		require.Nil(t, hub.DependenciesIn(o, key))
		require.Nil(t, hub.DependencyIDsIn(o, key))
		require.Nil(t, o.Err())
	}
}

// FuzzDocuments compares the kept document with the input: the same value, digit for digit, on
// one line.
//
// Rows: A-03, T-48.
func FuzzDocuments(f *testing.F) {
	f.Add([]byte(promising(`{"k":{"description":"d","required":true}}`)))
	f.Add([]byte(`{"$schema":"orchestratia/task-spec/v2","output_expectations":{"contracts":{"a":1,"a":{}}}}`))
	f.Add([]byte("{\"$schema\":\"orchestratia/task-result/v1\",\n\"summary\":\"s\",\"contracts\":{\"k\":{\"status\":\"fulfilled\",\"data\":{\"n\":1.50e400}}}}"))
	f.Add([]byte(`{"$schema":"orchestratia/task-result/v2","contracts":{"a/b~":{"status":"skipped","data":{"reason":"r"}},"c":{"status":"partial"}}}`))
	f.Add([]byte(`{"repos":{"shop":{"path":"\u00e9","languages":["go"]}},"max_concurrent_tasks":0.0,"tags":["a","a"]}`))
	f.Add([]byte(`{"depends_on_task_id":"a","dependency_type":"input","contract_key":"k","repo":"r","languages":["go"]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		line := append(append([]byte(`{"doc":`), doc...), '}')
		var members []object.Member
		members, _, ok := object.Scan(line, 32, nil)
		if !ok || len(members) != 1 {
			return
		}
		came := Raw(members[0].Value)
		read := func(do func(o *object.Reader) Raw) {
			var o object.Reader
			require.Nil(t, o.Read(line, 32, "/payload"))
			if kept := do(&o); o.Err() == nil {
				requireKept(t, came, kept)
			}
		}
		read(func(o *object.Reader) Raw {
			if s := hub.SpecIn(o, "doc"); s != nil {
				return s.Document
			}
			return nil
		})
		read(func(o *object.Reader) Raw {
			if r := hub.RequirementsIn(o, "doc"); r != nil {
				return r.Document
			}
			return nil
		})
		read(func(o *object.Reader) Raw {
			if c := hub.CapabilitiesIn(o, "doc"); c != nil {
				return c.Document
			}
			return nil
		})
		read(func(o *object.Reader) Raw {
			r := hub.ResultIn(o, "doc")
			if r == nil {
				return nil
			}
			for _, c := range r.Contracts {
				require.True(t, c.Data == nil || r.Structured && bytes.Contains(r.Document, c.Data))
			}
			return r.Document
		})
		read(func(o *object.Reader) Raw { hub.DependenciesIn(o, "doc"); hub.DependencyIDsIn(o, "doc"); return nil })
	})
}

// requireKept requires that a document is unchanged except for its white space.
func requireKept(t *testing.T, came, kept Raw) {
	t.Helper()
	if kept == nil {
		return
	}
	require.NotContains(t, string(kept), "\n")
	require.NotContains(t, string(kept), "\r")
	came, kept = bytes.Clone(came), bytes.Clone(kept) // Compact works in place
	for _, value := range []*Raw{&came, &kept} {
		require.NoError(t, value.Compact(jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true)))
	}
	require.Equal(t, string(came), string(kept))
}
