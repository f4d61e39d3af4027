package main

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A caller of an operation over HTTP, with the status of the refusal if the audience does not include it.
type caller struct {
	name    string
	by      *visitor
	allowed func(o *wire.Operation) bool
	refused int
}

// TestOperationsAtEveryDoor sends each example of each operation on stdio and over HTTP, as every kind of
// caller. Whether it is refused because of the caller follows from the declared audience. The answers have
// their schemas.
//
// Rows, B-21, B-28, T-48.
func TestOperationsAtEveryDoor(t *testing.T) {
	t.Parallel()
	h := newHub(t, listeners+quick+knowing("dev", "go", 3), "dev")
	dev := h.open("dev")[0]
	outsider := h.visitor("Authorization", "Bearer "+strings.TrimSpace(h.ask("token", "issue", "--actor", "HO:far")))
	callers := []caller{
		{"a person", h.person(), func(o *wire.Operation) bool { return o.Audience != wire.ForAgents }, http.StatusForbidden},
		{"an agent", h.program("dev"), (*wire.Operation).OpenToAgents, http.StatusForbidden},
		{"an actor", outsider, (*wire.Operation).OpenToActors, http.StatusForbidden},
		{"an unknown program", h.nobody(), func(*wire.Operation) bool { return false }, http.StatusUnauthorized},
	}
	ids := strings.NewReplacer("{id}", "task-123", "{dep_id}", "d5")
	unwelcome := regexp.MustCompile(`is for (agents|operators)|already registered as an agent|is not for actors from elsewhere|this needs a credential`)
	for _, o := range wire.Operations {
		for _, example := range o.Examples {
			payload := hurried(t, o, example)
			m := dev.answer(dev.request(o.Name, cmp.Or(payload, "{}")))
			require.Equal(t, !o.OpenToAgents(), unwelcome.MatchString(m.line), "%s %s on stdio: %s", o.Name, payload, m.line)
			if m.Error == nil {
				require.Equal(t, []string{"correlationId", "id", "payload", "timestamp", "type"}, m.keys)
				h.requireDescribed("response.success", m.line)
			} else {
				h.requireDescribed("response.error", m.line)
				require.NotContains(t, []string{"INVALID_MESSAGE_TYPE", "INTERNAL_ERROR"}, m.Error.Code, "%s %s on stdio: %s", o.Name, payload, m.line)
			}
			require.True(t, o.OpenToAgents() || m.Error != nil && m.Error.Code == "UNAUTHORIZED", "%s on stdio: %s", o.Name, m.line)
			for _, c := range callers {
				r := c.by.ask("POST /api/v1/operations/"+o.Name, payload)
				require.Equal(t, !c.allowed(o), unwelcome.MatchString(r.text), "%s %s from %s: %s", o.Name, payload, c.name, r.text)
				require.True(t, c.allowed(o) || r.status == c.refused, "%s from %s: %d %s", o.Name, c.name, r.status, r.text)
				require.NotEqual(t, http.StatusInternalServerError, r.status, "%s %s from %s: %s", o.Name, payload, c.name, r.text)
				for _, route := range o.HTTP {
					r := c.by.ask(ids.Replace(route), inSnakeCase(route, payload))
					require.NotContains(t, []int{http.StatusMethodNotAllowed, http.StatusInternalServerError}, r.status, "%s %s from %s: %s", route, payload, c.name, r.text)
				}
			}
		}
	}
	h.stop()
}

// inSnakeCase returns a payload as the body of a route of its own.
func inSnakeCase(route, payload string) string {
	if strings.HasPrefix(route, "GET ") {
		return ""
	}
	return regexp.MustCompile(`"[a-zA-Z]+":`).ReplaceAllStringFunc(payload, object.SnakeCase)
}

// hurried returns an example that waits for a person no longer than a millisecond.
func hurried(t *testing.T, o *wire.Operation, example string) string {
	t.Helper()
	if o.Payload() == nil {
		return example
	}
	if _, waits := o.Payload().FieldByName("Timeout"); !waits {
		return example
	}
	var payload map[string]any
	require.NoError(t, json.Unmarshal([]byte(example), &payload))
	payload["timeout"] = 1
	text, err := json.Marshal(payload)
	require.NoError(t, err)
	return string(text)
}
