package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCodingAgents checks what a coding agent has by default, and which settings it cannot have.
func TestCodingAgents(t *testing.T) {
	c := load(t, write(t, "orchestrator.hcl", `
agent "a" {
  protocol = "claude"
}
agent "b" {
  protocol   = "codex"
  command    = ["my-codex"]
  permission = "plan"
  allow      = ["Bash(go test:*)"]
  on_exit    = "fail"
  mcp "github" { command = ["github-mcp", "-x"] }
}
agent "c" {
  protocol = "messages"
  command  = ["true"]
}
`), Options{})
	a, b := c.Agents[0], c.Agents[1]
	require.Equal(t, []string{"claude"}, a.Command)
	require.Equal(t, "requeue", a.OnExit, "its exit says nothing about its task")
	require.Equal(t, Client{Permission: "ask", OnTurnEnd: "remind", Resume: true}, a.Client)
	require.Equal(t, []string{"my-codex"}, b.Command)
	require.Equal(t, "fail", b.OnExit)
	require.Equal(t, []MCPServer{{Name: "github", Command: []string{"github-mcp", "-x"}}}, b.Client.Servers)
	require.True(t, a.IsClient() && b.IsClient())
	require.False(t, c.Agents[2].IsClient())
	require.Equal(t, "native", c.Agents[2].Protocol)

	for text, code := range map[string]string{
		`protocol = "claude"` + "\npty = true":                               "config/coding-agent-pipes",
		`protocol = "codex"` + "\nstdin = \"null\"":                          "config/coding-agent-pipes",
		`protocol = "codex"` + "\ncapabilities { max_concurrent_tasks = 2 }": "config/one-task",
		`protocol = "claude"` + "\nmcp \"orc\" { command = [\"x\"] }":        "config/mcp-name",
		`protocol = "claude"` + "\nmcp \"orc__x\" { command = [\"x\"] }":     "config/mcp-name",
		`protocol = "claude"` + "\nmcp \"x\" {}":                             "config/missing-attribute",
		`command = ["true"]` + "\nmodel = \"m\"":                             "config/not-a-coding-agent",
	} {
		_, problems := Load(write(t, "orchestrator.hcl", "agent \"a\" {\n"+text+"\n}\n"), Options{})
		require.Len(t, problems, 1, text)
		require.Equal(t, code, problems[0].Code, text)
	}
}
