package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// protocol reads the protocol of an agent.
func protocol(into *string) func(value) {
	read := choice(into, "messages", "native", "claude", "codex", "acp", "raw")
	return func(v value) {
		read(v)
		if *into == "messages" {
			*into = "native"
		}
	}
}

// mcpServer reads a block with a program that has more tools for a coding agent.
func mcpServer(r *reader, b *hcl.Block, path string, c *Client, sc *scope) {
	s := MCPServer{Name: b.Labels[0]}
	set := r.read(b.Body, sc, section{
		title: fmt.Sprintf("MCP server %q", s.Name), path: path + ".mcp",
		attributes: []attribute{attr("command", argv(&s.Command))},
	})
	switch {
	case s.Name == "orc":
		r.report(b.DefRange, Problem{
			Code: "config/mcp-name", Summary: "Name is taken", Detail: `"orc" is the server with the tools of the orchestrator.`,
		})
	case !IsRole(s.Name), strings.Contains(s.Name, "__"): // it separates server and tool in the names of tools
		r.report(b.DefRange, Problem{
			Code: "config/mcp-name", Summary: "Not a name", Detail: fmt.Sprintf("The name of an MCP server is %s: %q.", NameRule, s.Name),
		})
	}
	if _, ok := set["command"]; !ok {
		r.report(b.DefRange, Problem{
			Code: "config/missing-attribute", Summary: "Missing attribute", Detail: fmt.Sprintf("MCP server %q has no command.", s.Name),
			Hint: `Give it one, such as command = ["github-mcp"].`,
		})
		return
	}
	c.Servers = append(c.Servers, s)
}

// checkClient checks a coding agent, and warns about another agent with its settings. It sets the
// command that the protocol implies.
func checkClient(r *reader, b *hcl.Block, a *Agent, set map[string]hcl.Range) {
	if !a.IsClient() {
		c := a.Client
		c.Servers = nil
		if !reflect.DeepEqual(c, standardAgent().Client) {
			r.report(b.DefRange, Problem{
				Severity: SeverityWarning, Code: "config/not-a-coding-agent", Summary: "Only for coding agents",
				Detail: fmt.Sprintf("Agent %q has settings of a coding agent, which have a meaning only with protocol = \"claude\", \"codex\" or \"acp\".", a.Block),
			})
		}
		return
	}
	switch {
	case len(a.Command) > 0:
	case a.Protocol == ProtocolACP: // many programs speak it
		r.report(b.DefRange, Problem{
			Code: "config/missing-attribute", Summary: "Missing attribute", Detail: fmt.Sprintf("Agent %q has no command.", a.Block),
			Hint: `Say which program speaks ACP, such as command = ["gemini", "--acp"].`,
		})
	default:
		a.Command = []string{a.Protocol}
	}
	if _, ok := set["on_exit"]; !ok && a.OnExit == "auto" {
		a.OnExit = "requeue" // such a program exits with 0 or 1 whatever its task is
	}
	switch {
	case a.Pty:
		r.report(set["pty"], clientProblem(a, "a terminal"))
	case a.Stdin == "null":
		r.report(set["stdin"], clientProblem(a, "a stdin that is /dev/null"))
	}
	if c := a.Capabilities.MaxConcurrentTasks; c > 1 {
		r.report(b.DefRange, Problem{
			Code: "config/one-task", Summary: "One task at a time",
			Detail: fmt.Sprintf("Agent %q speaks %s, which works on one task at a time: max_concurrent_tasks is 0 or 1.", a.Block, a.Protocol),
			Hint:   "Set replicas to run several of it.",
		})
	}
}

func clientProblem(a *Agent, what string) Problem {
	return Problem{
		Code: "config/coding-agent-pipes", Summary: "Not for coding agents",
		Detail: fmt.Sprintf("protocol = %q is spoken over pipes, so the agent cannot have %s.", a.Protocol, what),
	}
}
