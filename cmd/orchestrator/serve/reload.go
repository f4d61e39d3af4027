package serve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/hub"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// ReloadCommand returns the reload command.
func ReloadCommand(a *cli.App) *cobra.Command {
	var dry, yes bool
	verb := &cobra.Command{
		Use:   "reload",
		Short: "Apply the changed file to the running team",
		Long: `Makes the running orchestrator read its file again and apply the changes. Agents
without changes keep running. New task blocks are given out. A file with a mistake changes
nothing, and neither does an empty file.

On a terminal, reload shows the changed commands and asks before it runs them.
SIGHUP does the same without asking.`,
		Example: `  orchestrator reload --dry-run   what would happen
  orchestrator reload`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if dry || yes {
				return reload(a, control.ReloadRequest{DryRun: dry}, yes && !dry)
			}
			return reloadAsking(a)
		},
	}
	verb.Flags().BoolVar(&yes, "yes", false, "do not ask before commands that have changed")
	verb.Flags().BoolVar(&dry, "dry-run", false, "show the changes without making them")
	return verb
}

// reloadAsking applies the file. On a terminal it shows the commands that have changed, and asks.
func reloadAsking(a *cli.App) error {
	if !term.IsTerminal(a.Stdin) || !term.IsTerminal(a.Stderr) || a.JSON() {
		return reload(a, control.ReloadRequest{}, false)
	}
	ctx, stop := a.Context()
	defer stop()
	door, err := a.Connect()
	if err != nil {
		return err
	}
	text, err := door.Ask(ctx, "reload", control.ReloadRequest{DryRun: true})
	if err != nil {
		return door.Failed(ctx, err)
	}
	plan, err := client.Decode[control.ReloadReply](text)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(plan.Commands, func(c control.CommandChange) bool { return c.After != nil }) {
		return reload(a, control.ReloadRequest{Expect: plan.Digest}, false)
	}
	_, _ = fmt.Fprint(a.Stderr, commandDiff(plan.Commands, a.Paint(a.Stderr)))
	if err := a.Confirm("Run the changed commands?"); err != nil {
		return err
	}
	return reload(a, control.ReloadRequest{Expect: plan.Digest}, true)
}

// trustReloaded remembers the commands of the file that a person has approved, so that up does not ask about them. Their
// digest shows that they are the commands that were approved.
func trustReloaded(a *cli.App, digest string) {
	file, err := a.FindConfig(a.Flags.Config)
	if err != nil {
		return
	}
	if c, problems := config.Load(file, a.Options()); problems.Errors() == 0 && hub.DigestOf(c.Commands()) == digest {
		_ = a.Trust(c, c.Commands()) // otherwise up asks
	}
}

// commandDiff shows changed commands as a diff.
func commandDiff(changes []control.CommandChange, p term.Paint) string {
	var rows [][]term.Cell
	row := func(mark string, c *control.CommandChange, words []string, place string, ink func(string) string) {
		if words == nil {
			return
		}
		line := wire.Visible(strings.Join(cli.Quoted(words), " "))
		rows = append(rows, []term.Cell{
			{Text: mark + " " + wire.Visible(c.Of), Ink: ink}, {Text: line, Ink: ink}, {Text: wire.Visible(place), Ink: p.Dim},
		})
	}
	for i := range changes {
		c := &changes[i]
		if slices.Equal(c.Before, c.After) {
			row("~", c, c.After, "changed rights, folder or environment: "+c.Place, nil)
			continue
		}
		row("-", c, c.Before, "", p.Bad)
		row("+", c, c.After, c.Place, p.Good)
	}
	return term.Table(rows)
}

func reload(a *cli.App, request control.ReloadRequest, approved bool) error {
	return cli.Query[control.ReloadReply]{
		Operation: "reload", Request: request, Awaits: "the changes to be made",
		Text: func(reply *control.ReloadReply) error { return showReload(a, reply) },
		Judge: func(reply *control.ReloadReply) error {
			if approved && reply.Errors == 0 {
				trustReloaded(a, reply.Digest)
			}
			return reloaded(reply)
		},
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
		return a.Print("No changes.\n")
	}
	p := a.Paint(a.Stdout)
	rows := make([][]term.Cell, 0, len(reply.Changes))
	for _, change := range reply.Changes {
		rows = append(rows, changeRow(change, p))
	}
	if err := a.Print("%s%s%s\n", commandDiff(reply.Commands, p), term.Table(rows), reloadTally(reply)); err != nil {
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
