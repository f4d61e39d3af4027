package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/object"
)

// Messages that puppets send and receive in sessions.

// assigning returns the payload of an assignment. The default scope is src/**.
func assigning(task string, scope ...string) string {
	if scope == nil {
		scope = []string{"src/**"}
	}
	list, _ := json.Marshal(scope)
	return fmt.Sprintf(`{"priority":"low","task":{"task_id":%q,"task_description":"Do %[1]s","context":{"specs":[],"reference_files":[]},`+
		`"constraints":{"scope":%s,"testing_required":false,"must_not_break":[]},"acceptance_criteria":["done"]}}`, task, list)
}

// reviewing returns the payload of a review request, with the number of previous reviews.
func reviewing(review, task string, before int, more ...string) string {
	var list []string
	for n := range before {
		list = append(list, fmt.Sprintf(`{"review_number":%d,"verdict":"changes_requested","key_findings":[]}`, n+1))
	}
	criteria := append([]string{`"must_pass_tests":true,"must_pass_type_check":true`}, more...)
	return fmt.Sprintf(`{"review_id":%q,"task_id":%q,"scope":{"files":["src/a"],"focus_areas":["logic"]},"criteria":{%s},`+
		`"context":{"task_description":"it","acceptance_criteria":[],"previous_reviews":[%s]}}`, review, task, strings.Join(criteria, ","), strings.Join(list, ","))
}

// completing returns the payload of a completion that has changed some files.
func completing(task, status string, files ...string) string {
	var list []string
	for _, file := range files {
		list = append(list, fmt.Sprintf(`{"path":%q,"change_type":"modified"}`, file))
	}
	return fmt.Sprintf(`{"task_id":%q,"status":%q,"changes":{"files_created":[],"files_modified":[%s],"files_deleted":[]},"summary":"It is so",`+
		`"self_review":{"tests_run":true,"tests_passed":true,"type_check_passed":true}}`, task, status, strings.Join(list, ","))
}

// judging returns the payload of a review result with major findings.
func judging(review, task, verdict string, findings ...string) string {
	var list []string
	for _, id := range findings {
		list = append(list, fmt.Sprintf(`{"finding_id":%q,"severity":"major","category":"logic","location":{"file":"src/a"},"description":"odd","rationale":"it is"}`, id))
	}
	return fmt.Sprintf(`{"review_id":%q,"task_id":%q,"verdict":%q,"findings":[%s],"summary":"seen",`+
		`"verification":{"tests":{"passed":true},"type_check":{"passed":true},"custom":{}}}`, review, task, verdict, strings.Join(list, ","))
}

// remark returns the payload of a feedback, which any member may send.
func remark(words string) string {
	return fmt.Sprintf(`{"feedback_type":"guidance","subject":"s","content":%q,"action_required":false}`, words)
}

const ending = `{"scope":"session","target_id":"checkout","reason":"enough","cleanup_required":true}`

// utter sends a message of the session.
func (a *actor) utter(id, to, kind, payload string) {
	a.t.Helper()
	a.say(speech(id, a.name, to, kind, payload) + "\n")
}

// spoken returns the session messages that a puppet has received, of one type or, for "", of
// all.
func (a *actor) spoken(kind string) (found []utterance) {
	a.t.Helper()
	for _, m := range a.all() {
		if u := readUtterance(a.t, m.line); u.Type != "" && (kind == "" || u.Type == kind) {
			found = append(found, u)
		}
	}
	return found
}

// nth waits for the nth message of a type.
func (a *actor) nth(n int, kind string) utterance {
	a.t.Helper()
	waitForThat(a.t, fmt.Sprintf("%d. %s for %s", n, kind, a.name), func() bool { return len(a.spoken(kind)) >= n })
	return a.spoken(kind)[n-1]
}

// undelivered is the notice that a message was not delivered.
type undelivered struct {
	ID      string `json:"original_message_id"`
	Type    string `json:"error_type"`
	Retries int    `json:"retry_count"`
	Most    int    `json:"max_retries"`
	Next    string `json:"next_retry_at"`
	Pointer string `json:"pointer"`
	Reason  string `json:"reason"`
	To      string `json:"to_agent"`
	Scope   []string
	Errors  []object.Problem

	message string
	code    string
}

func (m *message) undelivered(t *testing.T) undelivered {
	t.Helper()
	require.NotNil(t, m.Error, m.line)
	text, err := json.Marshal(m.Error.Details)
	require.NoError(t, err)
	u := undelivered{message: m.Error.Message, code: m.Error.Code}
	require.NoError(t, json.Unmarshal(text, &u), "%s", text)
	return u
}

// refusedFor waits until a message is refused.
func (a *actor) refusedFor(id string) undelivered {
	a.t.Helper()
	m := a.answer(id)
	require.Equal(a.t, "response:error", m.Type)
	u := m.undelivered(a.t)
	require.Equal(a.t, id, u.ID)
	return u
}

// checkout returns a session of the agents that speech knows.
func checkout(lines string) string {
	return sessionOf("checkout", lines, "ada=architect", "dev=developer", "rex=reviewer")
}

// troupeOf makes a theatre that also has the tap.
func troupeOf(t *testing.T, hcl string, names ...string) *theatre {
	t.Helper()
	h := troupe(t, quick+hcl, names...)
	h.write("tap.sh", tap)
	return h
}

// puppetAgents returns only the agent blocks of puppets.
func puppetAgents(names ...string) string { return strings.TrimPrefix(puppets(names...), quick) }

// waitForPhase waits until a task of a session is in a phase.
func (s *stage) waitForPhase(sessionID, task, phase string) *proceedings {
	s.t.Helper()
	var p *proceedings
	waitForThat(s.t, task+" "+phase, func() bool {
		p = s.proceedings(sessionID)
		for i := range p.Tasks {
			if p.Tasks[i].TaskID == task && p.Tasks[i].Phase == phase {
				return true
			}
		}
		return false
	})
	return p
}
