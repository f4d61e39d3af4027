package screens

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/fixtures/programs"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// Each operation and list has one line in the audit, with the person, the address and the id of the token,
// whatever came of it. A stream has two.
func TestAuditOfEveryOperation(t *testing.T) {
	t.Parallel()
	addresses, err := programs.FreeAddresses(1)
	require.NoError(t, err)
	s := stage.New(t, `
http {
  listen = ["`+addresses[0]+`"]
}
agent "a" {
  command = ["cat"]
}
`).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "a")
	b := &browser{t: t, base: "http://" + addresses[0]}
	token := "Bearer " + strings.TrimSpace(s.Ask("token", "issue", "--sub", "ann", "--role", "admin", "-q"))
	var asked []string
	ask := func(method, path, what string) {
		_, _ = b.visit(method, path, "{}", "Authorization", token)
		asked = append(asked, "request:"+what)
	}
	last := map[string]bool{"upgrade": true, "down": true}
	for _, list := range [][]*wire.Operation{wire.Operations, wire.ControlOperations} {
		for _, o := range list {
			if !last[o.Name] {
				ask(http.MethodPost, "/api/v1/operations/"+o.Name, o.Name)
			}
		}
	}
	for _, name := range []string{"events", "logs", "messages"} {
		ask(http.MethodGet, "/api/v1/"+name, name)
	}
	ask(http.MethodGet, "/metrics", "metrics")
	ask(http.MethodPost, "/api/v1/pipe", "pipe")
	ask(http.MethodPost, "/api/v1/operations/upgrade", "upgrade")
	ask(http.MethodPost, "/api/v1/operations/down", "down")
	require.Equal(t, cli.ExitOK, s.Await())

	lines := make(map[string]int)
	for _, line := range s.Audited() {
		if line["actor"] == "operator:ann" {
			require.Contains(t, line["address"], "127.0.0.1:", "%v", line)
			require.NotEmpty(t, line["credential"], "%v", line)
			lines[line["type"].(string)]++
		}
	}
	want := make(map[string]int)
	for _, what := range asked {
		want[what] = 1
	}
	want["request:down"] = 2
	require.Equal(t, want, lines)
}
