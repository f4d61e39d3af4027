package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/serve/team"
	"orchestrator/supervisor"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/home"
	"orchestrator/supervisor/workspace"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// OpenRecord returns a client of the event log of a stopped orchestrator. It reports false
// if there is no log. It opens the log for reading and starts nothing.
func OpenRecord(a *cli.App, t client.Target) (*client.Client, bool, error) {
	if t.URL != "" || a.Flags.Host != "" || t.Inside {
		return nil, false, nil
	}
	if there, _ := api.Answers(t.Socket, time.Second); there {
		return nil, false, nil
	}
	c := pastConfig(a)
	if c.Store.Kind == "memory" || !recorded(c.Store.Path) {
		return nil, false, nil
	}
	dial, seen, err := servePast(a, c)
	if err != nil {
		return nil, false, err
	}
	since := ""
	if !seen.IsZero() {
		since = ", up to " + seen.Local().Format(time.DateTime)
	}
	a.Note("No orchestrator is running for %s. This is what its record says%s. To go on: orchestrator up%s", t.Subject, since, t.Named)
	t.Dial = dial
	return a.NewClient(t), true, nil
}

// recorded reports whether there is, or was, an event log at path.
func recorded(path string) bool {
	for _, name := range []string{path, path + "-tip"} {
		if info, err := os.Stat(name); err == nil && info.Size() > 0 {
			return true
		}
	}
	return false
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

// servePast serves the event log of a configuration until the program ends. It returns how
// to connect, and the time of the last fact.
func servePast(a *cli.App, c *config.Config) (dial func(context.Context) (net.Conn, error), seen time.Time, err error) {
	if err := ownRecord(c.Store.Path); err != nil {
		return nil, seen, err
	}
	unix.Umask(0o077) // SQLite creates a missing index of the event log
	ctx, cancel := context.WithCancel(context.Background())
	record, err := eventlog.Open(ctx, eventlog.Options{Path: c.Store.Path, ReadOnly: true})
	if err != nil {
		cancel()
		return nil, seen, unreadable(err, c.Store)
	}
	log := hclog.NewNullLogger()
	addLogged(c)
	o := supervisor.Options{Name: c.Orchestrator.Name, Version: cli.Version, Record: record, ReadOnly: true, Log: log}
	o.Rules, o.Protocol = team.Rules(c)
	o.Sessions = team.Sessions(c)
	past := &pastTeam{requester: &requester{Supervisor: supervisor.New(o, team.Agents(c, nil)), log: log}}
	if err := past.Restore(ctx); err != nil {
		cancel()
		return nil, seen, unreadable(errors.Join(err, record.Close()), c.Store)
	}
	closeWorkshop := past.openWorkshop(a, c)
	inside := api.NewInside()
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		past.Look(ctx)
	}()
	server := api.NewServer(past.door(c).Handler(), log)
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(ctx, inside)
	}()
	a.AtEnd(func() {
		cancel()
		<-served
		<-looked
		closeWorkshop()
		_ = record.Close()
	})
	for last, err := range record.Records(ctx, max(past.Seq()-1, 0)) {
		if err == nil {
			seen = last.At
		}
		break
	}
	return inside.Dial, seen, nil
}

// A pastTeam is a stopped team, of which the record is read.
type pastTeam struct {
	*requester
	workshop *workspace.Manager
}

// openWorkshop makes what looks at the workspaces of a stopped team. It runs git, and changes nothing in
// repositories. Processes begin with the first look, in a folder that the returned function removes.
func (t *pastTeam) openWorkshop(a *cli.App, c *config.Config) (end func()) {
	var dir string
	var host *child.Host
	open := sync.OnceValue(func() (err error) {
		if dir, err = os.MkdirTemp("", "orchestrator-look-"); err == nil {
			host, err = child.NewHost(child.Options{Home: dir})
		}
		return err
	})
	t.workshop = workspace.New(workspace.Options{
		ReadOnly: true, Log: t.log, Tasks: workTasks{t.requester}, Notes: home.Notes(c.Orchestrator.StateDir),
		Start: func(spec child.Spec) (workspace.Process, error) {
			if err := open(); err != nil {
				return nil, err
			}
			return host.Start(spec)
		},
	})
	t.workshop.Set(team.Workspaces(c, AgentBase(a.Environ)))
	return func() {
		if host != nil {
			host.Close()
		}
		if dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
}

// ownRecord returns an error for the event log of another user. SQLite creates files beside
// the log, which would belong to this user.
func ownRecord(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // the error of opening it says why
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return &cli.Failure{
			Exit: cli.ExitDenied, Code: wire.CodeDenied, Message: fmt.Sprintf("the record %s belongs to another user (%d)", path, owner.Uid),
			Because: []string{"No orchestrator is running, so it would be opened here."},
			Hint:    "Read it as that user, or read a copy of its folder: --state-dir COPY",
		}
	}
	return nil
}

// addLogged adds agents to a configuration that have log files but are not in it.
func addLogged(c *config.Config) {
	logs := filepath.Join(c.Orchestrator.StateDir, "logs")
	folders, err := os.ReadDir(logs)
	if err != nil {
		return
	}
	for _, f := range folders {
		known := slices.ContainsFunc(c.Agents, func(g config.Agent) bool { return g.Name == f.Name() })
		if f.IsDir() && !known && config.IsName(f.Name()) {
			c.Agents = append(c.Agents, c.Guest(f.Name(), wire.RoleWorker, nil, false))
		}
	}
}

// door returns the API of a stopped team, which has only reading operations. Only this program
// uses it, without a credential.
func (t *pastTeam) door(c *config.Config) *api.API {
	ended := func(list api.List) api.List {
		return func(ctx context.Context, query url.Values, send func(any) error) error {
			query.Del("follow") // nothing is appended
			return list(ctx, query, send)
		}
	}
	return &api.API{
		MaxBody: c.HTTP.MaxBody, Log: t.log, Depth: c.Protocol.MaxDepth, Version: cli.Version,
		Ask:      t.Requests.Callers().Ask,
		ReadOnly: true,
		Operations: map[string]api.Operation{
			"status":          api.Do(func(ctx context.Context, _ struct{}) (control.Status, error) { return t.Status(ctx) }),
			"list-workspaces": api.Do(t.workshop.List),
			"diff-task":       api.Do(t.workshop.Diff),
		},
		Lists: map[string]api.List{"events": ended(t.events), "logs": ended(t.logs)},
	}
}

// unreadable returns the failure for an event log that cannot be read.
func unreadable(err error, store config.Store) error {
	if unix.Access(filepath.Dir(store.Path), unix.W_OK) != nil || unix.Access(store.Path, unix.W_OK) != nil && !errors.Is(err, fs.ErrNotExist) {
		return &cli.Failure{
			Exit: cli.ExitDenied, Code: wire.CodeDenied, Message: "cannot read the record " + store.Path + ": its folder or its files are read-only",
			Because: []string{"Reading keeps an index beside the record."},
			Hint:    "Copy the folder, and read the copy: --state-dir COPY",
		}
	}
	f := &cli.Failure{
		Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "cannot read the record " + store.Path + ": " + err.Error(),
		Because: []string{"No orchestrator is running, so it was opened here. No fact was written to it."},
		Hint:    "Look at all of it: orchestrator store check",
		Details: map[string]any{"path": store.Path},
	}
	if errors.Is(err, syscall.ENOMEM) {
		f.Message, f.Hint = littleSpace(store.Path)
	}
	return f
}
