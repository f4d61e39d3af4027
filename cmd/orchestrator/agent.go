package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// agentList answers agent ls and agent show for programs.
type agentList struct {
	FormatVersion string           `json:"format_version"`
	Agents        []wire.AgentView `json:"agents"`
}

func (a *app) agentCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use: "agent", Short: "Inspect, start, stop and restart agents",
		Example: "  orchestrator agent show coder\n  orchestrator agent restart coder reviewer",
	},
		a.listCommand("ls", "orchestrator agent ls"), a.agentShowCommand(), a.agentServersCommand(),
		a.agentChangeCommand("start", "Start agents that do not run", `Starts agents that are stopped, failed or waiting for their next try, and the
agents they depend on. Comes back when each has a process, or says why not.`),
		a.agentChangeCommand("stop", "Stop agents and keep them stopped", `Stops agents in order and waits until nothing of them is left. They stay
stopped until they are started again, also over a reload.`),
		a.agentChangeCommand("restart", "Stop agents and start them again", `Stops agents in order, waits until nothing of them is left, and starts them
again. The count of failures that led to a back-off begins anew.`),
	)
}

func (a *app) psCommand() *cobra.Command { return a.listCommand("ps", "orchestrator ps") }

// listCommand makes agent ls, which is ps as well.
func (a *app) listCommand(name, path string) *cobra.Command {
	return &cobra.Command{
		Use:               name,
		Short:             "List the agents",
		Long:              "Lists the agents of the running orchestrator, one line each.",
		Example:           fmt.Sprintf("  %s\n  %s -q          names alone\n  %s --json", path, path, path),
		Args:              argCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			agents, err := a.agents()
			switch {
			case err != nil:
				return err
			case a.flags.json:
				return a.document(agentList{FormatVersion: wire.FormatVersion, Agents: agents})
			case a.flags.quiet:
				return a.showNames(agents)
			}
			return a.showAgents(agents, true)
		},
	}
}

// agents asks for all agents.
func (a *app) agents() ([]wire.AgentView, error) {
	ctx, stop := a.begin()
	defer stop()
	door, err := a.door()
	if err != nil {
		return nil, err
	}
	status, _, err := a.status(ctx, door)
	return status.Agents, err
}

func (a *app) agentShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show AGENT…",
		Short: "Show an agent in full",
		Long: `Shows everything about an agent: state and reason, process, command, output and
mailbox. The name of a block with replicas stands for all of them.`,
		Example:           "  orchestrator agent show coder\n  orchestrator agent show coder --json",
		Args:              argCount(1, -1),
		ValidArgsFunction: a.completeAgents,
		RunE: func(_ *cobra.Command, names []string) error {
			agents, err := a.agents()
			if err != nil {
				return err
			}
			chosen, err := pick(agents, names)
			if err != nil {
				return err
			}
			if a.flags.json {
				return a.document(agentList{FormatVersion: wire.FormatVersion, Agents: chosen})
			}
			for i, agent := range chosen {
				if i > 0 {
					if err := a.print("\n"); err != nil {
						return err
					}
				}
				if err := a.print("%s", agentCard(agent, a.paint(a.stdout))); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// pick finds agents by name, or by the block they are replicas of.
func pick(agents []wire.AgentView, names []string) ([]wire.AgentView, error) {
	var chosen []wire.AgentView
	for _, name := range names {
		before := len(chosen)
		for _, agent := range agents {
			if agent.Name == name || agent.Block == name {
				chosen = append(chosen, agent)
			}
		}
		if len(chosen) == before {
			return nil, noAgent(name, agents)
		}
	}
	return chosen, nil
}

func noAgent(name string, agents []wire.AgentView) *failure {
	var known []string
	for _, agent := range agents {
		known = append(known, agent.Name, agent.Block)
	}
	f := &failure{
		exit: exitNotFound, code: wire.CodeNotFound,
		message: fmt.Sprintf("no agent is called %q", name),
		hint:    "See which there are: orchestrator agent ls",
		details: map[string]any{"agent": name},
	}
	slices.Sort(known)
	if likely := nearest(name, slices.Compact(known)); likely != "" {
		f.because = []string{fmt.Sprintf("Did you mean %q?", likely)}
	}
	return f
}

// agentCard is an agent in full.
func agentCard(v wire.AgentView, p paint) string {
	head := fmt.Sprintf("%s  %s", p.strong(wire.Visible(v.Name)), p.state(v.State, wire.Visible(string(v.State))))
	if said := note(v); said != "" {
		head += "  " + said
	}
	rows := [][]cell{}
	row := func(label, value string) {
		if value != "" {
			rows = append(rows, []cell{text("  " + label), text(wire.Visible(value))})
		}
	}
	row("about", v.Description)
	row("command", strings.Join(quoted(v.Command), " "))
	row("dir", v.Dir)
	row("role", v.Role)
	var held []string
	for _, t := range v.Tasks {
		held = append(held, strings.TrimSpace(fmt.Sprintf("%s, %s %s", taskLabel(t.ID, t.Name), t.State, plain.Percent(t.Progress))))
	}
	row("tasks", strings.Join(held, "; "))
	row("depends on", strings.Join(v.DependsOn, ", "))
	if v.PID != 0 {
		row("process", fmt.Sprintf("pid %d, up %s, %s of CPU, %s of memory", v.PID, plain.MS(v.UpMS), plain.MS(v.CPUMS), plain.Bytes(v.RSSBytes)))
	}
	if v.PID == 0 && v.StartedAt != "" {
		row("pipe", "up "+plain.MS(v.UpMS))
	}
	row("run", v.Run)
	row("starts", fmt.Sprintf("%d, of these %s by itself", v.Starts, plain.Count(v.Restarts, "restart")))
	row("last exit", v.LastExit)
	row("output", outputNote(v.Output))
	row("kept in", v.Output.File)
	row("mailbox", mailboxNote(v.Mailbox))
	return head + "\n" + table(rows)
}

func outputNote(o wire.OutputView) string {
	said := fmt.Sprintf("%s, %s", plain.Count(int(o.Lines), "line"), plain.Bytes(o.Bytes))
	if o.Cut > 0 {
		said += fmt.Sprintf(", %d too long and cut", o.Cut)
	}
	if o.Unlogged > 0 {
		said += fmt.Sprintf(", %d not written to the file", o.Unlogged)
	}
	return said
}

func mailboxNote(m wire.MailboxView) string {
	if m == (wire.MailboxView{}) {
		return "empty"
	}
	return fmt.Sprintf("%s (%s) waiting, %d refused, %s unread in its stdin",
		plain.Count(m.Messages, "message"), plain.Bytes(m.Bytes), m.Refused, plain.Bytes(m.Unread))
}

// quoted puts quotes around the words of a command that need them.
func quoted(words []string) []string {
	shown := make([]string, len(words))
	for i, word := range words {
		shown[i] = plain.Word(word)
	}
	return shown
}
