package project

import "path/filepath"

// A needed program runs agents of a project.
type needed struct{ program, runs, get string }

// A team is a first project with several agents, in a folder of starters.
type team struct {
	name  string
	needs []needed
	next  []string // commands to run
	work  string   // folder that its agents work in
}

var teams = []team{
	{name: "review", needs: coding("coder", "reviewer"), next: tried(`orchestrator task add "Describe this folder in NOTES.md" --review`), work: "work"},
	{name: "pair", needs: coding("ann", "ben"), next: tried(`orchestrator task add "Describe this folder in NOTES.md"`), work: "work"},
	{name: "fan-out", needs: coding("planner", "worker"), next: tried(`orchestrator task add "Describe each folder in a NOTES.md" --role planner`), work: "work"},
	{name: "shell", needs: Languages[0].needs(), next: []string{"orchestrator up"}},
}

func teamNames() []string {
	var names []string
	for _, t := range teams {
		names = append(names, t.name)
	}
	return names
}

// coding returns the programs of a team of Claude Code and Codex.
func coding(claude, codex string) []needed {
	return []needed{
		{program: Clients[0].Program, runs: claude, get: "Install it: " + Clients[0].Install()},
		{program: Clients[1].Program, runs: codex, get: "Install it: " + Clients[1].Install()},
	}
}

// tried returns the commands that try a team of coding agents.
func tried(task string) []string {
	return []string{"orchestrator doctor", "orchestrator up -d", task, "orchestrator watch"}
}

func (t *team) project() project {
	return project{folder: "team/" + t.name, flags: "--team " + t.name, needs: t.needs, next: t.next, work: t.work}
}

// A Client is a coding agent with a known program.
type Client struct {
	Program string
	Package string // of npm
	Login   string // the command that logs in
}

// Clients lists the coding agents that were tried.
var Clients = []Client{
	{Program: "claude", Package: "@anthropic-ai/claude-code", Login: "claude /login"},
	{Program: "codex", Package: "@openai/codex", Login: "codex login"},
	{Program: "gemini", Package: "@google/gemini-cli", Login: "gemini"},
	{Program: "opencode", Package: "opencode-ai", Login: "opencode auth login"},
	{Program: "codex-acp", Package: "@agentclientprotocol/codex-acp", Login: "codex login"},
	{Program: "claude-agent-acp", Package: "@agentclientprotocol/claude-agent-acp", Login: "claude /login"},
}

// Install returns the command that installs the program.
func (c *Client) Install() string { return "npm install -g " + c.Package }

// ClientOf returns the coding agent that a command runs, if it is known.
func ClientOf(command []string) (client *Client, ok bool) {
	for i := range Clients {
		if filepath.Base(command[0]) == Clients[i].Program {
			return &Clients[i], true
		}
	}
	return nil, false
}
