package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/session"
)

const (
	sayIt  = "POST /operations/send-session-message"
	readIt = "POST /operations/get-session"
)

// saying returns the request that sends a message over HTTP.
func saying(id, from, to, kind, payload string) string {
	return `{"session_id":"checkout","message":` + speech(id, from, to, kind, payload) + `}`
}

// tells sends a message over HTTP, which must be accepted.
func (v *visitor) tells(id, from, to, kind, payload string) (said wire.SessionSaid) {
	v.hub.t.Helper()
	v.gets(&said, sayIt, saying(id, from, to, kind, payload))
	require.Equal(v.hub.t, id, said.MessageID)
	return said
}

// reads waits for messages to an agent after a log entry, and returns them.
func (v *visitor) reads(to string, after int64) (found []utterance) {
	v.hub.t.Helper()
	waitForThat(v.hub.t, "messages for "+to, func() bool {
		r := v.gets(nil, readIt, fmt.Sprintf(`{"session_id":"checkout","to":%q,"after":%d}`, to, after))
		found = readProceedings(v.hub.t, r.text).said
		return len(found) > 0
	})
	return found
}

// An external developer polls its messages and sends its own over HTTP. It acts only as itself;
// people may send as any member.
//
// Rows: C-02, C-06, C-16, C-74, C-83, C-90, C-97, C-98.
func TestSessionMemberFromElsewhere(t *testing.T) {
	t.Parallel()
	h := newHub(t, listeners+quick+crowded+puppetAgents("ada")+untapped(t, "rex", "reviewer -request-changes 1")+checkout("require_review = true"), "ada")
	ada := h.open("ada")[0]
	ada.utter("msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
	require.Contains(t, ada.refusedFor("msg-1").message, "known", "it has not come yet")
	dev, other := h.comes("dev", ""), h.comes("other", "")

	ada.utter("msg-2", "dev", session.TypeTaskAssignment, assigning("t"))
	orders := dev.reads("dev", 0)
	require.Equal(t, []string{"ada>dev task_assignment"}, types(orders))
	var ack wire.SessionSaid
	dev.gets(&ack, sayIt, strings.Replace(saying("msg-10", "dev", "ada", session.TypeAcknowledgment, `{}`), `"payload"`, `"reply_to":"msg-2","payload"`, 1))
	require.Equal(t, "msg-2", ack.CorrelationID, "it has the number of its chain")
	require.True(t, dev.tells("msg-10", "dev", "ada", session.TypeAcknowledgment, `{}`).Duplicate)
	dev.misses(http.StatusConflict, "conflict", sayIt, saying("msg-11", "dev", "ada", session.TypeTaskCompletion, completing("t", "completed", "etc/x")))
	dev.tells("msg-12", "dev", "ada", session.TypeTaskCompletion, completing("t", "completed", "src/x"))
	ada.nth(1, session.TypeTaskCompletion)
	require.Len(t, ada.spoken(session.TypeAcknowledgment), 1)
	ada.utter("msg-3", "rex", session.TypeReviewRequest, reviewing("r-1", "t", 0))
	require.Equal(t, session.VerdictChangesRequested, ada.nth(1, session.TypeReviewResult).body.Verdict)
	ada.utter("msg-4", "dev", session.TypeTaskAssignment, assigning("t"))
	orders = dev.reads("dev", orders[0].LogSeq)
	require.Equal(t, []string{"msg-4"}, []string{orders[0].MessageID})
	require.Len(t, orders, 1, "only what is new")

	// no caller sends as another agent, and only members read
	for _, v := range []*visitor{dev, other} {
		v.misses(http.StatusForbidden, "denied", sayIt, saying("msg-20", "ada", "dev", session.TypeFeedback, remark("psst")))
		v.misses(http.StatusForbidden, "denied", sayIt, saying("msg-21", "rex", "ada", session.TypeFeedback, remark("psst")))
		v.misses(http.StatusForbidden, "denied", "POST /operations/create-session", `{"session_id":"own","members":[{"agent_id":"dev","agent_type":"architect"}]}`)
	}
	other.misses(http.StatusForbidden, "denied", readIt, `{"session_id":"checkout"}`)
	h.nobody().misses(http.StatusUnauthorized, "unauthenticated", readIt, `{"session_id":"checkout"}`)
	bad := dev.misses(http.StatusBadRequest, "invalid", sayIt, saying("msg-22", "dev", "ada", session.TypeFeedback, `{"subject":1}`))
	require.Contains(t, fmt.Sprint(bad.Error.Details["errors"]), "/payload/message/payload/feedback_type")

	// a person sends a message in the developer's place
	ann := h.person()
	said := ann.tells("msg-13", "dev", "ada", session.TypeTaskCompletion, completing("t", "completed", "src/x"))
	require.Equal(t, "msg-2", said.CorrelationID)
	ada.nth(2, session.TypeTaskCompletion)
	ada.utter("msg-5", "rex", session.TypeReviewRequest, reviewing("r-2", "t", 1))
	require.Equal(t, session.VerdictApproved, ada.nth(2, session.TypeReviewResult).body.Verdict)
	task := h.waitForPhase("checkout", "t", wire.PhaseOver).task(t, "t")
	require.Equal(t, wire.TaskDone, task.State)
	refused := 0
	for _, u := range h.proceedings("checkout").said {
		if u.Refused != "" {
			refused++
		}
	}
	require.GreaterOrEqual(t, refused, 5, "what was refused over HTTP is in the log as well")
	h.stop()
}

// A session created by a request is like one of the file, and is restored after a restart.
//
// Rows: C-06, C-07, C-17, C-87.
func TestSessionThatIsMade(t *testing.T) {
	t.Parallel()
	h := newHub(t, listeners+quick+puppetAgents("ada", "dev"), "ada", "dev")
	actors := h.open("ada", "dev")
	ada, dev := actors[0], actors[1]
	ada.utter("msg-1", "dev", session.TypeFeedback, remark("early"))
	require.Contains(t, ada.refusedFor("msg-1").message, "not a member of any session")
	ann := h.person()
	spec := `{"session_id":"checkout","max_iterations":1,"members":[{"agent_id":"ada","agent_type":"architect"},{"agent_id":"dev","agent_type":"developer"}]}`
	ann.gets(nil, "POST /operations/create-session", spec)
	ann.misses(http.StatusConflict, "conflict", "POST /operations/create-session", spec)
	ada.utter("msg-2", "dev", session.TypeFeedback, remark("now"))
	first := dev.nth(1, session.TypeFeedback)
	require.Equal(t, "msg-2", first.MessageID)
	h.kill()
	actors = h.open("ada", "dev")
	ada, dev = actors[0], actors[1]
	require.Equal(t, "msg-2", dev.nth(1, session.TypeFeedback).MessageID, "the first run may not have read it")
	ada.utter("msg-2", "dev", session.TypeFeedback, remark("now"))
	ada.utter("msg-3", "dev", session.TypeFeedback, remark("again"))
	require.Equal(t, "msg-3", dev.nth(2, session.TypeFeedback).MessageID)
	p := h.proceedings("checkout")
	require.Len(t, p.said, 2)
	h.stop()
}
