package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/serve/team"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/settings"
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

On a terminal, reload shows the commands that have changed, and asks before it runs them.
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
	verb.Flags().BoolVar(&dry, "dry-run", false, "show what would happen without changes")
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
	if c, problems := config.Load(file, a.Options()); problems.Errors() == 0 && digestOf(c.Commands()) == digest {
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
			row("~", c, c.After, "its rights, folder or environment: "+c.Place, nil)
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
		return a.Print("Nothing has changed.\n")
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

// waitOutcomes waits for changes and returns their outcomes.
type waitOutcomes func(context.Context) ([]control.AgentOutcome, error)

// reload applies the current file. A file with a mistake changes nothing. A caller that
// stops waiting gets no outcomes, but the changes are still made.
func (t *Instance) reload(ctx context.Context, r control.ReloadRequest) (control.ReloadReply, error) {
	reply := control.ReloadReply{FormatVersion: wire.FormatVersion, DryRun: r.DryRun}
	if t.load == nil {
		return reply, &wire.Error{Code: wire.CodeConflict, Message: "this orchestrator runs one command and has no file to reload"}
	}
	wait, err := t.change(ctx, r, &reply)
	if err != nil || wait == nil {
		return reply, err
	}
	outcomes, err := wait(ctx)
	for _, o := range outcomes {
		for i := range reply.Changes {
			if c := &reply.Changes[i]; c.Agent == o.Name {
				c.OK, c.Outcome = o.OK, o.Text
			}
		}
	}
	return reply, err
}

// change compares the file with the running configuration and makes the changes, for one
// caller at a time. It returns nil if there is nothing to wait for.
func (t *Instance) change(ctx context.Context, r control.ReloadRequest, reply *control.ReloadReply) (waitOutcomes, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	next, problems := t.load()
	why := "the changed configuration is not valid, nothing was changed"
	if refuseEmpty(problems) {
		why = "the file is empty: nothing was changed; to stop the agents: orchestrator down"
	}
	if reply.Errors = problems.Errors(); reply.Errors > 0 {
		var text bytes.Buffer
		_ = problems.Render(&text, false)
		reply.Problems = text.String()
		t.log.Error(why, "problems", reply.Problems)
		return nil, nil
	}
	commands := next.Commands()
	reply.Digest = digestOf(commands)
	if r.Expect != "" && r.Expect != reply.Digest {
		return nil, &wire.Error{Code: wire.CodeConflict, Message: "the commands of the file have changed again since they were shown"}
	}
	reply.Commands = compareCommands(t.config.Commands(), commands)
	changes := config.Compare(t.config, next)
	for _, c := range changes {
		detail := c.Detail
		if detail == "" {
			detail = strings.Join(c.Attributes, ", ")
		}
		reply.Changes = append(reply.Changes, control.ReloadChange{
			Agent: c.Agent, Action: string(c.Action), Detail: detail, Place: c.Place, OK: c.Action != settings.ActionRefused,
		})
	}
	if reply.DryRun {
		return nil, nil
	}
	for _, c := range reply.Commands {
		if slices.Equal(c.Before, c.After) {
			t.log.Info("the rights, folder or environment of a command have changed", "of", c.Of, "command", c.After)
			continue
		}
		t.log.Info("a command has changed", "of", c.Of, "before", c.Before, "after", c.After)
	}
	return t.apply(ctx, next, changes)
}

// refuseEmpty makes an error of the warning about an empty file, and reports whether there is one. An
// editor that truncates a file before it writes, or a full disk, must not stop a team.
func refuseEmpty(problems config.Problems) bool {
	i := slices.IndexFunc(problems, func(p config.Problem) bool { return p.Code == config.CodeEmptyFile })
	if i < 0 {
		return false
	}
	p := &problems[i]
	p.Severity, p.Detail = config.SeverityError, "It declares no agent."
	p.Hint = "To stop the agents: orchestrator down"
	return true
}

// digestOf identifies a list of commands.
func digestOf(commands []config.Command) string {
	h := sha256.New()
	for i := range commands {
		h.Write([]byte(commands[i].Print))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// compareCommands returns the commands that were added, removed or changed.
func compareCommands(before, after []config.Command) []control.CommandChange {
	var changes []control.CommandChange
	old := make(map[string]config.Command)
	for _, c := range before {
		old[c.Of] = c
	}
	for _, c := range after {
		was := old[c.Of]
		delete(old, c.Of)
		if was.Print != c.Print {
			changes = append(changes, control.CommandChange{Of: c.Of, Place: c.Place, Before: was.Argv, After: c.Argv})
		}
	}
	for _, c := range before {
		if _, gone := old[c.Of]; gone {
			changes = append(changes, control.CommandChange{Of: c.Of, Place: c.Place, Before: c.Argv})
		}
	}
	return changes
}

// apply makes the changes that do not need a restart. Later reloads compare with the new
// configuration at once, even while earlier changes are pending.
func (t *Instance) apply(ctx context.Context, next *config.Config, changes []config.Change) (waitOutcomes, error) {
	specs := make(map[string]settings.Agent)
	for _, spec := range t.specs(next) {
		specs[spec.Name] = spec
	}
	if reasons := t.workshop.Check(ctx, team.Workspaces(next, t.Base)); len(reasons) > 0 {
		return nil, &wire.Error{Code: wire.CodeInvalid, Message: strings.Join(reasons, "; "), Hint: "Nothing was changed. See orchestrator help verified"}
	}
	var todo []supervisor.Change
	for _, c := range changes {
		switch {
		case c.Action == settings.ActionRefused:
			t.log.Warn("a change needs a restart of the orchestrator", "change", strings.Join(c.Attributes, ", "), "place", c.Place)
		case c.Agent != "":
			todo = append(todo, supervisor.Change{Action: c.Action, Name: c.Agent, Agent: specs[c.Agent]})
		}
	}
	adopted, _ := team.Rules(next)
	t.Super.Adopt(adopted) // first: what is applied next is decided by them
	wait, err := t.Super.Apply(ctx, todo, team.Sessions(next))
	if err != nil {
		before, _ := team.Rules(t.config)
		t.Super.Adopt(before)
		return nil, err
	}
	if err := t.Super.GiveOut(ctx, team.Tasks(next)); err != nil {
		return nil, err
	}
	t.config = next
	t.allow(next)
	t.workshop.Set(team.Workspaces(next, t.Base))
	t.tell(next)
	limit(t, next)
	mergeWhenDone(t, next)
	t.log.SetLevel(logLevel(next.Log.Level))
	return wait, nil
}

// allow notes the agents and the hosts of a configuration.
func (t *Instance) allow(c *config.Config) {
	t.guard.allow(c)
	if t.hosts != nil {
		t.hosts.SetRules(c.Hosts)
	}
}

// mergeWhenDone begins to merge the branches of tasks that are done, or ends that, as a configuration says.
func mergeWhenDone(t *Instance, c *config.Config) {
	if !c.Merge.Queue {
		t.merging.Close()
		t.merging = nil
	}
	if t.merging == nil && c.Merge.Queue {
		t.merging = t.workshop.OpenQueue(t.Super.Seq())
	}
}
