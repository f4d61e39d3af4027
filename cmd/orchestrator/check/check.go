// Package check holds the command check, which runs a program as an agent and reports what
// it gets wrong.
package check

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/checkup"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/project"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
)

// checkFlags are how a program is checked.
type checkFlags struct {
	as    cli.Choice
	full  bool
	wait  cli.Duration
	grace cli.Duration
}

// Command makes the command check.
func Command(a *cli.App) *cobra.Command {
	f := checkFlags{
		as:    cli.Choice{Of: wire.Roles, Open: true, Close: true},
		wait:  cli.Duration{Duration: 10 * time.Second},
		grace: cli.Duration{Duration: 5 * time.Second},
	}
	verb := &cobra.Command{
		Use: "check [flags] -- CMD…", DisableFlagsInUseLine: true,
		Short: "Run a program and check that it is a good agent",
		Long: `Runs a program as an agent, a few times and in a place of its own, and says how it
behaves: whether it starts, does a task that it is given, is understood, goes on
after what it does not know, and ends with its stdin, leaving nothing behind. It is
really run: what it does to files and to others, it does.

Each line is a finding: ok, FAIL, warn or note, and below it the cure. A program that
does no tasks is a good agent too; with --as it is a fault. The exit code is 0 when
nothing failed, and 1 when something did; 126 or 127 when the program could not be
started.`,
		Example: `  orchestrator check -- python3 agents/hello.py
  orchestrator check --as worker --full -- ./agent
  orchestrator check --json -- node agent.ts`,
		Args:              cli.ArgCount(1, -1),
		ValidArgsFunction: nil,
		RunE:              func(_ *cobra.Command, args []string) error { return check(a, args, &f) },
	}
	set := verb.Flags()
	set.SetInterspersed(false)
	set.Var(&f.as, "as", "the role in which it must do a task: worker, planner or reviewer")
	set.BoolVar(&f.full, "full", false, "also what takes longer: runs it again, kills it, gives it ten tasks")
	set.Var(&f.wait, "wait", "how long it may say nothing about a task: `DUR`")
	set.Var(&f.grace, "grace", "how long it may run on after the end of its stdin: `DUR`")
	_ = verb.RegisterFlagCompletionFunc("as", f.as.Complete)
	return verb
}

// checking is one check.
type checking struct {
	app     *cli.App
	command []string
	terms   checkup.Terms
	full    bool
	found   checkup.Findings
}

// CheckReport is the answer for programs.
type CheckReport struct {
	FormatVersion string           `json:"format_version"`
	Command       []string         `json:"command"`
	Role          string           `json:"role"`
	OK            int              `json:"ok"`
	Failed        int              `json:"failed"`
	Warnings      int              `json:"warnings"`
	Notes         int              `json:"notes"`
	Findings      checkup.Findings `json:"findings"`
}

func check(a *cli.App, command []string, f *checkFlags) error {
	c := &checking{app: a, command: command, full: f.full}
	c.terms = checkup.Terms{Demand: f.as.Value != "", Role: f.as.Value, Wait: f.wait.Duration, Grace: f.grace.Duration}
	if c.terms.Role == "" {
		c.terms.Role = wire.RoleWorker
	}
	if command[0] == "" {
		return cli.UsageError("the program to check has no name", "Write: orchestrator check -- CMD…")
	}
	if c.terms.Wait <= 0 || c.terms.Grace <= 0 {
		return cli.UsageError("--wait and --grace want some time", "Write: orchestrator check --wait 10s --grace 5s -- CMD…")
	}
	ctx, stop := a.Context()
	defer stop()
	if err := c.all(ctx); err != nil {
		return err
	}
	if err := a.Ended(ctx); err != nil {
		return err
	}
	return c.report()
}

// all looks at everything, one life after the other: two at once could be in each
// other's way.
func (c *checking) all(ctx context.Context) error {
	done := c.app.ShowWait(c.command[0])
	defer done()
	t, first, err := c.first(ctx)
	c.found = first
	if err != nil || ctx.Err() != nil {
		return err
	}
	if t.run.ByItself() || t.run.Unread > 0 {
		return nil // no reader is left that could hear what comes
	}
	if err := c.steps(ctx, t.works, first); err != nil || !c.full || ctx.Err() != nil {
		return err
	}
	_, second, err := c.first(ctx)
	if err == nil && ctx.Err() == nil {
		c.found = append(c.found, checkup.Unsteady(first, second))
	}
	return err
}

// first gives the program a task, and then asks it to end.
func (c *checking) first(ctx context.Context) (*checkRun, checkup.Findings, error) {
	t, err := beginTrial(c.app, c.command, c.terms, false)
	if err != nil {
		return nil, nil, err
	}
	enough := t.answering(ctx)
	task := ""
	if t.started(ctx) {
		task, err = t.give(ctx, "Say hello")
		if err == nil {
			t.finish(ctx, task)
			if !t.read(ctx) { // also what it was answered
				view, _ := t.look(ctx)
				t.run.Unread = view.Mailbox.Unread
			}
		}
	}
	enough()
	if failed := t.end(ctx); err == nil {
		err = failed
	}
	if t.run.Refused != nil {
		return nil, nil, c.notStarted(t.run.Refused)
	}
	if err != nil || ctx.Err() != nil {
		return nil, nil, err
	}
	found := checkup.First(t.run, task, c.terms)
	t.works = t.run.Done(task) && !found.Buffered()
	return t, found, nil
}

// notStarted is why nothing was checked.
func (c *checking) notStarted(refused *checkup.Refused) *cli.Failure {
	f := &cli.Failure{
		Exit: refused.Exit, Code: cli.CodeFailed, Message: "cannot run " + c.command[0] + ": " + refused.Text,
		Because: []string{"Nothing was checked."},
	}
	if refused.Exit != cli.ExitNoProgram {
		return f
	}
	if len(c.command) == 1 && strings.ContainsAny(c.command[0], " \t") {
		f.Message = "cannot run " + c.command[0] + ": program not found: it is one word, and each word of a command stands for itself"
	}
	if line := c.likely(); line != "" {
		f.Hint = "Did you mean:  orchestrator check -- " + line
	}
	return f
}

// likely is the command that may have been meant by one that was not found: a line for a
// shell, an agent's, a file in this folder, or a program with nearly that name.
func (c *checking) likely() string {
	word, rest := c.command[0], c.command[1:]
	switch {
	case len(rest) == 0 && strings.ContainsAny(word, "|&;<>$`()"):
		return "sh -c " + term.Word(word)
	case len(rest) == 0 && strings.ContainsAny(word, " \t"):
		return word
	case strings.Contains(word, "/") || strings.HasPrefix(word, "-"):
		return ""
	}
	if command := commandOf(c.app, word); command != nil {
		return quotedLine(command)
	}
	if info, err := os.Stat(c.app.Path(word)); err == nil && info.Mode().IsRegular() {
		return quotedLine(append([]string{"./" + word}, rest...))
	}
	if name := cli.Nearest(word, project.Programs(c.app)); name != "" {
		return quotedLine(append([]string{name}, rest...))
	}
	return ""
}

// commandOf is how an agent of the file is started; nil when there is none of that name.
func commandOf(a *cli.App, name string) []string {
	file, err := config.Find(a.Dir, a.Flags.Config, a.Environ)
	if err != nil {
		return nil
	}
	c, _ := config.Load(file, a.Options())
	if c == nil {
		return nil
	}
	for i := range c.Agents {
		if agent := &c.Agents[i]; agent.Name == name || agent.Block == name {
			return agent.Command
		}
	}
	return nil
}

// quotedLine is a command that can be pasted into a shell.
func quotedLine(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = term.Word(word)
	}
	return strings.Join(words, " ")
}

// report prints what was found.
func (c *checking) report() error {
	failed := c.found.Count(checkup.Fail)
	err := c.print()
	if err == nil && failed > 0 {
		return cli.ExitWith(cli.ExitNo)
	}
	return err
}

func (c *checking) print() error {
	a := c.app
	counts := CheckReport{
		FormatVersion: wire.FormatVersion, Command: c.command, Role: c.terms.Role, Findings: c.found,
		OK: c.found.Count(checkup.OK), Failed: c.found.Count(checkup.Fail),
		Warnings: c.found.Count(checkup.Warn), Notes: c.found.Count(checkup.Note),
	}
	if a.Flags.JSON {
		return a.Document(counts)
	}
	p := a.Paint(a.Stdout)
	var b strings.Builder
	for _, one := range c.found {
		if a.Flags.Quiet && (one.Verdict == checkup.OK || one.Verdict == checkup.Note) {
			continue
		}
		fmt.Fprintf(&b, "%s  %s\n", findingWord(p, one.Verdict), wire.Visible(one.Text))
		if one.Cure != "" {
			fmt.Fprintf(&b, "      %s %s\n", p.Dim("="), wire.Visible(one.Cure))
		}
	}
	if !a.Flags.Quiet {
		fmt.Fprintf(&b, "%d ok, %d failed, %s\n", counts.OK, counts.Failed, term.Count(counts.Warnings, "warning"))
	}
	return a.Print("%s", b.String())
}

// findingWord is a verdict at the beginning of a line.
func findingWord(p term.Paint, v checkup.Verdict) string {
	switch v {
	case checkup.Fail:
		return p.Bad("FAIL")
	case checkup.Warn:
		return p.Warn("warn")
	case checkup.Note:
		return p.Dim("note")
	}
	return p.Good("ok") + "  "
}
