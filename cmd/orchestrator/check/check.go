// Package check holds the commands that judge programs: check runs a program as an agent and
// reports its mistakes, check --security reports the rights and the reach of the agents of a file, and
// doctor finds programs of a file that cannot be used.
//
// A trial runs the program under a real supervisor, gives it tasks and sends it notifications. A
// run records the reactions of the program: its lines, the events about it, and the audit of its
// requests. The supervisor and package wire decide the meaning of a line and the validity of a
// request. Judging functions state the consequences for the author of the program, and the fix.
// Where possible, a verdict depends on the order of events and not on durations.
package check

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/project"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/hub"
	"orchestrator/wire"
)

// checkFlags are the flags of check.
type checkFlags struct {
	inheritEnv bool
	workspace  string
	as         cli.Choice
	full       bool
	wait       cli.Duration
	grace      cli.Duration

	security bool
	failOn   []string // exposures
}

const checkHelp = `Runs a program as an agent, several times and with a temporary state directory. It
reports whether the program starts, completes a task, sends valid messages, ignores
unknown notifications, ends with its stdin and leaves no processes behind. The program
really runs, with all its effects on files and other systems.

With --workspace, its tasks have workspaces: git worktrees of a temporary clone of DIR, which
begin at the commit that is checked out there. DIR itself does not change.

Each line is a finding: ok, FAIL, warn or note, followed by a fix. A failed task is a FAIL.
With --as, a program that keeps running and ignores its task is a FAIL. A program that
exits with 0 gets a warning, because exit 0 completes its task. A line without a message
type is log output, even if it is JSON: orchestrator schema lists the types.

The exit code is 0 if nothing failed and 1 if something did, or 126 or 127 if the program
could not be started.

--security starts nothing. It lists the exposures of the agents in the file: their access to
files, network, secrets and the orchestrator. Name an agent for details. With --fail-on the
exit code is 1 if an agent has one of these exposures, even in part; "any" means all.`

// Command returns the check command.
func Command(a *cli.App) *cobra.Command {
	f := checkFlags{
		as:    cli.Choice{Of: wire.Roles, Open: true, Close: true},
		wait:  cli.Duration{Duration: 10 * time.Second},
		grace: cli.Duration{Duration: 5 * time.Second},
	}
	verb := &cobra.Command{
		Use: "check [flags] -- CMD…", DisableFlagsInUseLine: true,
		Short: "Run a program and check that it works as an agent",
		Long:  checkHelp,
		Example: `  orchestrator check -- python3 agents/hello.py
  orchestrator check --as worker --full -- ./agent
  orchestrator check --workspace . -- python3 agents/coder.py
  orchestrator check --json -- node agent.ts
  orchestrator check --security
  orchestrator check --security --fail-on keys,state,operator`,
		Args: func(verb *cobra.Command, args []string) error {
			if f.security {
				return nil
			}
			return cli.ArgCount(1, -1)(verb, args)
		},
		ValidArgsFunction: func(verb *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if f.security {
				return a.CompleteAgents(verb, args, word)
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(verb *cobra.Command, args []string) error {
			if err := cli.NotEmpty(verb, "workspace"); err != nil {
				return err
			}
			switch {
			case f.security:
				return checkSecurity(a, verb, args, f.failOn)
			case verb.Flags().Changed("fail-on"):
				return cli.UsageError("--fail-on works only with --security", "Usage: orchestrator check --security --fail-on keys,state")
			}
			return check(a, args, &f)
		},
	}
	f.declare(verb)
	return verb
}

// declare adds the flags to the command.
func (f *checkFlags) declare(verb *cobra.Command) {
	set := verb.Flags()
	set.SetInterspersed(false)
	set.Var(&f.as, "as", "role of its task: worker, planner or reviewer")
	set.BoolVar(&f.full, "full", false, "run longer checks as well: a second run, a kill, ten tasks")
	set.Var(&f.wait, "wait", "maximum time without progress on a task: `DUR`")
	set.Var(&f.grace, "grace", "maximum time to exit after the end of its stdin: `DUR`")
	set.BoolVar(&f.inheritEnv, "inherit-env", false, "also pass on variables that look like credentials")
	set.StringVar(&f.workspace, "workspace", "", "give its tasks worktrees of a clone of the repository `DIR`")
	set.BoolVar(&f.security, "security", false, "list the exposures of the agents in the file, or of the named agents")
	set.StringSliceVar(&f.failOn, "fail-on", nil, "fail if an agent has one of these `EXPOSURES` of --security, such as keys,state, or any")
	_ = verb.RegisterFlagCompletionFunc("as", f.as.Complete)
	_ = verb.MarkFlagDirname("workspace")
}

// checking is one run of the check command.
type checking struct {
	app     *cli.App
	command []string
	terms   requirements
	full    bool
	found   Findings
}

// A Report is the JSON answer of check.
type Report struct {
	FormatVersion string   `json:"format_version"`
	Command       []string `json:"command"`
	Role          string   `json:"role"`
	OK            int      `json:"ok"`
	Failed        int      `json:"failed"`
	Warnings      int      `json:"warnings"`
	Notes         int      `json:"notes"`
	Findings      Findings `json:"findings"`
}

func check(a *cli.App, command []string, f *checkFlags) error {
	c := &checking{app: a, command: command, full: f.full}
	if !f.inheritEnv {
		serve.NoteLeftOut(a, config.Alone(a.Dir, "", "check", command), hub.AgentBase(a.Environ))
	}
	c.terms = requirements{Demand: f.as.Value != "", Role: f.as.Value, Wait: f.wait.Duration, Grace: f.grace.Duration, InheritEnv: f.inheritEnv}
	if f.workspace != "" {
		c.terms.Workspace = a.Path(f.workspace)
	}
	if c.terms.Role == "" {
		c.terms.Role = wire.RoleWorker
	}
	if command[0] == "" {
		return cli.UsageError("the name of the program is empty", "Usage: orchestrator check -- CMD…")
	}
	if c.terms.Wait <= 0 || c.terms.Grace <= 0 {
		return cli.UsageError("--wait and --grace must be more than 0", "Usage: orchestrator check --wait 10s --grace 5s -- CMD…")
	}
	ctx, stop := a.Context()
	defer stop()
	err := c.all(ctx)
	if over := a.Ended(ctx); over != nil { // it may also have ended a request of the check
		return over
	}
	if err != nil {
		return err
	}
	return c.report()
}

// all makes all checks, one life after the other, because two lives could interfere.
func (c *checking) all(ctx context.Context) error {
	done := c.app.ShowWait(c.command[0])
	defer done()
	t, first, err := c.first(ctx)
	c.found = first
	if err != nil || ctx.Err() != nil {
		return err
	}
	if t.run.ByItself() || t.run.Unread > 0 {
		return nil // it has ended, or does not read its input
	}
	if err := c.steps(ctx, t.works, first); err != nil || !c.full || ctx.Err() != nil {
		return err
	}
	_, second, err := c.first(ctx)
	if err == nil && ctx.Err() == nil {
		c.found = append(c.found, judgeRepeat(first, second))
	}
	return err
}

// first gives the program a task and then asks it to end.
func (c *checking) first(ctx context.Context) (*trial, Findings, error) {
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
			if !t.read(ctx) { // including the responses
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
	found := t.run.judgeFirst(task, c.terms)
	t.works = t.run.Done(task) && !found.Buffered()
	return t, found, nil
}

// notStarted returns the failure for a program that could not be started.
func (c *checking) notStarted(refused *refusedStart) *cli.Failure {
	f := &cli.Failure{
		Exit: refused.Exit, Code: cli.CodeFailed, Message: "cannot run " + c.command[0] + ": " + refused.Text,
		Because: []string{"Nothing was checked."},
	}
	if refused.Exit != cli.ExitNoProgram {
		return f
	}
	if len(c.command) == 1 && strings.ContainsAny(c.command[0], " \t") {
		f.Message = "cannot run " + c.command[0] + ": program not found: pass each word of the command as a separate argument"
	}
	if line := c.likely(); line != "" {
		f.Hint = "Did you mean:  orchestrator check -- " + line
	}
	return f
}

// likely returns the command that was probably meant by an unknown one. That is a shell command,
// the command of an agent, a file in this folder, or a program with a similar name.
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

// commandOf returns the command of an agent of the file, or nil.
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

// quotedLine returns a command that can be pasted into a shell.
func quotedLine(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = term.Word(word)
	}
	return strings.Join(words, " ")
}

// report prints the findings. It returns ExitNo if a check failed.
func (c *checking) report() error {
	failed := c.found.Count(Fail)
	err := c.print()
	if err == nil && failed > 0 {
		return cli.ExitWith(cli.ExitNo)
	}
	return err
}

func (c *checking) print() error {
	a := c.app
	report := Report{
		FormatVersion: wire.FormatVersion, Command: c.command, Role: c.terms.Role, Findings: c.found,
		OK: c.found.Count(OK), Failed: c.found.Count(Fail),
		Warnings: c.found.Count(Warn), Notes: c.found.Count(Note),
	}
	if a.Flags.JSON {
		return a.Document(report)
	}
	p := a.Paint(a.Stdout)
	var b strings.Builder
	for _, one := range c.found {
		if a.Flags.Quiet && (one.Verdict == OK || one.Verdict == Note) {
			continue
		}
		b.WriteString(findingLines(p, &one))
	}
	if !a.Flags.Quiet {
		fmt.Fprintf(&b, "%d ok, %d failed, %s\n", report.OK, report.Failed, term.Count(report.Warnings, "warning"))
	}
	return a.Print("%s", b.String())
}

// findingLines returns a finding and its cure.
func findingLines(p term.Paint, f *Finding) string {
	lines := findingWord(p, f.Verdict) + "  " + wire.Visible(f.Text) + "\n"
	if f.Cure != "" {
		lines += "      " + p.Dim("=") + " " + wire.Visible(f.Cure) + "\n"
	}
	return lines
}

// findingWord returns a verdict for the beginning of a line.
func findingWord(p term.Paint, v Verdict) string {
	switch v {
	case Fail:
		return p.Bad("FAIL")
	case Warn:
		return p.Warn("warn")
	case Note:
		return p.Dim("note")
	}
	return p.Good("ok") + "  "
}
