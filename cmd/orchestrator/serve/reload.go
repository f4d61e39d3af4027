package serve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// ReloadCommand returns the reload command.
func ReloadCommand(a *cli.App) *cobra.Command {
	var dry bool
	verb := &cobra.Command{
		Use:   "reload",
		Short: "Apply the changed file to the running team",
		Long: `Makes the running orchestrator read its file again and apply the changes. Agents
without changes keep running. A file with a mistake changes nothing.

SIGHUP does the same, but reload also shows the changes.`,
		Example: `  orchestrator reload --dry-run   what would happen
  orchestrator reload`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return reload(a, dry) },
	}
	verb.Flags().BoolVar(&dry, "dry-run", false, "show what would happen without changes")
	return verb
}

func reload(a *cli.App, dry bool) error {
	return cli.Query[control.ReloadReply]{
		Operation: "reload", Request: control.ReloadRequest{DryRun: dry}, Awaits: "the changes to be made",
		Text: func(reply *control.ReloadReply) error { return showReload(a, reply) }, Judge: reloaded,
	}.Run(a)
}

// reloaded returns an error if the file was not valid or a change was not made.
func reloaded(reply *control.ReloadReply) error {
	failed := func(change control.ReloadChange) bool { return !change.OK }
	if reply.Errors > 0 || slices.ContainsFunc(reply.Changes, failed) {
		return cli.ExitWith(cli.ExitNo)
	}
	return nil
}

func showReload(a *cli.App, reply *control.ReloadReply) error {
	if reply.Problems != "" {
		_, _ = fmt.Fprintln(a.Stderr, strings.TrimRight(reply.Problems, "\n"))
	}
	if reply.Errors > 0 {
		_, _ = fmt.Fprintln(a.Stderr, "Nothing was changed.")
		return nil
	}
	if len(reply.Changes) == 0 {
		return a.Print("Nothing has changed.\n")
	}
	p := a.Paint(a.Stdout)
	rows := make([][]term.Cell, 0, len(reply.Changes))
	for _, change := range reply.Changes {
		rows = append(rows, changeRow(change, p))
	}
	if err := a.Print("%s%s\n", term.Table(rows), reloadTally(reply)); err != nil {
		return err
	}
	if reply.DryRun {
		a.Note("Nothing was changed. Apply it: orchestrator reload")
	}
	return nil
}

func changeRow(c control.ReloadChange, p term.Paint) []term.Cell {
	outcome := term.Text(wire.Visible(c.Outcome))
	if !c.OK {
		outcome = term.Cell{Text: "Error: " + outcome.Text, Ink: p.Bad}
	}
	return []term.Cell{
		term.Text("  " + changeMark(c.Action)), term.Text(wire.Visible(c.Agent)), term.Text(wire.Visible(c.Action)),
		term.Text(wire.Visible(c.Detail)), {Text: wire.Visible(c.Place), Ink: p.Dim}, outcome,
	}
}

func changeMark(action string) string {
	switch action {
	case "start":
		return "+"
	case "stop":
		return "-"
	case "refused":
		return "!"
	}
	return "~"
}

// reloadTally returns the number of changes of each kind.
func reloadTally(reply *control.ReloadReply) string {
	number := map[string]int{}
	for _, change := range reply.Changes {
		number[change.Action]++
	}
	title := "reload"
	if reply.DryRun {
		title = "would be"
	}
	var parts []string
	for _, word := range [][2]string{{"start", "started"}, {"restart", "restarted"}, {"stop", "stopped"}, {"live", "changed live"}, {"refused", "refused"}} {
		if n := number[word[0]]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word[1]))
		}
	}
	return title + ": " + strings.Join(parts, ", ") + "."
}
