package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/handlers"
	"orchestrator/supervisor"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
)

// ledger is an event log that can be closed.
type ledger interface {
	supervisor.Record
	Close() error
}

// openRecord opens the record that a configuration asks for.
func openRecord(ctx context.Context, store config.Store) (ledger, error) {
	if store.Kind == "memory" {
		return eventlog.NewMemory(), nil
	}
	log, err := eventlog.Open(ctx, eventlog.Options{Path: store.Path, Durable: store.Durable})
	if err != nil {
		return nil, err // and no nil pointer in an interface
	}
	return log, nil
}

// cannotRecord explains why there is no record to go on with. Nothing is
// started behind a record that is damaged: what it says would be decided anew.
func cannotRecord(err error, store config.Store) error {
	f := &failure{
		exit: exitNo, code: codeFailed,
		message: "cannot use the record " + store.Path + ": " + err.Error(),
		because: []string{"Nothing was started."},
		details: map[string]any{"path": store.Path},
	}
	newer, isNewer := errors.AsType[*eventlog.NewerError](err)
	unknown, isUnknown := errors.AsType[*handlers.UnknownKindError](err)
	switch {
	case isNewer:
		f.message = fmt.Sprintf("cannot use the record %s: %v", store.Path, newer)
		f.details["schema"], f.details["known"] = newer.Schema, newer.Known
	case isUnknown:
		f.details["seq"], f.details["kind"] = unknown.Seq, unknown.Kind
	}
	if isNewer || isUnknown {
		f.because = []string{fmt.Sprintf("This is version %s. Nothing was started, and nothing was changed.", version)}
		f.hint = "Use the program that wrote it, or a newer one     Or begin beside it: --state-dir DIR"
		return f
	}
	chain, isDamaged := errors.AsType[*eventlog.ChainError](err)
	empty, isEmpty := errors.AsType[*eventlog.EmptyError](err)
	aside := "move " + plain.Word(store.Path) + "* away"
	switch {
	case isDamaged:
		f.details["seq"] = chain.Seq
		f.because = []string{"Nothing was started, and nothing was written to it."}
		f.hint = "See what is lost: orchestrator store check     Go on without it: orchestrator store salvage NEW.db     Begin anew: " + aside
	case isEmpty:
		f.details["acknowledged"] = empty.Acked
		f.message = "cannot use the record " + store.Path + ": " + empty.Error()
		f.hint = "Put it back from a backup, or begin anew: " + aside
	case errors.Is(err, eventlog.ErrForeign):
		f.message = store.Path + " is not a record of an orchestrator: " + eventlog.ErrForeign.Error()
		f.because = []string{"Nothing was started, and nothing was changed."}
		f.hint = "Put the record back from a backup, or begin anew: " + aside
	case errors.Is(err, eventlog.ErrFull):
		f.message = "there is no space left for the record " + store.Path
		f.because = append(f.because, "Nothing that was confirmed is lost.", err.Error())
		f.hint = "Make room there: df -h " + plain.Word(filepath.Dir(store.Path))
	case errors.Is(err, syscall.ENOMEM):
		f.message = "there is too little address space for the record " + store.Path
		f.hint = "Raise the limit: ulimit -v unlimited"
	}
	return f
}

// cannotGoOn explains why a team ended that could not record any more.
func (t *instance) cannotGoOn(err error) error {
	lost, isLost := errors.AsType[*eventlog.LostError](err)
	switch {
	case isLost:
		return &failure{
			exit: exitNo, code: codeFailed, message: "the record was lost: " + lost.Error(),
			because: []string{"Everything was stopped in order. What was recorded before is in that file, if you still have it."},
			hint:    "Keep the state directory where nothing deletes it, such as git clean -fdx: orchestrator { state_dir = … }",
			details: map[string]any{"path": lost.Path, "replaced": lost.Replaced},
		}
	case errors.Is(err, eventlog.ErrFull):
		return &failure{
			exit: exitNo, code: codeFailed, message: "the disk is full: " + err.Error(),
			because: []string{"Everything was stopped in order, and nothing that was confirmed is lost."},
			hint:    "Make room there, and start again: df -h " + plain.Word(t.home.Dir),
		}
	}
	return err
}

// rules are what the configuration decides about messages and tasks.
func rules(c *config.Config) (handlers.Rules, supervisor.Protocol) {
	p := c.Protocol
	m := c.Scheduler
	return handlers.Rules{
			RequestTimeout: p.RequestTimeout, OnDependencyFailure: p.OnDependencyFailure, LenientResults: !p.StrictResults,
			MatchOnCreate: m.OnCreate, IgnoreArrivals: !m.OnOnline, OnlineOnly: !m.AssignOffline,
			CountAssigned: m.CountAssigned, MaxAttempts: m.MaxAttempts, DelegationRetries: m.DelegationRetries, Heartbeat: c.Bus.Heartbeat, Stale: c.Bus.Stale, Topics: c.Bus.Topics,
		},
		supervisor.Protocol{Depth: p.MaxDepth, Rate: p.Rate, Burst: p.Burst}
}

// sessions are those of a configuration as they are decided about. The author of a
// time that is shorter than can be told apart did not mean none.
func sessions(c *config.Config) []wire.SessionSpec {
	milliseconds := func(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }
	var all []wire.SessionSpec
	for i := range c.Sessions {
		s := &c.Sessions[i]
		spec := wire.SessionSpec{
			ID: s.Name, Validation: s.Validation, MaxIterations: int64(s.MaxIterations), OnMax: s.OnMax, RequireReview: s.RequireReview,
			TaskTimeout: milliseconds(s.TaskTimeout), ProgressAfter: milliseconds(s.ProgressAfter), ProgressEvery: milliseconds(s.ProgressEvery),
		}
		for _, m := range s.Members {
			spec.Members = append(spec.Members, wire.SessionMember{AgentID: m.Name, AgentType: m.Type})
		}
		all = append(all, spec)
	}
	return all
}

// offers are the capabilities of an agent in one flat list.
func offers(c *config.Capabilities) []string {
	var flat []string
	for _, names := range [][]string{c.Names, c.Languages, c.Tools, c.Tags} {
		for _, name := range names {
			if !slices.Contains(flat, name) {
				flat = append(flat, name)
			}
		}
	}
	return flat
}

// abilities are the capabilities of an agent as a document.
func abilities(c *config.Capabilities) wire.Raw {
	all := wire.Capabilities{
		Languages: c.Languages, Tools: c.Tools, Environments: c.Environments, Tags: c.Tags, Capacity: c.MaxConcurrentTasks,
	}
	for _, r := range c.Repos {
		all.Repos = append(all.Repos, wire.Repo{Name: r.Name, Path: r.Path, Languages: r.Languages, Tools: r.Tools})
	}
	return all.Spell()
}

// decided are the operations that are decided by handlers, as the API takes
// them.
func (t *instance) decided() map[string]api.Operation {
	found := make(map[string]api.Operation)
	for _, o := range handlers.Operations() {
		found[o.Name] = func(ctx context.Context, request []byte) (any, error) {
			from, err := actorOf(ctx)
			if err != nil {
				return nil, err
			}
			return t.super.Ask(ctx, from, o.Name, request)
		}
	}
	found["issue-token"] = t.signed(found["issue-token"])
	for _, name := range granting {
		found[name] = guarded(found[name])
	}
	return found
}

// actorOf is who asks at the API.
func actorOf(ctx context.Context) (handlers.Actor, error) {
	c := api.CallerOf(ctx)
	if c.Kind == api.Unknown {
		return handlers.Actor{}, &wire.Error{Code: wire.CodeUnauthenticated, Message: "the caller is unknown: a credential is missing"}
	}
	return speaker(c), nil
}

// keyHolder is the agent that a key speaks for, in any of its runs.
func (t *instance) keyHolder(key string) (name, run string, ok bool) {
	name, err := t.super.AgentOf(key)
	return name, "", err == nil
}

// writes reports whether an operation of the API is more than looking.
func writes(operation string) bool {
	known := slices.ContainsFunc(handlers.Operations(), func(o handlers.Operation) bool { return o.Name == operation })
	return operation != "status" && (!known || handlers.Writes(operation))
}
