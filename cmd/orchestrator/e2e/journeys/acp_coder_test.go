package journeys

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/coder/acp-go-sdk"

	"orchestrator/cmd/orchestrator/e2e/stage"
)

// An acpCoder is a coding agent that speaks ACP. It does each task in its workspace, where it commits NAME.txt, and approves
// in all reviews. Its turns last as long as there is a file "hold" in its folder.
type acpCoder struct{ *stage.AcpPeer }

// acpCode runs an acpCoder.
func acpCode() {
	c := acpCoder{&stage.AcpPeer{}}
	c.Conn = acp.NewAgentSideConnection(c, os.Stdout, os.Stdin)
	<-c.Conn.Done()
}

var (
	promptTask   = regexp.MustCompile(`(?m)^Your task \S+: (\S+)`)
	promptFolder = regexp.MustCompile(`Work in the folder (\S+) and`)
	promptReview = regexp.MustCompile(`(?m)^Review `)
)

// Prompt is one turn: a task or a review.
func (c acpCoder) Prompt(ctx context.Context, r acp.PromptRequest) (acp.PromptResponse, error) {
	text := r.Prompt[0].Text.Text
	switch task := promptTask.FindStringSubmatch(text); {
	case promptReview.MatchString(text):
		c.Use(ctx, "review", map[string]any{"verdict": "approved", "summary": "good", "tests_passed": true, "type_check_passed": true, "lint_passed": true})
	case task != nil:
		if done := c.work(ctx, task[1], text); done != nil {
			c.Use(ctx, "task_fail", map[string]any{"reason": done.Error()})
		}
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

func (c acpCoder) work(ctx context.Context, name, text string) error {
	c.Say(ctx, name+" begins")
	for ctx.Err() == nil {
		if _, err := os.Stat("hold"); err != nil {
			break
		}
		c.Call(ctx, "task_current", nil)
	}
	if folder := promptFolder.FindStringSubmatch(text); folder != nil {
		if err := os.WriteFile(filepath.Join(folder[1], name+".txt"), []byte(name+"\n"), 0o600); err != nil {
			return err
		}
		for _, words := range [][]string{{"add", "-A"}, {"commit", "-q", "--allow-empty", "-m", name}} {
			if said, err := exec.CommandContext(ctx, "git", append([]string{"-C", folder[1]}, words...)...).CombinedOutput(); err != nil {
				c.Say(ctx, string(said))
				return err
			}
		}
	}
	c.Use(ctx, "task_complete", map[string]any{"summary": name + " is written", "created": []string{name + ".txt"}})
	return ctx.Err()
}
