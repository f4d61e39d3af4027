package config

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/hosts"
)

// Host blocks and placements are read, and their mistakes are found.
func TestHosts(t *testing.T) {
	file := write(t, "orchestrator.hcl", `
host "gpu" {
  names  = ["gpu-*"]
  labels = { gpu = "a100", site = "here" }
  agents = ["trainer"]
  grace  = "5m"
}
agent "trainer" {
  command = ["true"]
  placement {
    labels       = { gpu = "a100" }
    spread       = true
    on_host_lost = "move"
  }
}
agent "near" {
  command = ["true"]
}
`)
	c, problems := Load(file, Options{})
	require.Zero(t, problems.Errors(), problems)
	require.Empty(t, problems)
	require.Equal(t, []hosts.Rule{{Name: "gpu", Names: []string{"gpu-*"}, Labels: map[string]string{"gpu": "a100", "site": "here"}, Agents: []string{"trainer"}, Grace: 5 * time.Minute}}, c.Hosts)
	require.Equal(t, &hosts.Placement{Hosts: "*", Labels: map[string]string{"gpu": "a100"}, Spread: true}, c.Agents[0].Placement)
	require.False(t, c.Agents[0].Wait)
	require.Nil(t, c.Agents[1].Placement)
	c, problems = Load(write(t, "orchestrator.hcl", "agent \"a\" {\n command = [\"x\"]\n dir = \"elsewhere\"\n placement {}\n}"), Options{})
	require.Empty(t, problems, "the folder is on the host")
	require.Equal(t, "elsewhere", filepath.Base(c.Agents[0].Dir))
	for text, code := range map[string]string{
		"host \"a\" {\n}\nhost \"a\" {\n}":                                                "config/duplicate-host",
		"host \"a\" {\n names = [\"[\"]\n}":                                               "config/bad-pattern",
		"host \"a\" {\n grace = \"5s\"\n}":                                                "config/out-of-range",
		"host \"a\" {\n labels = [\"x\"]\n}":                                              "config/wrong-type",
		"agent \"a\" {\n command = [\"x\"]\n placement {\n on_host_lost = \"run\"\n }\n}": "config/unknown-value",
	} {
		_, problems := Load(write(t, "orchestrator.hcl", text), Options{})
		require.NotEmpty(t, problems, text)
		require.Equal(t, code, problems[0].Code, text)
	}
}
