package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// calmRows is how many agents status shows one by one. In a larger team those
// that simply run are only counted, unless --all asks for them.
const calmRows = 50

func (a *app) statusCommand() *cobra.Command {
	var watch, all bool
	verb := &cobra.Command{
		Use:   "status",
		Short: "Show what every agent is doing",
		Long: `Shows the running orchestrator and its agents: the state of each, since when,
which task it has, how often it was restarted, what it uses, and why it is not
running if it is not. The first line counts the tasks in each state, the last
one the questions and the plans that wait for you.

In a team of more than 50 agents those that simply run are counted, not listed.`,
		Example: `  orchestrator status            once
  orchestrator status -w         again every second, until Ctrl-C
  orchestrator status --json     everything, for a program
  orchestrator watch             and tasks, questions and output, on the full screen`,
		Args:              argCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := a.begin()
			defer stop()
			door, err := a.door()
			if err != nil {
				return err
			}
			if watch {
				return a.watchStatus(ctx, door, all)
			}
			_, text, err := a.status(ctx, door)
			if err != nil {
				return err
			}
			return a.showStatus(text, all)
		},
	}
	verb.Flags().BoolVarP(&watch, "watch", "w", false, "show it again every second")
	verb.Flags().BoolVarP(&all, "all", "a", false, "list every agent, also in a large team")
	return verb
}

// status asks for the state of everything: as a document, and as it came.
func (a *app) status(ctx context.Context, d *client) (wire.Status, []byte, error) {
	done := a.patience("the orchestrator to answer")
	text, err := d.ask(ctx, "status", struct{}{})
	done()
	if err != nil {
		return wire.Status{}, nil, err
	}
	status, err := decode[wire.Status](text)
	return status, text, err
}

// watchStatus shows the status every second. Where the screen cannot be
// cleared the next one follows below.
func (a *app) watchStatus(ctx context.Context, d *client, all bool) error {
	clear, first := a.clearing(), true
	return a.everySecond(ctx, func() error {
		_, text, err := a.status(ctx, d)
		if err != nil {
			return err
		}
		switch {
		case a.json():
		case clear != "":
			err = a.print("%s", clear)
		case !first:
			err = a.print("\n")
		}
		if err != nil {
			return err
		}
		first = false
		return a.showStatus(text, all)
	})
}

// clearing is what clears the screen; "" where there is none.
func (a *app) clearing() string {
	if isTerminal(a.stdout) && bool(a.paint(a.stdout)) && !a.json() {
		return "\x1b[H\x1b[2J"
	}
	return ""
}

// everySecond looks again and again, until that fails or the reader has seen
// enough.
func (a *app) everySecond(ctx context.Context, look func() error) error {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		if err := look(); err != nil {
			return unlessLeft(err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return unlessLeft(a.ended(ctx))
		}
	}
}

func (a *app) showStatus(text []byte, all bool) error {
	if a.flags.json {
		return a.print("%s\n", text)
	}
	status, err := decode[wire.Status](text)
	if err != nil {
		return err
	}
	if a.flags.quiet {
		return a.showNames(status.Agents)
	}
	p := a.paint(a.stdout)
	doing := ""
	if status.State != "running" {
		doing = "  " + p.warn(wire.Visible(status.State))
	}
	err = a.print("%s%s  up %s  pid %d  %s%s\n", p.strong(wire.Visible(status.Name)), doing,
		plain.MS(status.UpMS), status.PID, plain.Count(len(status.Agents), "agent"), tasksTally(status.Tasks, p))
	if err == nil && len(status.Agents) > 0 {
		err = a.showAgents(status.Agents, all)
	}
	if calls := callsOf(&status); err == nil && calls != "" {
		err = a.print("%s %s\n", p.warn("Needs you:"), calls)
	}
	return err
}

// callsOf are what waits for a person, each with where to look.
func callsOf(status *wire.Status) string {
	var calls []string
	if n := status.Questions; n > 0 {
		calls = append(calls, plain.Count(n, "question")+" (orchestrator inbox)")
	}
	if n := status.Tasks.PlanReview; n > 0 {
		calls = append(calls, plain.Count(n, "plan")+" to approve (orchestrator task ls --state plan_review)")
	}
	return strings.Join(calls, ", ")
}

// tasksTally counts the tasks in each state; nothing when there are none.
func tasksTally(n wire.TaskCounts, p paint) string {
	tally := ""
	add := func(number int, state wire.TaskState, more string) {
		if number > 0 {
			tally += "  " + p.task(state, fmt.Sprintf("%d %s", number, state)) + more
		}
	}
	blocked := ""
	if n.Blocked > 0 {
		blocked = fmt.Sprintf(" (%d blocked)", n.Blocked)
	}
	add(n.Running, wire.TaskRunning, "")
	add(n.Assigned, wire.TaskAssigned, "")
	add(n.Planning, wire.TaskPlanning, "")
	add(n.PlanReview, wire.TaskPlanReview, "")
	add(n.NeedsHuman, wire.TaskNeedsHuman, "")
	add(n.InReview, wire.TaskInReview, "")
	add(n.Pending, wire.TaskPending, blocked)
	add(n.Done, wire.TaskDone, "")
	add(n.Failed, wire.TaskFailed, "")
	add(n.Cancelled, wire.TaskCancelled, "")
	if tally == "" {
		return ""
	}
	return "   tasks:" + tally[1:]
}

func (a *app) showNames(agents []wire.AgentView) error {
	return printNames(a, agents, func(v *wire.AgentView) string { return v.Name })
}

// showAgents prints the table of agents.
func (a *app) showAgents(agents []wire.AgentView, all bool) error {
	calm := 0
	if !all && len(agents) > calmRows {
		shown := slices.DeleteFunc(slices.Clone(agents), func(v wire.AgentView) bool { return v.State == wire.StateRunning })
		calm, agents = len(agents)-len(shown), shown
	}
	p := a.paint(a.stdout)
	rows := [][]cell{{text("AGENT"), text("STATE"), text("TASK"), figure("PID"), figure("UP"), figure("RESTARTS"), figure("CPU"), figure("RSS"), text("NOTE")}}
	for _, agent := range agents {
		rows = append(rows, agentRow(agent, p))
	}
	if len(rows) > 1 {
		if err := a.print("%s", table(rows)); err != nil {
			return err
		}
	}
	if calm > 0 {
		return a.print("%d more are running: orchestrator status --all\n", calm)
	}
	return nil
}

func agentRow(v wire.AgentView, p paint) []cell {
	state := cell{text: wire.Visible(string(v.State)), ink: func(s string) string { return p.state(v.State, s) }}
	row := []cell{text(wire.Visible(v.Name)), state, text(taskCell(v.Tasks))}
	pid, up := "-", "-"
	if v.PID != 0 {
		pid = fmt.Sprint(v.PID)
	}
	if v.PID != 0 || v.StartedAt != "" { // one that has joined by a pipe is up without a process
		up = plain.MS(v.UpMS)
	}
	row = append(row, figure(pid), figure(up), figure(fmt.Sprint(v.Restarts)))
	if v.PID != 0 {
		row = append(row, figure(plain.MS(v.CPUMS)), figure(plain.Bytes(v.RSSBytes)))
	} else {
		row = append(row, figure("-"), figure("-"))
	}
	return append(row, text(cmp.Or(note(v), silence(&v))))
}

// silence tells of an agent that has run for long without a word. Many have
// nothing to say before there is work, so it is no more than told.
func silence(v *wire.AgentView) string {
	const long = time.Minute
	if v.State != wire.StateRunning || v.PID == 0 || v.Output.Bytes > 0 || v.UpMS < long.Milliseconds() {
		return ""
	}
	return "not heard of yet: orchestrator why " + wire.Visible(v.Name)
}

// taskCell is what an agent works on; of several the one that is furthest.
func taskCell(tasks []wire.TaskLabel) string {
	if len(tasks) == 0 {
		return "-"
	}
	first := slices.MaxFunc(tasks, func(a, b wire.TaskLabel) int { return cmp.Compare(begun(a), begun(b)) })
	said := plain.ID(first.ID) + " " + plain.Clip(plain.OneLine(first.Name), 24)
	if progress := plain.Percent(first.Progress); progress != "" {
		said += " " + progress
	}
	if len(tasks) > 1 {
		said += fmt.Sprintf(" +%d", len(tasks)-1)
	}
	return said
}

// begun is the progress of a task; one that only waits for its agent comes last.
func begun(t wire.TaskLabel) float64 {
	if t.State == wire.TaskAssigned {
		return -1
	}
	return t.Progress
}

// note is what is worth saying about an agent in the table.
func note(v wire.AgentView) string {
	said := wire.Visible(v.Reason)
	if v.State == wire.StateBackoff && v.NextStartMS > 0 {
		if said != "" {
			said += ", "
		}
		said += "starts in " + plain.MS(v.NextStartMS)
	}
	if v.Awaited != "" {
		if said != "" {
			said += ", "
		}
		said += "awaited by up: it " + v.Awaited
	}
	return said
}
