package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/wire"
)

func (a *app) reloadCommand() *cobra.Command {
	var dry bool
	verb := &cobra.Command{
		Use:   "reload",
		Short: "Apply the changed file to the running team",
		Long: `Makes the running orchestrator read its file again and apply what changed. Agents
that did not change are not touched. A file with a mistake changes nothing.

The same as SIGHUP, but shows what was done.`,
		Example: `  orchestrator reload --dry-run   what would happen
  orchestrator reload`,
		Args:              argCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return a.reload(dry) },
	}
	verb.Flags().BoolVar(&dry, "dry-run", false, "say what would happen, change nothing")
	return verb
}

func (a *app) reload(dry bool) error {
	ctx, stop := a.begin()
	defer stop()
	door, err := a.door()
	if err != nil {
		return err
	}
	done := a.patience("the changes to be made")
	raw, err := door.ask(ctx, "reload", wire.ReloadRequest{DryRun: dry})
	done()
	if err != nil {
		return err
	}
	reply, err := decode[wire.ReloadReply](raw)
	if err != nil {
		return err
	}
	if a.flags.json {
		err = a.print("%s\n", raw)
	} else {
		err = a.showReload(reply)
	}
	if err == nil && !reloaded(reply) {
		return exitWith(exitNo)
	}
	return err
}

// reloaded reports whether the file was right and every change was made.
func reloaded(reply wire.ReloadReply) bool {
	for _, change := range reply.Changes {
		if !change.OK {
			return false
		}
	}
	return reply.Errors == 0
}

func (a *app) showReload(reply wire.ReloadReply) error {
	if reply.Problems != "" {
		_, _ = fmt.Fprintln(a.stderr, strings.TrimRight(reply.Problems, "\n"))
	}
	if reply.Errors > 0 {
		_, _ = fmt.Fprintln(a.stderr, "Nothing was changed.")
		return nil
	}
	if len(reply.Changes) == 0 {
		return a.print("Nothing has changed.\n")
	}
	p := a.paint(a.stdout)
	rows := make([][]cell, 0, len(reply.Changes))
	for _, change := range reply.Changes {
		rows = append(rows, changeRow(change, p))
	}
	if err := a.print("%s%s\n", table(rows), reloadTally(reply)); err != nil {
		return err
	}
	if reply.DryRun {
		a.note("Nothing was changed. Apply it: orchestrator reload")
	}
	return nil
}

func changeRow(c wire.ReloadChange, p paint) []cell {
	outcome := text(wire.Visible(c.Outcome))
	if !c.OK {
		outcome = cell{text: "Error: " + outcome.text, ink: p.bad}
	}
	return []cell{
		text("  " + changeMark(c.Action)), text(wire.Visible(c.Agent)), text(wire.Visible(c.Action)),
		text(wire.Visible(c.Detail)), {text: wire.Visible(c.Place), ink: p.dim}, outcome,
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

// reloadTally sums a reload up: what it did, or what it would do.
func reloadTally(reply wire.ReloadReply) string {
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
