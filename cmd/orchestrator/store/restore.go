package store

import (
	"context"
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
	"orchestrator/supervisor/hub"
	"orchestrator/wire"
)

// RestoreCommand returns the restore command.
func RestoreCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Replace the record with a copy",
		Long: `Replaces the record of the configuration, or of --state-dir, with a copy from backup or store
salvage. The copy is verified before it is used, and FILE stays. Artifacts in the folder
FILE-artifacts are copied as well.

The orchestrator must not run. The old record, even a damaged one, is moved to a folder
beside the new one, with its artifacts. After an interruption, run the command again; the
old record is then in two such folders.

Tokens and keys that were revoked after the copy was made are valid again: revoke them.`,
		Example: "  orchestrator restore monday.db",
		Args:    cli.ArgCount(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if a.Flags.Host != "" {
				return cli.UsageError("a record can only be restored on its machine", "Run the command there, without --host")
			}
			path, stateDir, err := a.RecordPath(nil)
			if err != nil {
				return err
			}
			if err := refuseSharedStore(a); err != nil {
				return err
			}
			return restore(a, a.Path(args[0]), path, stateDir)
		},
	}
}

// refuseSharedStore returns an error if the configuration has a shared store.
func refuseSharedStore(a *cli.App) error {
	if a.Flags.StateDir != "" && a.Flags.Config == "" {
		return nil // the folder needs no file
	}
	file, err := a.FindConfig(a.Flags.Config)
	if err != nil {
		return err
	}
	c, problems := config.Load(file, a.Options())
	if c == nil {
		return a.Invalid(problems, "Nothing was restored.")
	}
	if !c.Store.Shared() {
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
	if err := isCopy(from); err != nil {
		return err
	}
	home, err := hub.OpenHome(stateDir, a.SocketPath(stateDir))
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
	made := 0
	var notCopied error // artifacts
	last, err := eventlog.Restore(ctx, from, path, kept, func() error {
		made, notCopied = copyArtifacts(ctx, filepath.Join(stateDir, "artifacts"), from, path, kept)
		return notCopied
	})
	switch {
	case err == nil:
	case last > 0:
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the record was not replaced: " + err.Error(),
			Because: []string{"Nothing is lost: the missing files are in " + kept + "."},
			Hint:    "Run it again: orchestrator restore " + term.Word(a.Short(from)) + a.Named(),
		}
	case a.Ended(ctx) != nil:
		return a.Ended(ctx)
	case errors.Is(err, eventlog.ErrFull), errors.Is(err, syscall.ENOSPC):
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "no space left for " + path, Because: []string{"The record was not changed."},
			Hint: "Free some space: df -h " + term.Word(filepath.Dir(path)),
		}
	case notCopied != nil:
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the artifacts cannot be copied: " + err.Error(), Because: []string{"The record was not changed."},
		}
	case errors.Is(err, eventlog.ErrForeign):
		return cli.WithHint(serve.CannotReadRecord(err, from), cli.CodeFailed, nameACopy)
	default:
		return serve.CannotReadRecord(err, from)
	}
	if _, err := os.Stat(kept); errors.Is(err, fs.ErrNotExist) {
		kept = ""
	}
	if a.Flags.JSON {
		return a.Document(restoreReport{FormatVersion: wire.FormatVersion, Path: path, Facts: last, Artifacts: made, Kept: kept})
	}
	noteKept(a, kept, path)
	return a.Print("%s in %s, restored from %s. Start the team: orchestrator up%s\n", term.Count(int(last), "fact"), a.Short(path), a.Short(from), a.Named())
}

// isCopy returns an error for a file that cannot be a copy of a record.
func isCopy(from string) error {
	f := &cli.Failure{Exit: cli.ExitNo, Code: cli.CodeFailed, Hint: nameACopy, Details: map[string]any{"path": from}}
	switch info, err := os.Stat(from); {
	case errors.Is(err, fs.ErrNotExist):
		f.Exit, f.Code, f.Message = cli.ExitNotFound, wire.CodeNotFound, "no such file: "+from
	case err == nil && (!info.Mode().IsRegular() || info.Size() == 0):
		f.Message = from + " is not a file, or is empty"
	default:
		return nil
	}
	return f
}

// nameACopy is the hint for a file that is no copy.
const nameACopy = "Name a copy made by orchestrator backup or store salvage"

// copyArtifacts copies the artifacts of the record at path, if any, to the folder kept, and then
// the artifacts of the copy in from. It returns the number of the latter.
func copyArtifacts(ctx context.Context, artifacts, from, path, kept string) (int, error) {
	if _, err := os.Stat(path); err == nil {
		if _, err := copyFiles(ctx, artifacts, filepath.Join(kept, filepath.Base(path)+"-artifacts")); err != nil {
			return 0, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	return copyFiles(ctx, from+"-artifacts", artifacts)
}

// noteKept tells where the record is that was at path before.
func noteKept(a *cli.App, kept, path string) {
	old := filepath.Join(kept, filepath.Base(path))
	if _, err := os.Stat(old); kept != "" && err == nil {
		a.Note("The original record: %s. Restore it: orchestrator restore %s%s", a.Short(kept), term.Word(a.Short(old)), a.Named())
	} else if kept != "" {
		a.Note("A part of the original record: %s. The rest is next to it, in the folder of the interrupted restore.", a.Short(kept))
	}
}
