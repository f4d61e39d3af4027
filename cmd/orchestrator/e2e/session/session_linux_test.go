package session

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/cmd/orchestrator/laws/source"
	"orchestrator/cmd/orchestrator/project"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// A manual has the samples of the page on sessions: a block of the file, messages, and a
// developer.
type manual struct {
	hcl, developer string
	messages       []string
}

func sessionManual(t *testing.T) (m manual) {
	t.Helper()
	for _, sample := range source.Fences(t, "../../help/session.md") {
		text := strings.Join(sample.Lines, "\n") + "\n"
		switch sample.Lang {
		case "hcl":
			m.hcl = text
		case "json":
			for line := range strings.Lines(text) {
				m.messages = append(m.messages, strings.TrimSuffix(line, "\n"))
			}
		case "sh":
			m.developer = text
		}
	}
	return m
}

// The samples of the page on sessions are valid.
func TestTheManualsSession(t *testing.T) {
	m := sessionManual(t)
	file := t.TempDir() + "/orchestrator.hcl"
	require.NoError(t, os.WriteFile(file, []byte(members()+m.hcl), 0o600))
	c, problems := config.Load(file, config.Options{})
	require.Empty(t, problems)
	require.Len(t, c.Sessions, 1)
	require.Len(t, m.messages, 3)
	for _, message := range m.messages {
		_, err := session.Read([]byte(message), project.CheckedDepth)
		require.Nil(t, err)
	}
}

// members returns the agents of the manual's session: the developer, and two that only read and
// for which the tests send messages.
func members() string {
	hcl := "agent \"dev\" {\n  command = [\"sh\", \"dev.sh\"]\n}\n"
	for _, name := range []string{"ada", "rex"} {
		hcl += fmt.Sprintf("agent %q {\n  command = [\"sh\", \"-c\", \"exec cat >%[1]s.heard\"]\n}\n", name)
	}
	return hcl
}

// speech returns a message of the session in the name of an agent.
func speech(id, from, to, kind, payload string) string {
	types := map[string]string{"ada": "architect", "dev": "developer", "rex": "reviewer"}
	return fmt.Sprintf(`{"message_id":%q,"timestamp":%q,"sequence_number":20,"from_agent":{"agent_id":%q,"agent_type":%q},`+
		`"to_agent":{"agent_id":%q,"agent_type":%q},"message_type":%q,"payload":%s}`, id, stage.Noon, from, types[from], to, types[to], kind, payload)
}

// saysIn sends a message, which must be accepted.
func saysIn(s *stage.Orchestrator, message string) string {
	s.T.Helper()
	s.Write("message.json", message)
	return s.Ask("session", "send", "checkout", "message.json")
}

// waitForLog waits until the session log matches, and returns it.
func waitForLog(s *stage.Orchestrator, pattern string) (shown string) {
	s.T.Helper()
	stage.WaitFor(s.T, pattern, func() bool {
		shown = s.Ask("session", "show", "checkout")
		return regexp.MustCompile("(?m)" + pattern).MatchString(shown)
	})
	return shown
}

// A task goes to the developer and to the reviewer, who requests changes. Commands show each
// step.
//
// Rows: C-83, C-85, C-99, C-100.
func TestSessionVerbs(t *testing.T) {
	t.Parallel()
	m := sessionManual(t)
	s := stage.New(t, members()+m.hcl, "dev.sh", m.developer).Up("--json")
	stage.WaitFor(t, "an orchestrator", func() bool { _, _, code := s.Call("status"); return code == cli.ExitOK })
	require.Regexp(t, `(?m)^checkout  open   1 architect, 1 developer, 1 reviewer    0/0        0         0        0$`, s.Ask("session", "ls"))
	require.Contains(t, s.Ask("session", "show", "checkout"), "\nNo messages yet.")
	require.Contains(t, s.Ask("review", "ls"), "No reviews yet.")

	// the manual's developer does the task of the manual's message
	require.Equal(t, "Sent msg-1-ada in checkout  sequence 1  chain msg-1-ada\n", saysIn(s, m.messages[0]))
	shown := waitForLog(s, `task_completion +completed  no files  tests passed  It is there$`)
	require.Regexp(t, `(?m)^pay-button  Add a button that pays  completed  iteration 0 of 3  by dev$`, shown)
	require.Regexp(t, `(?m)^  [\d:]+  ada -> dev     task_assignment  high  Add a button that pays`, shown)
	require.Regexp(t, `(?m)^  [\d:]+  └─ dev -> ada  acknowledgment$`, shown)
	require.Regexp(t, `(?m)^ada +architect +idle +\d  pay-button completed$`, shown)
	require.Equal(t, "Already sent msg-1-ada in checkout\n", saysIn(s, m.messages[0]))
	require.Equal(t, "msg-1-ada\n", s.Ask("session", "send", "checkout", "message.json", "-q"))

	// the review
	saysIn(s, speech("msg-2-ada", "ada", "rex", "review_request", `{"review_id":"r-1","task_id":"pay-button","scope":{"files":["web/pay.ts"],"focus_areas":["logic"]},`+
		`"criteria":{"must_pass_tests":true,"must_pass_type_check":true},"context":{"task_description":"A button","acceptance_criteria":[]}}`))
	require.Regexp(t, `(?m)^r-1  checkout  pay-button  rex +1  open +-  `, s.Ask("review", "ls", "--open"))
	saysIn(s, speech("msg-3-rex", "rex", "ada", "review_result", `{"review_id":"r-1","task_id":"pay-button","verdict":"changes_requested",`+
		`"findings":[{"finding_id":"f-1","severity":"major","category":"logic","location":{"file":"web/pay.ts","line_start":7},"description":"It pays twice","rationale":"Clicks"}],`+
		`"verification":{"tests":{"passed":true},"type_check":{"passed":true},"custom":{}},"summary":"Nearly there",`+
		`"required_changes":[{"change_id":"c-1","priority":"must_fix","related_findings":["f-1"],"description":"Pay once"}]}`))
	shown = waitForLog(s, `review_result +changes_requested  1 major  Nearly there`)
	require.Contains(t, shown, "major  logic  f-1  web/pay.ts:7  It pays twice\n")
	require.Contains(t, shown, "\n  open findings\n    major  f-1  web/pay.ts  since iteration 1  It pays twice\n")
	require.Regexp(t, `(?m)^pay-button  Add a button that pays  revise  iteration 1 of 3  by dev$`, shown)
	require.Contains(t, s.Ask("review", "ls", "--open"), "No open reviews.")
	shown = s.Ask("review", "show", "r-1")
	require.Contains(t, shown, "r-1  changes_requested\n")
	require.Contains(t, shown, "  summary    Nearly there\n")
	require.Regexp(t, `(?m)^f-1 +major +logic +web/pay.ts  open since iteration 1  It pays twice$`, shown)
	require.Regexp(t, `(?m)^checkout +open .* 1/1 +0 +\d +0$`, s.Ask("session", "ls"))
	s.Stop()
}

// A refused message lists all its mistakes and is in the log. An unknown session gives a
// suggestion. Messages are kept after a restart.
//
// Rows: C-17, C-97, C-98.
func TestSessionVerbsRefused(t *testing.T) {
	t.Parallel()
	m := sessionManual(t)
	s := stage.New(t, members()+m.hcl, "dev.sh", m.developer).Up("--json")
	stage.WaitFor(t, "an orchestrator", func() bool { _, _, code := s.Call("status"); return code == cli.ExitOK })
	s.Write("odd.json", speech("msg-9", "ada", "dev", "task_assignment", `{"task":{},"priority":"urgent"}`))
	_, said, code := s.Call("session", "send", "checkout", "odd.json")
	require.Equal(t, cli.ExitUsage, code, said)
	for _, line := range []string{`  = /payload/task/task_id: task.task_id is missing`, `/payload/priority: priority must be one of high, medium or low`} {
		require.Contains(t, said, line)
	}
	s.Write("odd.json", speech("msg-10", "dev", "rex", "task_assignment", strings.TrimSuffix(m.messages[0][strings.Index(m.messages[0], `{"task":`):], "}")))
	_, said, code = s.Call("session", "send", "checkout", "odd.json")
	require.Equal(t, cli.ExitDenied, code, said)
	require.Regexp(t, `(?m)^  = At .*/from_agent/agent_type$`, said)
	shown := waitForLog(s, `msg|refused: `)
	require.Regexp(t, `(?m)^  [\d:]+  ada -> dev  task_assignment  refused: /payload/task/task_id: task.task_id is missing`, shown)
	require.Regexp(t, `(?m)^  [\d:]+  dev -> rex  task_assignment  refused: task_assignment is for an agent of the type architect to say`, shown)

	stdout, said, code := s.Call("session", "show", "chekout")
	require.Equal(t, cli.ExitNotFound, code)
	require.Empty(t, stdout)
	require.Equal(t, "Error: session \"chekout\" does not exist\n  = Did you mean \"checkout\"?\n  = List them: orchestrator session ls\n", said)
	_, said, code = s.Call("session", "send", "chekout", "odd.json")
	require.Equal(t, cli.ExitNotFound, code, said)
	require.Contains(t, said, `Did you mean "checkout"?`)
	_, said, code = s.Call("review", "ls", "--session", "chekout")
	require.Equal(t, cli.ExitNotFound, code, said)

	require.Equal(t, "Session attic is open: 1 architect, 1 developer\n", s.Ask("session", "new", "attic", "--member", "ada=architect", "--member", "dev=developer", "--strict"))
	_, said, code = s.Call("session", "new", "attic", "--member", "ada=architect")
	require.Equal(t, cli.ExitConflict, code, said)
	require.Equal(t, "checkout\nattic\n", s.Ask("session", "ls", "-q"))
	require.Contains(t, s.Ask("session", "show", "attic"), "  messages  strict: every deviation is refused\n")

	s.Stop()
	s.Up("--json")
	stage.WaitFor(t, "an orchestrator", func() bool { _, _, code := s.Call("status"); return code == cli.ExitOK })
	_, before, _ := strings.Cut(shown, "of no chain")
	_, after, _ := strings.Cut(s.Ask("session", "show", "checkout"), "of no chain")
	require.Equal(t, before, after, "what was said is kept")
	var document struct {
		FormatVersion string `json:"format_version"`
		Messages      []struct {
			MessageID string   `json:"message_id"`
			Refused   string   `json:"refused"`
			Errors    []string `json:"validation_errors"`
		} `json:"messages"`
		More bool `json:"more"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.Ask("session", "show", "checkout", "--json")), &document))
	require.Equal(t, wire.FormatVersion, document.FormatVersion)
	require.Len(t, document.Messages, 2)
	require.Equal(t, "msg-9", document.Messages[0].MessageID)
	require.Greater(t, len(document.Messages[0].Errors), 2)
	require.False(t, document.More)
	require.Equal(t, "checkout\nattic\n", s.Ask("session", "ls", "-q"))
	s.Stop()
}

const (
	sayIt  = "POST /operations/send-session-message"
	readIt = "POST /operations/get-session"
)

// saying returns the request that sends a message over HTTP.
func saying(id, from, to, kind, payload string) string {
	return `{"session_id":"checkout","message":` + speech(id, from, to, kind, payload) + `}`
}

// tells sends a message over HTTP. It must be accepted.
func tells(v *stage.Caller, id, from, to, kind, payload string) (said session.Said) {
	v.Hub.T.Helper()
	v.Gets(&said, sayIt, saying(id, from, to, kind, payload))
	require.Equal(v.Hub.T, id, said.MessageID)
	return said
}

// reads waits for messages to an agent after a log entry, and returns them.
func reads(v *stage.Caller, to string, after int64) (found []utterance) {
	v.Hub.T.Helper()
	stage.WaitFor(v.Hub.T, "messages for "+to, func() bool {
		r := v.Gets(nil, readIt, fmt.Sprintf(`{"session_id":"checkout","to":%q,"after":%d}`, to, after))
		found = readProceedings(v.Hub.T, r.Text).said
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
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+stage.Unlimited+stage.ScriptedAgents("ada")+untapped(t, "rex", "reviewer -request-changes 1")+checkout("require_review = true"), "ada")
	ada := h.Open("ada")[0]
	utter(ada, "msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
	require.Contains(t, refusedFor(ada, "msg-1").message, "known", "it has not come yet")
	dev, other := h.Register("dev", ""), h.Register("other", "")

	utter(ada, "msg-2", "dev", session.TypeTaskAssignment, assigning("t"))
	orders := reads(dev, "dev", 0)
	require.Equal(t, []string{"ada>dev task_assignment"}, types(orders))
	var ack session.Said
	dev.Gets(&ack, sayIt, strings.Replace(saying("msg-10", "dev", "ada", session.TypeAcknowledgment, `{}`), `"payload"`, `"reply_to":"msg-2","payload"`, 1))
	require.Equal(t, "msg-2", ack.CorrelationID, "it has the number of its chain")
	require.True(t, tells(dev, "msg-10", "dev", "ada", session.TypeAcknowledgment, `{}`).Duplicate)
	dev.Fails(http.StatusConflict, "conflict", sayIt, saying("msg-11", "dev", "ada", session.TypeTaskCompletion, completing("t", "etc/x")))
	tells(dev, "msg-12", "dev", "ada", session.TypeTaskCompletion, completing("t", "src/x"))
	nth(ada, 1, session.TypeTaskCompletion)
	require.Len(t, spoken(ada, session.TypeAcknowledgment), 1)
	utter(ada, "msg-3", "rex", session.TypeReviewRequest, reviewing("r-1", "t", 0))
	require.Equal(t, session.VerdictChangesRequested, nth(ada, 1, session.TypeReviewResult).body.Verdict)
	utter(ada, "msg-4", "dev", session.TypeTaskAssignment, assigning("t"))
	orders = reads(dev, "dev", orders[0].LogSeq)
	require.Equal(t, []string{"msg-4"}, []string{orders[0].MessageID})
	require.Len(t, orders, 1, "only what is new")

	// no caller sends as another agent, and only members read
	for _, v := range []*stage.Caller{dev, other} {
		v.Fails(http.StatusForbidden, "denied", sayIt, saying("msg-20", "ada", "dev", session.TypeFeedback, remark("psst")))
		v.Fails(http.StatusForbidden, "denied", sayIt, saying("msg-21", "rex", "ada", session.TypeFeedback, remark("psst")))
		v.Fails(http.StatusForbidden, "denied", "POST /operations/create-session", `{"session_id":"own","members":[{"agent_id":"dev","agent_type":"architect"}]}`)
	}
	other.Fails(http.StatusForbidden, "denied", readIt, `{"session_id":"checkout"}`)
	h.Anonymous().Fails(http.StatusUnauthorized, "unauthenticated", readIt, `{"session_id":"checkout"}`)
	bad := dev.Fails(http.StatusBadRequest, "invalid", sayIt, saying("msg-22", "dev", "ada", session.TypeFeedback, `{"subject":1}`))
	require.Contains(t, fmt.Sprint(bad.Error.Details["errors"]), "/payload/message/payload/feedback_type")

	// a person sends a message in the developer's place
	ann := h.Person()
	said := tells(ann, "msg-13", "dev", "ada", session.TypeTaskCompletion, completing("t", "src/x"))
	require.Equal(t, "msg-2", said.CorrelationID)
	nth(ada, 2, session.TypeTaskCompletion)
	utter(ada, "msg-5", "rex", session.TypeReviewRequest, reviewing("r-2", "t", 1))
	require.Equal(t, session.VerdictApproved, nth(ada, 2, session.TypeReviewResult).body.Verdict)
	task := waitForPhase(h.Team.Orchestrator, session.PhaseOver).task(t, "t")
	require.Equal(t, wire.TaskDone, task.State)
	refused := 0
	for _, u := range proceedingsOf(h.Team.Orchestrator, "checkout").said {
		if u.Refused != "" {
			refused++
		}
	}
	require.GreaterOrEqual(t, refused, 5, "what was refused over HTTP is in the log as well")
	h.Stop()
}

// A session created by a request is like one of the file, and is restored after a restart.
//
// Rows: C-06, C-07, C-17, C-87.
func TestSessionThatIsMade(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+stage.ScriptedAgents("ada", "dev"), "ada", "dev")
	actors := h.Open("ada", "dev")
	ada, dev := actors[0], actors[1]
	utter(ada, "msg-1", "dev", session.TypeFeedback, remark("early"))
	require.Contains(t, refusedFor(ada, "msg-1").message, "not a member of any session")
	ann := h.Person()
	spec := `{"session_id":"checkout","max_iterations":1,"members":[{"agent_id":"ada","agent_type":"architect"},{"agent_id":"dev","agent_type":"developer"}]}`
	ann.Gets(nil, "POST /operations/create-session", spec)
	ann.Fails(http.StatusConflict, "conflict", "POST /operations/create-session", spec)
	utter(ada, "msg-2", "dev", session.TypeFeedback, remark("now"))
	first := nth(dev, 1, session.TypeFeedback)
	require.Equal(t, "msg-2", first.MessageID)
	h.Kill()
	actors = h.Open("ada", "dev")
	ada, dev = actors[0], actors[1]
	require.Equal(t, "msg-2", nth(dev, 1, session.TypeFeedback).MessageID, "the first run may not have read it")
	utter(ada, "msg-2", "dev", session.TypeFeedback, remark("now"))
	utter(ada, "msg-3", "dev", session.TypeFeedback, remark("again"))
	require.Equal(t, "msg-3", nth(dev, 2, session.TypeFeedback).MessageID)
	p := proceedingsOf(h.Team.Orchestrator, "checkout")
	require.Len(t, p.said, 2)
	h.Stop()
}
