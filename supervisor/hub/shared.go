package hub

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/supervisor/api"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/leadership"
	"orchestrator/wire"
)

// An engine keeps the record of several hubs, and their artifacts.
type engine interface {
	eventlog.Engine
	eventlog.Objects
}

// A sharedStore is the record of a team with several hubs.
type sharedStore struct {
	Log      *eventlog.Shared
	Engine   engine
	peers    []string // the hubs; empty: there are any number, and a server keeps the record
	own      leadership.Hub
	roster   *leadership.Roster
	epoch    int64
	atWork   atomic.Bool // this hub has taken its turn
	looked   time.Time
	answered atomic.Pointer[time.Time] // when the log last answered a question
	deposed  atomic.Bool               // another hub is at work
}

// lookAgain is how often a hub asks whether it is still the one at work, and whether the log answers.
// A log that does not answer for tooSilent cannot be written.
const (
	lookAgain = time.Second
	tooSilent = 3 * time.Second
)

// attend asks every lookAgain whether the log answers, and calls stalled with the reason why recording fails, or nil,
// until ctx ends.
func (s *sharedStore) attend(ctx context.Context, stalled func(*wire.Error)) {
	began := time.Now()
	s.answered.Store(&began) // it has recorded its start
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		asked := time.Now()
		if _, err := s.Engine.End(ctx); err == nil {
			s.answered.Store(&asked)
		}
		stalled(s.writable())
		s.roster.Tell(s.report())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// writable returns why recording fails, if the log does not answer or has another hub.
func (s *sharedStore) writable() *wire.Error {
	if s.deposed.Load() {
		return &wire.Error{Code: api.CodeNoQuorum, Message: "another hub is at work, and this one stops its agents", Hint: "Try again in a few seconds, or ask another hub"}
	}
	if last := s.answered.Load(); last == nil || time.Since(*last) < tooSilent {
		return nil
	}
	missing := s.Engine.Missing()
	refusal := &wire.Error{
		Code: api.CodeNoQuorum, Message: s.lost(missing), Hint: "Start them, or ask another hub", Details: map[string]any{"missing": missing},
	}
	switch {
	case len(s.peers) > 0 && len(missing) == 0:
		refusal.Message, refusal.Hint = "nothing can be recorded: the hubs elect a leader, or do not answer each other in time", "Try again"
	case len(s.peers) == 0:
		refusal.Message, refusal.Hint = "nothing can be recorded: the server of the record does not answer: "+strings.Join(missing, ", "), "Start it, or ask another hub"
	}
	return refusal
}

// sound returns ErrMoved if another hub is at work. It returns nil if the log does not answer, which is no proof.
func (s *sharedStore) sound() error {
	if now := time.Now(); now.Sub(s.looked) < lookAgain {
		return nil
	}
	err := s.Log.Current(context.Background())
	s.looked = time.Now()
	if errors.Is(err, eventlog.ErrUnanswered) {
		return nil
	}
	return err
}

// giveUp closes the engine if this hub is to end and cannot reach most hubs for a while. Otherwise it
// would wait for them in order to record its end.
func (s *sharedStore) giveUp(ending, ended context.Context, log hclog.Logger) {
	select {
	case <-ending.Done():
	case <-ended.Done():
		return
	}
	for silent := 0; silent < 5; {
		select {
		case <-time.After(time.Second):
		case <-ended.Done():
			return
		}
		if missing := len(s.Engine.Missing()); 2*missing > len(s.peers) {
			silent++
		} else {
			silent = 0
		}
	}
	away := "the other hubs cannot be reached"
	if len(s.peers) == 0 {
		away = "the server of the record does not answer"
	}
	log.Warn(away+", so the end of this hub is not recorded", "missing", strings.Join(s.Engine.Missing(), ", "))
	_ = s.Engine.Close()
}
