// Package agent holds the commands on agents, and status, logs and events.
package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// agentList is the JSON answer of agent ls and agent show.
type agentList struct {
	FormatVersion string              `json:"format_version"`
	Agents        []control.AgentView `json:"agents"`
}

// Command returns the agent command.
func Command(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use: "agent", Short: "Inspect, start, stop and restart agents",
		Example: "  orchestrator agent show coder\n  orchestrator agent restart coder reviewer",
	},
		listCommand(a, "ls", "orchestrator agent ls"), agentShowCommand(a), agentServersCommand(a),
		agentChangeCommand(a, "start", "Start agents that do not run", `Starts agents that are stopped, failed or waiting for their next attempt, and the
agents they depend on. The command ends when each has a process or has failed.`),
		agentChangeCommand(a, "stop", "Stop agents and keep them stopped", `Stops agents in order and waits for the end of all their processes. They stay
stopped until they are started again, even after a reload.`),
		agentChangeCommand(a, "restart", "Stop agents and start them again", `Stops agents in order, waits for the end of all their processes, and starts them
again. The count of failures that leads to a back-off is reset.`),
		agentInterruptCommand(a),
	)
}

// PsCommand returns the ps command.
func PsCommand(a *cli.App) *cobra.Command { return listCommand(a, "ps", "orchestrator ps") }

// listCommand returns the command agent ls, which is also ps.
func listCommand(a *cli.App, name, path string) *cobra.Command {
	return &cobra.Command{
		Use:               name,
		Short:             "List the agents",
		Long:              "Lists the agents of the running orchestrator, one line each.",
		Example:           fmt.Sprintf("  %s\n  %s -q          only the names\n  %s --json", path, path, path),
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			status, err := statusNow(a)
			switch {
			case err != nil:
				return err
			case a.Flags.JSON:
				return a.Document(agentList{FormatVersion: wire.FormatVersion, Agents: status.Agents})
			case a.Flags.Quiet:
				return showNames(a, status.Agents)
			}
			return showAgents(a, &status, true)
		},
	}
}

// statusNow returns the status of the orchestrator.
func statusNow(a *cli.App) (status control.Status, err error) {
	err = a.WithClient(func(ctx context.Context, d *client.Client) error {
		status, _, err = a.Status(ctx, d)
		return err
	})
	return status, err
}

func agentShowCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show AGENT…",
		Short: "Show an agent in full",
		Long: `Shows everything about an agent: state and reason, process, command, output and
mailbox. The name of a block with replicas stands for all of them.`,
		Example:           "  orchestrator agent show coder\n  orchestrator agent show coder --json",
		Args:              cli.ArgCount(1, -1),
		ValidArgsFunction: a.CompleteAgents,
		RunE: func(_ *cobra.Command, names []string) error {
			status, err := statusNow(a)
			if err != nil {
				return err
			}
			chosen, err := pick(status.Agents, names)
			if err != nil {
				return err
			}
			if a.Flags.JSON {
				return a.Document(agentList{FormatVersion: wire.FormatVersion, Agents: chosen})
			}
			for i, agent := range chosen {
				if i > 0 {
					if err := a.Print("\n"); err != nil {
						return err
					}
				}
				if err := a.Print("%s", agentCard(agent, status.Hub, a.Paint(a.Stdout))); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// pick returns the agents with the given names, or the replicas of blocks with these names.
func pick(agents []control.AgentView, names []string) ([]control.AgentView, error) {
	var chosen []control.AgentView
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

func noAgent(name string, agents []control.AgentView) *cli.Failure {
	var known []string
	for _, agent := range agents {
		known = append(known, agent.Name, agent.Block)
	}
	f := &cli.Failure{
		Exit: cli.ExitNotFound, Code: wire.CodeNotFound,
		Message: fmt.Sprintf("agent %q does not exist", name),
		Hint:    "List them: orchestrator agent ls",
		Details: map[string]any{"agent": name},
	}
	slices.Sort(known)
	if likely := cli.Nearest(name, slices.Compact(known)); likely != "" {
		f.Because = []string{fmt.Sprintf("Did you mean %q?", likely)}
	}
	return f
}

// agentCard returns the description of an agent in full. The hub is "" if there is only one.
func agentCard(v control.AgentView, hub string, p term.Paint) string {
	head := fmt.Sprintf("%s  %s", p.Strong(wire.Visible(v.Name)), p.State(v.State, wire.Visible(string(v.State))))
	if said := term.AgentNote(v); said != "" {
		head += "  " + said
	}
	rows := [][]term.Cell{}
	row := func(label, value string) {
		if value != "" {
			rows = append(rows, []term.Cell{term.Text("  " + label), term.Text(wire.Visible(value))})
		}
	}
	row("about", v.Description)
	row("command", strings.Join(cli.Quoted(v.Command), " "))
	machine := machineOf(&v, hub)
	row("host", machine)
	if v.Host == "" {
		row("dir", v.Dir)
	} else {
		row("dir", "from the file of its host")
	}
	row("role", v.Role)
	var held []string
	for _, t := range v.Tasks {
		held = append(held, strings.TrimSpace(fmt.Sprintf("%s, %s %s", term.TaskLabel(t.ID, t.Name), t.State, term.Percent(t.Progress))))
	}
	row("tasks", strings.Join(held, "; "))
	row("depends on", strings.Join(v.DependsOn, ", "))
	if v.PID != 0 {
		row("process", fmt.Sprintf("pid %d%s, up %s, %s of CPU, %s of memory", v.PID, on(machine), term.MS(v.UpMS), term.MS(v.CPUMS), term.Bytes(v.RSSBytes)))
	}
	if v.PID == 0 && v.StartedAt != "" {
		row("pipe", "up "+term.MS(v.UpMS))
	}
	if c := v.Activity; c != nil {
		row("doing", activityNote(c))
		row("client", strings.TrimSpace(c.Program+" "+c.Model))
		row("conversation", c.Conversation)
		row("used", term.Used(&activity.Used{Input: c.Input, Output: c.Output, Cost: c.Cost, Currency: c.Currency}))
	}
	row("run", v.Run)
	row("starts", fmt.Sprintf("%d, with %s", v.Starts, term.Count(v.Restarts, "automatic restart")))
	row("last exit", v.LastExit)
	row("output", outputNote(v.Output))
	if v.Output.File != "" {
		kept := hub
		if v.Host != "" {
			kept = cmp.Or(hub, "the hub")
		}
		row("kept in", v.Output.File+on(kept))
	}
	row("mailbox", mailboxNote(v.Mailbox))
	return head + "\n" + term.Table(rows)
}

// on returns the machine of a pid, for a text.
func on(machine string) string {
	if machine == "" {
		return ""
	}
	return " on " + machine
}

func outputNote(o control.OutputView) string {
	said := fmt.Sprintf("%s, %s", term.Count(int(o.Lines), "line"), term.Bytes(o.Bytes))
	if o.Cut > 0 {
		said += fmt.Sprintf(", %d cut", o.Cut)
	}
	if o.Unlogged > 0 {
		said += fmt.Sprintf(", %d not written to the file", o.Unlogged)
	}
	return said
}

func mailboxNote(m control.MailboxView) string {
	if m == (control.MailboxView{}) {
		return "empty"
	}
	return fmt.Sprintf("%s (%s) waiting, %d refused, %s unread in its stdin",
		term.Count(m.Messages, "message"), term.Bytes(m.Bytes), m.Refused, term.Bytes(m.Unread))
}

// agentChangeCommand returns agent start, stop or restart. The command prints a line for
// each agent, and exits with 1 if one failed.
func agentChangeCommand(a *cli.App, name, short, long string) *cobra.Command {
	var all, noDeps bool
	path := "orchestrator agent " + name
	verb := &cobra.Command{
		Use:               name + " AGENT…",
		Short:             short,
		Long:              long,
		Example:           fmt.Sprintf("  %s coder\n  %s coder reviewer --timeout 30s\n  %s --all --json", path, path, path),
		ValidArgsFunction: a.CompleteAgents,
		Args: func(_ *cobra.Command, names []string) error {
			switch {
			case len(names) == 0 && !all:
				return cli.UsageError(fmt.Sprintf("%q requires names of agents, or --all", path), "List them: orchestrator agent ls")
			case len(names) > 0 && all:
				return cli.UsageError("--all cannot be combined with names", "Leave out the names, or --all")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, names []string) error {
			return changeAgents(a, name, control.AgentsRequest{Agents: names, All: all && name != "start", NoDeps: noDeps})
		},
	}
	verb.Flags().BoolVar(&all, "all", false, "every agent")
	if name == "start" {
		verb.Flags().BoolVar(&noDeps, "no-deps", false, "start only these agents, without their dependencies")
	}
	return verb
}

func agentInterruptCommand(a *cli.App) *cobra.Command {
	var message string
	verb := &cobra.Command{
		Use:   "interrupt AGENT",
		Short: "Interrupt an agent without ending its task",
		Long: `Interrupts a running agent. A coding agent ends its turn and begins the next one with the
message, as a prompt from you, and goes on with its task. Other agents are notified with
notify:interrupt.`,
		Example:           "  orchestrator agent interrupt coder -m 'Keep the old page working'\n  orchestrator agent interrupt coder",
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: cli.OneArg(a.CompleteAgents),
		RunE: func(verb *cobra.Command, args []string) error {
			if err := cli.NotEmpty(verb, "message"); err != nil {
				return err
			}
			return cli.Query[activity.Interrupted]{
				Operation: "interrupt-agent", Request: wire.InterruptAgent{Agent: args[0], Message: message},
				Explain: func(err error) error { return interruptRefused(err, args[0]) },
				Quiet:   func(r *activity.Interrupted) error { return a.Print("%s\n", term.OneLine(r.Agent)) },
				Text: func(r *activity.Interrupted) error {
					if r.TaskID == "" {
						return a.Print("Interrupted %s.\n", term.OneLine(r.Agent))
					}
					return a.Print("Interrupted %s. It continues with task %s.\n", term.OneLine(r.Agent), term.ID(r.TaskID))
				},
			}.Run(a)
		},
	}
	verb.Flags().StringVarP(&message, "message", "m", "", "new instruction for the agent: `TEXT`")
	_ = verb.RegisterFlagCompletionFunc("message", cobra.NoFileCompletions)
	return verb
}

// interruptRefused adds the next command to the refusal of an interrupt.
func interruptRefused(err error, agent string) error {
	err = cli.WithHint(err, wire.CodeNotFound, "List them: orchestrator agent ls")
	return cli.WithHint(err, wire.CodeConflict, "See its state: orchestrator agent show "+term.OneLine(agent))
}

func changeAgents(a *cli.App, name string, request control.AgentsRequest) error {
	return cli.Query[control.AgentsReply]{
		Operation: name + "-agent", Request: request, Awaits: "the agents to " + name,
		Text: func(reply *control.AgentsReply) error { return showOutcomes(a, reply.Agents) },
		Judge: func(reply *control.AgentsReply) error {
			if slices.ContainsFunc(reply.Agents, func(agent control.AgentOutcome) bool { return !agent.OK }) {
				return cli.ExitWith(cli.ExitNo)
			}
			return nil
		},
	}.Run(a)
}

// showOutcomes prints a line for each changed agent, followed by the last output of one
// that failed.
func showOutcomes(a *cli.App, agents []control.AgentOutcome) error {
	p := a.Paint(a.Stdout)
	wide := 0
	for _, agent := range agents {
		wide = max(wide, term.Width(wire.Visible(agent.Name)))
	}
	for _, agent := range agents {
		name := wire.Visible(agent.Name)
		if a.Flags.Quiet && agent.OK {
			if err := a.Print("%s\n", name); err != nil {
				return err
			}
			continue
		}
		said := wire.Visible(agent.Text)
		if !agent.OK {
			said = p.Bad("Error:") + " " + said
		}
		if err := a.Print("%s  %s\n", term.Pad(name, wide), said); err != nil {
			return err
		}
		if err := showLastWords(a, agent); err != nil {
			return err
		}
	}
	return nil
}

func showLastWords(a *cli.App, agent control.AgentOutcome) error {
	if agent.OK || len(agent.LastWords) == 0 {
		return nil
	}
	if err := a.Print("  = Last output:\n"); err != nil {
		return err
	}
	for _, line := range agent.LastWords {
		if err := a.Print("      %s\n", wire.Visible(line)); err != nil {
			return err
		}
	}
	return a.Print("  = Read more: orchestrator logs %s\n", wire.Visible(agent.Name))
}

func agentServersCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "servers",
		Short: "List the registered servers",
		Long: `Lists the external servers that have registered as agents. A server is online as long as
it sends requests or heartbeats. A server with a revoked key gets no work.`,
		Example:           "  orchestrator agent servers\n  orchestrator key register --name build-1",
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return listServers(a) },
	}
}

func listServers(a *cli.App) error {
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		text, err := a.Ask(ctx, d, "query-servers", struct{}{})
		if err != nil {
			return err
		}
		all, err := client.Decode[hub.ServerList](text)
		if err != nil {
			return err
		}
		far := hub.ServerList{Servers: []hub.Server{}}
		for _, s := range all.Servers {
			if s.Remote {
				far.Servers = append(far.Servers, s)
			}
		}
		return showServers(a, &far)
	})
}

func showServers(a *cli.App, far *hub.ServerList) error {
	if a.Flags.JSON {
		text, err := object.Encode(far)
		if err != nil {
			return err
		}
		return a.Answer(text)
	}
	if a.Flags.Quiet {
		return cli.PrintNames(a, far.Servers, func(s *hub.Server) string { return s.Name })
	}
	if len(far.Servers) == 0 {
		a.Note("No servers are registered. Allow one: orchestrator key register --name NAME")
		return nil
	}
	rows := [][]term.Cell{{term.Text("NAME"), term.Text("STATUS"), term.Text("HOST"), term.Figure("RUNNING"), term.Text("LAST SEEN")}}
	for _, s := range far.Servers {
		rows = append(rows, []term.Cell{
			term.Text(term.OneLine(s.Name)), term.Text(s.Status), term.Text(cmp.Or(term.OneLine(s.Hostname), "-")), term.Figure(strconv.Itoa(s.Running)), term.Text(term.Clock(s.LastSeen, time.Now(), time.TimeOnly)),
		})
	}
	return a.Print("%s", term.Table(rows))
}
