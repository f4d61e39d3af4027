package stdio

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/session"
)

// taskReaders maps each schema of delegated work to its reader.
var taskReaders = map[string]func([]byte) *wire.Error{
	"task-request": refusedRequest, "task-act": refusedAct, "task-response": refusedResponse,
}

// requireTaskVerdict compares a schema with its reader on one message.
func requireTaskVerdict(t *testing.T, name string, schema *jsonschema.Schema, document any) bool {
	t.Helper()
	line := encoded(t, document)
	why := taskReaders[name](line)
	requireSessionSays(t, schema.Validate(document), why, line)
	return why == nil
}

// TestSchemasOfDelegationAndReadersAgree checks that schemas and readers agree on every single
// change of the examples.
//
// Rows: D-01..D-14, D-18, D-19, D-27, D-29, D-31..D-35, D-37, D-38, D-42, K-23, T-32, T-33.
func TestSchemasOfDelegationAndReadersAgree(t *testing.T) {
	compiled := validators(t)
	for name := range taskReaders {
		good, bad := 0, 0
		for _, example := range delegatedExamples(t, name) {
			require.True(t, requireTaskVerdict(t, name, compiled[name], example), "%s: an example is wrong", name)
			for changed := range changes(example) {
				if requireTaskVerdict(t, name, compiled[name], changed) {
					good++
				} else {
					bad++
				}
			}
		}
		require.Greater(t, good, 100, name)
		require.Greater(t, bad, 100, name)
	}
}

// Rows: D-42.
func TestSchemasOfDelegationAndReadersAgreeByChance(t *testing.T) {
	compiled := validators(t)
	for name := range taskReaders {
		for i, example := range delegatedExamples(t, name) {
			chance := rand.New(rand.NewPCG(3, uint64(i)))
			tries, taken := rounds(1000), 0
			for range tries {
				doc := any(example)
				for range 1 + chance.IntN(3) {
					doc = mutated(chance, doc)
				}
				if requireTaskVerdict(t, name, compiled[name], doc) {
					taken++
				}
			}
			require.Greater(t, taken, tries/50, "%s %d: hardly anything was right", name, i)
			require.Greater(t, tries-taken, tries/10, "%s %d: hardly anything was wrong", name, i)
		}
	}
}

// TestSchemasOfDelegationAndReadersAgreeOnTheRest checks the cases that a single change to an
// example does not reach: members that make the message another kind, swapped words, and the
// members of each status.
//
// Rows: D-02, D-09, D-19, D-27, D-35, D-38, T-32, T-33.
func TestSchemasOfDelegationAndReadersAgreeOnTheRest(t *testing.T) {
	values := []any{
		nil, "2.0", "abort", "x", "HO", json.Number("1"), map[string]any{}, "task.status", "task.update", "task.cancel", "task.report",
		"request:query-tasks", "event:log", "response:", "notify:shutdown", "notify", "Request:x", "requests:x", "a:request:b", "a\u0000", "\u0085",
		"pending", "in_progress", "completed", "failed", "cancelled", "input_required", "low", "normal", "urgent", "critical",
	}
	keys := []string{
		"type", "status", "id", "jsonrpc", "method", "message_type", "message_id", "from_agent", "to_agent", "from_actor", "to_actor", "topic", "seq", "created_at",
		"timestamp", "result", "error", "context", "input", "message",
	}
	compiled := validators(t)
	for name := range taskReaders {
		chance := rand.New(rand.NewPCG(4, uint64(len(name))))
		examples := delegatedExamples(t, name)
		taken, tries := 0, rounds(8000)
		for range tries {
			doc := any(examples[chance.IntN(len(examples))])
			for range 1 + chance.IntN(4) {
				doc = with(doc, "/"+keys[chance.IntN(len(keys))], values[chance.IntN(len(values))])
			}
			if requireTaskVerdict(t, name, compiled[name], doc) {
				taken++
			}
		}
		require.Greater(t, taken, tries/50, name)
		require.Greater(t, tries-taken, tries/10, name)
	}
}

// TestWhatSchemasOfDelegationCannotSay checks rules that a schema cannot express.
//
// Rows: D-01, D-08, K-10.
func TestWhatSchemasOfDelegationCannotSay(t *testing.T) {
	compiled := validators(t)
	for _, test := range []struct{ name, line, want string }{
		{"task-request", `{"id":"1","type":"t","payload":{},"context":{"timestamp":"2026-02-29"}}`, `context.timestamp must be an ISO 8601 time, not "2026-02-29"`},
		{"task-request", `{"id":"1","type":"t","payload":{},"context":{"user":"` + strings.Repeat("é", 2049) + `"}}`, "context.user must not be longer than 4096 bytes"},
		{"task-request", `{"id":"1","type":"t","payload":{},"observability":{"baggage":{"a":"` + strings.Repeat("a", 16<<10) + `"}}}`, "observability.baggage must not be longer than 16384 bytes"},
		{"task-request", `{"id":"1","id":"2","type":"t","payload":{}}`, "id stands twice"},
		{"task-response", `{"id":"1","status":"pending","jsonrpc":1,"jsonrpc":2}`, "jsonrpc stands twice"},
	} {
		require.NoError(t, compiled[test.name].Validate(decoded(t, []byte(test.line))), test.line)
		err := taskReaders[test.name]([]byte(test.line))
		require.NotNil(t, err, test.line)
		require.Equal(t, test.want, err.Message)
	}
}

// TestSchemasOfDelegationHaveTheWordsThatThereAre checks that the schemas have the words and the
// members of the readers.
//
// Rows: D-09, D-19, D-30, D-42.
func TestSchemasOfDelegationHaveTheWordsThatThereAre(t *testing.T) {
	request, act, response := schemaOf(t, "task-request"), schemaOf(t, "task-act"), schemaOf(t, "task-response")
	properties := at(request, "properties")
	require.Equal(t, append(words(delegation.Priorities), nil), at(properties, "context", "properties", "priority", "enum"))
	require.Equal(t, words(delegation.Acts), at(act, "properties", "type", "enum"))
	require.Equal(t, words(delegation.Acts), at(at(at(request, "allOf").([]any)[0], "properties", "type", "not", "anyOf").([]any)[0], "enum"))
	require.Equal(t, words(delegation.Statuses), at(response, "properties", "status", "enum"))
	for block, value := range map[string]any{"context": delegation.Context{}, "routing": delegation.Routing{}, "observability": delegation.Trace{}} {
		requireFields(t, block, at(properties, block), value)
	}
	properties = at(response, "properties")
	requireFields(t, "metadata", at(properties, "metadata"), delegation.Metadata{})
	requireFields(t, "error", at(properties, "error"), delegation.Fault{}, "code", "message", "recoverable")
	requireFields(t, "artifact", at(properties, "artifacts", "items"), delegation.Artifact{}, "content")
	for _, code := range delegation.FaultCodes {
		require.Contains(t, at(properties, "error", "properties", "code", "description"), code)
	}
	for _, schema := range []any{request, act, response} {
		all := at(schema, "allOf").([]any)
		others := at(all[len(all)-1], "not", "anyOf").([]any)
		kinds := at(others[1], "anyOf").([]any)
		require.Equal(t, words(session.Types), at(kinds[len(kinds)-1], "properties", "message_type", "enum"))
	}
}
