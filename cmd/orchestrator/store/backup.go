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
verified before it gets its name. An orchestrator may run during the copy. The artifacts
of agents are copied to the folder FILE-artifacts.

The command restore puts a copy back.`,
		Example: "  orchestrator backup monday.db",
		Args:    cli.ArgCount(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if a.Flags.Host != "" {
				return cli.UsageError("a record can only be copied on its machine", "Run the command there, without --host")
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
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "no space left for " + to, Because: []string{"The record was not changed."},
			Hint: "Free some space: df -h " + term.Word(filepath.Dir(to)),
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

// copyFiles copies the files below a folder, except files that the other folder has, and returns
// the number of all. On the same disk it makes hard links, because the files never change.
func copyFiles(ctx context.Context, from, to string) (n int, err error) {
	folders := make(map[string]bool)
	err = filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		inside, relErr := filepath.Rel(from, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // no artifacts, or a temporary file is gone
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir() || filepath.Dir(inside) == ".": // the latter are unfinished
			return nil
		}
		n++
		copied := filepath.Join(to, inside)
		if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
			return err
		}
		folders[to], folders[filepath.Dir(copied)] = true, true
		there, _ := os.Stat(copied)
		if info, err := entry.Info(); err == nil && there != nil && there.Size() == info.Size() {
			return nil
		}
		if there == nil && os.Link(path, copied) == nil {
			return nil
		}
		return copyFile(path, copied, to)
	})
	for folder := range folders {
		err = errors.Join(err, syncFile(folder))
	}
	return n, err
}

// copyFile writes a durable copy of a file. Until it is complete, it is a temporary file in a folder.
func copyFile(from, to, folder string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	part := filepath.Join(folder, "new-"+filepath.Base(to)) // the orchestrator removes such files at its start
	if err := os.WriteFile(part, text, 0o600); err != nil {
		return err
	}
	if err := syncFile(part); err != nil {
		return err
	}
	return os.Rename(part, to)
}

// syncFile makes a file durable, or the names in a folder.
func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
