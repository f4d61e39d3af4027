package serve

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/hub"
	"orchestrator/wire"
)

// whichHub returns the failure for a configuration that does not say which hub this one is.
func whichHub(s config.Store, verb string) error {
	if s.Node != "" {
		return nil
	}
	return &cli.Failure{
		Exit: cli.ExitUsage, Code: wire.CodeInvalid,
		Message: "which of the peers is this hub? " + strings.Join(s.Peers, ", "),
		Because: []string{"None or several of them are on this machine.", "Nothing was started."},
		Hint:    "Name it: orchestrator " + verb + " --node " + s.Peers[0] + "     or ORC_NODE=" + s.Peers[0],
	}
}

// notMoved returns the failure for a hub that has a record and has never had a part of the shared
// one. With this hub, the other hubs would begin an empty record.
func notMoved(c *config.Config) error {
	if c.Store.Kind != "jetstream" || len(c.Store.Servers) > 0 || !hub.Recorded(c.Store.Path) {
		return nil
	}
	if _, err := os.Stat(hub.StreamDir(c)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &cli.Failure{
		Exit: cli.ExitConflict, Code: wire.CodeConflict,
		Message: c.Store.Path + " has records, but this hub has never used the shared store",
		Because: []string{"Nothing was started."},
		Hint:    "Move them: orchestrator store move --to jetstream     Or continue without them: move " + term.Word(c.Store.Path) + "* away",
	}
}

// cannotShare returns the failure for a shared record that cannot be used.
func cannotShare(err error, s config.Store) error {
	f := &cli.Failure{
		Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "cannot use the shared record: " + err.Error(), Because: []string{"Nothing was started."},
	}
	if shorter, ok := errors.AsType[*eventlog.ShorterError](err); ok {
		f.Because = append(f.Because, "The other hubs may have lost their disks, or peers may have changed.")
		if len(s.Peers) == 0 {
			f.Because[1] = "The server may be a restored backup or an outdated replica, or url may have changed."
		}
		f.Hint = "Start a hub that still has them. To continue without them: move " + s.Path + "* away"
		f.Details = map[string]any{"copy": shorter.Copy, "log": shorter.Log}
		if shorter.Log == 0 {
			f.Hint = "Move the record of this machine there: orchestrator store move --to " + s.Kind + "     Or continue without it: move " + s.Path + "* away"
		}
	}
	if away, ok := errors.AsType[*eventlog.ElsewhereError](err); ok {
		f.Hint = whereMoved(away, s, "orchestrator store move --to "+s.Kind)
		f.Details = map[string]any{"owner": away.Owner, "log": away.Last}
	}
	return f
}
