// Package leadership decides which of several hubs is at work.
//
// The shared log decides. A hub takes its turn by appending a hub.epoch fact to the log that it has read to the end.
// After that, an append of the hub before it fails, because the log does not end where that hub expects. The package
// needs no lease and no correct clock.
//
// When to try is only a hint, which may be wrong: a hub that stands by asks five times a second which hub is at work.
// It tries when no hub is, or when that hub has not answered for a while. A wrong hint costs one append that fails, or
// one change of hub, and never a fact. The order is: read to the end, ask, append there. Asking first would replace a
// hub that has just taken over.
//
// A hub takes no turn while a record is moved into the log, or after it was moved out: see package eventlog.
// It leaves an empty log alone for a while, so that a move that is about to begin comes first.
package leadership

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
	Epoch   int64  `json:"epoch,omitzero"` // the number of the fact that began its turn
}

// Options describe the hub in this process.
type Options struct {
	Log    *eventlog.Shared
	Engine eventlog.Engine
	Hub    Hub
	Heard  func(Hub) // called when another hub than before reports to be at work; may be nil

	// Followed is called after each time that the log was read to its end; may be nil.
	Followed func(ctx context.Context) error
	Logger   hclog.Logger
}

// Intervals.
const (
	askEvery     = 200 * time.Millisecond
	maxSilence   = 3 * time.Second  // after that, a hub that hangs or is cut off is replaced
	maxStart     = time.Second      // how long a hub that has taken its turn may take to say that it is at work
	emptyFor     = 3 * time.Second  // how long no hub begins with an empty log, because a move may
	logMoveEvery = 10 * time.Second // how often a hub logs that it waits for a move
)

// Wait stands by until this hub has taken its turn, and returns the hub with its epoch. If ctx ends
// before, the engine is closed, because an append that waits for other hubs would not end.
func Wait(ctx context.Context, o Options) (Hub, error) {
	stop := context.AfterFunc(ctx, func() { _ = o.Engine.Close() })
	defer stop()
	c := candidate{Options: o}
	for {
		mine, err := c.try(ctx)
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

// A candidate is a hub that stands by.
type candidate struct {
	Options
	heard       Hub       // the hub at work that has answered last
	silentSince time.Time // since when the hub at work does not answer; zero: it does
	takenAt     time.Time // when this hub has read that another one has taken its turn
	emptySince  time.Time // since when the log is known to be empty
	loggedAt    time.Time // when this hub has logged that the record is moved
}

// try reads new facts of other hubs, and takes the turn if no other hub seems to have it. It returns nil if one has.
func (c *candidate) try(ctx context.Context) (*Hub, error) {
	if err := c.Log.Follow(ctx, c.noteEpochs); err != nil {
		return nil, err
	}
	if err := c.Log.Elsewhere(); err != nil {
		return nil, c.logMove(err)
	}
	if c.Followed != nil {
		if err := c.Followed(ctx); err != nil {
			return nil, err
		}
	}
	end := c.Log.Last()
	if end == 0 && c.emptySince.IsZero() {
		c.emptySince = time.Now()
	}
	text, err := c.Engine.Ask(ctx)
	switch {
	case err == nil:
		c.silentSince = time.Time{}
		c.noteHub(text)
		return nil, nil
	case errors.Is(err, eventlog.ErrSilent):
		if c.silentSince.IsZero() {
			c.silentSince = time.Now()
		}
		if time.Since(c.silentSince) < maxSilence {
			return nil, nil
		}
	case !errors.Is(err, eventlog.ErrVacant):
		return nil, err
	}
	if end == 0 && time.Since(c.emptySince) < emptyFor || time.Since(c.takenAt) < maxStart {
		return nil, nil
	}
	return c.take(ctx, end)
}

// noteEpochs notes that another hub has taken its turn. Hubs that wait for the same thing, such as the end of a
// move, try at the same time.
func (c *candidate) noteEpochs(batch []wire.Record) error {
	if slices.ContainsFunc(batch, func(r wire.Record) bool { return r.Kind == events.HubEpoch }) {
		c.takenAt, c.silentSince = time.Now(), time.Time{}
	}
	return nil
}

// logMove logs now and then that the record is moved. It returns the error if the record was moved to this hub,
// which must not wait then.
func (c *candidate) logMove(away error) error {
	if e, ok := errors.AsType[*eventlog.ElsewhereError](away); ok && e.Owner == c.Hub.Name {
		return away
	}
	if time.Since(c.loggedAt) >= logMoveEvery {
		c.loggedAt = time.Now()
		c.Logger.Info("waiting until the record is here", "reason", away)
	}
	return nil
}

// noteHub notes which hub is at work.
func (c *candidate) noteHub(text []byte) {
	var who Hub
	if json.Unmarshal(text, &who) == nil && who != c.heard {
		c.heard = who
		if c.Heard != nil {
			c.Heard(who)
		}
	}
}

// take takes the turn, unless the log does not end at end.
func (c *candidate) take(ctx context.Context, end int64) (*Hub, error) {
	mine := c.Hub
	mine.Epoch = end + 1
	text, err := json.Marshal(struct {
		Hub
		Text string `json:"text"`
	}{mine, fmt.Sprintf("%s is the hub", mine.Name)})
	if err != nil {
		return nil, err
	}
	err = c.Log.Append(ctx, end, []wire.Record{{At: time.Now(), From: "GO", Kind: events.HubEpoch, Payload: text}})
	if errors.Is(err, eventlog.ErrMoved) {
		return nil, nil // another hub has been faster
	}
	if err != nil {
		return nil, err
	}
	return &mine, nil
}

// Serve announces that a hub is at work until the returned function is called.
func Serve(e eventlog.Engine, mine Hub) (end func(), err error) {
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	return e.Serve(text)
}
