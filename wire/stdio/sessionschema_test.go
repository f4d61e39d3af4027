package stdio

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/session"
)

// strangeNumbers matches numbers that readers, with 16 digits, take for others. A schema is
// exact.
var strangeNumbers = regexp.MustCompile(`[0-9.]{16}|[eE]`)

// mended returns a message with the forgiven members filled in.
func mended(t testing.TB, document any) any {
	t.Helper()
	document = filled(document, "", "sequence_number", json.Number("0"))
	document = filled(document, "/payload/task/constraints", "must_not_break", []any{})
	document = filled(document, "/payload/verification", "custom", map[string]any{})
	for pointer := range places(document, "") {
		if general(pointer) == "/payload/findings/*" {
			document = filled(document, pointer, "rationale", "")
		}
	}
	return document
}

// filled returns a document with a member added to the object at a place, if that exists without
// the member.
func filled(document any, pointer, key string, value any) any {
	in := document
	for _, word := range strings.Split(pointer, "/")[1:] {
		switch v := in.(type) {
		case map[string]any:
			in = v[word]
		case []any:
			i, err := strconv.Atoi(word)
			if err != nil || i >= len(v) {
				return document
			}
			in = v[i]
		}
	}
	object, ok := in.(map[string]any)
	if _, there := object[key]; !ok || there {
		return document
	}
	return with(document, pointer+"/"+key, value)
}

// requireSessionVerdict compares the schema with the reader on one message, unchanged and with
// the forgiven members.
func requireSessionVerdict(t *testing.T, schema *jsonschema.Schema, document any) bool {
	t.Helper()
	line := encoded(t, document)
	err := judged(line, true)
	requireSessionSays(t, schema.Validate(document), err, line)
	if _, isObject := document.(map[string]any); isObject {
		err = judged(line, false)
		requireSessionSays(t, schema.Validate(mended(t, document)), err, line)
	}
	return err == nil
}

func requireSessionSays(t *testing.T, schema error, reader *wire.Error, line []byte) {
	t.Helper()
	switch {
	case reader == nil && schema != nil:
		require.True(t, strings.Contains(string(line), asGoodAsNothing), "the reader takes it: %v\n%s", schema, line)
	case reader != nil && schema == nil:
		for _, why := range reader.Complaints() {
			require.True(t, unsayableOfSessions(why), "the schema takes it, the reader says: %s\n%s", why, line)
		}
	}
}

// unsayableOfSessions reports whether the reason of a refusal cannot be expressed in a schema:
// relations between two members, days that no calendar has, and strict mode.
func unsayableOfSessions(why string) bool {
	if when, ok := strings.CutPrefix(why, why[:strings.IndexByte(why, ':')+1]); ok && strings.Contains(when, "must be an ISO 8601 time, not ") {
		return unsayable(when[strings.IndexByte(when, '"'):] + " is not an ISO 8601 time")
	}
	return strings.Contains(why, "finding_id stands twice") || strings.Contains(why, "must not be less than line_start") ||
		strings.Contains(why, `message_id must be a UUID of version 4, not "msg-`)
}

// TestSchemaOfSessionsAndReaderAgree checks that schema and reader agree on every single change
// of the examples, in strict mode and with the forgiven members.
//
// Rows: C-03..C-15, C-18..C-21, C-23..C-32, C-34..C-37, C-39..C-44, C-46..C-51, C-53..C-67,
// C-70, C-80, C-97, K-23, T-25.
func TestSchemaOfSessionsAndReaderAgree(t *testing.T) {
	schema := validators(t)["session-message"]
	examples := []any{decoded(t, []byte(shortAssignment)), decoded(t, []byte(shortResult))}
	for _, example := range sessionExamples(t) {
		examples = append(examples, example)
	}
	seen, good, bad := 0, 0, 0
	step := 8 / rounds(8)
	for _, example := range examples {
		for changed := range changes(example) {
			if seen++; seen%step != 0 {
				continue
			}
			if requireSessionVerdict(t, schema, changed) {
				good++
			} else {
				bad++
			}
		}
	}
	require.Greater(t, good, 1000/step)
	require.Greater(t, bad, 1000/step)
}

// Rows: C-97.
func TestSchemaOfSessionsAndReaderAgreeByChance(t *testing.T) {
	schema := validators(t)["session-message"]
	for i, kind := range session.Types {
		example := sessionExamples(t)[kind]
		chance := rand.New(rand.NewPCG(2, uint64(i)))
		tries, taken := rounds(500), 0
		for range tries {
			doc := any(example)
			for range 1 + chance.IntN(3) {
				doc = mutated(chance, doc)
			}
			if requireSessionVerdict(t, schema, doc) {
				taken++
			}
		}
		require.Greater(t, taken, tries/50, "%s: hardly anything was right", kind)
		require.Greater(t, tries-taken, tries/10, "%s: hardly anything was wrong", kind)
	}
}

// TestWhatTheSchemaOfSessionsCannotSay checks rules that the schema cannot express.
//
// Rows: C-03, C-60, C-63.
func TestWhatTheSchemaOfSessionsCannotSay(t *testing.T) {
	schema := validators(t)["session-message"]
	for line, want := range map[string]string{
		strings.Replace(string(encoded(t, sessionExamples(t)["review_result"])), `"k-2"`, `"k-1"`, 1):                             "findings[1].finding_id stands twice",
		strings.Replace(string(encoded(t, sessionExamples(t)["review_result"])), `"line_end":19`, `"line_end":1`, 1):              "findings[0].location.line_end must not be less than line_start, which is 17",
		strings.Replace(string(encoded(t, sessionExamples(t)["abort"])), "2026-11-20", "2026-02-30", 1):                           `timestamp must be an ISO 8601 time, not "2026-02-30T09:20:00Z"`,
		strings.Replace(string(encoded(t, sessionExamples(t)["abort"])), `"kettle-1"`, `"`+strings.Repeat("é", 101)+`"`, 1):       "target_id must not be longer than 200 bytes",
		strings.Replace(string(encoded(t, sessionExamples(t)["abort"])), `"0c8e2f14-5b7a-4d39-8f21-6a9e0b3c4d0a"`, `"msg-12"`, 1): `message_id must be a UUID of version 4, not "msg-12"`,
	} {
		require.NoError(t, schema.Validate(decoded(t, []byte(line))), line)
		err := judged([]byte(line), true)
		require.NotNil(t, err, line)
		require.Equal(t, want, err.Message)
	}
}

// TestSchemaOfSessionsHasTheWordsThatThereAre checks that the enumerations match the readers, and
// that every member has a description.
func TestSchemaOfSessionsHasTheWordsThatThereAre(t *testing.T) {
	schema := schemaOf(t, "session-message")
	definitions := at(schema, "$defs").(map[string]any)
	for name, definition := range definitions {
		require.NotEmpty(t, at(definition, "description"), name)
		requireExplained(t, name, definition.(map[string]any))
	}
	for _, kind := range session.Types {
		require.Contains(t, definitions, kind)
	}
	require.Equal(t, words(session.Types), at(schema, "properties", "message_type", "enum"))
	for path, want := range map[string][]string{
		"agent agent_type":         session.AgentTypes,
		"task_assignment priority": session.Priorities,
		"task_completion status":   session.Outcomes,
		"file_change change_type":  session.ChangeTypes,
		"review_result verdict":    session.Verdicts,
		"finding severity":         session.Severities,
		"finding category":         session.Categories,
		"required_change priority": session.Fixes,
		"feedback feedback_type":   session.FeedbackTypes,
		"abort scope":              session.AbortScopes,

		"execution_error error_type":       session.ExecutionErrors,
		"execution_error suggested_action": session.Suggestions,
	} {
		definition, key, _ := strings.Cut(path, " ")
		require.Equal(t, words(want), at(definitions, definition, "properties", key, "enum"), path)
	}
	require.Equal(t, words(session.DependencyTypes), at(definitions, "task_assignment", "properties", "dependencies", "items", "properties", "dependency_type", "enum"))
	require.Equal(t, words(session.FocusAreas), at(definitions, "review_request", "properties", "scope", "properties", "focus_areas", "items", "enum"))
	requireFields(t, "agent", definitions["agent"], session.Agent{})
	type said struct { // the completion has the task
		ErrorType       string `json:"error_type"`
		ErrorMessage    string `json:"error_message"`
		Recoverable     bool   `json:"recoverable,omitzero"`
		SuggestedAction string `json:"suggested_action,omitzero"`
	}
	requireFields(t, "execution_error", definitions["execution_error"], said{})
}
