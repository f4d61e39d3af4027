package check

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/project"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/child"
	"orchestrator/wire"
)

// DoctorCommand returns the doctor command.
func DoctorCommand(a *cli.App) *cobra.Command {
	wait := cli.Duration{Duration: time.Minute}
	verb := &cobra.Command{
		Use:   "doctor [AGENT…]",
		Short: "Check that the programs of the agents are installed and logged in",
		Long: `Reads the file and looks for the program of each agent. A coding agent (protocol claude,
codex or acp) is started with the command line of "up". It reports its version, its login
and what it offers, gets no prompt, and is ended.

The exit code is 0 if all is well, and 1 otherwise. What a program does not report is
"not said".`,
		Example: `  orchestrator doctor
  orchestrator doctor coder
  orchestrator doctor --json     in CI`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.CompleteAgents,
		RunE:              func(_ *cobra.Command, names []string) error { return doctor(a, names, wait.Duration) },
	}
	verb.Flags().Var(&wait, "wait", "maximum time for the handshake with a program: `DUR`")
	return verb
}

// diagnosis is the JSON answer of doctor.
type diagnosis struct {
	FormatVersion string        `json:"format_version"`
	Healthy       bool          `json:"healthy"`
	Agents        []agentReport `json:"agents"`
}

// An agentReport is the part of a diagnosis about one agent. Members that its program does not
// report are empty.
type agentReport struct {
	Agent      string   `json:"agent"` // its block: replicas have one program
	Protocol   string   `json:"protocol"`
	Command    []string `json:"command"`
	Path       string   `json:"path"` // of the program; empty if it was not found
	Handshake  bool     `json:"handshake"`
	Version    string   `json:"version"`
	Login      string   `json:"login"`      // yes, no or not needed
	Mail       string   `json:"mail"`       // proved, steered or later
	Resume     bool     `json:"resume"`     // it goes on with its conversation
	Cost       string   `json:"cost"`       // yes or no
	Permission string   `json:"permission"` // of the file
	Mode       string   `json:"mode"`       // its own name of the permission that is set
	Plans      bool     `json:"plans"`      // it has a mode in which nothing may be changed until a plan is approved
	Findings   Findings `json:"findings"`
}

func doctor(a *cli.App, names []string, patience time.Duration) error {
	if patience <= 0 {
		return cli.UsageError("--wait wants some time", "Write: orchestrator doctor --wait 60s")
	}
	ctx, stop := a.Context()
	defer stop()
	d := diagnosis{FormatVersion: wire.FormatVersion, Healthy: true, Agents: []agentReport{}}
	const awaited = "the programs of the agents"
	done := a.ShowWait(awaited)
	err := serve.Examine(ctx, a, names, patience, func(all []serve.Examined, i int) error {
		one := examine(&all[i], patience)
		d.Healthy = d.Healthy && one.Findings.Count(Fail) == 0
		d.Agents = append(d.Agents, one)
		done()
		err := one.print(a, ruler(all))
		done = a.ShowWait(awaited)
		return err
	})
	done()
	if err != nil {
		return err
	}
	if err := a.Ended(ctx); err != nil {
		return err
	}
	if a.Flags.JSON {
		if err := a.Document(d); err != nil {
			return err
		}
	}
	if d.Healthy {
		return nil
	}
	return cli.ExitWith(cli.ExitNo)
}

// examine judges what was found out about the program of an agent.
func examine(e *serve.Examined, patience time.Duration) agentReport {
	one := agentReport{
		Agent: e.Agent.Block, Protocol: e.Agent.Protocol, Command: e.Agent.Command, Path: e.Path, Findings: Findings{},
	}
	if e.Agent.IsClient() {
		one.Permission = e.Agent.Client.Permission
	}
	login := "Run it by itself and log in: " + one.Command[0]
	if client, ok := project.ClientOf(one.Command); ok {
		login = "Log in: " + client.Login
	}
	switch {
	case e.Err != nil:
		one.Findings.add(Fail, "start", one.cure(e.Err), "%s: %v", one.Agent, e.Err)
	case !e.Agent.IsClient():
	case e.Login:
		one.Login = adapter.LoginNo
		one.Findings.add(Fail, "login", login, "%s: not logged in: %s", one.Agent, e.Failed)
	case e.Ready == nil:
		cure := "Run it by itself, or give it longer: orchestrator doctor --wait " + term.Duration(10*patience)
		words := strings.Join(append([]string{e.Failed}, e.Words...), " / ")
		if strings.Contains(words, "cannot be confined: allowing ") {
			cure = "Make the folder, or run the program once by itself: orchestrator help real-agents confinement"
		}
		one.Findings.add(Fail, "handshake", cure, "%s: the handshake failed: %s", one.Agent, words)
	default:
		o := &e.Ready.Offers
		one.Handshake, one.Version, one.Login = true, e.Ready.Version, o.Login
		one.Mail, one.Resume, one.Cost, one.Mode, one.Plans = o.Mail, o.Resume, o.Cost, o.Mode, o.Plans
		if !o.Plans {
			one.Findings.add(Note, "plans", "", "%s: it has no mode for plans: if a task requires a plan, only the prompt says that nothing may be changed before", one.Agent)
		}
		if o.Login == adapter.LoginNo {
			one.Findings.add(Fail, "login", login, "%s: not logged in", one.Agent)
		}
	}
	return one
}

// cure returns what to do about a program that could not be started.
func (r *agentReport) cure(err error) string {
	if client, ok := project.ClientOf(r.Command); ok && r.Path == "" {
		return "Install it: " + client.Install()
	}
	if start, ok := errors.AsType[*child.StartError](err); ok {
		return cmp.Or(start.Hint, "Change its command, or its PATH: orchestrator help config")
	}
	return ""
}

// print prints the row of an agent and what was found, unless all is printed at the end. Columns are
// at least as wide as in a row that is not printed.
func (r *agentReport) print(a *cli.App, ruler []term.Cell) error {
	if a.Flags.JSON {
		return nil
	}
	p := a.Paint(a.Stdout)
	var text strings.Builder
	if !a.Flags.Quiet {
		_, row, _ := strings.Cut(term.Table([][]term.Cell{ruler, r.row(p)}), "\n")
		text.WriteString(row)
	}
	for _, one := range r.Findings {
		if one.Verdict == Fail || !a.Flags.Quiet {
			text.WriteString(findingLines(p, &one))
		}
	}
	return a.Print("%s", text.String())
}

// ruler returns a row with the longest texts that are likely, so that the columns of agents that end
// at different times agree.
func ruler(all []serve.Examined) []term.Cell {
	var name, program string
	cells := []term.Cell{{}, {}, term.Text("login: " + notSaid)}
	for i := range all {
		name = longer(name, all[i].Agent.Block)
		program = longer(program, filepath.Base(all[i].Agent.Command[0])+" 0.000.0")
		if all[i].Agent.IsClient() && len(cells) == 3 {
			cells = append(cells, term.Text("mail: "+mailWords[adapter.MailProved]), term.Text("resume: yes"), term.Text("money: "+notSaid))
		}
	}
	cells[0], cells[1] = term.Text(name), term.Text(program)
	return cells
}

func longer(a, b string) string {
	if term.Width(b) > term.Width(a) {
		return b
	}
	return a
}

// row describes an agent in one line. The path is in the last column.
func (r *agentReport) row(p term.Paint) []term.Cell {
	cells := make([]term.Cell, 8)
	cells[0] = term.Text(r.Agent)
	cells[1] = term.Text(wire.Visible(strings.TrimSpace(filepath.Base(r.Command[0]) + " " + r.Version)))
	cells[7] = term.Cell{Text: r.Path, Ink: p.Dim}
	switch {
	case r.Path == "":
		cells[2] = term.Cell{Text: "not found", Ink: p.Bad}
		return cells
	case r.Permission == "": // not a coding agent
		cells[2] = term.Text("found")
		return cells
	case !r.Handshake:
		cells[2] = term.Cell{Text: cmp.Or(loginWords[r.Login], "no handshake"), Ink: p.Bad}
		return cells
	}
	mode := r.Permission
	if r.Mode != mode {
		mode = fmt.Sprintf("%s (%s)", mode, wire.Visible(cmp.Or(r.Mode, notSaid)))
	}
	cells[2] = term.Text(cmp.Or(loginWords[r.Login], "login: "+notSaid))
	if r.Login == adapter.LoginNo {
		cells[2].Ink = p.Bad
	}
	cells[3] = term.Text("mail: " + mailWords[r.Mail])
	cells[4] = term.Text("resume: " + yesNo(r.Resume))
	cells[5] = term.Text("money: " + cmp.Or(r.Cost, notSaid))
	cells[6] = term.Text("permission: " + mode)
	return cells
}

const notSaid = "not said"

var loginWords = map[string]string{
	adapter.LoginYes: "logged in", adapter.LoginNo: "not logged in", adapter.LoginFree: "no login needed",
}

var mailWords = map[string]string{
	adapter.MailProved:  "in the middle of a turn, with proof",
	adapter.MailSteered: "in the middle of a turn, no proof",
	adapter.MailLater:   "after the turn",
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
