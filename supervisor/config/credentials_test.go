package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCredentialsAreNotInherited checks which variables of a terminal agents get by default, and which are named as
// left out.
func TestCredentialsAreNotInherited(t *testing.T) {
	terminal := []string{
		"PATH=/bin", "GITHUB_TOKEN=x", "AWS_SECRET_ACCESS_KEY=x", "SSH_AUTH_SOCK=/tmp/agent", "PGPASSWORD=x", "ANTHROPIC_API_KEY=x",
		"OPENAI_API_KEY=x", "GEMINI_API_KEY=x", "NPM_TOKEN=x", "EMPTY_TOKEN=", "MODEL_KEY=x", "KEYBOARD=de",
	}
	c := load(t, config(t, `
secret "model" {
  env = "MODEL_KEY"
}
agent "plain" {
  command = ["x"]
  env     = { NPM_TOKEN = "own", SSH_AUTH_SOCK = null }
}
agent "claude" {
  protocol = "claude"
  command  = ["x"]
  env      = { SSH_AUTH_SOCK = null, NPM_TOKEN = null }
}
agent "codex" {
  protocol = "codex"
  command  = ["x"]
  env      = { SSH_AUTH_SOCK = null, NPM_TOKEN = null }
}
agent "gemini" {
  protocol = "acp"
  command  = ["x"]
  env      = { SSH_AUTH_SOCK = null, NPM_TOKEN = null }
}
agent "all" {
  command     = ["x"]
  inherit_env = true
}
agent "named" {
  command     = ["x"]
  inherit_env = ["GITHUB_TOKEN"]
}`), Options{})
	for i, want := range [][]string{
		{"PATH=/bin", "KEYBOARD=de", "NPM_TOKEN=own"},
		{"PATH=/bin", "ANTHROPIC_API_KEY=x", "KEYBOARD=de"},
		{"PATH=/bin", "OPENAI_API_KEY=x", "KEYBOARD=de"},
		{"PATH=/bin", "ANTHROPIC_API_KEY=x", "OPENAI_API_KEY=x", "GEMINI_API_KEY=x", "KEYBOARD=de"},
		nil,
		{"GITHUB_TOKEN=x"},
	} {
		env, err := c.Environ(t.Context(), &c.Agents[i], terminal)
		require.NoError(t, err)
		if want == nil {
			require.Len(t, env, len(terminal)-1, "all but the source of a secret")
			continue
		}
		require.ElementsMatch(t, want, without(env, "EMPTY_TOKEN="), c.Agents[i].Name)
	}
	require.Equal(t, []string{
		"ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GEMINI_API_KEY", "GITHUB_TOKEN", "OPENAI_API_KEY", "PGPASSWORD",
	}, c.LeftOut(terminal))
}

func without(list []string, word string) (rest []string) {
	for _, other := range list {
		if other != word {
			rest = append(rest, other)
		}
	}
	return rest
}
