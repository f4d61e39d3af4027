package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
)

// Tests of the hub API over real TCP, as people with tokens, agents with keys, and servers on
// other machines use it. Every answer is checked against the program's OpenAPI document.

// hubTask is a task as the hub API returns it.
type hubTask struct {
	ID             string                     `json:"id"`
	Title          string                     `json:"title"`
	Spec           string                     `json:"spec"`
	Status         string                     `json:"status"`
	Type           string                     `json:"type"`
	Priority       string                     `json:"priority"`
	Structured     json.RawMessage            `json:"structured_spec"`
	Requirements   json.RawMessage            `json:"requirements"`
	Dependencies   []hubLink                  `json:"dependencies"`
	Inputs         map[string]json.RawMessage `json:"resolved_inputs"`
	Result         json.RawMessage            `json:"result"`
	Error          string                     `json:"error"`
	Reason         string                     `json:"cancel_reason"`
	Plan           json.RawMessage            `json:"plan"`
	Feedback       *string                    `json:"plan_feedback"`
	Help           *wire.Help                 `json:"help"`
	Parent         *string                    `json:"parent_task_id"`
	Session        *string                    `json:"session_id"`
	CreatedBy      string                     `json:"created_by"`
	Server         string                     `json:"assigned_server_name"`
	Criteria       []string                   `json:"acceptance_criteria"`
	InterventionID string                     `json:"intervention_id"`
}

type hubLink struct {
	ID         string  `json:"id"`
	On         string  `json:"depends_on_task_id"`
	Type       string  `json:"dependency_type"`
	Contract   *string `json:"contract_key"`
	Resolved   bool    `json:"resolved"`
	ResolvedAt *string `json:"resolved_at"`
}

// create creates a task and returns its id.
func create(v *stage.Caller, body string) string {
	v.Hub.T.Helper()
	tree := "/tasks"
	if v.Header == "X-API-Key" {
		tree = "/server/tasks"
	}
	var task hubTask
	r := v.Gets(&task, "POST "+tree, body)
	require.Equal(v.Hub.T, http.StatusCreated, r.Status)
	require.Equal(v.Hub.T, "pending", task.Status, r.Text)
	return task.ID
}

// wanting returns a task that requires a language, with further members in more.
func wanting(title, language string, more ...string) string {
	members := append([]string{fmt.Sprintf(`"title":%q,"spec":"s","requirements":{"languages":[%q]}`, title, language)}, more...)
	return "{" + strings.Join(members, ",") + "}"
}

// taskOf returns a task with all its members.
func taskOf(v *stage.Caller, id string) (found hubTask) {
	v.Hub.T.Helper()
	tree := "/tasks/"
	if v.Header == "X-API-Key" {
		tree = "/server/tasks/"
	}
	v.Gets(&found, "GET "+tree+id, "")
	return found
}

// polled returns the tasks that are assigned to an agent and not started.
func polled(v *stage.Caller) (found []hubTask) {
	v.Hub.T.Helper()
	v.Gets(&found, "GET /servers/tasks/poll", "")
	return found
}

// matched auto-assigns a task and returns its server; "" if none fits.
func matched(v *stage.Caller, id string) (server string, score int) {
	v.Hub.T.Helper()
	var found struct {
		Status string `json:"status"`
		Server string `json:"server_name"`
		Score  int    `json:"match_score"`
	}
	r := v.Gets(&found, "POST /tasks/"+id+"/auto-assign", "")
	if found.Status == "no_match" {
		require.Equal(v.Hub.T, `{"status":"no_match"}`, r.Text)
	}
	return found.Server, found.Score
}

// storyOf returns the events, oldest first.
func storyOf(h *stage.Hub, flags ...string) (found []wire.Event) {
	h.T.Helper()
	for line := range strings.Lines(h.Ask(append([]string{"events", "--json"}, flags...)...)) {
		var e wire.Event
		require.NoError(h.T, json.Unmarshal([]byte(line), &e), line)
		found = append(found, e)
	}
	return found
}

// kinds returns the kinds of the events of a task, or of all events.
func kinds(story []wire.Event, task string) (found []string) {
	for _, e := range story {
		if task == "" || e.Task == task {
			found = append(found, e.Kind)
		}
	}
	return found
}
