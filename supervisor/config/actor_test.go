package config

import (
	"testing"

	"github.com/stretchr/testify/require"
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
