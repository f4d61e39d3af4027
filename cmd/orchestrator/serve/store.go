package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// The commands on the event log. They open its file themselves, so they work whether an
// orchestrator runs or not.

// StoreCommand returns the store command.
func StoreCommand(a *cli.App) *cobra.Command {
	return cli.Group(a, &cobra.Command{
		Use: "store", Short: "Check, salvage and move the record",
		Example: "  orchestrator store check\n  orchestrator store salvage rescued.db",
	},
		storeCheckCommand(a), storeSalvageCommand(a), storeMoveCommand(a),
	)
}

func storeCheckCommand(a *cli.App) *cobra.Command {
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

// storeReport is the JSON answer of store check and store salvage.
type storeReport struct {
	FormatVersion string       `json:"format_version"`
	Path          string       `json:"path"`
	Facts         int64        `json:"facts"` // number of the last intact fact
	Removed       *storeBase   `json:"removed,omitzero"`
	Damage        *storeDamage `json:"damage,omitzero"`
	Copy          string       `json:"copy,omitzero"`
}

// storeBase describes the facts that were removed from the front.
type storeBase struct {
	Seq int64  `json:"seq"` // the last of them
	At  string `json:"at"`
	On  string `json:"on"`
}

// baseOf returns what was removed from a log, or nil.
func baseOf(ctx context.Context, log *eventlog.SQLite) (*storeBase, error) {
	base, err := log.Base(ctx)
	if err != nil || base.Seq == 0 {
		return nil, err
	}
	return &storeBase{Seq: base.Seq, At: object.Timestamp(base.At), On: object.Timestamp(base.Removed)}, nil
}

type storeDamage struct {
	Seq  int64  `json:"seq,omitzero"`
	Text string `json:"text"`
}

func damageOf(err error) *storeDamage {
	if err == nil {
		return nil
	}
	d := &storeDamage{Text: err.Error()}
	if chain, ok := errors.AsType[*eventlog.ChainError](err); ok {
		d.Seq = chain.Seq
	}
	return d
}

func checkStore(a *cli.App, path string) error {
	ctx, stop := a.Context()
	defer stop()
	log, err := eventlog.Open(ctx, eventlog.Options{Path: path, ReadOnly: true})
	if err != nil {
		return cannotReadRecord(err, path)
	}
	defer log.Close()
	done := a.ShowWait("the record to be read")
	last, broken := log.Check(ctx)
	removed, baseErr := baseOf(ctx, log)
	broken = cmp.Or(broken, baseErr)
	done()
	if err := a.Ended(ctx); err != nil {
		return err
	}
	if a.Flags.JSON {
		err = a.Document(storeReport{FormatVersion: wire.FormatVersion, Path: path, Facts: last, Removed: removed, Damage: damageOf(broken)})
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

// cannotReadRecord returns the failure for an event log that cannot be opened.
func cannotReadRecord(err error, path string) error {
	f := &cli.Failure{Exit: cli.ExitNo, Code: cli.CodeFailed, Message: err.Error(), Details: map[string]any{"path": path}}
	info, failed := os.Stat(path)
	switch {
	case failed == nil && info.IsDir():
		f.Message = path + " is a folder, not a record"
		f.Hint = "Name the file in it: orchestrator store check FILE     Or the state directory: --state-dir DIR"
	case errors.Is(err, fs.ErrNotExist):
		f.Exit, f.Code, f.Message = cli.ExitNotFound, wire.CodeNotFound, "there is no record "+path
		f.Hint = "Name it: orchestrator store check FILE     Or its state directory: --state-dir DIR"
	case errors.Is(err, eventlog.ErrForeign):
		f.Message = path + " is not a record of an orchestrator: " + eventlog.ErrForeign.Error()
	case errors.Is(err, syscall.ENOMEM):
		f.Message, f.Hint = littleSpace(path)
	}
	return f
}

func storeSalvageCommand(a *cli.App) *cobra.Command {
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
		home, err := openHome(stateDir, a.SocketPath(stateDir))
		if err != nil {
			return CannotHold(err, stateDir)
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
		return fileExists(err, to)
	case err != nil:
		return cannotReadRecord(err, path)
	case last == 0:
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "no fact can be read from " + path, Because: []string{fmt.Sprint(lost), "No file was made."},
			Hint: "Put the record back from a backup, or begin anew: move " + term.Word(path) + "* away",
		}
	}
	if a.Flags.JSON {
		return a.Document(storeReport{FormatVersion: wire.FormatVersion, Path: path, Facts: last, Damage: damageOf(lost), Copy: to})
	}
	if err := a.Print("%s copied to %s\n", term.Count(int(last), "fact"), a.Short(to)); err != nil {
		return err
	}
	if lost != nil {
		a.Note("Lost: %v", lost)
	}
	a.Note("Put it in place: mkdir old; mv %s* old; mv %s %s", term.Word(a.Short(path)), term.Word(a.Short(to)), term.Word(a.Short(path)))
	return nil
}

// fileExists returns the failure for a target that exists, or for a file left by an old
// event log.
func fileExists(err error, path string) error {
	if there := new(fs.PathError); errors.As(err, &there) {
		path = there.Path
	}
	return &cli.Failure{
		Exit: cli.ExitConflict, Code: wire.CodeConflict, Message: path + " exists, and is left as it is", Hint: "Name a file that does not exist",
		Details: map[string]any{"path": path},
	}
}

// BackupCommand returns the backup command.
func BackupCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the record, even while it is in use",
		Long: `Copies the record of the configuration, or of --state-dir, to a new file. The copy is
verified before it gets its name. An orchestrator may run meanwhile. The artifacts of
agents are copied to the folder FILE-artifacts.

To restore a copy, stop the orchestrator, move STATE_DIR/events.db* away and put the
copy there as events.db.`,
		Example: "  orchestrator backup monday.db",
		Args:    cli.ArgCount(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if a.Flags.Host != "" {
				return cli.UsageError("a record is copied on the machine that it is on", "Run this there, without --host")
			}
			path, stateDir, err := a.RecordPath(nil)
			if err != nil {
				return err
			}
			return backup(a, path, stateDir, a.Path(args[0]))
		},
	}
}

// backupReport is the JSON answer of backup.
type backupReport struct {
	FormatVersion string `json:"format_version"`
	Path          string `json:"path"`
	Facts         int64  `json:"facts"`
	Artifacts     int    `json:"artifacts"`
}

func backup(a *cli.App, path, stateDir, to string) error {
	ctx, stop := a.Context()
	defer stop()
	done := a.ShowWait("the record to be copied")
	defer done()
	last, err := eventlog.Copy(ctx, path, to)
	switch {
	case a.Ended(ctx) != nil:
		return a.Ended(ctx)
	case errors.Is(err, fs.ErrExist):
		return fileExists(err, to)
	case errors.Is(err, eventlog.ErrFull), errors.Is(err, syscall.ENOSPC):
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "there is no space left for " + to, Because: []string{"The record is as it was."},
			Hint: "Make room there: df -h " + term.Word(filepath.Dir(to)),
		}
	case err != nil:
		return cannotReadRecord(err, path)
	}
	made, err := copyFiles(ctx, filepath.Join(stateDir, "artifacts"), to+"-artifacts")
	if err != nil {
		return fmt.Errorf("copying the artifacts: %w", err)
	}
	if a.Flags.JSON {
		return a.Document(backupReport{FormatVersion: wire.FormatVersion, Path: to, Facts: last, Artifacts: made})
	}
	text := fmt.Sprintf("%s in %s", term.Count(int(last), "fact"), a.Short(to))
	if made > 0 {
		text += fmt.Sprintf(", %s in %s-artifacts", term.Count(made, "artifact"), a.Short(to))
	}
	return a.Print("%s\n", text)
}

// copyFiles copies the files below a folder and returns their number. On the same disk it
// makes hard links, because the files never change.
func copyFiles(ctx context.Context, from, to string) (n int, err error) {
	err = filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		inside, relErr := filepath.Rel(from, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // no artifacts, or a temporary file is gone
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, inside), 0o700)
		case filepath.Dir(inside) == ".": // unfinished
			return nil
		}
		n++
		if os.Link(path, filepath.Join(to, inside)) == nil {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, inside), text, 0o600)
	})
	return n, err
}
