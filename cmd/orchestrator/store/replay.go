package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// replayed is the JSON answer of replay.
type replayed struct {
	FormatVersion string             `json:"format_version"`
	Path          string             `json:"path"`
	Facts         int64              `json:"facts"`             // number of the last fact
	Snapshot      int64              `json:"snapshot,omitzero"` // the fact of the snapshot that leads to the same state
	Sum           string             `json:"sha256"`            // of the state
	Tasks         control.TaskCounts `json:"tasks"`
	Questions     int                `json:"questions"` // that are open
}

// ReplayCommand returns the replay command.
func ReplayCommand(a *cli.App) *cobra.Command {
	until := int64(0)
	verb := &cobra.Command{
		Use:   "replay [FILE]",
		Short: "Rebuild the state from all facts and compare it",
		Long: `Rebuilds the state of the record from all of its facts, and compares it with the state that
a restart would build from the latest snapshot and the facts after it. Both must be equal.
With --until it stops at a fact and shows the state at that time. Without FILE it reads the
record of the configuration or of --state-dir. An orchestrator may run at the same time.`,
		Example: "  orchestrator replay\n  orchestrator replay --until 1200\n  orchestrator replay backup.db --json",
		Args:    cli.ArgCount(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			path, _, err := a.RecordPath(args)
			if err != nil {
				return err
			}
			return replay(a, path, until)
		},
	}
	verb.Flags().Int64Var(&until, "until", 0, "stop at the fact with this `NUMBER`")
	return verb
}

func replay(a *cli.App, path string, until int64) error {
	if until < 0 {
		return cli.UsageError("--until cannot be negative", "Use the number of a fact, for example the seq of an event")
	}
	var r dispatch.Replayed
	var err error
	ended := read(a, path, func(ctx context.Context, log *eventlog.SQLite) {
		r, err = dispatch.Replay(ctx, dispatch.Options{Record: log, Log: hclog.NewNullLogger()}, until)
	})
	if ended != nil {
		return ended
	}
	if removed, ok := errors.AsType[*wire.RemovedError](err); ok {
		return &cli.Failure{
			Exit: cli.ExitNotFound, Code: wire.CodeNotFound, Message: "the record cannot be replayed: " + removed.Error(),
			Hint: "Check the record: orchestrator store check",
		}
	}
	if err != nil {
		return &cli.Failure{Exit: cli.ExitNo, Code: cli.CodeFailed, Message: fmt.Sprintf("%s: %v", a.Short(path), err), Hint: "Check for damage: orchestrator store check"}
	}
	if a.Flags.JSON {
		return a.Document(replayed{
			FormatVersion: wire.FormatVersion, Path: path, Facts: r.Seq, Snapshot: r.Kept, Sum: fmt.Sprintf("%x", r.Sum), Tasks: r.Tasks, Questions: r.Questions,
		})
	}
	var c term.Card
	c.Row("state", fmt.Sprintf("after %s of %s", term.Count(int(r.Seq), "fact"), a.Short(path)))
	c.Row("tasks", a.Paint(a.Stdout).Tally(r.Tasks))
	c.Row("questions", fmt.Sprint(r.Questions, " open"))
	switch {
	case until != 0:
	case r.Kept == 0:
		c.Row("snapshot", "none")
	default:
		c.Row("snapshot", fmt.Sprintf("of fact %d: with the facts after it, it leads to the same state", r.Kept))
	}
	c.Row("sha256", fmt.Sprintf("%x", r.Sum))
	return a.Print("%s", term.Table(c.Lines))
}
