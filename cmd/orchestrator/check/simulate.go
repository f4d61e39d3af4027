package check

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/hub/team"
	"orchestrator/supervisor/simulate"
	"orchestrator/wire"
)

// simulated is the JSON answer of simulate.
type simulated struct {
	FormatVersion string `json:"format_version"`
	File          string `json:"file"`
	simulate.Report
}

// SimulateCommand returns the simulate command.
func SimulateCommand(a *cli.App) *cobra.Command {
	seed, load := uint64(1), 0
	verb := &cobra.Command{
		Use:   "simulate [FILE]",
		Short: "Simulate a team without its programs, and report problems",
		Long: `Plays through the team of a file with simulated agents, on a simulated clock, and
reports problems: tasks that no agent can get, tasks that wait very long or go in
circles, idle agents, and sessions without a way forward. It starts no program and uses
no model. The decisions are those of a real team. The simulated agents take about ten
minutes for a task, and sometimes crash, fail, hand in wrong results, or ask a person,
who answers in about half an hour.

The tasks are those of the task blocks, and --load more of all kinds that agents can do.
Each session has 20 tasks. Another --seed gives another simulation. The exit code is 1 if it
finds a problem.`,
		Example: "  orchestrator simulate\n  orchestrator simulate team.hcl --seed 7 --load 1000\n  orchestrator simulate --json",
		Args:    cli.ArgCount(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				a.Flags.Config = args[0]
			}
			if load < 0 || load > maxLoad {
				return cli.UsageError(fmt.Sprintf("--load must be a number of tasks from 0 to %d", maxLoad), "Usage: orchestrator simulate --load 100")
			}
			return simulateTeam(a, seed, load)
		},
	}
	verb.Flags().Uint64Var(&seed, "seed", 1, "seed of the random numbers: `N`")
	verb.Flags().IntVar(&load, "load", 100, "number of `TASKS` besides those of the task blocks")
	return verb
}

const maxLoad = 100_000

func simulateTeam(a *cli.App, seed uint64, load int) error {
	c, err := serve.ReadTeam(a, nil, nil, "simulate")
	if err != nil {
		return err
	}
	r := simulate.Run(simulatedTeam(c, seed, load))
	switch {
	case a.Flags.JSON:
		err = a.Document(simulated{FormatVersion: wire.FormatVersion, File: c.File, Report: r})
	case a.Flags.Quiet:
		for _, f := range r.Findings {
			if err = a.Print("%s\n", wire.Visible(f.Text)); err != nil {
				return err
			}
		}
	default:
		err = a.Print("%s", simulationText(a, &r))
	}
	if err == nil && len(r.Findings) > 0 {
		return cli.ExitWith(cli.ExitNo)
	}
	return err
}

// simulatedTeam returns the team of a configuration for package simulate.
func simulatedTeam(c *config.Config, seed uint64, load int) simulate.Team {
	t := simulate.Team{Sessions: team.Sessions(c), Tasks: team.Tasks(c), Load: load, Seed: seed}
	t.Rules, _ = team.Rules(c)
	verified := make(map[string]bool)
	for i := range c.Sessions {
		for _, m := range c.Sessions[i].Members {
			verified[m.AgentID] = verified[m.AgentID] || len(c.Sessions[i].Work.Verify) > 0
		}
	}
	specs := team.Agents(c, nil)
	for i := range specs {
		a := &c.Agents[i]
		t.Agents = append(t.Agents, simulate.Agent{
			Member: specs[i].Member(), Waits: !a.Autostart, Delay: a.Restart.Delay, Stays: a.Restart.Policy == "never",
			Verified: len(a.Verify)+len(a.Outputs) > 0 || verified[a.Name], Attempts: c.Scheduler.VerifyAttempts,
		})
	}
	return t
}

// simulationText describes a simulation for people.
func simulationText(a *cli.App, r *simulate.Report) string {
	p := a.Paint(a.Stdout)
	round := func(d time.Duration) string { return term.Duration(d.Round(time.Minute)) }
	text := fmt.Sprintf("Simulated %s with seed %d: %s, %d done, %d failed; %s to people.\n", round(r.Lasted), r.Seed, term.Count(r.Tasks, "task"), r.Done, r.Failed, term.Count(r.Questions, "question"))
	if r.Tasks > 0 {
		text += fmt.Sprintf("Half of the tasks waited up to %s for an agent. The longest wait was %s.\n", round(r.Waited), round(r.Longest))
	}
	text += simulate.Assumptions()
	rows := [][]term.Cell{{term.Text("AGENT"), term.Text("DONE"), term.Text("BUSY"), term.Text("CRASHES")}}
	for _, m := range r.Agents {
		rows = append(rows, []term.Cell{term.Text(term.OneLine(m.Name)), term.Figure(strconv.Itoa(m.Done)), term.Figure(strconv.Itoa(m.Busy) + "%"), term.Figure(strconv.Itoa(m.Crashes))})
	}
	text += "\n" + term.Table(rows)
	if len(r.Findings) == 0 {
		return text + "\nNo problems found.\n"
	}
	text += "\n" + p.Strong("Problems") + "\n"
	for _, f := range r.Findings {
		text += "  " + wire.Visible(f.Kind) + ": " + wire.Visible(f.Text) + "\n"
	}
	return text
}
