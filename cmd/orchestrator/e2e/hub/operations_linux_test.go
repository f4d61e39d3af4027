package hub

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A caller of an operation over HTTP, with the status of the refusal if the audience does not include it.
type caller struct {
	name    string
	by      *stage.Caller
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
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("dev", "go", 3), "dev")
	dev := h.Open("dev")[0]
	outsider := h.Caller("Authorization", "Bearer "+strings.TrimSpace(h.Ask("token", "issue", "--actor", "HO:far")))
	callers := []caller{
		{"a person", h.Person(), func(o *wire.Operation) bool { return o.Audience != wire.ForAgents }, http.StatusForbidden},
		{"an agent", h.AgentCaller("dev"), (*wire.Operation).OpenToAgents, http.StatusForbidden},
		{"an actor", outsider, (*wire.Operation).OpenToActors, http.StatusForbidden},
		{"an unknown program", h.Anonymous(), func(*wire.Operation) bool { return false }, http.StatusUnauthorized},
	}
	ids := strings.NewReplacer("{id}", "task-123", "{dep_id}", "d5")
	unwelcome := regexp.MustCompile(`is for (agents|operators)|already registered as an agent|is not for actors from elsewhere|this needs a credential`)
	for _, o := range wire.Operations {
		for _, example := range o.Examples {
			payload := hurried(t, o, example)
			m := dev.Answer(dev.Request(o.Name, cmp.Or(payload, "{}")))
			require.Equal(t, !o.OpenToAgents(), unwelcome.MatchString(m.Line), "%s %s on stdio: %s", o.Name, payload, m.Line)
			if m.Error == nil {
				require.Equal(t, []string{"correlationId", "id", "payload", "timestamp", "type"}, m.Keys)
				requireDescribed(h, "response.success", m.Line)
			} else {
				requireDescribed(h, "response.error", m.Line)
				require.NotContains(t, []string{"INVALID_MESSAGE_TYPE", "INTERNAL_ERROR"}, m.Error.Code, "%s %s on stdio: %s", o.Name, payload, m.Line)
			}
			require.True(t, o.OpenToAgents() || m.Error != nil && m.Error.Code == "UNAUTHORIZED", "%s on stdio: %s", o.Name, m.Line)
			for _, c := range callers {
				r := c.by.Ask("POST /api/v1/operations/"+o.Name, payload)
				require.Equal(t, !c.allowed(o), unwelcome.MatchString(r.Text), "%s %s from %s: %s", o.Name, payload, c.name, r.Text)
				require.True(t, c.allowed(o) || r.Status == c.refused, "%s from %s: %d %s", o.Name, c.name, r.Status, r.Text)
				require.NotEqual(t, http.StatusInternalServerError, r.Status, "%s %s from %s: %s", o.Name, payload, c.name, r.Text)
				for _, route := range o.HTTP {
					r := c.by.Ask(ids.Replace(route), inSnakeCase(route, payload))
					require.NotContains(t, []int{http.StatusMethodNotAllowed, http.StatusInternalServerError}, r.Status, "%s %s from %s: %s", route, payload, c.name, r.Text)
				}
			}
		}
	}
	h.Stop()
}

// inSnakeCase returns a payload as the body of its own route.
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
