package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"orchestrator/handlers"
	"orchestrator/supervisor"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/eventlog"
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
		message: "Cannot use the record " + store.Path + ": " + err.Error(),
		because: []string{"Nothing was started."},
		details: map[string]any{"path": store.Path},
	}
	if chain, ok := errors.AsType[*eventlog.ChainError](err); ok {
		f.details["seq"] = chain.Seq
		f.because = []string{
			fmt.Sprintf("Everything before fact %d is intact. Nothing was started, and nothing is written to it.", chain.Seq),
		}
		f.hint = "Read it: sqlite3 -readonly " + store.Path + " 'select * from events'     Begin anew: move it away"
	}
	return f
}

// rules are what the configuration decides about messages and tasks.
func rules(c *config.Config) (handlers.Rules, supervisor.Protocol) {
	p := c.Protocol
	return handlers.Rules{RequestTimeout: p.RequestTimeout, OnDependencyFailure: p.OnDependencyFailure},
		supervisor.Protocol{Depth: p.MaxDepth, Rate: p.Rate, Burst: p.Burst}
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

// decided are the operations that are decided by handlers, as the door takes
// them.
func (t *team) decided() map[string]api.Operation {
	found := make(map[string]api.Operation)
	for _, o := range handlers.Operations() {
		found[o.Name] = func(ctx context.Context, request []byte) (any, error) {
			from, err := t.caller(ctx)
			if err != nil {
				return nil, err
			}
			return t.super.Ask(ctx, from, o.Name, request)
		}
	}
	return found
}

// caller is who asks: an operator, since only one can reach the socket, or the
// agent whose key came with the request.
func (t *team) caller(ctx context.Context) (handlers.Actor, error) {
	key := api.Key(ctx)
	if key == "" {
		return handlers.Actor{Kind: handlers.Operator}, nil
	}
	name, err := t.super.AgentOf(key)
	return handlers.Actor{Kind: handlers.Agent, Name: name}, err
}
