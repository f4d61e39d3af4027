package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/supervisor"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
)

// readingVerbs are the verbs that read the record when no orchestrator runs.
var readingVerbs = map[string]bool{
	"orchestrator logs": true, "orchestrator events": true, "orchestrator why": true, "orchestrator graph": true,
	"orchestrator task ls": true, "orchestrator task show": true, "orchestrator task deps": true, "orchestrator task notes": true,
	"orchestrator task response": true, "orchestrator task graph": true,
	"orchestrator session": true, "orchestrator session ls": true, "orchestrator session show": true,
	"orchestrator review": true, "orchestrator review ls": true, "orchestrator review show": true,
	"orchestrator inbox": true, "orchestrator inbox ls": true,
}

// past returns a door to the record of an orchestrator that does not run, and false if
// there is none to read. The record is opened for reading, and nothing is started.
func (a *app) past(t target) (*door, bool, error) {
	if t.url != "" || a.flags.host != "" || t.inside {
		return nil, false, nil
	}
	if conn, err := a.doorOf(t).knock(); err == nil {
		_ = conn.Close()
		return nil, false, nil
	}
	c := a.pastConfig()
	if info, err := os.Stat(c.Store.Path); c.Store.Kind == "memory" || err != nil || info.Size() == 0 {
		return nil, false, nil
	}
	dir, err := os.MkdirTemp("", "orchestrator-read-")
	if err != nil {
		return nil, false, fmt.Errorf("making a place for a socket: %w", err)
	}
	a.cleanups = append(a.cleanups, func() { _ = os.RemoveAll(dir) })
	t.socket = filepath.Join(dir, "api.sock")
	seen, err := a.servePast(c, t.socket)
	if err != nil {
		return nil, false, err
	}
	since := ""
	if !seen.IsZero() {
		since = ", up to " + seen.Local().Format(time.DateTime)
	}
	a.talk("No orchestrator is running for %s. This is what its record says%s.", t.subject, since)
	return a.doorOf(t), true, nil
}

// pastConfig returns the configuration, or the standard one where the file cannot be read.
func (a *app) pastConfig() *config.Config {
	if file, err := a.findConfig(); err == nil {
		if c, _ := config.Load(file, a.options()); c != nil {
			return c
		}
	}
	_, stateDir, err := a.recordPath(nil)
	if err != nil {
		stateDir = a.path(".orchestrator")
	}
	c := config.Alone(a.dir, stateDir, "orchestrator", nil)
	c.Agents = nil
	return c
}

// servePast answers at a socket from the record of a configuration, until the program ends.
// It returns the time of the last fact.
func (a *app) servePast(c *config.Config, socket string) (time.Time, error) {
	ctx, cancel := context.WithCancel(context.Background())
	record, err := eventlog.Open(ctx, eventlog.Options{Path: c.Store.Path, ReadOnly: true})
	if err != nil {
		cancel()
		return time.Time{}, unreadable(err, c.Store)
	}
	t := newTeam()
	t.log, t.record, t.http, t.depth = hclog.NewNullLogger(), record, c.HTTP, c.Protocol.MaxDepth
	a.addLogged(c)
	o := supervisor.Options{Name: c.Orchestrator.Name, Version: version, Record: record, ReadOnly: true, Log: t.log}
	o.Rules, o.Protocol = rules(c)
	o.Sessions = sessions(c)
	t.super = supervisor.New(o, t.specs(c))
	if err := t.super.Restore(ctx); err != nil {
		cancel()
		return time.Time{}, unreadable(errors.Join(err, record.Close()), c.Store)
	}
	if t.listener, err = api.Listen(socket); err != nil {
		cancel()
		return time.Time{}, fmt.Errorf("opening a socket: %w", errors.Join(err, record.Close()))
	}
	t.runs = api.NewRuns(t.listener)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		t.super.Look(ctx)
	}()
	server := api.NewServer(t.pastDoor().Handler(), t.log)
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(ctx, t.listener)
	}()
	a.cleanups = append(a.cleanups, func() {
		cancel()
		<-served
		<-looked
		_ = record.Close()
	})
	for last, err := range record.Records(ctx, max(t.super.Seq()-1, 0)) {
		if err == nil {
			return last.At, nil
		}
	}
	return time.Time{}, nil
}

// addLogged adds to a configuration the agents that it does not name and that have logs.
func (a *app) addLogged(c *config.Config) {
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

// pastDoor is the door of a team that does not run: it answers what only reads.
func (t *team) pastDoor() *api.Door {
	operations := t.decided()
	maps.DeleteFunc(operations, func(name string, _ api.Operation) bool { return writes(name) })
	operations["status"] = api.Do(func(ctx context.Context, _ struct{}) (wire.Status, error) { return t.super.Status(ctx) })
	ended := func(list api.List) api.List {
		return func(ctx context.Context, query url.Values, send func(any) error) error {
			query.Del("follow") // nothing is added to it
			return list(ctx, query, send)
		}
	}
	return &api.Door{
		MaxBody: t.http.MaxBody, Log: t.log, Runs: t.runs, Writes: writes, Depth: t.depth, Catalog: catalog(), Version: version,
		Agent:      t.keyHolder,
		Actor:      t.super.ActorOf,
		Operations: operations,
		Lists:      map[string]api.List{"events": ended(t.events), "logs": ended(t.logs)},
		Refused:    t.refused,
	}
}

// unreadable explains why a record cannot be read while no orchestrator runs.
func unreadable(err error, store config.Store) error {
	return &failure{
		exit: exitNo, code: codeFailed, message: "Cannot read the record " + store.Path + ": " + err.Error(),
		because: []string{"No orchestrator is running, so it was opened here. Nothing was written to it."},
		hint:    "Look at all of it: orchestrator store check",
		details: map[string]any{"path": store.Path},
	}
}
