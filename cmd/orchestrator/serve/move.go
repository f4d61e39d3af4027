package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/artifacts"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/hub"
	"orchestrator/supervisor/leadership"
	"orchestrator/wire"
)

// StoreMoveCommand returns the command store move.
func StoreMoveCommand(a *cli.App) *cobra.Command {
	var to, node string
	verb := &cobra.Command{
		Use:   "move",
		Short: "Move the record to a shared store, or back",
		Long: `Moves the record of this machine into the shared store of the file, or, with --to sqlite,
from there into a file of this machine. The records stay the same. The orchestrator must not
run here. After an interruption, run the command again: it continues.

If the store has peers, first declare it in the file of every hub and run up on the others:
they wait for this command. If it has the url of a server, run this command before up on any
hub. The old record stays beside the new one.

To go back, run this on one of the hubs, and then write kind = "sqlite" into its file.`,
		Example: "  orchestrator store move --to jetstream\n  orchestrator store move --to sqlite",
		Args:    cli.ArgCount(0, 0),
		RunE: func(*cobra.Command, []string) error {
			m, err := newMover(a, to, node)
			if err != nil {
				return err
			}
			return m.run()
		},
	}
	verb.Flags().StringVar(&to, "to", "", "the `KIND` of the store: jetstream, postgres or sqlite")
	verb.Flags().StringVar(&node, "node", "", "the `HUB` of a shared store that this one is, if its machine does not say so")
	return verb
}

// moveReport is the JSON answer of store move.
type moveReport struct {
	FormatVersion string `json:"format_version"`
	Path          string `json:"path"` // the record, or the copy of it, on this machine
	To            string `json:"to"`
	Facts         int64  `json:"facts"`
	Chain         string `json:"chain"`         // the sum of all of them
	Kept          string `json:"kept,omitzero"` // the record as it was
	Artifacts     int    `json:"artifacts"`
	Missing       int    `json:"missing,omitzero"` // artifacts that no hub has stored
}

// A mover moves a record.
type mover struct {
	*hub.Standby
	app   *cli.App
	to    string
	doing atomic.Pointer[string] // the current step
}

// newMover reads the configuration.
func newMover(a *cli.App, to, node string) (*mover, error) {
	if a.Flags.Host != "" {
		return nil, cli.UsageError("a record can only be moved on its machine", "Run the command there, without --host")
	}
	if to != "jetstream" && to != "postgres" && to != "sqlite" {
		return nil, cli.UsageError("--to must be jetstream, postgres or sqlite", "Name the target: orchestrator store move --to jetstream")
	}
	p := new(hub.Place)
	m := &mover{app: a, to: to}
	file, err := a.FindConfig(a.Flags.Config)
	if err != nil {
		return nil, err
	}
	c, problems := loader(a, p, file, node, false)()
	if problems.Errors() > 0 {
		return nil, a.Invalid(problems, "Nothing was moved.")
	}
	fits, hint := c.Store.Kind == to, fmt.Sprintf("Write store { kind = %q … } into the file first: orchestrator help many-machines", to)
	if to == "sqlite" {
		fits, hint = c.Store.Shared(), "Keep the shared store in the file until the move is done: it locates the record"
	}
	if !fits {
		return nil, &cli.Failure{
			Exit: cli.ExitUsage, Code: wire.CodeInvalid, Message: fmt.Sprintf("the store in %s has the kind %s", a.Short(file), c.Store.Kind),
			Because: []string{"Nothing was moved."}, Hint: hint,
		}
	}
	p.StateDir, p.Socket, p.Log = c.Orchestrator.StateDir, a.SocketPath(c.Orchestrator.StateDir), hclog.NewNullLogger()
	m.Standby = hub.NewStandby(p, hub.Options{Version: build.Version, Config: c, Environ: a.Environ, Note: a.Note})
	return m, whichHub(c.Store, "store move --to "+to)
}

// run moves the record while it holds the state directory.
func (m *mover) run() error {
	a, c := m.app, m.Config
	ctx, stop := a.Context()
	defer stop()
	if err := m.Place.Start(ctx); err != nil {
		return CannotHold(err, c.Orchestrator.StateDir)
	}
	defer m.Place.Stop()
	certificates, err := hub.TLS(c.Store)
	if err != nil {
		return m.failure(ctx, err)
	}
	m.OpenFront(leadership.Hub{Name: c.Store.Node}, certificates, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) })
	defer m.Server.Stop()
	m.does("checking the record")
	done := a.ShowDoing(func(since time.Duration) string {
		return fmt.Sprintf("Moving: %s, %ds", *m.doing.Load(), int(since.Seconds()))
	})
	report := moveReport{FormatVersion: wire.FormatVersion, Path: c.Store.Path, To: m.to}
	if m.to == "sqlite" {
		err = m.back(ctx, certificates, &report)
	} else {
		err = m.in(ctx, certificates, &report)
	}
	done()
	if err != nil {
		return m.failure(ctx, err)
	}
	return m.tell(&report)
}

func (m *mover) does(what string) { m.doing.Store(&what) }

// tell prints the moved parts, and the next step.
func (m *mover) tell(r *moveReport) error {
	a := m.app
	if a.Flags.JSON {
		return a.Document(r)
	}
	where := "in " + a.Short(r.Path)
	if m.to != "sqlite" {
		where = fmt.Sprintf("in the log %q of %s", m.Config.Store.Log, m.to)
	}
	if err := a.Print("%s %s, equal to the original, chain %s\n", term.Count(int(r.Facts), "fact"), where, r.Chain); err != nil {
		return err
	}
	if r.Artifacts > 0 {
		a.Note("With %s", term.Count(r.Artifacts, "artifact"))
	}
	if r.Missing > 0 {
		a.Note("The hubs have not stored %s of the record", term.Count(r.Missing, "artifact"))
	}
	if r.Kept != "" {
		a.Note("The original record: %s", a.Short(r.Kept))
	}
	if _, err := os.Stat(filepath.Join(m.Place.Home.Dir, "jwt.key")); err == nil || m.to == "sqlite" {
		a.Note("Earlier tokens are not valid there. Issue new ones: orchestrator token issue")
	}
	if m.to == "sqlite" {
		a.Note("Write store { kind = \"sqlite\" } into the file here, then: orchestrator up")
		a.Note("The other hubs do no more work. Stop them: orchestrator down")
		return nil
	}
	a.Note("Next: orchestrator up")
	return nil
}

// in moves the record of this machine into the shared log.
func (m *mover) in(ctx context.Context, certificates *tls.Config, report *moveReport) error {
	path := m.Config.Store.Path
	if !hub.Recorded(path) {
		return &cli.Failure{
			Exit: cli.ExitNotFound, Code: wire.CodeNotFound, Message: "no record exists at " + path, Because: []string{"Nothing was moved."},
			Hint: "Begin with an empty shared store: orchestrator up",
		}
	}
	from, err := eventlog.Open(ctx, eventlog.Options{Path: path, ReadOnly: true})
	if err != nil {
		return CannotReadRecord(err, path)
	}
	defer from.Close()
	base, err := from.Base(ctx)
	if err != nil {
		return CannotReadRecord(err, path)
	}
	if base.Seq > 0 {
		return &wire.RemovedError{Base: base}
	}
	if report.Kept, err = m.keep(ctx, from); err != nil {
		return err
	}
	m.does(m.waitsFor())
	engine, err := m.OpenEngine(ctx, certificates)
	if err != nil {
		return err
	}
	move := eventlog.Move{From: from, Engine: engine, Owner: m.Config.Store.Node, Progress: func(doing string, done, all int64) {
		m.does(fmt.Sprintf("%s, fact %d of %d", doing, done, all))
	}, BeforeUse: func(ctx context.Context) (err error) {
		m.does("copying the artifacts")
		report.Artifacts, err = artifacts.ShareArtifacts(ctx, m.Place.Home.Dir, engine)
		return err
	}}
	err = move.In(ctx)
	if err = errors.Join(err, engine.Close()); err != nil {
		return err
	}
	report.Facts = from.Last()
	sum, err := from.ChainSum(report.Facts)
	report.Chain = chainText(sum)
	return err
}

// waitsFor returns the reason for the wait when a move opens the shared log.
func (m *mover) waitsFor() string {
	if len(m.Config.Store.Peers) == 0 {
		return "waiting for the server of the record"
	}
	return "waiting for the other hubs (orchestrator up there)"
}

func chainText(sum uint32) string { return fmt.Sprintf("%08x", sum) }

// keep copies the record to a file beside it, unless an earlier move did. The copy verifies every fact.
func (m *mover) keep(ctx context.Context, from *eventlog.SQLite) (string, error) {
	m.does("copying the record")
	path, last := m.Config.Store.Path, from.Last()
	to := fmt.Sprintf("%s.before-move-%d", path, last)
	_, err := eventlog.Copy(ctx, path, to)
	if errors.Is(err, fs.ErrExist) {
		var there *eventlog.SQLite
		if there, err = eventlog.Open(ctx, eventlog.Options{Path: to, ReadOnly: true}); err != nil {
			return "", FileExists(err, to)
		}
		defer there.Close()
		mine, err := from.ChainSum(last)
		its, failed := there.ChainSum(last)
		if err = errors.Join(err, failed); err == nil && (mine != its || there.Last() != last) {
			return "", FileExists(&fs.PathError{Op: "create", Path: to, Err: fs.ErrExist}, to)
		}
		return to, err
	}
	return to, err
}

// back moves the record from the shared log to the file of this machine.
func (m *mover) back(ctx context.Context, certificates *tls.Config, report *moveReport) error {
	m.does(m.waitsFor())
	shared, err := m.OpenShared(ctx, certificates)
	if err != nil {
		return err
	}
	m.does("reading the shared log to its end")
	err = shared.Log.MoveOut(ctx, m.Config.Store.Node)
	if err == nil {
		m.does("reading the artifacts")
		report.Artifacts, report.Missing, err = artifacts.FetchArtifacts(ctx, m.Place.Home.Dir, shared.Log, shared.Engine)
	}
	report.Facts = shared.Log.Last()
	sum, failed := shared.Log.SQLite.ChainSum(report.Facts)
	if err = errors.Join(err, failed, shared.Log.Close()); err != nil {
		return err
	}
	m.does("verifying the record here")
	own, err := eventlog.Open(ctx, eventlog.Options{Path: report.Path, Durable: true})
	if err != nil {
		return CannotRecord(err, m.Config.Store)
	}
	defer own.Close()
	last, err := own.Check(ctx)
	here, failed := own.ChainSum(last)
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	if last != report.Facts || here != sum {
		return fmt.Errorf("the record here ends at fact %d with the checksum %s, but the shared log at fact %d with %s", last, chainText(here), report.Facts, chainText(sum))
	}
	report.Chain = chainText(sum)
	return nil
}

// failure returns the failure for a move that was not completed.
func (m *mover) failure(ctx context.Context, err error) error {
	if f, ok := errors.AsType[*cli.Failure](err); ok {
		return f
	}
	s, again := m.Config.Store, "orchestrator store move --to "+m.to
	f := &cli.Failure{
		Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the record was not moved: " + err.Error(),
		Because: []string{"The record here is unchanged, and no hub uses an incomplete copy."}, Hint: "Continue: " + again,
	}
	if m.to == "sqlite" {
		f.Because = []string{"Nothing is lost: the shared log is complete."}
	}
	away, isAway := errors.AsType[*eventlog.ElsewhereError](err)
	other, isOther := errors.AsType[*eventlog.OtherRecordError](err)
	removed, isRemoved := errors.AsType[*wire.RemovedError](err)
	ended, _ := errors.AsType[*cli.Failure](m.app.Ended(ctx))
	switch {
	case ended != nil:
		ended.Because, ended.Hint = f.Because, f.Hint
		return ended
	case isAway:
		f.Exit, f.Code, f.Hint = cli.ExitConflict, wire.CodeConflict, whereMoved(away, s, again)
		f.Details = map[string]any{"owner": away.Owner, "log": away.Last}
	case isOther, errors.Is(err, eventlog.ErrMoved):
		f.Exit, f.Code = cli.ExitConflict, wire.CodeConflict
		f.Because = []string{"Nothing was moved. A hub that runs before the move starts a new record after a few seconds."}
		f.Hint = "Stop the hubs, and set another log in the files of all hubs: store { log = \"NAME\" … }     Then: " + again
		if isOther {
			f.Details = map[string]any{"log": other.Last}
		}
	case isRemoved:
		f.Because = []string{"Nothing was moved: other hubs need the removed facts to restore the state."}
		f.Hint = "To start with an empty shared store, keep this record elsewhere: move " + term.Word(s.Path) + "* away"
		f.Details = map[string]any{"removed": removed.Base.Seq}
	case errors.Is(err, eventlog.ErrFull), errors.Is(err, syscall.ENOSPC):
		f.Message = "no space left for a copy of the record: " + err.Error()
		f.Hint = "Free some space: df -h " + term.Word(filepath.Dir(s.Path)) + "     Then: " + again
	}
	return f
}

// whereMoved returns the remedy for a record that another hub has.
func whereMoved(away *eventlog.ElsewhereError, s config.Store, again string) string {
	switch {
	case !away.Out:
		return fmt.Sprintf("Finish the move on %s: orchestrator store move --to %s", away.Owner, s.Kind)
	case away.Owner == s.Node:
		return "Use the record here: store { kind = \"sqlite\" }     Or move it again: orchestrator store move --to " + s.Kind
	}
	return fmt.Sprintf("Run it on %s     If that machine is lost, set another log in the files of all hubs, store { log = \"NAME\" … }, then: %s", away.Owner, again)
}
