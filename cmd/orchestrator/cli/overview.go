package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/term"
)

// Overview returns the text that "orchestrator" prints without a command: all commands in
// groups.
func Overview(root *cobra.Command, p term.Paint) string {
	groups := []struct {
		title string
		verbs []string
	}{
		{"Start", []string{"init", "validate", "fmt", "schema"}},
		{"Run", []string{"up", "run", "pipe", "reload", "down"}},
		{"Look", []string{"status", "watch", "logs", "events", "why", "graph"}},
		{"Work", []string{"task", "inbox", "bus", "session", "review"}},
		{"Agents", []string{"agent", "ps", "check"}},
		{"Access", []string{"key", "token"}},
		{"Record", []string{"backup", "store"}},
		{"", []string{"version", "completion", "help"}},
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n", root.Short)
	for _, group := range groups {
		b.WriteByte('\n')
		title := group.title
		for _, name := range group.verbs {
			verb, _, err := root.Find([]string{name})
			if err != nil || verb == root {
				continue
			}
			fmt.Fprintf(&b, "%s %s%s\n", p.Strong(term.Pad(title, 9)), term.Pad(name, 13), verb.Short)
			title = ""
		}
	}
	b.WriteString(`
  orchestrator init          write a first orchestrator.hcl here
  orchestrator up            run it
  orchestrator help          the manual: quickstart, config, troubleshooting, …
`)
	return b.String()
}
