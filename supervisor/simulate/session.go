package simulate

import (
	"fmt"
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/session"
	"orchestrator/wire/stdio"
)

// talks is how many tasks the architect of each session assigns.
const talks = 20

// A talk is the work on one task of a session.
type talk struct {
	of      *session.Spec
	task    string
	members map[string]session.Member // by their types
	rounds  int                       // reviews so far
	ended   string                    // approved, gave up, or why a message was refused
}

// hold has the members of a session work on tasks, if there are a developer and an architect.
func (w *world) hold(s *session.Spec) {
	byType := make(map[string][]session.Member)
	for _, m := range s.Members {
		if w.agents[m.AgentID] != nil {
			byType[m.AgentType] = append(byType[m.AgentType], m)
		}
	}
	if len(byType[session.AgentArchitect]) == 0 || len(byType[session.AgentDeveloper]) == 0 {
		return // the report shows it
	}
	for n := range talks {
		t := &talk{of: s, task: fmt.Sprintf("%s-%d", s.ID, n+1), members: make(map[string]session.Member)}
		for kind, members := range byType {
			t.members[kind] = members[n%len(members)]
		}
		w.talks = append(w.talks, t)
		w.after(time.Duration(n)*meanWork, func() { w.assign(t) })
	}
}

// say sends a message from one member to another. It returns false if the message is refused, or if the member does not
// run: then the member sends it later.
func (w *world) say(t *talk, from, to, kind string, payload string, again func()) bool {
	a, b := t.members[from], t.members[to]
	m := w.agents[a.AgentID]
	if !m.up {
		if !m.gone {
			w.after(time.Minute, again)
		} else {
			t.ended = a.AgentID + " has ended for good"
		}
		return false
	}
	w.number++
	line := fmt.Sprintf(`{"message_id":%q,"session_id":%q,"timestamp":%q,"sequence_number":%d,"from_agent":{"agent_id":%q,"agent_type":%q},`+
		`"to_agent":{"agent_id":%q,"agent_type":%q},"message_type":%q,"payload":%s}`, fmt.Sprintf("msg-%d", w.number), t.of.ID,
		w.now.Format(time.RFC3339), w.number, a.AgentID, a.AgentType, b.AgentID, b.AgentType, kind, payload)
	reader := stdio.Reader{Agent: a.AgentID, Depth: 64}
	said, ok := reader.Parse([]byte(line)).(*wire.Session)
	if !ok {
		panic("a model agent has sent a malformed message: " + line)
	}
	r := &wire.Request{ID: said.ID, Operation: "send-session-message", Form: dialect.Session, Body: &wire.SaySession{Session: *said}}
	if refused := w.do(m.actor(), r); refused != nil {
		t.ended = refused.Message
		return false
	}
	return true
}

// assign has the architect assign a task, for the first time or after a review.
func (w *world) assign(t *talk) {
	var before []string
	for n := range t.rounds {
		before = append(before, fmt.Sprintf(`{"attempt_number":%d,"outcome":"not approved","feedback":"a finding"}`, n+1))
	}
	payload := fmt.Sprintf(`{"priority":"medium","task":{"task_id":%q,"task_description":"a model task","context":{"specs":[],"reference_files":[],"previous_attempts":[%s]},`+
		`"constraints":{"scope":["**"],"testing_required":false,"must_not_break":[]},"acceptance_criteria":["done"]}}`, t.task, strings.Join(before, ","))
	if !w.say(t, session.AgentArchitect, session.AgentDeveloper, session.TypeTaskAssignment, payload, func() { w.assign(t) }) {
		return
	}
	w.after(w.about(meanWork), func() { w.complete(t) })
}

func (w *world) complete(t *talk) {
	payload := fmt.Sprintf(`{"task_id":%q,"status":"completed","changes":{"files_created":[],"files_modified":[],"files_deleted":[]},"summary":"done",`+
		`"self_review":{"tests_run":true,"tests_passed":true,"type_check_passed":true}}`, t.task)
	if !w.say(t, session.AgentDeveloper, session.AgentArchitect, session.TypeTaskCompletion, payload, func() { w.complete(t) }) {
		return
	}
	if _, ok := t.members[session.AgentReviewer]; !ok {
		t.ended = "done"
		return
	}
	w.after(time.Minute, func() { w.review(t) })
}

func (w *world) review(t *talk) {
	var before []string
	for n := range t.rounds {
		before = append(before, fmt.Sprintf(`{"review_number":%d,"verdict":"changes_requested","key_findings":[]}`, n+1))
	}
	id := fmt.Sprintf("%s-r%d", t.task, t.rounds+1)
	payload := fmt.Sprintf(`{"review_id":%q,"task_id":%q,"scope":{"files":[],"focus_areas":[]},"criteria":{"must_pass_tests":true,"must_pass_type_check":true},`+
		`"context":{"task_description":"a model task","acceptance_criteria":[],"previous_reviews":[%s]}}`, id, t.task, strings.Join(before, ","))
	if w.say(t, session.AgentArchitect, session.AgentReviewer, session.TypeReviewRequest, payload, func() { w.review(t) }) {
		w.after(w.about(meanWork), func() { w.judge(t, id, w.chance.Float64() < changes) })
	}
}

func (w *world) judge(t *talk, id string, again bool) {
	verdict, findings := session.VerdictApproved, "[]"
	if again {
		verdict, findings = session.VerdictChangesRequested, fmt.Sprintf(`[{"finding_id":"%s-f","severity":"major","category":"logic","location":{"file":"a"},"description":"odd","rationale":"it is"}]`, id)
	}
	payload := fmt.Sprintf(`{"review_id":%q,"task_id":%q,"verdict":%q,"findings":%s,"summary":"seen",`+
		`"verification":{"tests":{"passed":true},"type_check":{"passed":true},"custom":{}}}`, id, t.task, verdict, findings)
	if !w.say(t, session.AgentReviewer, session.AgentArchitect, session.TypeReviewResult, payload, func() { w.judge(t, id, again) }) {
		return
	}
	t.rounds++
	switch {
	case !again:
		t.ended = "approved"
	case t.rounds >= int(t.of.MaxIterations):
		t.ended = exhausted
	default:
		w.after(time.Minute, func() { w.assign(t) })
	}
}

// exhausted is how a task ends that still needs changes after its last review.
const exhausted = "needs changes after the last review"
