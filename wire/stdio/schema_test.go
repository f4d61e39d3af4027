package stdio

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/schema"
)

// validators compiles all schemas, which validates them with the meta-schema.
func validators(t testing.TB) map[string]*jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	for _, name := range schema.Names() {
		require.NoError(t, compiler.AddResource("urn:orchestrator:"+name, schemaOf(t, name)))
	}
	compiled := map[string]*jsonschema.Schema{}
	for _, name := range schema.Names() {
		schema, err := compiler.Compile("urn:orchestrator:" + name)
		require.NoError(t, err, name)
		compiled[name] = schema
	}
	return compiled
}

func schemaOf(t testing.TB, name string) map[string]any {
	t.Helper()
	text, ok := schema.Text(name)
	require.True(t, ok, name)
	return decoded(t, text).(map[string]any)
}

// decoded decodes text, and keeps numbers as written.
func decoded(t testing.TB, text []byte) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err, "%s", text)
	return value
}

func encoded(t testing.TB, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return text
}

// inbound reports whether agents send a message.
func inbound(name string) bool {
	return strings.HasPrefix(name, "request:") || strings.HasPrefix(name, "event:")
}

// refusal returns why the reader does not accept a line as a message of a type, or "".
func refusal(name string, line []byte) string {
	kind := ""
	switch m := (&Reader{Agent: "me", Depth: 64}).Check(line).(type) {
	case *wire.Request:
		if m.Form == dialect.Native {
			kind = "request:" + m.Operation
		}
	case *wire.AgentEvent:
		kind = "event:" + m.Name
	case *wire.Refused:
		return m.Err.Message
	}
	if kind != name {
		return "it is something else"
	}
	return ""
}

func TestSchemasSayWhatTheyAre(t *testing.T) {
	names := []string{
		"actor", "agent", "capabilities", "credential", "dependency",
		"event:error", "event:log", "event:progress", "event:question", "event:usage", "event:session", "event:turn", "event:limited", "event:receipt",
		"hub-task", "link", "mail", "match", "note",
		"notify:interrupt", "notify:message", "notify:shutdown", "notify:task-assigned", "notify:task-cancelled", "notify:task-updated",
		"question",
		"requirements",
		"response:error", "response:success", "review",
		"server", "session", "session-entry", "session-message", "session-task", "task", "task-act", "task-request", "task-response", "task-result", "task-spec", "topic",
	}
	for _, o := range wire.Operations {
		names = append(names, "request:"+o.Name)
	}
	require.ElementsMatch(t, names, schema.Names())
	titles := map[string]string{}
	for _, name := range schema.Names() {
		schema := schemaOf(t, name)
		require.Equal(t, "urn:orchestrator:"+name, schema["$id"])
		title, _ := schema["title"].(string)
		require.NotEmpty(t, title, name)
		require.NotRegexp(t, `\.$`, title, name)
		require.Empty(t, titles[title], "%s and %s have the same title", name, titles[title])
		titles[title] = name
		require.NotEmpty(t, schema["description"], name)
		require.NotEmpty(t, schema["examples"], name)
		requireExplained(t, name, schema)
	}
	for _, wrong := range []string{"", "nope", "submit-task", "request.submit-task", "../schema", "request:"} {
		_, ok := schema.Text(wrong)
		require.False(t, ok, wrong)
	}
}

// requireExplained requires a description of every member, unless its reference or its parent
// describes it.
func requireExplained(t *testing.T, place string, schema map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	for key, value := range properties {
		member := value.(map[string]any)
		switch {
		case key == "type" && member["const"] != nil, key == "payload", key == "error", key == "metadata":
		case member["$ref"] != nil, member["items"] != nil:
		default:
			require.NotEmpty(t, member["description"], "%s: %s", place, key)
		}
		requireExplained(t, place+"/"+key, member)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		requireExplained(t, place+"/items", items)
	}
}

// TestSchemasShareTheirEnvelope checks that members of all messages have the same schema
// everywhere.
func TestSchemasShareTheirEnvelope(t *testing.T) {
	first := map[string]any{}
	for _, name := range schema.Names() {
		kind, _, message := strings.Cut(name, ":")
		if !message {
			continue
		}
		properties := schemaOf(t, name)["properties"].(map[string]any)
		for _, key := range []string{"id", "timestamp", "agentId"} {
			if place := kind + "/" + key; first[place] == nil {
				first[place] = properties[key]
			} else {
				require.Equal(t, first[place], properties[key], "%s: %s", name, key)
			}
		}
	}
}

func TestExamplesOfSchemas(t *testing.T) {
	for name, schema := range validators(t) {
		for _, example := range schemaOf(t, name)["examples"].([]any) {
			require.NoError(t, schema.Validate(example), name)
			if inbound(name) {
				require.Empty(t, refusal(name, encoded(t, example)), name)
			}
		}
	}
}

// strange lists values that most members must not have.
var strange = []any{
	nil, true, json.Number("0"), json.Number("-1"), json.Number("1.5"), json.Number("1e300"), "", " ", "x",
	[]any{}, []any{""}, []any{json.Number("1")}, map[string]any{},
	map[string]any{"type": "x", "value": []any{map[string]any{}}}, []any{map[string]any{"value": "x"}, []any{nil}},
}

// mutants returns all documents that differ from one in a single place: without a member, with
// an additional one, or with a strange value.
func mutants(value any) iter.Seq[any] {
	return func(yield func(any) bool) {
		switch v := value.(type) {
		case map[string]any:
			for _, key := range append(slices.Sorted(maps.Keys(v)), "later") {
				without := maps.Clone(v)
				delete(without, key)
				if !yield(without) {
					return
				}
				for changed := range changes(v[key]) {
					with := maps.Clone(v)
					with[key] = changed
					if !yield(with) {
						return
					}
				}
			}
		case []any:
			for i := range v {
				if !yield(slices.Delete(slices.Clone(v), i, i+1)) {
					return
				}
				for changed := range changes(v[i]) {
					with := slices.Clone(v)
					with[i] = changed
					if !yield(with) {
						return
					}
				}
			}
		}
	}
}

// changes returns all replacements of a value.
func changes(value any) iter.Seq[any] {
	return func(yield func(any) bool) {
		for _, s := range strange {
			if !yield(s) {
				return
			}
		}
		mutants(value)(yield)
	}
}

// requireAgreement compares the verdict of a schema with the reader's, and returns it. A schema may
// accept mistakes that no schema can refuse.
func requireAgreement(t *testing.T, name string, schema *jsonschema.Schema, doc any) bool {
	t.Helper()
	line := encoded(t, doc)
	err, why := schema.Validate(doc), refusal(name, line)
	switch {
	case err == nil && why != "":
		require.True(t, unsayable(why), "the schema takes it, the reader says: %s\n%s", why, line)
	case err != nil && why == "" && !bytes.Contains(line, []byte(asGoodAsNothing)):
		require.NoError(t, err, "the reader takes it\n%s", line)
	}
	return err == nil
}

// asGoodAsNothing is a number so small that readers take it for 0, which is a whole number.
const asGoodAsNothing = "1e-400"

// unsayable reports whether the reason of a refusal cannot be expressed in a schema: a repeated
// value, or a day that no calendar has.
func unsayable(why string) bool {
	if _, when, inside := strings.Cut(why, "must be an ISO 8601 time, not "); inside {
		why = when + " is not an ISO 8601 time"
	}
	when, isTime := strings.CutSuffix(why, `" is not an ISO 8601 time`)
	if !isTime {
		return strings.HasSuffix(why, ".value stands twice") || strings.HasSuffix(why, ".agent_id stands twice") || strings.HasSuffix(why, "].id stands twice")
	}
	digits := strings.ReplaceAll(strings.TrimPrefix(when, `"`), "-", "")
	return len(digits) >= 8 && slices.Contains([]string{"0229", "0230", "0231", "0431", "0631", "0931", "1131"}, digits[4:8])
}

// Rows: B-12, B-13, B-14, B-16, B-27, B-76.
func TestSchemasAndReadersAgree(t *testing.T) {
	for name, schema := range validators(t) {
		if !inbound(name) {
			continue
		}
		for _, example := range schemaOf(t, name)["examples"].([]any) {
			for mutant := range mutants(example) {
				requireAgreement(t, name, schema, mutant)
			}
		}
	}
}

// Rows: B-76.
func TestSchemasAndReadersAgreeByChance(t *testing.T) {
	compiled := validators(t)
	for _, name := range schema.Names() {
		if !inbound(name) {
			continue
		}
		examples := schemaOf(t, name)["examples"].([]any)
		chance := rand.New(rand.NewPCG(1, uint64(len(name))))
		tries, taken := rounds(2000), 0
		for range tries {
			doc := examples[chance.IntN(len(examples))]
			for range 1 + chance.IntN(3) {
				doc = mutated(chance, doc)
			}
			if requireAgreement(t, name, compiled[name], doc) {
				taken++
			}
		}
		require.Greater(t, taken, tries/50, "%s: hardly anything was right", name)
		require.Greater(t, tries-taken, tries/10, "%s: hardly anything was wrong", name)
	}
}

// mutated returns a document with one random change.
func mutated(chance *rand.Rand, value any) any {
	switch v := value.(type) {
	case map[string]any:
		keys := append(slices.Sorted(maps.Keys(v)), "later", "context", "label")
		key := keys[chance.IntN(len(keys))]
		changed := maps.Clone(v)
		switch inner, there := v[key]; {
		case there && chance.IntN(6) == 0:
			delete(changed, key)
		case there && chance.IntN(3) > 0:
			changed[key] = mutated(chance, inner)
		default:
			changed[key] = anything(chance, 2)
		}
		return changed
	case []any:
		changed := slices.Clone(v)
		if len(v) == 0 || chance.IntN(4) == 0 {
			return append(changed, anything(chance, 2))
		}
		i := chance.IntN(len(v))
		changed[i] = mutated(chance, v[i])
		return changed
	}
	return anything(chance, 2)
}

// anything returns a random value, valid or not.
func anything(chance *rand.Rand, depth int) any {
	pick := func(of ...string) string { return of[chance.IntN(len(of))] }
	switch chance.IntN(8) {
	case 0:
		return strange[chance.IntN(len(strange))]
	case 1:
		return json.Number(pick("1", "1.0", "0.5", "-0", "10", "1e2", "1E+2", "12345678901234567890", "9007199254740991", "9007199254740992",
			"9007199254740993", "1e400", "-1e400", asGoodAsNothing, "31536000000", "31536000001", "0.1e1", "1e-1", "1.7976931348623157e308", "9223372036854775808"))
	case 2:
		return pick("\t", "\n\r\f ", "\v", "\u00a0", "\u2003", "\ufeff", "\u0000", "\u0085", " x", "\u00e9", "\U0001f600", "<&>")
	case 3:
		return pick("worker", "planner", "reviewer", "Worker", "queued", "running", "completed", "done", "in_review", "idle", "info", "oauth", "jwt")
	case 4, 5:
		return someTime(chance)
	}
	if depth == 0 {
		return "x"
	}
	if chance.IntN(2) == 0 {
		return []any{anything(chance, depth-1), anything(chance, depth-1)}
	}
	return map[string]any{pick("value", "label", "taskId", "x"): anything(chance, depth-1), "label": "L"}
}

// someTime returns a time, or nearly one.
func someTime(chance *rand.Rand) string {
	layouts := append([]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04Z07:00", "20060102T150405Z0700", time.DateOnly},
		"2006-01-02T15:04", "2006-01-02T15:04:05.000+01:00", "2006-01-02T15:04:05,5-2359", "2006-01-02T3:04:05Z", "2006-01-02 15:04:05Z", "2006-01-02T15:04:05+2460",
		"20060102T150405.5Z", "20060102", "2006-02-29T15:04:05Z", "2006-12-31T15:04:60Z", "20060102T150405+0100", "2006-01-02T15:04:05+24:00", "2006-01-02T15:04:05+01:60")
	when := []byte(layouts[chance.IntN(len(layouts))])
	for range chance.IntN(3) {
		when[chance.IntN(len(when))] = "0123456789-+:.,TZ"[chance.IntN(17)]
	}
	return string(when)
}

// TestMessagesOfTheManualAreRight checks that every line shown as a message in the manual or the
// README is valid. It is not with the other tests of the manual, because their binary is also
// the program. The schema library would make each of its hundreds of starts slow.
func TestMessagesOfTheManualAreRight(t *testing.T) {
	compiled := validators(t)
	pages, err := filepath.Glob("../../cmd/orchestrator/help/*.md")
	require.NoError(t, err)
	checked := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, line := range regexp.MustCompile(`(?m)^\{"type":".*\}$`).FindAllString(string(text), -1) {
			if strings.Contains(line, "…") {
				continue // shown in part
			}
			checked++
			var said struct{ Type string }
			require.NoError(t, json.Unmarshal([]byte(line), &said), "%s: %s", page, line)
			require.Contains(t, compiled, said.Type, "%s: %s", page, line)
			require.NoError(t, compiled[said.Type].Validate(decoded(t, []byte(line))), "%s: %s", page, line)
		}
	}
	require.Greater(t, checked, 3)
}
