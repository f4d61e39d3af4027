package session

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// Agents that speak ACP are the developer and the reviewer of a session. They report with the
// tools of an MCP server that they start. The log of the session has no word of complaint.
func TestACPInASession(t *testing.T) {
	hcl := sessionOf("change", "  require_review = true\n  validation = \"strict\"", "lead=architect", "coder=developer", "rex=reviewer") +
		"\nagent \"lead\" {\n  command = [\"orchestrator\", \"lead\"]\n}\n"
	for _, name := range []string{"coder", "rex"} {
		hcl += "\nagent \"" + name + "\" {\n  protocol = \"acp\"\n  command = [\"acp-member\"]\n  capabilities { max_concurrent_tasks = 0 }\n}\n"
	}
	s := stage.New(t, stage.QuickStop+hcl).Up("--json")
	s.WaitForEvents(3, events.AgentStarted, "")
	id := strings.TrimSpace(s.Ask("task", "add", "Write the page", "--criterion", "It is short", "--review", "-q"))
	s.WaitForState(id, wire.TaskDone)
	result := string(s.ShownTask(id).Result)
	require.Contains(t, result, `"summary":"written"`)
	require.Contains(t, result, `"files":["page.html"]`)
	require.Contains(t, result, `"verdict":"approved"`)
	require.Contains(t, result, `"reviews":2`)

	p := proceedingsOf(s, "change")
	var log []string
	for i := range p.said {
		u := &p.said[i]
		require.Empty(t, u.Refused, "%s", u.text)
		require.Empty(t, u.Errors, "%s", u.text)
		log = append(log, u.String())
	}
	round := []string{"lead>coder task_assignment", "coder>lead acknowledgment", "coder>lead task_progress", "coder>lead task_completion completed", "lead>rex review_request"}
	require.Equal(t, append(append(append(round, "rex>lead review_result changes_requested"), round...), "rex>lead review_result approved"), log)
	heard := map[string][]string{
		"coder": {
			"task_current: Your task work-" + wire.ShortID(id) + "-1: Write the page", "task_progress: reported",
			"review: you have no review to report: use task_complete or task_fail",
			"task_complete: say in a few words what was done, or why it cannot be done",
			"task_complete: reported; end your turn", "task_complete: you have no open task",
		},
		"rex": {
			"task_current: Review " + p.Reviews[0].ReviewID + ": judge the work on task work-" + wire.ShortID(id) + "-1.", "task_progress: reported",
			"task_complete: you are asked for a review: report with the tool review", "review: reported; end your turn",
		},
	}
	for name, lines := range heard {
		said := ""
		for _, line := range lines {
			stage.WaitFor(t, line, func() bool {
				said = strings.Join(s.Lines(name, "stderr"), "\n")
				return strings.Contains(said, line+"\n")
			})
		}
		require.NotContains(t, said, "What is this?", name) // no task was open at the end of a turn
	}
}

const toCoder, toRex = `{"agent_id":"coder","agent_type":"developer"}`, `{"agent_id":"rex","agent_type":"reviewer"}`

// leads sends a message of the architect of the session checkout.
func leads(s *stage.Orchestrator, number int, to, kind, payload string) {
	s.T.Helper()
	s.Operated(nil, "send-session-message", fmt.Sprintf(`{"session_id":"checkout","message":{"message_id":"msg-%d","timestamp":"2026-11-20T09:15:00Z","sequence_number":%[1]d,`+
		`"from_agent":{"agent_id":"lead","agent_type":"architect"},"to_agent":%s,"message_type":%q,"payload":%s}}`, number, to, kind, payload))
}

// A person's own client takes the place of a member that does not run.
func TestMCPGuestInASession(t *testing.T) {
	s := stage.New(t, stage.QuickStop+sessionOf("checkout", "", "lead=architect", "coder=developer", "rex=reviewer")+stage.Readers("lead")+
		"\nagent \"coder\" {\n  command = [\"cat\"]\n  autostart = false\n}\n\nagent \"rex\" {\n  command = [\"cat\"]\n  autostart = false\n}\n").Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "")
	coder, rex := s.Guest("--as", "coder"), s.Guest("--as", "rex")
	given := make(chan string)
	go func() { given <- coder.Used("task_next", nil) }()
	leads(s, 1, toCoder, "task_assignment", assigning("t"))
	require.Contains(t, <-given, "Your task t: Do t")
	waitForPhase(s, "working")
	require.Contains(t, coder.Used("task_next", nil), "Your task t: Do t")
	coder.Used("task_complete", map[string]any{"summary": "done"})
	leads(s, 4, toRex, "review_request", reviewing("r-1", "t", 0))
	require.Contains(t, rex.Used("task_next", nil), "Review r-1: judge the work on task t.")
	rex.Used("review", map[string]any{"verdict": "approved", "summary": "good", "tests_passed": true, "type_check_passed": true})
	p := waitForPhase(s, "over")
	require.Equal(t, []string{
		"lead>coder task_assignment", "coder>lead acknowledgment", "coder>lead task_completion completed",
		"lead>rex review_request", "rex>lead review_result approved",
	}, types(p.said))
}

// A program with MCP is a member of a session, over HTTP as well. It works in order: first begun
// tasks, then reviews, then new tasks.
func TestMCPInASession(t *testing.T) {
	s := stage.New(t, stage.QuickStop+"http {\n  listen = [\"127.0.0.1:0\"]\n}\n"+
		sessionOf("checkout", "", "lead=architect", "coder=developer", "rex=reviewer")+stage.Readers("lead", "coder", "rex")).Up()
	url := s.Address() + "/mcp"
	connect := func(name string) *stage.ToolUser {
		return s.ToolUser(&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: s.KeyOf(name)}})
	}
	coder, rex := connect("coder"), connect("rex")
	number := 0
	lead := func(to, kind, payload string) {
		t.Helper()
		number += 100
		leads(s, number, to, kind, payload)
	}
	verdict := func(review, verdict string) map[string]any {
		return map[string]any{"review_id": review, "verdict": verdict, "summary": verdict, "tests_passed": true, "type_check_passed": true}
	}

	require.Contains(t, rex.Refused("review", verdict("", "approved")), "no review to report")
	require.Contains(t, coder.Refused("task_current", nil), "you have no open task")
	lead(toCoder, "task_assignment", assigning("t"))
	require.Contains(t, coder.Used("task_current", nil), "Your task t: Do t")
	require.Contains(t, coder.Refused("task_complete", map[string]any{"summary": "done", "created": []string{"etc/passwd"}}), "outside the scope")
	require.Equal(t, "reported", coder.Used("task_progress", map[string]any{"message": "half", "progress": 0.5}))
	require.Equal(t, "reported", coder.Used("task_progress", map[string]any{"message": "more"}))
	p := waitForPhase(s, "working")
	require.InDelta(t, 0.5, p.task(t, "t").Progress, 0)
	require.Equal(t, "more", p.task(t, "t").Step)

	// A task outside of the session waits.
	id := strings.TrimSpace(s.Ask("task", "add", "Sweep", "--assign", "coder", "-q"))
	require.Contains(t, coder.Used("task_current", nil), "Your task t: Do t")
	coder.Used("task_complete", map[string]any{"summary": "done", "modified": []string{"src/a"}})
	waitForPhase(s, "completed")
	require.Contains(t, coder.Used("task_current", nil), id)
	coder.Used("task_complete", map[string]any{"summary": "swept"})
	s.WaitForState(id, wire.TaskDone)
	require.Contains(t, coder.Refused("task_complete", map[string]any{"summary": "again"}), "you have no open task")

	// Reviews come in the order of their requests, unless one is named.
	lead(toCoder, "task_assignment", assigning("u"))
	coder.Used("task_complete", map[string]any{"summary": "done"})
	lead(toRex, "review_request", reviewing("r-u", "u", 0))
	lead(toRex, "review_request", reviewing("r-t", "t", 0))
	require.Contains(t, rex.Used("task_current", nil), "Review r-u: judge the work on task u.")
	require.Equal(t, "reported", rex.Used("task_progress", map[string]any{"message": "reading"}))
	require.Contains(t, rex.Refused("task_complete", map[string]any{"summary": "fine"}), "report with the tool review")
	require.Contains(t, rex.Refused("review", verdict("r-x", "approved")), "no review to report")
	changes := verdict("r-t", "changes_requested")
	changes["findings"] = []map[string]any{{"severity": "major", "category": "logic", "file": "src/a", "description": "off by one"}}
	rex.Used("review", changes)
	rex.Used("task_fail", map[string]any{"reason": "there is nothing to see"})
	require.Contains(t, rex.Refused("task_current", nil), "you have no open task")
	require.Contains(t, rex.Refused("review", verdict("", "approved")), "no review to report")

	// A task that is done is revised.
	waitForPhase(s, "revise")
	lead(toCoder, "task_assignment", assigning("t"))
	require.Contains(t, coder.Used("task_current", nil), "Your task t: Do t")
	coder.Used("task_fail", map[string]any{"reason": "it is beyond me"})
	require.Contains(t, coder.Refused("task_current", nil), "you have no open task")

	p = proceedingsOf(s, "checkout")
	require.Equal(t, "changes_requested", p.Reviews[1].Verdict)
	require.Equal(t, []string{
		"lead>coder task_assignment", "coder>lead task_completion completed", "coder>lead task_progress", "coder>lead task_progress",
		"coder>lead task_completion completed", "lead>coder task_assignment", "coder>lead task_completion completed",
		"lead>rex review_request", "lead>rex review_request", "rex>lead review_result changes_requested", "rex>lead feedback",
		"lead>coder task_assignment", "coder>lead task_completion failed",
	}, types(p.said))
	require.Contains(t, p.said[1].Refused, "outside the scope")
	for _, u := range append(p.said[2:5:5], p.said[9:]...) {
		require.Empty(t, u.Errors, "%s", u.text)
	}
	require.Contains(t, string(p.one(t, "feedback", "lead").Payload), "there is nothing to see")
	for i, number := range []int64{101, 102, 103} {
		require.Equal(t, number, p.said[i+2].Sequence)
	}
}
