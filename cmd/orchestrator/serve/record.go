package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/handlers"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/home"
	"orchestrator/wire"
)

// CannotRecord returns the failure for an event log that cannot be used. No team starts with a
// damaged log, because lost decisions would be made again.
func CannotRecord(err error, store config.Store) error {
	f := &cli.Failure{
		Exit: cli.ExitNo, Code: cli.CodeFailed,
		Message: "cannot use the record " + store.Path + ": " + err.Error(),
		Because: []string{"Nothing was started."},
		Details: map[string]any{"path": store.Path},
	}
	newer, isNewer := errors.AsType[*eventlog.NewerError](err)
	unknown, isUnknown := errors.AsType[*handlers.UnknownKindError](err)
	switch {
	case isNewer:
		f.Message = fmt.Sprintf("cannot use the record %s: %v", store.Path, newer)
		f.Details["schema"], f.Details["known"] = newer.Schema, newer.Known
	case isUnknown:
		f.Details["seq"], f.Details["kind"] = unknown.Seq, unknown.Kind
	}
	if isNewer || isUnknown {
		f.Because = []string{fmt.Sprintf("This is version %s. Nothing was started or changed.", build.Version)}
		f.Hint = "Use the version that wrote it, or a newer one     Or start a new record: --state-dir DIR"
		return f
	}
	if removed, isRemoved := errors.AsType[*wire.RemovedError](err); isRemoved {
		f.Details["removed"] = removed.Base.Seq
		f.Hint = "Use the version that wrote it     Or restore a backup: orchestrator restore BACKUP"
		return f
	}
	chain, isDamaged := errors.AsType[*eventlog.ChainError](err)
	empty, isEmpty := errors.AsType[*eventlog.EmptyError](err)
	aside := "move " + term.Word(store.Path) + "* away"
	switch {
	case isDamaged:
		f.Details["seq"] = chain.Seq
		f.Because = []string{"Nothing was started or written to it."}
		f.Hint = damagedHint + "     Start a new record: " + aside
	case errors.Is(err, eventlog.ErrDamaged):
		f.Hint = damagedHint + "     Start a new record: " + aside
	case isEmpty:
		f.Details["acknowledged"] = empty.Acked
		f.Message = "cannot use the record " + store.Path + ": " + empty.Error()
		f.Hint = "Restore it: orchestrator restore BACKUP     Start a new record: " + aside
	case errors.Is(err, eventlog.ErrForeign):
		f.Message = store.Path + " is not a record of an orchestrator: " + eventlog.ErrForeign.Error()
		f.Because = []string{"Nothing was started or changed."}
		f.Hint = "Restore the record: orchestrator restore BACKUP     Start a new one: " + aside
	case errors.Is(err, eventlog.ErrFull):
		f.Message = "no space left for the record " + store.Path
		f.Because = append(f.Because, "Nothing that was confirmed is lost.", err.Error())
		f.Hint = "Free some space: df -h " + term.Word(filepath.Dir(store.Path))
	case errors.Is(err, syscall.ENOMEM):
		f.Message, f.Hint = littleSpace(store.Path)
	}
	return f
}

// damagedHint is the hint for a record with a damaged file.
const damagedHint = "Find the damage: orchestrator store check     Continue without the lost facts: orchestrator store salvage NEW.db, orchestrator restore NEW.db"

// littleSpace returns the message for an event log that cannot be mapped into memory.
func littleSpace(path string) (message, hint string) {
	return "not enough address space for the record " + path, "Raise the limit: ulimit -v unlimited"
}

// CannotReadRecord returns the failure for an event log that cannot be opened.
func CannotReadRecord(err error, path string) error {
	f := &cli.Failure{Exit: cli.ExitNo, Code: cli.CodeFailed, Message: err.Error(), Details: map[string]any{"path": path}}
	info, failed := os.Stat(path)
	switch {
	case failed == nil && info.IsDir():
		f.Message = path + " is a folder, not a record"
		f.Hint = "Name the file in it: orchestrator store check FILE     Or the state directory: --state-dir DIR"
	case errors.Is(err, fs.ErrNotExist):
		f.Exit, f.Code, f.Message = cli.ExitNotFound, wire.CodeNotFound, "no record exists at "+path
		f.Hint = "Name it: orchestrator store check FILE     Or its state directory: --state-dir DIR"
	case errors.Is(err, eventlog.ErrForeign):
		f.Message = path + " is not a record of an orchestrator: " + eventlog.ErrForeign.Error()
	case errors.Is(err, syscall.ENOMEM):
		f.Message, f.Hint = littleSpace(path)
	}
	return f
}

// FileExists returns the failure for a target that exists, or for a file left by an old
// event log.
func FileExists(err error, path string) error {
	if there := new(fs.PathError); errors.As(err, &there) {
		path = there.Path
	}
	return &cli.Failure{
		Exit: cli.ExitConflict, Code: wire.CodeConflict, Message: path + " already exists and was not changed", Hint: "Name a file that does not exist",
		Details: map[string]any{"path": path},
	}
}

// cannotGoOn returns the failure for a team that could no longer write its event log.
func cannotGoOn(err error, stateDir string) error {
	lost, isLost := errors.AsType[*eventlog.LostError](err)
	switch {
	case isLost && lost.Folder:
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the record was lost: " + lost.Error(),
			Because: []string{"Everything was shut down cleanly. If you still have that folder, it contains the record."},
			Hint:    "If you moved the folder, start the team there: orchestrator up",
			Details: map[string]any{"path": lost.Path, "replaced": false},
		}
	case isLost:
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the record was lost: " + lost.Error(),
			Because: []string{"Everything was shut down cleanly. If you still have that file, it contains the record."},
			Hint:    "Keep the state directory where no command deletes it, for example git clean -fdx: orchestrator { state_dir = … }",
			Details: map[string]any{"path": lost.Path, "replaced": lost.Replaced},
		}
	case errors.Is(err, eventlog.ErrFull):
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the disk is full: " + err.Error(),
			Because: []string{"Everything was shut down cleanly, and no confirmed work is lost."},
			Hint:    "Free some space, then start again: df -h " + term.Word(stateDir),
		}
	case errors.Is(err, eventlog.ErrDamaged):
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed, Message: err.Error(), Because: []string{"Everything was shut down cleanly."}, Hint: damagedHint,
		}
	}
	return err
}

// CannotHold returns the failure for an error of Hold.
func CannotHold(err error, stateDir string) error {
	if busy, ok := errors.AsType[*home.BusyError](err); ok {
		return &cli.Failure{
			Exit: cli.ExitConflict, Code: wire.CodeConflict,
			Message: "an orchestrator already runs here" + busyDetail(busy),
			Hint:    "See its status: orchestrator status     Stop it: orchestrator down     Start another one: --state-dir DIR",
			Details: map[string]any{"pid": busy.PID, "state_dir": stateDir},
		}
	}
	f := &cli.Failure{
		Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "cannot start in " + stateDir + ": " + err.Error(),
		Because: []string{"Nothing was started."}, Hint: "Keep the state elsewhere: --state-dir DIR     or in the file: orchestrator { state_dir = … }",
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		f.Hint = "Free some space: df -h " + term.Word(stateDir) + "     Or keep the state elsewhere: --state-dir DIR"
	}
	return f
}

func busyDetail(busy *home.BusyError) string {
	if busy.PID == 0 {
		return ""
	}
	if busy.Since.IsZero() {
		return fmt.Sprintf(" (pid %d)", busy.PID)
	}
	return fmt.Sprintf(" (pid %d, since %s)", busy.PID, busy.Since.Local().Format("15:04"))
}
