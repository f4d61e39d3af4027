package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
)

// BackupCommand returns the backup command.
func BackupCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the record, even while it is in use",
		Long: `Copies the record of the configuration, or of --state-dir, to a new file. The copy is
verified before it gets its name. An orchestrator may run meanwhile. The artifacts of
agents are copied to the folder FILE-artifacts.

The command restore puts a copy back.`,
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
		return serve.FileExists(err, to)
	case errors.Is(err, eventlog.ErrFull), errors.Is(err, syscall.ENOSPC):
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "there is no space left for " + to, Because: []string{"The record is as it was."},
			Hint: "Make room there: df -h " + term.Word(filepath.Dir(to)),
		}
	case err != nil:
		return serve.CannotReadRecord(err, path)
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

// copyFiles copies the files below a folder, except those that the other folder has, and returns their number. On the
// same disk it makes hard links, because the files never change.
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
		copied := filepath.Join(to, inside)
		err = os.Link(path, copied)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			var text []byte
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
			if err = os.WriteFile(copied+".part", text, 0o600); err == nil {
				err = os.Rename(copied+".part", copied)
			}
		}
		if err == nil {
			n++
		} else if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	})
	return n, err
}
