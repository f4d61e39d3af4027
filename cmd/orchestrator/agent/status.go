package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
	"orchestrator/wire/object"
)

// calmRows is how many agents status lists. In a larger team running agents are only
// counted, unless --all is set.
const calmRows = 50

// StatusCommand returns the status command.
func StatusCommand(a *cli.App) *cobra.Command {
	var watch, all bool
	verb := &cobra.Command{
		Use:   "status",
		Short: "Show what every agent is doing",
		Long: `Shows the running orchestrator and its agents: state, uptime, task, restarts, resources,
and the reason if an agent does not run. The first line counts the tasks in each state,
the last line the questions and plans that wait for you.

In a team of more than 50 agents, running agents are only counted.`,
		Example: `  orchestrator status            once
  orchestrator status -w         again every second, until Ctrl-C
  orchestrator status --json     everything, for a program
  orchestrator watch             all of the team on the full screen`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if watch {
				return a.WithClient(func(ctx context.Context, d *client.Client) error { return watchStatus(ctx, a, d, all) })
			}
			return statusOf(a, all).Run(a)
		},
	}
	verb.Flags().BoolVarP(&watch, "watch", "w", false, "update every second")
	verb.Flags().BoolVarP(&all, "all", "a", false, "list every agent, even in a large team")
	return verb
}

// watchStatus prints the status every second, below the previous one if the screen cannot
// be cleared.
func watchStatus(ctx context.Context, a *cli.App, d *client.Client, all bool) error {
	clear, first := a.ClearScreen(), true
	return a.EverySecond(ctx, func() error {
		_, text, err := a.Status(ctx, d)
		if err != nil {
			return err
		}
		switch {
		case a.JSON():
		case clear != "":
			err = a.Print("%s", clear)
		case !first:
			err = a.Print("\n")
		}
		if err != nil {
			return err
		}
		first = false
		return statusOf(a, all).Show(a, text, nil)
	})
}

// statusOf returns the query for the status. With all it lists every agent.
func statusOf(a *cli.App, all bool) cli.Query[control.Status] {
	return cli.Query[control.Status]{
		Operation: "status",
		Quiet:     func(status *control.Status) error { return showNames(a, status.Agents) },
		Text:      func(status *control.Status) error { return showStatus(a, status, all) },
	}
}

func showStatus(a *cli.App, status *control.Status, all bool) error {
	p := a.Paint(a.Stdout)
	doing := ""
	if status.State != "running" {
		doing = "  " + p.Warn(wire.Visible(status.State))
	}
	tasks := p.Tally(status.Tasks)
	if tasks != "" {
		tasks = "   tasks: " + tasks
	}
	err := a.Print("%s%s  up %s  pid %d%s  %s%s\n", p.Strong(wire.Visible(status.Name)), doing,
		term.MS(status.UpMS), status.PID, on(term.OneLine(status.Hub)), term.Count(len(status.Agents), "agent"), tasks)
	if err == nil && status.Degraded {
		err = a.Print("%s if one more hub is lost, the team stops (orchestrator hosts --hubs)\n", p.Warn("Degraded:"))
	}
	if err == nil && len(status.Agents) > 0 {
		err = showAgents(a, status, all)
	}
	if idle := idleTeam(status); err == nil && idle != "" {
		err = a.Print("%s %s\n", p.Warn("No agent runs:"), idle)
	}
	if used := term.Used(status.Used); err == nil && used != "" {
		err = a.Print("Used: %s\n", used)
	}
	if d := status.Damage; err == nil && d != nil {
		err = a.Print("%s fact %d of the record cannot be read: orchestrator store check\n", p.Warn("Damaged:"), d.Seq)
	}
	if calls := callsOf(status); err == nil && calls != "" {
		err = a.Print("%s %s\n", p.Warn("Needs you:"), calls)
	}
	return err
}

// idleTeam returns the number of tasks that wait although all agents have ended, with the command that starts one. It
// returns "" otherwise.
func idleTeam(status *control.Status) string {
	over := func(v control.AgentView) bool {
		return v.State == control.StateExited || v.State == control.StateFailed || v.State == control.StateStopped
	}
	n := status.Tasks.Pending
	if n == 0 || status.State != "running" || len(status.Agents) == 0 || slices.ContainsFunc(status.Agents, func(v control.AgentView) bool { return !over(v) }) {
		return ""
	}
	first := term.Word(wire.Visible(status.Agents[0].Name))
	return fmt.Sprintf("%s (orchestrator agent start %s)", term.Count(n, "pending task"), first)
}

// callsOf returns the matters that wait for a person, each with a command.
func callsOf(status *control.Status) string {
	var calls []string
	if n := status.Questions; n > 0 {
		calls = append(calls, term.Count(n, "question")+" (orchestrator inbox)")
	}
	if n := status.Tasks.PlanReview; n > 0 {
		calls = append(calls, term.Count(n, "plan")+" to approve (orchestrator task ls --state plan_review)")
	}
	return strings.Join(calls, ", ")
}

func showNames(a *cli.App, agents []control.AgentView) error {
	return cli.PrintNames(a, agents, func(v *control.AgentView) string { return v.Name })
}

// showAgents prints the table of agents.
func showAgents(a *cli.App, status *control.Status, all bool) error {
	agents, calm := status.Agents, 0
	if !all && len(agents) > calmRows {
		shown := slices.DeleteFunc(slices.Clone(agents), func(v control.AgentView) bool { return v.State == control.StateRunning })
		calm, agents = len(agents)-len(shown), shown
	}
	p := a.Paint(a.Stdout)
	rows := [][]term.Cell{{term.Text("AGENT"), term.Text("STATE"), term.Text("TASK"), term.Figure("PID"), term.Figure("UP"), term.Figure("RESTARTS"), term.Figure("CPU"), term.Figure("RSS"), term.Text("NOTE")}}
	for _, agent := range agents {
		rows = append(rows, agentRow(agent, p))
	}
	if hosts := hostCells(agents, status.Hub); hosts != nil {
		for i := range rows {
			rows[i] = slices.Insert(rows[i], pidColumn, hosts[i])
		}
	}
	if len(rows) > 1 {
		if err := a.Print("%s", term.Table(rows)); err != nil {
			return err
		}
	}
	if calm > 0 {
		return a.Print("%d more are running: orchestrator status --all\n", calm)
	}
	return nil
}

// pidColumn is the column of agentRow before which the hosts are shown.
const pidColumn = 3

// hostCells returns a column with the machine of each agent, or nil if all are on this one.
func hostCells(agents []control.AgentView, hub string) []term.Cell {
	if hub == "" && !slices.ContainsFunc(agents, func(v control.AgentView) bool { return v.Host != "" }) {
		return nil
	}
	cells := []term.Cell{term.Text("HOST")}
	for i := range agents {
		cells = append(cells, term.Text(cmp.Or(term.OneLine(machineOf(&agents[i], hub)), "-")))
	}
	return cells
}

// machineOf returns the machine of a running agent: a host or the hub. It returns "" for an agent
// that does not run, or for an orchestrator without hosts.
func machineOf(v *control.AgentView, hub string) string {
	if v.Host == "" && v.PID != 0 {
		return hub
	}
	return v.Host
}

func agentRow(v control.AgentView, p term.Paint) []term.Cell {
	state := term.Cell{Text: wire.Visible(string(v.State)), Ink: func(s string) string { return p.State(v.State, s) }}
	row := []term.Cell{term.Text(wire.Visible(v.Name)), state, term.Text(term.TaskCell(v.Tasks))}
	pid, up := "-", "-"
	if v.PID != 0 {
		pid = fmt.Sprint(v.PID)
	}
	if v.PID != 0 || v.StartedAt != "" { // an agent that has joined by a pipe has no process
		up = term.MS(v.UpMS)
	}
	row = append(row, term.Figure(pid), term.Figure(up), term.Figure(fmt.Sprint(v.Restarts)))
	if v.PID != 0 {
		row = append(row, term.Figure(term.MS(v.CPUMS)), term.Figure(term.Bytes(v.RSSBytes)))
	} else {
		row = append(row, term.Figure("-"), term.Figure("-"))
	}
	return append(row, term.Text(cmp.Or(term.AgentNote(v), activityNote(v.Activity), silence(&v))))
}

// activityNote returns the activity of a coding agent: "busy 2m go test ./...", "waits for you q7",
// "limited until 17:00: 5 hours".
func activityNote(v *control.Activity) string {
	now := time.Now()
	switch {
	case v == nil:
		return ""
	case term.HeldUp(v, now) != "":
		return term.HeldUp(v, now)
	case v.State == activity.Busy:
		note := "busy"
		if since, ok := object.ParseTime(v.Since); ok {
			note += " " + term.Duration(now.Sub(since))
		}
		return strings.TrimSpace(note + " " + term.Clip(term.OneLine(v.What), 60))
	}
	return ""
}

// silence returns a remark on an agent that has run for a minute without output. It is only
// a remark, because many agents are silent before they get work.
func silence(v *control.AgentView) string {
	const long = time.Minute
	if v.State != control.StateRunning || v.PID == 0 || v.Output.Bytes > 0 || v.UpMS < long.Milliseconds() {
		return ""
	}
	return "no output yet: orchestrator why " + wire.Visible(v.Name)
}
