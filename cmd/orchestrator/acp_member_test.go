package main

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"strings"

	"github.com/coder/acp-go-sdk"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// An acpPeer is an agent that speaks ACP and begins the MCP server that it is given. What its
// model says are the results of tools.
type acpPeer struct {
	acp.Agent // for what it is not asked
	conn      *acp.AgentSideConnection
	tools     *sdk.ClientSession
	reviews   int
}

// acpMember runs an acpPeer.
func acpMember() {
	p := &acpPeer{}
	p.conn = acp.NewAgentSideConnection(p, os.Stdout, os.Stdin)
	<-p.conn.Done()
}

func (p *acpPeer) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber}, nil
}

func (p *acpPeer) NewSession(ctx context.Context, r acp.NewSessionRequest) (acp.NewSessionResponse, error) {
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

func (p *acpPeer) Cancel(context.Context, acp.CancelNotification) error { return nil }

// Prompt works on a task, or judges it: the first time, it requests changes.
func (p *acpPeer) Prompt(ctx context.Context, r acp.PromptRequest) (acp.PromptResponse, error) {
	p.say(ctx, "I begin.")
	switch text := r.Prompt[0].Text.Text; {
	case strings.Contains(text, "Your task "):
		for ctx.Err() == nil && !strings.Contains(p.call(ctx, "tasks", map[string]any{"status": "running"}), `"work-`) { // until it is acknowledged
		}
		p.use(ctx, "task_current", nil)
		p.use(ctx, "task_progress", map[string]any{"message": "half of it", "progress": 0.5})
		p.use(ctx, "review", map[string]any{"verdict": "approved", "summary": "mine"})
		p.use(ctx, "task_complete", nil)
		p.use(ctx, "task_complete", map[string]any{"summary": "written", "created": []string{"page.html"}})
		p.use(ctx, "task_complete", map[string]any{"summary": "written twice"})
	case strings.Contains(text, "Review "):
		p.use(ctx, "task_current", nil)
		p.use(ctx, "task_complete", map[string]any{"summary": "judged"})
		p.use(ctx, "task_progress", map[string]any{"message": "I read"})
		verdict := map[string]any{"verdict": "approved", "summary": "good", "tests_passed": true, "type_check_passed": true, "lint_passed": true}
		if p.reviews++; p.reviews == 1 {
			verdict["verdict"], verdict["summary"] = "changes_requested", "one mistake"
			verdict["findings"] = []map[string]any{{"severity": "major", "category": "logic", "file": "page.html", "line": 3, "description": "off by one"}}
		}
		p.use(ctx, "review", verdict)
	default:
		p.say(ctx, "What is this? "+text)
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

// use calls a tool and says what came of it.
func (p *acpPeer) use(ctx context.Context, tool string, arguments map[string]any) {
	p.say(ctx, tool+": "+p.call(ctx, tool, arguments))
}

// call calls a tool and returns the text of its result.
func (p *acpPeer) call(ctx context.Context, tool string, arguments map[string]any) string {
	result, err := p.tools.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return err.Error()
	}
	text, _ := result.Content[0].(*sdk.TextContent)
	return cmp.Or(text, &sdk.TextContent{}).Text
}

func (p *acpPeer) say(ctx context.Context, words string) {
	_ = p.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: "s-1", Update: acp.UpdateAgentMessageText(words + "\n")})
}
