package handlers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/session"
)

// TestSamples checks messages as agents write them, with a short message_id and without optional
// members. They are delivered, and the log has what was tolerated. A strict session refuses
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
			notes: []string{"/payload/task/constraints/must_not_break: task.constraints.must_not_break is missing, which is forgiven"}, task: wire.TaskAssigned,
		},
		"the result of a review": {
			before: []string{
				"say arch dev msg-1 task_assignment id=kettle says=kettle corr=look-1", "say dev arch msg-2 task_completion task_id=kettle",
				"say arch rev msg-3 review_request review_id=look-1 task_id=kettle",
			},
			line: result, to: "arch",
			notes: []string{
				"/payload/findings/0/rationale: findings[0].rationale is missing, which is forgiven",
				"/payload/verification/custom: verification.custom is missing, which is forgiven",
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
			require.Equal(t, test.task, p.state.tasks.byID["kettle"].view.State)
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
