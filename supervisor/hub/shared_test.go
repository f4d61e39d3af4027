package hub

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/api"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/leadership"
	"orchestrator/wire"
)

// A mute is an engine that never answers.
type mute struct{ engine }

func (mute) End(context.Context) (int64, error) { return 0, errors.New("no answer") }
func (mute) Missing() []string                  { return []string{"b:1", "c:1"} }

// A hub that loses the others right after its start, before it has heard from them, refuses requests like any other.
func TestHubThatNeverHearsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		roster, err := leadership.NewRoster(mute{})
		require.NoError(t, err)
		s := &sharedStore{Log: &eventlog.Shared{SQLite: new(eventlog.SQLite)}, Engine: mute{}, peers: []string{"a:1", "b:1", "c:1"}, roster: roster}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		said := make(chan *wire.Error)
		go s.attend(ctx, func(why *wire.Error) { said <- why })
		require.Nil(t, <-said)
		began := time.Now()
		why := <-said
		for why == nil && time.Since(began) < 2*tooSilent {
			why = <-said
		}
		require.NotNil(t, why)
		require.Equal(t, api.CodeNoQuorum, why.Code)
		require.Contains(t, why.Message, "b:1, c:1")
	})
}
