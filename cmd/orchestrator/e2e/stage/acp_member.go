package stage

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"strings"

	"github.com/coder/acp-go-sdk"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// An AcpPeer is an agent that speaks ACP and begins the MCP server that it is given. What its
// model says are the results of tools.
type AcpPeer struct {
	acp.Agent // for what it is not asked
	Conn      *acp.AgentSideConnection
	tools     *sdk.ClientSession
	reviews   int
}

func (p *AcpPeer) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber}, nil
}

func (p *AcpPeer) NewSession(ctx context.Context, r acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	server := r.McpServers[0].Stdio
	cmd := exec.Command(server.Command, server.Args...)
	cmd.Stderr = os.Stderr
	for _, v := range server.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	var err error
	client := sdk.NewClient(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
	p.tools, err = client.Connect(context.WithoutCancel(ctx), &sdk.CommandTransport{Command: cmd}, nil)
	return acp.NewSessionResponse{SessionId: "s-1"}, err
}

func (p *AcpPeer) Cancel(context.Context, acp.CancelNotification) error { return nil }

// Prompt works on a task, or judges it: the first time, it requests changes.
func (p *AcpPeer) Prompt(ctx context.Context, r acp.PromptRequest) (acp.PromptResponse, error) {
	p.Say(ctx, "I begin.")
	switch text := r.Prompt[0].Text.Text; {
	case strings.Contains(text, "Your task "):
		for ctx.Err() == nil && !strings.Contains(p.Call(ctx, "tasks", map[string]any{"status": "running"}), `"work-`) { // until it is acknowledged
		}
		p.Use(ctx, "task_current", nil)
		p.Use(ctx, "task_progress", map[string]any{"message": "half of it", "progress": 0.5})
		p.Use(ctx, "review", map[string]any{"verdict": "approved", "summary": "mine"})
		p.Use(ctx, "task_complete", nil)
		p.Use(ctx, "task_complete", map[string]any{"summary": "written", "created": []string{"page.html"}})
		p.Use(ctx, "task_complete", map[string]any{"summary": "written twice"})
	case strings.Contains(text, "Review "):
		p.Use(ctx, "task_current", nil)
		p.Use(ctx, "task_complete", map[string]any{"summary": "judged"})
		p.Use(ctx, "task_progress", map[string]any{"message": "I read"})
		verdict := map[string]any{"verdict": "approved", "summary": "good", "tests_passed": true, "type_check_passed": true, "lint_passed": true}
		if p.reviews++; p.reviews == 1 {
			verdict["verdict"], verdict["summary"] = "changes_requested", "one mistake"
			verdict["findings"] = []map[string]any{{"severity": "major", "category": "logic", "file": "page.html", "line": 3, "description": "off by one"}}
		}
		p.Use(ctx, "review", verdict)
	default:
		p.Say(ctx, "What is this? "+text)
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

// Use calls a tool and says what came of it.
func (p *AcpPeer) Use(ctx context.Context, tool string, arguments map[string]any) {
	p.Say(ctx, tool+": "+p.Call(ctx, tool, arguments))
}

// Call calls a tool and returns the text of its result.
func (p *AcpPeer) Call(ctx context.Context, tool string, arguments map[string]any) string {
	result, err := p.tools.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return err.Error()
	}
	text, _ := result.Content[0].(*sdk.TextContent)
	return cmp.Or(text, &sdk.TextContent{}).Text
}

func (p *AcpPeer) Say(ctx context.Context, words string) {
	_ = p.Conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: "s-1", Update: acp.UpdateAgentMessageText(words + "\n")})
}
