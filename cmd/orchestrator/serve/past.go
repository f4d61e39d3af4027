package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/hub"
	"orchestrator/wire"
)

// OpenRecord returns a client of the event log of a stopped orchestrator. It reports false
// if there is no log. It opens the log for reading and starts no agents.
func OpenRecord(a *cli.App, t client.Target) (*client.Client, bool, error) {
	if t.URL != "" || a.Flags.Host != "" || t.Inside {
		return nil, false, nil
	}
	if there, _ := api.Answers(t.Socket, time.Second); there {
		return nil, false, nil
	}
	c := pastConfig(a)
	if c.Store.Kind == "memory" || !hub.Recorded(c.Store.Path) {
		return nil, false, nil
	}
	if err := ownRecord(c.Store.Path); err != nil {
		return nil, false, err
	}
	past := &hub.Past{Config: c, Base: hub.AgentBase(a.Environ), Version: build.Version}
	if err := past.Start(context.Background()); err != nil {
		return nil, false, unreadable(err, c.Store)
	}
	a.AtEnd(past.Stop)
	since := ""
	if !past.Seen.IsZero() {
		since = ", up to " + past.Seen.Local().Format(time.DateTime)
	}
	a.Note("No orchestrator is running for %s. The data is from its record%s. Start it: orchestrator up%s", t.Subject, since, t.Named)
	t.Dial = past.Dial
	return a.NewClient(t), true, nil
}

// pastConfig returns the configuration, or the default one if the file cannot be read.
func pastConfig(a *cli.App) *config.Config {
	if file, err := a.FindConfig(a.Flags.Config); err == nil {
		if c, _ := config.Load(file, a.Options()); c != nil {
			return c
		}
	}
	_, stateDir, err := a.RecordPath(nil)
	if err != nil {
		stateDir = a.Path(".orchestrator")
	}
	c := config.Alone(a.Dir, stateDir, "orchestrator", nil)
	c.Agents = nil
	return c
}

// ownRecord returns an error for the event log of another user. SQLite creates files beside
// the log, which would belong to this user.
func ownRecord(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // the error of opening it has the reason
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return &cli.Failure{
			Exit: cli.ExitDenied, Code: wire.CodeDenied, Message: fmt.Sprintf("the record %s belongs to another user (%d)", path, owner.Uid),
			Because: []string{"No orchestrator is running, so this command would open the record."},
			Hint:    "Run the command as that user, or read a copy of the folder: --state-dir COPY",
		}
	}
	return nil
}

// unreadable returns the failure for an event log that cannot be read.
func unreadable(err error, store config.Store) error {
	if unix.Access(filepath.Dir(store.Path), unix.W_OK) != nil || unix.Access(store.Path, unix.W_OK) != nil && !errors.Is(err, fs.ErrNotExist) {
		return &cli.Failure{
			Exit: cli.ExitDenied, Code: wire.CodeDenied, Message: "cannot read the record " + store.Path + ": its folder or its files are read-only",
			Because: []string{"Reading writes an index next to the record."},
			Hint:    "Copy the folder, then read the copy: --state-dir COPY",
		}
	}
	f := &cli.Failure{
		Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "cannot read the record " + store.Path + ": " + err.Error(),
		Because: []string{"No orchestrator is running, so this command opened the record. It wrote no facts."},
		Hint:    "Check the record: orchestrator store check",
		Details: map[string]any{"path": store.Path},
	}
	if errors.Is(err, syscall.ENOMEM) {
		f.Message, f.Hint = littleSpace(store.Path)
	}
	return f
}
