// Package store has the commands on the event log: store, backup and restore. They open its file themselves, so
// they work whether an orchestrator runs or not. Package serve has store move, which starts an engine.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Command returns the store command.
func Command(a *cli.App) *cobra.Command {
	return cli.Group(a, &cobra.Command{
		Use: "store", Short: "Check, salvage and move the record",
		Example: "  orchestrator store check\n  orchestrator store salvage rescued.db",
	},
		checkCommand(a), salvageCommand(a), serve.StoreMoveCommand(a),
	)
}

func checkCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Read the whole record and report damage",
		Long: `Reads every fact of the record and verifies it. Without FILE it reads the record of the
configuration or of --state-dir. An orchestrator may run meanwhile. The exit code is 1
if anything is damaged or missing.`,
		Example: "  orchestrator store check\n  orchestrator store check backup.db --json",
		Args:    cli.ArgCount(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			path, _, err := a.RecordPath(args)
			if err != nil {
				return err
			}
			return checkStore(a, path)
		},
	}
}

// report is the JSON answer of store check and store salvage.
type report struct {
	FormatVersion string  `json:"format_version"`
	Path          string  `json:"path"`
	Facts         int64   `json:"facts"` // number of the last intact fact
	Removed       *front  `json:"removed,omitzero"`
	Damage        *damage `json:"damage,omitzero"`
	Copy          string  `json:"copy,omitzero"`
}

// front describes the facts that were removed from the front.
type front struct {
	Seq int64  `json:"seq"` // the last of them
	At  string `json:"at"`
	On  string `json:"on"`
}

// baseOf returns what was removed from a log, or nil.
func baseOf(ctx context.Context, log *eventlog.SQLite) (*front, error) {
	base, err := log.Base(ctx)
	if err != nil || base.Seq == 0 {
		return nil, err
	}
	return &front{Seq: base.Seq, At: object.Timestamp(base.At), On: object.Timestamp(base.Removed)}, nil
}

type damage struct {
	Seq  int64  `json:"seq,omitzero"`
	Text string `json:"text"`
}

func damageOf(err error) *damage {
	if err == nil {
		return nil
	}
	d := &damage{Text: err.Error()}
	if chain, ok := errors.AsType[*eventlog.ChainError](err); ok {
		d.Seq = chain.Seq
	}
	return d
}

// read calls do with the record in a file. It returns an error if the record cannot be opened, or the command has been
// interrupted.
func read(a *cli.App, path string, do func(ctx context.Context, log *eventlog.SQLite)) error {
	ctx, stop := a.Context()
	defer stop()
	log, err := eventlog.Open(ctx, eventlog.Options{Path: path, ReadOnly: true})
	if err != nil {
		return serve.CannotReadRecord(err, path)
	}
	defer log.Close()
	done := a.ShowWait("the record to be read")
	do(ctx, log)
	done()
	return a.Ended(ctx)
}

func checkStore(a *cli.App, path string) error {
	var last int64
	var removed *front
	var broken error
	err := read(a, path, func(ctx context.Context, log *eventlog.SQLite) {
		var baseErr error
		last, broken = log.Check(ctx)
		removed, baseErr = baseOf(ctx, log)
		broken = cmp.Or(broken, baseErr)
	})
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		err = a.Document(report{FormatVersion: wire.FormatVersion, Path: path, Facts: last, Removed: removed, Damage: damageOf(broken)})
	} else if broken == nil && removed != nil {
		err = a.Print("Facts %d to %d in %s, all in order. Facts 1 to %d, of %s and before, were removed on %s\n",
			removed.Seq+1, last, a.Short(path), removed.Seq, removed.At, removed.On)
	} else if broken == nil {
		err = a.Print("%s in %s, all in order\n", term.Count(int(last), "fact"), a.Short(path))
	} else {
		err = a.Print("%s in %s are in order. Then: %v\nCopy what is in order to a new file: orchestrator store salvage NEW.db\n",
			term.Count(int(last), "fact"), a.Short(path), broken)
	}
	if err == nil && broken != nil {
		err = cli.ExitWith(cli.ExitNo)
	}
	return err
}

func salvageCommand(a *cli.App) *cobra.Command {
	var from string
	verb := &cobra.Command{
		Use:   "salvage NEW",
		Short: "Copy the intact beginning of a damaged record",
		Long: `Copies the facts of a damaged record, up to the first that is damaged or missing, to a
new file. The damaged record is not changed. The orchestrator must not run.`,
		Example: "  orchestrator store salvage rescued.db\n  orchestrator store salvage rescued.db --from damaged.db",
		Args:    cli.ArgCount(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			var named []string
			if from != "" {
				named = []string{from}
			}
			path, stateDir, err := a.RecordPath(named)
			if err != nil {
				return err
			}
			return salvage(a, path, stateDir, a.Path(args[0]))
		},
	}
	verb.Flags().StringVar(&from, "from", "", "the damaged record `FILE` (default: that of the configuration)")
	return verb
}

func salvage(a *cli.App, path, stateDir, to string) error {
	ctx, stop := a.Context()
	defer stop()
	if cli.IsStateDir(stateDir) {
		home, err := serve.OpenHome(stateDir, a.SocketPath(stateDir))
		if err != nil {
			return serve.CannotHold(err, stateDir)
		}
		defer home.Close()
	}
	done := a.ShowWait("the record to be copied")
	last, lost, err := eventlog.Salvage(ctx, path, to)
	done()
	switch {
	case a.Ended(ctx) != nil:
		return a.Ended(ctx)
	case errors.Is(err, fs.ErrExist):
		return serve.FileExists(err, to)
	case err != nil:
		return serve.CannotReadRecord(err, path)
	case last == 0:
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "no fact can be read from " + path, Because: []string{fmt.Sprint(lost), "No file was made."},
			Hint: "Put the record back: orchestrator restore BACKUP     Begin anew: move " + term.Word(path) + "* away",
		}
	}
	if a.Flags.JSON {
		return a.Document(report{FormatVersion: wire.FormatVersion, Path: path, Facts: last, Damage: damageOf(lost), Copy: to})
	}
	if err := a.Print("%s copied to %s\n", term.Count(int(last), "fact"), a.Short(to)); err != nil {
		return err
	}
	if lost != nil {
		a.Note("Lost: %v", lost)
	}
	a.Note("Put it in the place of the record: orchestrator restore %s", term.Word(a.Short(to)))
	return nil
}
