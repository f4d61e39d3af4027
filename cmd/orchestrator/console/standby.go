package console

import (
	"context"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// stillFor is how long nothing has happened when Standby prints what the team waits for.
const stillFor = 10 * time.Second

// Standby prints what a team that ends with its work waits for while nothing happens. It is
// used without rows at the bottom of a terminal, and ends with ctx.
func Standby(ctx context.Context, a *cli.App, t Team) {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	heard, since, said := t.Seq(), time.Now(), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		if seq := t.Seq(); seq != heard {
			heard, since, said = seq, time.Now(), false
		}
		if said || time.Since(since) < stillFor {
			continue
		}
		said = true
		scene, err := t.Scene(ctx, 1, 1)
		if err != nil {
			return
		}
		if words := standbyWords(scene.Tasks, scene.Questions, scene.Status.Agents); words != "" {
			a.Note("%s", words)
		}
	}
}

// standbyWords returns the first thing that the team waits for, or "" if an agent works.
func standbyWords(tasks []wire.Task, questions []wire.Question, agents []control.AgentView) string {
	switch {
	case len(questions) > 0:
		return "Waiting for an answer: orchestrator inbox answer " + wire.Visible(questions[0].ID) + " VALUE"
	case len(tasks) == 0:
		for i := range agents {
			if a := &agents[i]; a.Awaited != "" {
				return "Waiting for " + term.OneLine(a.Name) + " to end: it " + a.Awaited
			}
		}
		return ""
	case tasks[0].State == wire.TaskRunning:
		return ""
	}
	first := &tasks[0]
	return "Waiting for " + term.TaskLabel(first.ID, first.Name) + ", " + wire.Visible(string(first.State)) +
		": orchestrator why " + term.ID(first.ID)
}
