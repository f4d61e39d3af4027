package why

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/session"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// reviewsOf adds the reviews of a task that is in review.
func reviewsOf(ctx context.Context, a *cli.App, d *client.Client, c *taskCauses) error {
	if c.task.State != wire.TaskInReview {
		return nil
	}
	all, err := session.ListReviews(ctx, a, d, wire.ListReviews{})
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].TaskID == c.Task.ID {
			c.Reviews = append(c.Reviews, all[i].ReviewView)
		}
	}
	return nil
}

// reviewLines returns the latest reviews of the task.
func (c *taskCauses) reviewLines(now time.Time) []string {
	var lines []string
	for i := range c.Reviews[max(0, len(c.Reviews)-maxTried):] {
		r := &c.Reviews[max(0, len(c.Reviews)-maxTried)+i]
		line := fmt.Sprintf("round %d by %s: %s", r.Iteration, term.OneLine(r.Reviewer), term.VerdictWord(r))
		if r.Verdict == "" {
			line += agoWords(r.RequestedAt, now)
		} else {
			line += ", " + term.Count(len(r.Findings), "finding")
		}
		lines = append(lines, line)
	}
	return lines
}

// nextOfReview returns the next steps for a task in review.
func (c *taskCauses) nextOfReview(id string) []string {
	if len(c.Reviews) == 0 {
		return []string{"Its work is in review. Its story: orchestrator events --task " + id}
	}
	last := &c.Reviews[len(c.Reviews)-1]
	show := "What was asked, and found: orchestrator review show " + wire.Visible(last.ReviewID)
	reviewer := term.OneLine(last.Reviewer)
	if last.Verdict != "" {
		return []string{"Round " + strconv.Itoa(last.Iteration) + " is decided: " + term.OneLine(last.Verdict) + ".", show}
	}
	for i := range c.status.Agents {
		if v := &c.status.Agents[i]; v.Name == last.Reviewer && v.State != control.StateRunning {
			return []string{fmt.Sprintf("%s is to look at it, and is %s. Why: orchestrator why %s", reviewer, standing(v), reviewer), show}
		}
	}
	return []string{fmt.Sprintf("%s looks at its work (round %d). Why not yet: orchestrator why %s", reviewer, last.Iteration, reviewer), show}
}
