package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
	require.Equal(t, 2*time.Minute, plain.ProgressAfter)
	require.Equal(t, 30*time.Second, plain.ProgressEvery)
	require.Equal(t, []time.Duration{time.Hour, 10 * time.Second, time.Second}, []time.Duration{quick.TaskTimeout, quick.ProgressAfter, quick.ProgressEvery})

	_, problems := Load(config(t, "session \"s\" {\n task_timeout = 5\n progress_after = \"0s\"\n progress_ever = \"1s\"\n}"), Options{})
	require.Len(t, problems, 3)
	require.Contains(t, rendered(problems), `Times need a unit: "5s"?`)
	require.Contains(t, rendered(problems), "progress_after must be longer than nothing.")
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
		require.Equal(t, ActionLive, changes[0].Action)
		require.Equal(t, []string{"session"}, changes[0].Attributes)
	}
	changes := compared(t, settled+agentLike("a", ""), document(""))
	require.Len(t, changes, 1)
	require.Equal(t, ActionLive, changes[0].Action)
}
