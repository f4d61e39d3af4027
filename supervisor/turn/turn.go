// Package turn decides which of several hubs is at work.
//
// The shared log is the lock. A hub takes its turn by appending a hub.epoch fact to the log that it has
// read to the end. After that, an append of the hub before it fails, because the log does not end where
// that hub thinks. There is no lease and no clock.
//
// When to try is only a hint, which may be wrong: a hub that stands by asks five times a second which
// hub is at work. It tries when none is, or when the one that should be has said nothing for a while. A
// wrong hint costs one append that fails, or one change of hub, and never a fact. The order is: read
// to the end, ask, append there. Asking first would depose a hub that has just taken over.
//
// A hub takes no turn while a record is moved into the log, or after it was moved out: see package eventlog.
// It leaves an empty log alone for a while, so that a move that is about to begin comes first.
package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/supervisor/eventlog"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// A Hub is one of the programs that share a log.
type Hub struct {
	Name    string `json:"hub"`
	URL     string `json:"url,omitzero"` // where its API is; "" if only on its own machine
	Version string `json:"version"`
	Epoch   int64  `json:"epoch,omitzero"` // the number of the fact with which it took its turn
}

// Options describe the hub in this process.
type Options struct {
	Log    *eventlog.Shared
	Engine eventlog.Engine
	Hub    Hub
	Heard  func(Hub) // called when another hub says that it is at work; may be nil

	// Followed is called when the log was followed to its end; may be nil.
	Followed func(ctx context.Context) error
	Logger   hclog.Logger
}

// Intervals. A hub that hangs, or is cut off, is given up after silence.
const (
	askEvery = 200 * time.Millisecond
	silence  = 3 * time.Second
	begins   = time.Second      // how long a hub that has taken its turn may take to say so
	empty    = 3 * time.Second  // how long an empty log is left to a move
	tellMove = 10 * time.Second // how often a hub logs that it waits for a move
)

// Wait stands by until this hub has taken its turn, and returns the hub with its epoch. If ctx ends
// before, the engine is closed, because an append that waits for other hubs would not end.
func Wait(ctx context.Context, o Options) (Hub, error) {
	stop := context.AfterFunc(ctx, func() { _ = o.Engine.Close() })
	defer stop()
	w := waiting{Options: o}
	for {
		mine, err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return Hub{}, ctx.Err()
		case errors.Is(err, eventlog.ErrUnanswered):
			o.Logger.Debug("the shared log does not answer", "error", err)
		case err != nil:
			return Hub{}, err
		case mine != nil:
			return *mine, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(askEvery):
		}
	}
}

// A waiting is a hub that stands by.
type waiting struct {
	Options
	heard  Hub       // the hub that was at work
	silent time.Time // since when it has said nothing; zero: it has
	taken  time.Time // when it was read that a hub has taken its turn
	empty  time.Time // since when the log is known to be empty
	told   time.Time // when it was logged that the record is moved
}

// look reads what others have appended, and takes the turn if it is free.
func (w *waiting) look(ctx context.Context) (*Hub, error) {
	if err := w.Log.Follow(ctx, w.see); err != nil {
		return nil, err
	}
	if err := w.Log.Elsewhere(); err != nil {
		return nil, w.moves(err)
	}
	if w.Followed != nil {
		if err := w.Followed(ctx); err != nil {
			return nil, err
		}
	}
	end := w.Log.Last()
	if end == 0 && w.empty.IsZero() {
		w.empty = time.Now()
	}
	text, err := w.Engine.Ask(ctx)
	switch {
	case err == nil:
		w.silent = time.Time{}
		w.hear(text)
		return nil, nil
	case errors.Is(err, eventlog.ErrSilent):
		if w.silent.IsZero() {
			w.silent = time.Now()
		}
		if time.Since(w.silent) < silence {
			return nil, nil
		}
	case !errors.Is(err, eventlog.ErrVacant):
		return nil, err
	}
	if end == 0 && time.Since(w.empty) < empty || time.Since(w.taken) < begins {
		return nil, nil
	}
	return w.take(ctx, end)
}

// see notes that another hub has taken its turn. Hubs that wait for the same thing, such as the end of a move,
// try at the same time.
func (w *waiting) see(batch []wire.Record) error {
	if slices.ContainsFunc(batch, func(r wire.Record) bool { return r.Kind == events.HubEpoch }) {
		w.taken = time.Now()
	}
	return nil
}

// moves logs that the record is moved. It returns the error if this hub has the record.
func (w *waiting) moves(away error) error {
	if e, ok := errors.AsType[*eventlog.ElsewhereError](away); ok && e.Owner == w.Hub.Name {
		return away
	}
	if time.Since(w.told) >= tellMove {
		w.told = time.Now()
		w.Logger.Info("waiting until the record is here", "reason", away)
	}
	return nil
}

// hear notes which hub is at work.
func (w *waiting) hear(text []byte) {
	var who Hub
	if json.Unmarshal(text, &who) == nil && who != w.heard {
		w.heard = who
		if w.Heard != nil {
			w.Heard(who)
		}
	}
}

// take takes the turn, unless the log does not end at end.
func (w *waiting) take(ctx context.Context, end int64) (*Hub, error) {
	mine := w.Hub
	mine.Epoch = end + 1
	text, err := json.Marshal(struct {
		Hub
		Text string `json:"text"`
	}{mine, fmt.Sprintf("%s is the hub", mine.Name)})
	if err != nil {
		return nil, err
	}
	err = w.Log.Append(ctx, end, []wire.Record{{At: time.Now(), From: "GO", Kind: events.HubEpoch, Payload: text}})
	if errors.Is(err, eventlog.ErrMoved) {
		return nil, nil // another hub has been faster
	}
	if err != nil {
		return nil, err
	}
	return &mine, nil
}

// Serve says that a hub is at work until the returned function is called.
func Serve(e eventlog.Engine, mine Hub) (end func(), err error) {
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	return e.Serve(text)
}
