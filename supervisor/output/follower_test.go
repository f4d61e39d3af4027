package output

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// TestFollowerThatMovesAtTheLastMoment checks that a blocking follower is given up only if it has
// taken nothing for as long as an agent waits.
func TestFollowerThatMovesAtTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Follower{moved: make(chan struct{})}
		earlier := make(chan struct{}) // replaced when the follower took a page, as time ran out
		f.await(earlier)
		require.False(t, f.stuck)
		f.await(f.moved)
		require.True(t, f.stuck)
	})
}

// TestSkippedEventsAreNotSpelled checks that events that a follower skips are not even encoded,
// and that it gets all others.
func TestSkippedEventsAreNotSpelled(t *testing.T) {
	f := NewFollower(false)
	f.Skip(func(kind string) bool { return kind == events.TaskProgress })
	for _, kind := range []string{events.TaskProgress, events.OrchestratorIdle} {
		var p page
		n := &Notice{Record: wire.Record{At: time.Now(), Kind: kind, Payload: []byte(`{"text":"x"}`)}}
		p.add(mark{at: n.Record.At, stream: control.StreamOwn, news: n}, nil)
		f.pushNow("a", &p)
	}
	f.Close()
	var heard []string
	var spare Backlog
	for f.Next(t.Context(), &spare, func(l Line) { heard = append(heard, l.Event.Kind) }) {
	}
	require.Equal(t, []string{events.OrchestratorIdle}, heard)
}
