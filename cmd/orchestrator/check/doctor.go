package check

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/project"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
)

// DoctorCommand returns the doctor command.
func DoctorCommand(a *cli.App) *cobra.Command {
	wait := cli.Duration{Duration: time.Minute}
	verb := &cobra.Command{
		Use:   "doctor [AGENT…]",
		Short: "Check that agent programs are installed and logged in",
		Long: `Reads the file and looks for the program of each agent. A coding agent (protocol claude,
codex or acp) is started with the command line of "up". It reports its version, login and
abilities, gets no prompt, and is ended.

The exit code is 0 if all is well, and 1 otherwise. "unknown" stands for facts that a program
does not report.`,
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
	Plans      bool     `json:"plans"`      // it has a mode that forbids changes until a plan is approved
	Findings   Findings `json:"findings"`

	confined, readOnly bool // by the kernel
}

func doctor(a *cli.App, names []string, patience time.Duration) error {
	if patience <= 0 {
		return cli.UsageError("--wait must be more than 0", "Usage: orchestrator doctor --wait 60s")
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
		err := one.print(a, widestName(all))
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

// examine judges the findings about the program of an agent.
func examine(e *serve.Examined, patience time.Duration) agentReport {
	one := agentReport{
		Agent: e.Agent.Block, Protocol: e.Agent.Protocol, Command: e.Agent.Command, Path: e.Path, Findings: Findings{},
	}
	if e.Agent.IsClient() {
		one.Permission = e.Agent.Client.Opening.Permission
		one.confined, one.readOnly = kernel(&e.Agent)
	}
	login := "Run it yourself and log in: " + one.Command[0]
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
		cure := "Run it yourself, or wait longer: orchestrator doctor --wait " + term.Duration(10*patience)
		words := strings.Join(append([]string{e.Failed}, e.Words...), " / ")
		if strings.Contains(words, "cannot be confined: allowing ") {
			cure = "Create the folder, or run the program once yourself: orchestrator help real-agents confinement"
		}
		one.Findings.add(Fail, "handshake", cure, "%s: the handshake failed: %s", one.Agent, words)
	default:
		o := &e.Ready.Offers
		one.Handshake, one.Version, one.Login = true, e.Ready.Version, o.Login
		one.Mail, one.Resume, one.Cost, one.Mode, one.Plans = o.Mail, o.Resume, o.Cost, o.Mode, o.Plans
		if !o.Plans {
			one.Findings.add(Note, "plans", "", "%s: no plan mode: only the prompt forbids changes before a plan is approved", one.Agent)
		}
		if o.Login == adapter.LoginNo {
			one.Findings.add(Fail, "login", login, "%s: not logged in", one.Agent)
		}
	}
	return one
}

// cure returns the remedy for a program that could not be started.
func (r *agentReport) cure(err error) string {
	if client, ok := project.ClientOf(r.Command); ok && r.Path == "" {
		return "Install it: " + client.Install()
	}
	if start, ok := errors.AsType[*child.StartError](err); ok {
		return cmp.Or(start.Hint, "Change its command, or its PATH: orchestrator help config")
	}
	return ""
}

// print prints the lines of an agent and its findings. With --json everything is printed at the end.
func (r *agentReport) print(a *cli.App, name int) error {
	if a.Flags.JSON {
		return nil
	}
	p := a.Paint(a.Stdout)
	var text strings.Builder
	if !a.Flags.Quiet {
		text.WriteString(r.lines(p, name))
	}
	for _, one := range r.Findings {
		if one.Verdict == Fail || !a.Flags.Quiet {
			text.WriteString(findingLines(p, &one))
		}
	}
	return a.Print("%s", text.String())
}

// widestName returns the width of the column of names.
func widestName(all []serve.Examined) (width int) {
	for i := range all {
		width = max(width, term.Width(all[i].Agent.Block))
	}
	return width
}

// lines describes an agent: first its program, then the offers of the program, a line each.
func (r *agentReport) lines(p term.Paint, name int) string {
	program := wire.Visible(strings.TrimSpace(filepath.Base(r.Command[0]) + " " + r.Version))
	rows := [][2]string{}
	add := func(label, text string) { rows = append(rows, [2]string{label, text}) }
	state := loginWords[r.Login]
	switch {
	case r.Path == "":
		state = p.Bad("not found")
	case r.Permission == "": // not a coding agent
		state = "found"
	case !r.Handshake:
		state = p.Bad(cmp.Or(state, "no handshake"))
	case r.Login == adapter.LoginNo:
		state = p.Bad(state)
	default:
		state = cmp.Or(state, "login: "+unknown)
	}
	if r.Path != "" {
		add("program", p.Dim(r.Path))
	}
	if r.Handshake {
		add("permission", r.permission())
		add("mail", mailWords[r.Mail])
		add("resume", yesNo(r.Resume))
		add("cost", cmp.Or(r.Cost, unknown))
	}
	text := term.Pad(r.Agent, name) + "  " + program + ", " + state + "\n"
	for _, row := range rows {
		text += strings.Repeat(" ", name+2) + term.Pad(row[0], len("permission")) + "  " + row[1] + "\n"
	}
	return text
}

// permission returns the rights of the agent. If the kernel confines it, the mode of the program
// does not show them: programs get a mode that leaves confinement to the kernel.
func (r *agentReport) permission() string {
	switch {
	case r.readOnly:
		return r.Permission + ": read-only, enforced by the kernel"
	case r.confined:
		return r.Permission + ": writes only where confine allows, enforced by the kernel"
	case r.Mode == r.Permission:
		return r.Permission
	}
	return fmt.Sprintf("%s (%s)", r.Permission, wire.Visible(cmp.Or(r.Mode, unknown)))
}

// kernel returns whether the kernel confines an agent, and whether its folder is read-only.
func kernel(a *config.Agent) (confined, readOnly bool) {
	confined = a.Confined.On && !a.Confined.BestEffort
	readOnly = confined && a.Workspace == nil && !slices.ContainsFunc(a.Confined.Write, func(folder string) bool {
		return below(a.Dir, folder) || below(folder, a.Dir)
	})
	return confined, readOnly
}

// below reports whether a path is a folder or lies in it. Both are absolute.
func below(path, folder string) bool {
	inside, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(inside)
}

const unknown = "unknown" // a fact that a program does not report

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
