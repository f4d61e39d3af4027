// Package store has the commands on the event log: store, backup and restore. They open its file themselves, so
// they work whether an orchestrator runs or not. Package serve has store move, which starts an engine.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/hub"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// Command returns the store command.
func Command(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
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
configuration or of --state-dir. An orchestrator may run at the same time. The exit code is
1 if a fact is damaged or missing.`,
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
	LeftOut       []int64 `json:"left_out,omitzero"` // damaged facts, each replaced by an event
}

// front describes the facts that were removed from the front.
type front struct {
	Seq int64  `json:"seq"` // the last of them
	At  string `json:"at"`
	On  string `json:"on"`
}

// baseOf returns the removed front of a log, or nil.
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
		err = a.Print("%s in %s are in order. Then: %v\nCopy the intact facts to a new file: orchestrator store salvage NEW.db\n",
			term.Count(int(last), "fact"), a.Short(path), broken)
	}
	if err == nil && broken != nil {
		err = cli.ExitWith(cli.ExitNo)
	}
	return err
}

func salvageCommand(a *cli.App) *cobra.Command {
	var from string
	var without []int64
	verb := &cobra.Command{
		Use:   "salvage NEW",
		Short: "Copy the intact beginning of a damaged record",
		Long: `Copies the facts of a damaged record, up to the first that is damaged or missing, to a
new file. The damaged record is not changed. The orchestrator must not run.

--without skips the damaged fact with this number and copies the facts behind it. The event
orchestrator.salvaged takes its place. The command refuses this if later facts depend on it.`,
		Example: `  orchestrator store salvage rescued.db
  orchestrator store salvage rescued.db --without 748
  orchestrator store salvage rescued.db --from damaged.db`,
		Args: cli.ArgCount(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			var named []string
			if from != "" {
				named = []string{from}
			}
			path, stateDir, err := a.RecordPath(named)
			if err != nil {
				return err
			}
			return salvage(a, path, stateDir, a.Path(args[0]), without)
		},
	}
	verb.Flags().StringVar(&from, "from", "", "the damaged record `FILE` (default: the configured record)")
	verb.Flags().Int64SliceVar(&without, "without", nil, "skip the damaged fact with this `NUMBER`; may be repeated")
	return verb
}

// inPlaceOf returns the fact that takes the place of a damaged one.
func inPlaceOf(seq int64) wire.Record {
	text, _ := object.Encode(map[string]string{"text": fmt.Sprintf("event %d was damaged; store salvage has left it out", seq)})
	return wire.Record{At: time.Now().UTC().Truncate(time.Millisecond), From: mail.Global, Kind: events.OrchestratorSalvaged, Payload: text}
}

func salvage(a *cli.App, path, stateDir, to string, without []int64) error {
	ctx, stop := a.Context()
	defer stop()
	if cli.IsStateDir(stateDir) {
		home, err := hub.OpenHome(stateDir, a.SocketPath(stateDir))
		if err != nil {
			return serve.CannotHold(err, stateDir)
		}
		defer home.Close()
	}
	done := a.ShowWait("the record to be copied")
	gaps := &eventlog.Gaps{Without: without, Fill: inPlaceOf}
	last, lost, err := eventlog.Salvage(ctx, path, to, gaps)
	if err == nil && len(gaps.Left) > 0 {
		err = understood(ctx, to)
	}
	done()
	unclear, isUnclear := errors.AsType[*unclearError](err)
	switch {
	case a.Ended(ctx) != nil:
		return a.Ended(ctx)
	case isUnclear:
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the facts after the damaged one depend on it: " + unclear.Error(), Because: []string{"No file was written."},
			Hint: "Copy the facts before it: orchestrator store salvage " + term.Word(a.Short(to)),
		}
	case errors.Is(err, fs.ErrExist):
		return serve.FileExists(err, to)
	case err != nil:
		return serve.CannotReadRecord(err, path)
	case last == 0:
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "no fact can be read from " + path, Because: []string{fmt.Sprint(lost), "No file was written."},
			Hint: "Restore the record: orchestrator restore BACKUP     Start a new one: move " + term.Word(path) + "* away",
		}
	}
	if a.Flags.JSON {
		return a.Document(report{FormatVersion: wire.FormatVersion, Path: path, Facts: last, Damage: damageOf(lost), Copy: to, LeftOut: gaps.Left})
	}
	return showSalvaged(a, last, gaps.Left, lost, to)
}

// showSalvaged prints the copied and the lost parts.
func showSalvaged(a *cli.App, last int64, left []int64, lost error, to string) error {
	if err := a.Print("%s copied to %s\n", term.Count(int(last), "fact"), a.Short(to)); err != nil {
		return err
	}
	for _, seq := range left {
		a.Note("Left out: fact %d", seq)
	}
	if lost != nil {
		a.Note("Lost: %v", lost)
	}
	if chain, ok := errors.AsType[*eventlog.ChainError](lost); ok {
		a.Note("Skip it, and copy the facts after it: orchestrator store salvage NEW.db --without %d", chain.Seq)
	}
	a.Note("Replace the record with it: orchestrator restore %s", term.Word(a.Short(to)))
	return nil
}

// An unclearError reports that no state can be made from the facts of a log.
type unclearError struct{ error }

// understood removes a log, and returns an unclearError, if no state can be made from its facts.
func understood(ctx context.Context, path string) error {
	log, err := eventlog.Open(ctx, eventlog.Options{Path: path, ReadOnly: true})
	if err != nil {
		return err
	}
	err = dispatch.NewWarm(dispatch.Options{Record: log, Log: hclog.NewNullLogger()}).Follow(ctx)
	err = errors.Join(err, log.Close())
	if err == nil {
		return nil
	}
	return errors.Join(&unclearError{err}, os.Remove(path))
}
