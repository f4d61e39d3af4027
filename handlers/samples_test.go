package handlers

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// TestSamples checks messages as agents write them, with a short message_id and without optional
// members. They are delivered, and the log names the tolerated mistakes. A strict session refuses
// them.
//
// Rows: C-101, C-102, C-14, C-16, K-23, T-25.
func TestSamples(t *testing.T) {
	const assignment = `{"message_id":"msg-041-b7d","timestamp":"2026-11-21T14:00:00Z","sequence_number":41,` +
		`"from_agent":{"agent_id":"arch","agent_type":"architect"},"to_agent":{"agent_id":"dev","agent_type":"developer","instance_id":"left"},` +
		`"message_type":"task_assignment","payload":{"task":{"task_id":"kettle","task_description":"Boil water",` +
		`"context":{"specs":[{"path":"docs/kettle.md","reason":"how hot"}],"reference_files":[{"path":"src/stove.go","reason":"where"}]},` +
		`"constraints":{"scope":["src/kettle/**"],"testing_required":true},"acceptance_criteria":["It whistles","It stops"]},"priority":"high"}}`
	const result = `{"message_id":"msg-050-c9e","timestamp":"2026-11-21T14:15:00Z","sequence_number":50,` +
		`"from_agent":{"agent_id":"rev","agent_type":"reviewer"},"to_agent":{"agent_id":"arch","agent_type":"architect"},` +
		`"message_type":"review_result","correlation_id":"look-1","payload":{"review_id":"look-1","task_id":"kettle","verdict":"changes_requested",` +
		`"findings":[{"finding_id":"lid","severity":"major","category":"bug","location":{"file":"src/kettle/lid.go","line_start":12},` +
		`"description":"The lid is open","suggestion":"Close it"}],"verification":{"tests":{"passed":true},"type_check":{"passed":true}},` +
		`"summary":"Almost","required_changes":[{"change_id":"c","priority":"must_fix","related_findings":["lid"],"description":"Close the lid"}]}}`
	for name, test := range map[string]struct {
		before []string // script lines
		line   string
		to     string
		heard  string // the delivered line; "": unchanged
		notes  []string
		task   wire.TaskState
	}{
		"an assignment": {
			line: assignment, to: "dev", heard: strings.TrimSuffix(assignment, "}") + `,"correlation_id":"msg-041-b7d"}`,
			notes: []string{"/payload/task/constraints/must_not_break: task.constraints.must_not_break is missing, which is tolerated"}, task: wire.TaskAssigned,
		},
		"the result of a review": {
			before: []string{
				"say arch dev msg-1 task_assignment id=kettle says=kettle corr=look-1", "say dev arch msg-2 task_completion task_id=kettle",
				"say arch rev msg-3 review_request review_id=look-1 task_id=kettle",
			},
			line: result, to: "arch",
			notes: []string{
				"/payload/findings/0/rationale: findings[0].rationale is missing, which is tolerated",
				"/payload/verification/custom: verification.custom is missing, which is tolerated",
			}, task: wire.TaskInReview,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t)
			for _, line := range append([]string{
				"session shop architect=arch developer=dev reviewer=rev review", "agents: arch(planner) dev(worker) rev(reviewer)",
				"up", "start arch", "start dev", "start rev",
			}, test.before...) {
				p.play(line)
			}
			said := sample(t, test.line)
			p.lines[said.ID] = test.line
			p.print(said.Message.From.AgentID, test.line)
			require.Nil(t, p.last.Refused)
			if test.heard == "" {
				test.heard = test.line
			}
			require.Equal(t, []string{test.to + " " + test.heard}, heard(p.last.Letters))
			require.Equal(t, test.task, p.state.Tasks.ByID["kettle"].View.State)
			p.requireReplay()

			view := p.session("shop")
			entry := view.Messages[len(view.Messages)-1]
			require.Equal(t, said.ID, entry.MessageID)
			require.Equal(t, test.notes, entry.Errors)
			require.Empty(t, entry.Refused)
			require.JSONEq(t, test.line, string(entry.Document))

			p = newPlayer(t)
			for _, line := range []string{"session shop strict architect=arch developer=dev reviewer=rev", "agents: arch(planner) dev(worker) rev(reviewer)", "up", "start rev"} {
				p.play(line)
			}
			p.print(said.Message.From.AgentID, test.line)
			require.Equal(t, wire.CodeInvalid, p.last.Refused.Code)
		})
	}
}

// sample decodes a valid line.
func sample(t *testing.T, line string) *wire.Session {
	message, err := session.Read([]byte(line), 64)
	require.Nil(t, err)
	return &wire.Session{ID: message.MessageID, Message: message}
}

// heard returns the session messages among letters, with their receivers.
func heard(letters []Letter) (lines []string) {
	for _, l := range letters {
		if l.Line != nil {
			lines = append(lines, l.To.Name+" "+string(l.Line))
		}
	}
	return lines
}

// TestWhatIsMissingChangesNothing checks a message without a required member. It is refused,
// recorded in the log of its session, and reported only to its sender.
//
// Rows: C-90, C-97, C-98.
func TestWhatIsMissingChangesNothing(t *testing.T) {
	missing := map[string][]string{
		"arch dev msg-1 task_assignment":  {"id", "says", "scope", "priority", "task.context", "task.constraints", "task.acceptance_criteria", "message_id", "timestamp", "payload"},
		"dev arch msg-1 task_progress":    {"task_id", "progress_percent", "current_step", "files_modified_so_far"},
		"dev arch msg-1 task_completion":  {"task_id", "status", "changes", "summary", "self_review", "self_review.tests_run"},
		"arch rev msg-1 review_request":   {"review_id", "task_id", "scope", "criteria", "context", "criteria.must_pass_tests"},
		"rev arch msg-1 review_result":    {"review_id", "task_id", "verdict", "findings", "verification", "summary"},
		"arch dev msg-1 feedback":         {"feedback_type", "subject", "content", "action_required"},
		"arch dev msg-1 abort":            {"scope", "target_id", "reason", "cleanup_required"},
		"arch dev msg-1 task_assignment ": {"priority=urgent"},
		"rev arch msg-1 review_result ":   {"verdict=ok"},
		"dev arch msg-1 task_completion ": {"status=done"},
	}
	p := newPlayer(t)
	for _, line := range []string{"session shop architect=arch developer=dev reviewer=rev", "agents: arch(planner) dev(worker) rev(reviewer)", "up", "start arch", "start dev", "start rev"} {
		p.play(line)
	}
	for said, members := range missing {
		for _, member := range members {
			if !slices.Contains([]byte(member), '=') {
				member += "=-"
			}
			came := p.play("say " + said + " " + member)
			require.NotNil(t, p.last.Refused, "%s %s: %s", said, member, came)
			require.NotEmpty(t, p.last.Refused.Details["pointer"], "%s", came)
			require.Len(t, p.last.Records, 1, "%s", came)
			require.Equal(t, events.SessionRefused, p.last.Records[0].Kind)
			require.Len(t, p.last.Letters, 1, "%s", came)
			require.Equal(t, said[:3], p.last.Letters[0].To.Name[:3], "%s", came)
		}
	}
	require.Empty(t, p.state.Tasks.List)
}
