package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
)

// RestoreCommand returns the restore command.
func RestoreCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a copy in the place of the record",
		Long: `Puts a copy, which backup or store salvage has made, in the place of the record of the
configuration, or of --state-dir. The copy is verified before, and FILE stays as it is.
If there is a folder FILE-artifacts, its artifacts are copied too.

The orchestrator must not run. The record that was there, even a damaged one, is moved
to a folder beside the new one, with its artifacts. If this is interrupted, run it again.`,
		Example: "  orchestrator restore monday.db",
		Args:    cli.ArgCount(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if a.Flags.Host != "" {
				return cli.UsageError("a record is restored on the machine that it is on", "Run this there, without --host")
			}
			path, stateDir, err := a.RecordPath(nil)
			if err != nil {
				return err
			}
			if err := ownStore(a); err != nil {
				return err
			}
			return restore(a, a.Path(args[0]), path, stateDir)
		},
	}
}

// ownStore returns an error if the configuration has a shared store.
func ownStore(a *cli.App) error {
	file, err := a.FindConfig(a.Flags.Config)
	if err != nil || a.Flags.StateDir != "" {
		return nil // the state directory was named, and needs no file
	}
	if c, _ := config.Load(file, a.Options()); c == nil || !c.Store.Shared() {
		return nil
	}
	return &cli.Failure{
		Exit: cli.ExitUsage, Code: wire.CodeInvalid, Message: "the record is in a shared store, and the file here is a copy of it",
		Because: []string{"Nothing was restored."}, Hint: "Move the record into a store with another log: orchestrator help many-machines",
	}
}

// restoreReport is the JSON answer of restore.
type restoreReport struct {
	FormatVersion string `json:"format_version"`
	Path          string `json:"path"`
	Facts         int64  `json:"facts"`
	Artifacts     int    `json:"artifacts"`
	Kept          string `json:"kept,omitzero"` // the record as it was
}

func restore(a *cli.App, from, path, stateDir string) error {
	ctx, stop := a.Context()
	defer stop()
	if _, err := os.Stat(from); err != nil {
		return serve.CannotReadRecord(err, from)
	}
	home, err := serve.OpenHome(stateDir, a.SocketPath(stateDir))
	if err != nil {
		return serve.CannotHold(err, stateDir)
	}
	defer home.Close()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	done := a.ShowWait("the record to be restored")
	defer done()
	kept := path + time.Now().UTC().Format(".before-restore-20060102-150405.000")
	last, err := eventlog.Restore(ctx, from, path, kept)
	switch {
	case a.Ended(ctx) != nil && last == 0:
		return a.Ended(ctx)
	case errors.Is(err, eventlog.ErrFull), errors.Is(err, syscall.ENOSPC):
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "there is no space left for " + path, Because: []string{"The record is as it was."},
			Hint: "Make room there: df -h " + term.Word(filepath.Dir(path)),
		}
	case err != nil:
		return serve.CannotReadRecord(err, from)
	}
	artifacts := filepath.Join(stateDir, "artifacts")
	_, err = copyFiles(ctx, artifacts, filepath.Join(kept, "artifacts"))
	made := 0
	if err == nil {
		made, err = copyFiles(ctx, from+"-artifacts", artifacts)
	}
	if err != nil {
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the record was restored, but its artifacts were not: " + err.Error(),
			Hint: "Run it again: orchestrator restore " + term.Word(a.Short(from)),
		}
	}
	if _, err := os.Stat(kept); errors.Is(err, fs.ErrNotExist) {
		kept = ""
	}
	if a.Flags.JSON {
		return a.Document(restoreReport{FormatVersion: wire.FormatVersion, Path: path, Facts: last, Artifacts: made, Kept: kept})
	}
	if kept != "" {
		a.Note("The record as it was: %s", a.Short(kept))
	}
	return a.Print("%s in %s, restored from %s. To go on: orchestrator up\n", term.Count(int(last), "fact"), a.Short(path), a.Short(from))
}
