package handlers

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/events"
)

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
	require.Empty(t, p.state.tasks.list)
}
