package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/settings"
)

// TestActors checks that an actor that does not change with each run belongs to one agent.
//
// Rows: E-68, E-69, E-70, E-71, E-72, E-73, E-74, E-75.
func TestActors(t *testing.T) {
	for actor, problem := range map[string]string{
		`"auto"`: "", `"GO"`: "", `"W"`: "", `"HO:h1"`: "", `"PO:x-${self.name}"`: "", `"IO:shai"`: "",
		`"S:db"`: "", `"S:db:7"`: "", `"W:7"`: "",
		`"Bus"`: "config/bad-actor", `"HO:"`: "config/bad-actor", `"go"`: "config/bad-actor", `"S:"`: "config/bad-actor",
		`"PO:a b"`: "config/bad-actor", `"PO:a:b"`: "config/bad-actor", `"broadcast"`: "config/bad-actor",
	} {
		_, problems := Load(write(t, "orchestrator.hcl", `agent "a" {
  command = ["x"]
  actor   = `+actor+`
}`), Options{})
		if problem == "" {
			require.Zero(t, problems.Errors(), "%s: %v", actor, problems)
			continue
		}
		require.Equal(t, 1, problems.Errors(), actor)
		require.Equal(t, problem, problems[0].Code)
	}
	_, problems := Load(write(t, "orchestrator.hcl", `
agent "a" {
  command = ["x"]
  actor   = "GO"
}
agent "b" {
  command = ["x"]
  actor   = "GO"
}
agent "c" {
  command  = ["x"]
  replicas = 2
  actor    = "PO:c"
}
agent "d" {
  command  = ["x"]
  replicas = 2
  actor    = "S:db"
}
bus {
  topics = ["build.finished", "a..b"]
}`), Options{})
	require.Equal(t, 3, problems.Errors(), "%v", problems)
	var codes []string
	for _, p := range problems {
		codes = append(codes, p.Code)
	}
	require.ElementsMatch(t, []string{"config/actor-taken", "config/actor-taken", "config/bad-topic"}, codes)
}

// TestCodingAgents checks the defaults of a coding agent, and the settings that it cannot have.
//
// Rows: S-06.
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
  capabilities {
    fixed = false
  }
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
	require.Equal(t, settings.Client{Protocol: "claude", Opening: adapter.Opening{Permission: "ask", OnTurnEnd: "remind"}, Resume: true, WireLog: true}, a.Client)
	require.Equal(t, []string{"my-codex"}, b.Command)
	require.Equal(t, "fail", b.OnExit)
	require.Equal(t, []adapter.Server{{Name: "github", Command: []string{"github-mcp", "-x"}}}, b.Client.Opening.Servers)
	require.True(t, a.IsClient() && b.IsClient())
	require.False(t, c.Agents[2].IsClient())
	require.Equal(t, "native", c.Agents[2].Protocol)
	require.Equal(t, []bool{true, false, false}, []bool{a.Fixed, b.Fixed, c.Agents[2].Fixed})

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

// TestSessionTimes checks the durations of a session.
//
// Rows: C-77.
func TestSessionTimes(t *testing.T) {
	c := load(t, config(t, `
agent "a" { command = ["x"] }
session "plain" {
  member "a" { type = "architect" }
}
session "quick" {
  task_timeout   = "1h"
  progress_after = "10s"
  progress_every = "1s"
  member "a" { type = "developer" }
}
`), Options{})
	plain, quick := c.Sessions[0], c.Sessions[1]
	require.Zero(t, plain.TaskTimeout, "a task may take as long as it does")
	require.EqualValues(t, 120_000, plain.ProgressAfter)
	require.EqualValues(t, 30_000, plain.ProgressEvery)
	require.Equal(t, []int64{3_600_000, 10_000, 1000}, []int64{quick.TaskTimeout, quick.ProgressAfter, quick.ProgressEvery})

	_, problems := Load(config(t, "session \"s\" {\n task_timeout = 5\n progress_after = \"0s\"\n progress_ever = \"1s\"\n}"), Options{})
	require.Len(t, problems, 3)
	require.Contains(t, rendered(problems), `Durations need a unit: "5s"?`)
	require.Contains(t, rendered(problems), "progress_after must be longer than zero.")
	require.Contains(t, rendered(problems), `"progress_every"?`)
}

// TestSessionsChangeLive checks that a changed session is applied live.
func TestSessionsChangeLive(t *testing.T) {
	document := func(line string) string {
		return settled + agentLike("a", "") + "session \"s\" {\n" + line + "\n member \"a\" { type = \"architect\" }\n}\n"
	}
	for _, line := range []string{`task_timeout = "1s"`, `progress_after = "1s"`, `progress_every = "1s"`, `require_review = true`} {
		changes := compared(t, document(""), document(line))
		require.Len(t, changes, 1, line)
		require.Equal(t, settings.ActionLive, changes[0].Action)
		require.Equal(t, []string{"session"}, changes[0].Attributes)
	}
	changes := compared(t, settled+agentLike("a", ""), document(""))
	require.Len(t, changes, 1)
	require.Equal(t, settings.ActionLive, changes[0].Action)
}
