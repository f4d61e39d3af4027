package stdio

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
	"orchestrator/wire/schema"
	"orchestrator/wire/session"
)

// fieldsOf returns the members of a type in JSON, and the members that are always present. Members
// of an embedded type count as its own.
func fieldsOf(kind reflect.Type) (all, always []string) {
	all, always = []string{}, []string{}
	for field := range kind.Fields() {
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
			continue
		case name == "":
			inner, needed := fieldsOf(elem(field.Type))
			all, always = append(all, inner...), append(always, needed...)
			continue
		}
		all = append(all, name)
		if option != "omitzero" {
			always = append(always, name)
		}
	}
	slices.Sort(all)
	slices.Sort(always)
	return all, always
}

func elem(kind reflect.Type) reflect.Type {
	if kind.Kind() == reflect.Pointer {
		return kind.Elem()
	}
	return kind
}

// requireFields requires that a schema has exactly the members of a Go type, and requires the
// members that are always present. For the members in odd, presence is the reverse of the type's.
func requireFields(t *testing.T, place string, schema any, value any, odd ...string) {
	t.Helper()
	kind := elem(reflect.TypeOf(value))
	all, always := fieldsOf(kind)
	properties, _ := at(schema, "properties").(map[string]any)
	require.Equal(t, all, append([]string{}, slices.Sorted(maps.Keys(properties))...), "%s and %s", place, kind)
	required := []string{}
	needs, _ := at(schema, "required").([]any)
	for _, key := range needs {
		required = append(required, key.(string))
	}
	unless := func(key string) bool { return slices.Contains(odd, key) }
	require.ElementsMatch(t, slices.DeleteFunc(always, unless), slices.DeleteFunc(required, unless), "%s and %s: required", place, kind)
}

// at returns the value at the keys in a document.
func at(value any, keys ...string) any {
	for _, key := range keys {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	return value
}

// Rows: B-33, B-34, B-35, B-38, B-39, B-40, B-43, B-44, B-45, B-46, B-47, B-48, B-49, B-50, B-52, B-58, B-59, B-60, B-64, B-65, B-66, B-67.
func TestSchemasHaveTheFieldsThatReadersFill(t *testing.T) {
	odd := map[string][]string{ // absence has a meaning
		"event:error": {"recoverable"},
	}
	spelled := map[string]any{
		"request:add-dependency":      depended{},
		"request:submit-task-request": struct{}{}, // of another schema
	}
	for _, name := range schema.Names() {
		if !inbound(name) {
			continue
		}
		schema := schemaOf(t, name)
		examples := schema["examples"].([]any)
		var body any
		switch m := reader().Check(encoded(t, examples[0])).(type) {
		case *wire.Request:
			body = m.Body
		case *wire.AgentEvent:
			body = m.Body
		}
		require.NotNil(t, body, name)
		if other := spelled[name]; other != nil {
			body = other
		}
		requireFields(t, name, at(schema, "properties", "payload"), body, odd[name]...)
	}
	options := at(schemaOf(t, "request:ask-user"), "properties", "payload", "properties", "options", "items")
	requireFields(t, "an option", options, wire.Option{}, "label") // the label is the default
}

// depended is an AddDependency as encoded.
type depended struct {
	TaskID   string `json:"taskId"`
	On       string `json:"dependsOnTaskId"`
	Type     string `json:"dependencyType,omitzero"`
	Contract string `json:"contractKey,omitzero"`
}

// Rows: B-36, B-41, B-61, B-69, B-70, B-71, B-72, E-22.
func TestSchemasHaveTheFieldsThatAreTold(t *testing.T) {
	requireFields(t, "agent", schemaOf(t, "agent"), wire.Agent{})
	requireFields(t, "task", schemaOf(t, "task"), wire.Task{}, "result") // always there, as null
	requireFields(t, "question", schemaOf(t, "question"), wire.Question{})
	requireFields(t, "question", at(schemaOf(t, "question"), "properties", "options", "items"), wire.Option{})
	for name, value := range map[string]any{
		"server": hub.Server{}, "match": hub.Match{}, "note": wire.Note{}, "link": wire.Link{}, "credential": wire.Credential{}, "hub-task": wire.HubTask{},
		"mail": mail.Message{}, "actor": mail.ActorView{}, "topic": mail.TopicView{},
		"session": wire.SessionView{}, "session-task": wire.SessionTask{}, "review": session.ReviewView{}, "session-entry": logged{},
	} {
		requireFields(t, name, schemaOf(t, name), value)
	}
	for _, name := range []string{"task", "hub-task"} {
		properties := at(schemaOf(t, name), "properties")
		requireFields(t, name, at(properties, "help"), wire.Help{})
		requireFields(t, name, at(properties, "context"), delegation.Context{})
		requireFields(t, name, at(properties, "routing"), delegation.Routing{})
		requireFields(t, name, at(properties, "observability"), delegation.Trace{})
		require.Equal(t, words(delegation.Priorities), at(properties, "context", "properties", "priority", "enum"))
	}
	document, task := at(schemaOf(t, "session"), "properties"), at(schemaOf(t, "session-task"), "properties")
	requireFields(t, "session", at(document, "members", "items"), session.Member{})
	requireFields(t, "session", at(document, "standing", "items"), session.MemberView{})
	requireFields(t, "session-task", at(task, "findings", "items"), session.FindingView{})
	requireFields(t, "session-task", at(task, "error"), session.ExecutionError{})
}

// logged holds the members of a session.Entry beside the message.
type logged struct {
	LoggedAt string   `json:"logged_at"`
	TookMS   float64  `json:"processing_duration_ms"`
	Errors   []string `json:"validation_errors,omitzero"`
	Seq      int64    `json:"log_seq"`
	Refused  string   `json:"refused,omitzero"`
	By       string   `json:"said_by,omitzero"`
}

// Rows: B-36, B-41, B-61.
func TestSchemasHaveTheFieldsThatAreAnswered(t *testing.T) {
	answers := at(schemaOf(t, "response:success"), "$defs").(map[string]any)
	possible := at(schemaOf(t, "response:success"), "properties", "payload", "anyOf").([]any)
	documents := []string{"server", "credential", "session", "task-response"} // answers that have their own schema
	names := map[string]bool{}
	for _, o := range wire.Operations {
		name, of := o.Answer.Name, o.Answer.Of
		names[name] = true
		if slices.Contains(documents, name) {
			require.Contains(t, possible, any(map[string]any{"$ref": "urn:orchestrator:" + name}))
			continue
		}
		require.Contains(t, answers, name, "response:success has no answer %s, of %s: go test ./wire/schema/... -update", name, o.Name)
		if name == "sent" {
			of = struct { // the mail is embedded
				Duplicate bool     `json:"duplicate,omitzero"`
				Warnings  []string `json:"warnings,omitzero"`
			}{}
		}
		requireFields(t, name, answers[name], of)
	}
	require.Len(t, names, len(answers)+len(documents), "response:success has answers that no operation gives: go test ./wire/schema/... -update")
	require.Len(t, possible, len(names))
	require.Equal(t, []any{map[string]any{"$ref": "urn:orchestrator:mail"}}, at(answers, "sent", "allOf"))
	requireFields(t, "metadata", at(answers, "answer", "properties", "metadata"), wire.AnswerMetadata{})
	brief := at(answers, "sessions", "properties", "sessions", "items")
	requireFields(t, "sessions", brief, session.Brief{})
	requireFields(t, "sessions", at(brief, "properties", "members", "items"), session.Member{})
}

// Rows: B-69, B-70, B-71, B-72.
func TestSchemasHaveTheFieldsOfNotices(t *testing.T) {
	shutdown := schemaOf(t, "notify:shutdown")
	type notice struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		Timestamp string `json:"timestamp"`
		Payload   any    `json:"payload"`
	}
	requireFields(t, "notify:shutdown", shutdown, notice{})
	requireFields(t, "notify:shutdown", at(shutdown, "properties", "payload"), wire.ShutdownNotice{})
	mail := schemaOf(t, "notify:"+wire.NoticeMessage)
	requireFields(t, "notify:message", mail, notice{})
	require.Equal(t, map[string]any{"$ref": "urn:orchestrator:mail"}, at(mail, "properties", "payload"))
	// All notices about tasks have one type: each omits the members of the others.
	assigned := at(schemaOf(t, "notify:task-assigned"), "properties", "payload", "properties").(map[string]any)
	cancelled := at(schemaOf(t, "notify:task-cancelled"), "properties", "payload", "properties").(map[string]any)
	updated := at(schemaOf(t, "notify:task-updated"), "properties", "payload", "properties").(map[string]any)
	both := maps.Clone(assigned)
	maps.Copy(both, cancelled)
	requireFields(t, "notices", map[string]any{"properties": both, "required": []any{}}, wire.TaskNotice{}) // an interrupt may have no task
	for _, name := range []string{"task-assigned", "task-cancelled", "task-updated"} {
		require.Contains(t, at(schemaOf(t, "notify:"+name), "properties", "payload", "required"), "taskId")
	}
	interrupted := at(schemaOf(t, "notify:interrupt"), "properties", "payload", "properties").(map[string]any)
	require.Equal(t, []string{"message", "taskId"}, slices.Sorted(maps.Keys(interrupted)))
	require.Equal(t, []string{"message", "taskId"}, slices.Sorted(maps.Keys(assigned)))
	require.Equal(t, []string{"reason", "taskId"}, slices.Sorted(maps.Keys(cancelled)))
	require.Equal(t, []string{"message", "taskId"}, slices.Sorted(maps.Keys(updated)))
	require.Contains(t, at(assigned, "message", "enum"), wire.AssignedMessage)
}

// TestSchemasHaveTheWordsThatThereAre checks that the enumerations of schemas match the readers.
func TestSchemasHaveTheWordsThatThereAre(t *testing.T) {
	payload := func(name, key string) any {
		return at(schemaOf(t, name), "properties", "payload", "properties", key, "enum")
	}
	states, filters := make([]string, 0, len(wire.TaskStates)), slices.Clone(wire.TaskStatuses)
	for _, state := range wire.TaskStates {
		states = append(states, string(state))
		if !slices.Contains(wire.TaskStatuses, string(state)) {
			filters = append(filters, string(state))
		}
	}
	nothing := any(nil)
	require.Equal(t, append(words(filters), nothing), payload("request:query-tasks", "status"))
	require.Equal(t, words(wire.AgentStatuses), at(schemaOf(t, "agent"), "properties", "status", "enum"))
	require.Equal(t, words(wire.TaskStatuses), at(schemaOf(t, "task"), "properties", "status", "enum"))
	require.Equal(t, words(states), at(schemaOf(t, "task"), "properties", "state", "enum"))
	people := words([]string{wire.PersonAdmin, wire.PersonOperator, wire.PersonViewer})
	require.Equal(t, people, at(schemaOf(t, "credential"), "properties", "role", "enum"))
	require.Equal(t, append(people, nothing), payload("request:issue-token", "role"))
	require.Equal(t, words([]string{mail.ActorActive, mail.ActorStale, mail.ActorOffline, mail.ActorQuiet}), at(schemaOf(t, "actor"), "properties", "status", "enum"))
	require.Equal(t, append(words(hub.DependencyTypes), nothing), payload("request:add-dependency", "dependencyType"))
	require.Equal(t, words(hub.DependencyTypes), at(schemaOf(t, "link"), "properties", "dependency_type", "enum"))
	hub := []string{}
	for _, state := range wire.TaskStates {
		if word := state.Hub(); !slices.Contains(hub, word) {
			hub = append(hub, word)
		}
	}
	require.Equal(t, words(hub), at(schemaOf(t, "hub-task"), "properties", "status", "enum"))
	requireSessionWords(t, states)
}

// requireSessionWords checks all enumerations of sessions.
func requireSessionWords(t *testing.T, states []string) {
	t.Helper()
	create, document := at(schemaOf(t, "request:create-session"), "properties", "payload"), schemaOf(t, "session")
	task, brief := schemaOf(t, "session-task"), at(schemaOf(t, "response:success"), "$defs", "sessions", "properties", "sessions", "items")
	enum := func(schema any, keys ...string) any {
		for _, key := range keys {
			schema = at(schema, "properties", key)
			if items := at(schema, "items"); items != nil {
				schema = items
			}
		}
		return at(schema, "enum")
	}
	validations := []string{session.ValidationStandard, session.ValidationStrict}
	require.Equal(t, append(words(validations), nil), enum(create, "validation"))
	require.Equal(t, append(words(session.Escalations), nil), enum(create, "on_max"))
	require.Equal(t, words(session.AgentTypes), enum(create, "members", "agent_type"))
	require.Equal(t, words(validations), enum(document, "validation"))
	require.Equal(t, words(session.Escalations), enum(document, "on_max"))
	require.Equal(t, words(session.AgentTypes), enum(document, "standing", "agent_type"))
	for _, schema := range []any{document, brief} {
		require.Equal(t, words(session.AgentTypes), enum(schema, "members", "agent_type"))
		require.Equal(t, words([]string{session.Open, session.Closed}), enum(schema, "state"))
		require.Equal(t, words([]string{session.FromFile, session.ByHand}), enum(schema, "source"))
	}
	require.Equal(t, words([]string{
		session.PhaseHeld, session.PhaseAssigned, session.PhaseWorking, session.PhaseCompleted, session.PhaseReviewing, session.PhaseRevise, session.PhaseRedesign, session.PhaseHuman, session.PhaseOver,
	}), enum(task, "phase"))
	require.Equal(t, words(states), enum(task, "state"))
	require.Equal(t, words(session.Escalations), enum(task, "escalated"))
	require.Equal(t, words(session.Severities), enum(task, "findings", "severity"))
	require.Equal(t, words(session.Categories), enum(task, "findings", "category"))
	require.Equal(t, words(session.ExecutionErrors), enum(task, "error", "error_type"))
	require.Equal(t, words(session.Suggestions), enum(task, "error", "suggested_action"))
	require.Equal(t, append(words(session.Verdicts), session.VerdictNone), enum(schemaOf(t, "review"), "verdict"))
}

func words(of []string) []any {
	list := make([]any, 0, len(of)+1)
	for _, word := range of {
		list = append(list, word)
	}
	return list
}
