package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/supervisor"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
)

// The verbs that look after the record. They open its file themselves, so they work
// whether an orchestrator runs or not.

func (a *app) storeCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use: "store", Short: "Check and salvage the record",
		Example: "  orchestrator store check\n  orchestrator store salvage rescued.db",
	},
		a.storeCheckCommand(), a.storeSalvageCommand(),
	)
}

func (a *app) storeCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Read the whole record and report damage",
		Long: `Reads every fact of the record and verifies it. Without FILE it is the record of the
configuration or of --state-dir. An orchestrator may run meanwhile. The exit code is 1
where something is damaged or missing.`,
		Example: "  orchestrator store check\n  orchestrator store check backup.db --json",
		Args:    argCount(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			path, _, err := a.recordPath(args)
			if err != nil {
				return err
			}
			return a.checkStore(path)
		},
	}
}

// storeReport answers store check and store salvage for programs.
type storeReport struct {
	FormatVersion string       `json:"format_version"`
	Path          string       `json:"path"`
	Facts         int64        `json:"facts"` // in order, from the beginning
	Damage        *storeDamage `json:"damage,omitzero"`
	Copy          string       `json:"copy,omitzero"`
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

func (a *app) checkStore(path string) error {
	ctx, stop := a.begin()
	defer stop()
	log, err := eventlog.Open(ctx, eventlog.Options{Path: path, ReadOnly: true})
	if err != nil {
		return cannotReadRecord(err, path)
	}
	defer log.Close()
	done := a.patience("the record to be read")
	last, broken := log.Check(ctx)
	done()
	if err := a.ended(ctx); err != nil {
		return err
	}
	if a.flags.json {
		err = a.document(storeReport{FormatVersion: wire.FormatVersion, Path: path, Facts: last, Damage: damageOf(broken)})
	} else if broken == nil {
		err = a.print("%s in %s, all in order\n", plain.Count(int(last), "fact"), a.short(path))
	} else {
		err = a.print("%s in %s are in order. Then: %v\nCopy what is in order to a new file: orchestrator store salvage NEW.db\n",
			plain.Count(int(last), "fact"), a.short(path), broken)
	}
	if err == nil && broken != nil {
		err = exitWith(exitNo)
	}
	return err
}

// cannotReadRecord explains why a record cannot be opened to be looked at.
func cannotReadRecord(err error, path string) error {
	f := &failure{exit: exitNo, code: codeFailed, message: err.Error(), details: map[string]any{"path": path}}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.exit, f.code, f.message = exitNotFound, wire.CodeNotFound, "there is no record "+path
		f.hint = "Name it: orchestrator store check FILE     Or its state directory: --state-dir DIR"
	case errors.Is(err, eventlog.ErrForeign):
		f.message = path + " is not a record of an orchestrator: " + eventlog.ErrForeign.Error()
	}
	return f
}

func (a *app) storeSalvageCommand() *cobra.Command {
	var from string
	verb := &cobra.Command{
		Use:   "salvage NEW",
		Short: "Copy the intact beginning of a damaged record",
		Long: `Copies the facts of a damaged record up to the first that is damaged or missing into
a new file. The damaged record stays as it is, and an orchestrator must not run.`,
		Example: "  orchestrator store salvage rescued.db\n  orchestrator store salvage rescued.db --from damaged.db",
		Args:    argCount(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			var named []string
			if from != "" {
				named = []string{from}
			}
			path, stateDir, err := a.recordPath(named)
			if err != nil {
				return err
			}
			return a.salvage(path, stateDir, a.path(args[0]))
		},
	}
	verb.Flags().StringVar(&from, "from", "", "the damaged record, `FILE`; without it that of the configuration")
	return verb
}

func (a *app) salvage(path, stateDir, to string) error {
	ctx, stop := a.begin()
	defer stop()
	if isStateDir(stateDir) {
		home, err := supervisor.OpenHome(stateDir)
		if err != nil {
			return cannotHold(err, stateDir)
		}
		defer home.Close()
	}
	done := a.patience("the record to be copied")
	last, lost, err := eventlog.Salvage(ctx, path, to)
	done()
	switch {
	case a.ended(ctx) != nil:
		return a.ended(ctx)
	case errors.Is(err, fs.ErrExist):
		return fileExists(err, to)
	case err != nil:
		return cannotReadRecord(err, path)
	case last == 0:
		return &failure{
			exit: exitNo, code: codeFailed, message: "no fact can be read from " + path, because: []string{fmt.Sprint(lost), "No file was made."},
			hint: "Put the record back from a backup, or begin anew: move " + plain.Word(path) + "* away",
		}
	}
	if a.flags.json {
		return a.document(storeReport{FormatVersion: wire.FormatVersion, Path: path, Facts: last, Damage: damageOf(lost), Copy: to})
	}
	if err := a.print("%s copied to %s\n", plain.Count(int(last), "fact"), a.short(to)); err != nil {
		return err
	}
	if lost != nil {
		a.note("Lost: %v", lost)
	}
	a.note("Put it in place: mkdir old; mv %s* old; mv %s %s", plain.Word(a.short(path)), plain.Word(a.short(to)), plain.Word(a.short(path)))
	return nil
}

// fileExists explains that a new record would overwrite a file, or meet one that is left
// of an old record.
func fileExists(err error, path string) error {
	if there := new(fs.PathError); errors.As(err, &there) {
		path = there.Path
	}
	return &failure{
		exit: exitConflict, code: wire.CodeConflict, message: path + " exists, and is left as it is", hint: "Name a file that does not exist",
		details: map[string]any{"path": path},
	}
}

// isStateDir reports whether an orchestrator has held a folder.
func isStateDir(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "lock"))
	return err == nil
}

// recordPath is the record that a verb is about, and its state directory: the file that is
// named, or that of the state directory or configuration.
func (a *app) recordPath(named []string) (path, stateDir string, err error) {
	if len(named) > 0 {
		path = a.path(named[0])
		return path, filepath.Dir(path), nil
	}
	if a.flags.stateDir != "" {
		stateDir = a.path(a.flags.stateDir)
		return filepath.Join(stateDir, "events.db"), stateDir, nil
	}
	file, err := a.findConfig()
	if err != nil {
		return "", "", err
	}
	stateDir = a.stateDir(file)
	if c, _ := config.Load(file, a.options()); c != nil {
		if c.Store.Kind == "memory" {
			return "", "", usageError("store { kind = \"memory\" } keeps no record", "Use store { kind = \"sqlite\" }")
		}
		return c.Store.Path, stateDir, nil
	}
	return filepath.Join(stateDir, "events.db"), stateDir, nil
}

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the record, also while it is in use",
		Long: `Copies the record of the configuration, or of --state-dir, to a new file. The copy is
verified before it gets its name. An orchestrator may run meanwhile. Artifacts that
agents have made go into the folder FILE-artifacts.

To go back to a copy, stop the orchestrator, move STATE_DIR/events.db* away and put the
copy there as events.db.`,
		Example: "  orchestrator backup monday.db",
		Args:    argCount(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if a.flags.host != "" {
				return usageError("a record is copied on the machine that it is on", "Run this there, without --host")
			}
			path, stateDir, err := a.recordPath(nil)
			if err != nil {
				return err
			}
			return a.backup(path, stateDir, a.path(args[0]))
		},
	}
}

// backupReport answers backup for programs.
type backupReport struct {
	FormatVersion string `json:"format_version"`
	Path          string `json:"path"`
	Facts         int64  `json:"facts"`
	Artifacts     int    `json:"artifacts"`
}

func (a *app) backup(path, stateDir, to string) error {
	ctx, stop := a.begin()
	defer stop()
	done := a.patience("the record to be copied")
	defer done()
	last, err := eventlog.Copy(ctx, path, to)
	switch {
	case a.ended(ctx) != nil:
		return a.ended(ctx)
	case errors.Is(err, fs.ErrExist):
		return fileExists(err, to)
	case errors.Is(err, eventlog.ErrFull), errors.Is(err, syscall.ENOSPC):
		return &failure{
			exit: exitNo, code: codeFailed, message: "there is no space left for " + to, because: []string{"The record is as it was."},
			hint: "Make room there: df -h " + plain.Word(filepath.Dir(to)),
		}
	case err != nil:
		return cannotReadRecord(err, path)
	}
	made, err := copyFiles(ctx, filepath.Join(stateDir, "artifacts"), to+"-artifacts")
	if err != nil {
		return fmt.Errorf("copying the artifacts: %w", err)
	}
	if a.flags.json {
		return a.document(backupReport{FormatVersion: wire.FormatVersion, Path: to, Facts: last, Artifacts: made})
	}
	text := fmt.Sprintf("%s in %s", plain.Count(int(last), "fact"), a.short(to))
	if made > 0 {
		text += fmt.Sprintf(", %s in %s-artifacts", plain.Count(made, "artifact"), a.short(to))
	}
	return a.print("%s\n", text)
}

// copyFiles copies the files below a folder, which are never changed once they are
// there. On one disk they get a second name instead. It returns how many there are.
func copyFiles(ctx context.Context, from, to string) (n int, err error) {
	err = filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		inside, relErr := filepath.Rel(from, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // there are none, or this one was never finished
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, inside), 0o700)
		case filepath.Dir(inside) == ".": // not finished
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
