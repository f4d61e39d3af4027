package hub

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"orchestrator/supervisor"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/home"
	"orchestrator/supervisor/hub/team"
	"orchestrator/supervisor/workspace"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// A Past is a stopped team with its event log open for reading. It starts no agent.
type Past struct {
	Config  *config.Config
	Base    []string // the environment that commands of workspaces inherit
	Version string

	Dial func(context.Context) (net.Conn, error) // connects with its API
	Seen time.Time                               // the time of the last fact

	own      *requester
	workshop *workspace.Manager
	end      func()
}

// Start serves the event log.
func (p *Past) Start(context.Context) error {
	c := p.Config
	unix.Umask(0o077) // SQLite creates a missing index of the event log
	ctx, cancel := context.WithCancel(context.Background())
	record, err := eventlog.Open(ctx, eventlog.Options{Path: c.Store.Path, ReadOnly: true})
	if err != nil {
		cancel()
		return err
	}
	log := hclog.NewNullLogger()
	addLogged(c)
	o := supervisor.Options{Name: c.Orchestrator.Name, Version: p.Version, Record: record, ReadOnly: true, Log: log}
	o.Rules, o.Protocol = team.Rules(c)
	o.Sessions = team.Sessions(c)
	p.own = &requester{Supervisor: supervisor.New(o, team.Agents(c, nil)), log: log}
	if err := p.own.Restore(ctx); err != nil {
		cancel()
		return errors.Join(err, record.Close())
	}
	closeWorkshop := p.openWorkshop()
	inside := api.NewInside()
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		p.own.Look(ctx)
	}()
	server := api.NewServer(p.door().Handler(), log)
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(ctx, inside)
	}()
	p.Dial, p.end = inside.Dial, func() {
		cancel()
		<-served
		<-looked
		closeWorkshop()
		_ = record.Close()
	}
	for last, err := range record.Records(ctx, max(p.own.Seq()-1, 0)) {
		if err == nil {
			p.Seen = last.At
		}
		break
	}
	return nil
}

// Stop closes the event log.
func (p *Past) Stop() { p.end() }

// openWorkshop makes a Manager that looks at the workspaces of a stopped team. It runs git, and leaves
// repositories unchanged. Processes begin with the first look, in a folder that the returned function removes.
func (p *Past) openWorkshop() (end func()) {
	var dir string
	var host *child.Host
	open := sync.OnceValue(func() (err error) {
		if dir, err = os.MkdirTemp("", "orchestrator-look-"); err == nil {
			host, err = child.NewHost(child.Options{Home: dir})
		}
		return err
	})
	p.workshop = workspace.New(workspace.Options{
		ReadOnly: true, Log: p.own.log, Tasks: workTasks{p.own}, Notes: home.Notes(p.Config.Orchestrator.StateDir),
		Start: func(spec child.Spec) (workspace.Process, error) {
			if err := open(); err != nil {
				return nil, err
			}
			return host.Start(spec)
		},
	})
	p.workshop.Set(team.Workspaces(p.Config, p.Base))
	return func() {
		if host != nil {
			host.Close()
		}
		if dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
}

// door returns the API of a stopped team, which has only reading operations. Only this program
// uses it, without a credential.
func (p *Past) door() *api.API {
	c, t := p.Config, p.own
	ended := func(list api.List) api.List {
		return func(ctx context.Context, query url.Values, send func(any) error) error {
			query.Del("follow") // no event follows
			return list(ctx, query, send)
		}
	}
	return &api.API{
		MaxBody: c.HTTP.MaxBody, Log: t.log, Depth: c.Protocol.MaxDepth, Version: p.Version,
		Callers:  t.Requests.Callers(),
		ReadOnly: true,
		Operations: map[string]api.Operation{
			"status":          api.Do(func(ctx context.Context, _ struct{}) (control.Status, error) { return t.Status(ctx) }),
			"list-workspaces": api.Do(p.workshop.List),
			"diff-task":       api.Do(p.workshop.Diff),
		},
		Lists: map[string]api.List{"events": ended(t.events), "logs": ended(t.logs)},
	}
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

// Recorded reports whether there is, or was, an event log at path.
func Recorded(path string) bool {
	for _, name := range []string{path, path + "-tip"} {
		if info, err := os.Stat(name); err == nil && info.Size() > 0 {
			return true
		}
	}
	return false
}
