package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNotify(t *testing.T) {
	c := load(t, write(t, "orchestrator.hcl", `
secret "hook" {
  env = "HOOK"
}
notify {
  on      = ["question", "failed"]
  bell    = true
  command = ["notify-send", "team"]
  webhook = secret.hook
  secret  = secret.hook
  quiet   = "22:30-07:00"
}
agent "a" {
  command = ["true"]
}
`), Options{Environ: []string{"HOOK=https://h/x"}})
	n := c.Notify
	require.Equal(t, []string{"question", "failed"}, n.On)
	require.True(t, n.Bell && !n.OSC)
	require.Equal(t, 22*time.Hour+30*time.Minute, n.From)
	require.Equal(t, 7*time.Hour, n.To)
	require.Equal(t, "hook", n.Secret)
	text, err := c.SecretOf(t.Context(), "notify.webhook", []string{"HOOK=https://h/x"})
	require.NoError(t, err)
	require.Equal(t, "https://h/x", text)
	commands := c.Commands()
	require.Equal(t, "notify", commands[len(commands)-1].Of, "who starts it is asked whether it may run")

	for text, want := range map[string]string{
		`bell = true
on = ["nothing"]`: "config/unknown-value",
		`bell = true
on = "question"`: "config/wrong-type",
		`bell = true
webhook = "http://hooks.example/x"`: "config/bad-url",
		`bell = true
webhook = "https://u:p@hooks.example/x"`: "config/bad-url",
		`bell = true
webhook = "ftp://hooks.example/x"`: "config/bad-url",
		`bell = true
webhook = secret.none`: "config/bad-expression",
		`bell = true
webhook = "https://h"
secret = "plain"`: "config/bad-credentials",
		`bell = true
quiet = "22:00"`: "config/bad-hours",
		`bell = true
quiet = "7:00-7:00"`: "config/bad-hours",
		`on = ["done"]`: "config/tells-nobody",
	} {
		_, problems := Load(write(t, "orchestrator.hcl", "notify {\n"+text+"\n}\nagent \"a\" {\n  command = [\"true\"]\n}\n"), Options{})
		require.NotEmpty(t, problems, text)
		require.Equal(t, want, problems[0].Code, text)
	}
}
