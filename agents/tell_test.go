package agents_test

import (
	"errors"
	"math"
	"testing"

	"orchestrator/wire"

	"github.com/stretchr/testify/require"
)

// Rows: B-18.
func TestEventsOnTheLine(t *testing.T) {
	for name, event := range map[string]struct {
		tell func(t *talk) error
		want string
	}{
		"progress": {
			tell: func(t *talk) error { return t.agent.Progress("task-1", 0.75, "nearly <there>") },
			want: `{"taskId":"task-1","progress":0.75,"message":"nearly <there>"}`,
		},
		"log": {
			tell: func(t *talk) error { return t.agent.Log("warn", "", wire.Raw(delicate)) },
			want: `{"level":"warn","message":"","context":` + delicate + `}`,
		},
		"error": {
			tell: func(t *talk) error { return t.agent.Trouble("task-1", errors.New("no \xff luck"), false) },
			want: `{"taskId":"task-1","error":"no ` + "\ufffd" + ` luck","recoverable":false}`,
		},
		"question": {
			tell: func(t *talk) error { return t.agent.Wonder("why?", nil) },
			want: `{"question":"why?"}`,
		},
		"of our own": {
			tell: func(t *talk) error { return t.agent.Tell("of our own", nil) },
			want: `{}`,
		},
	} {
		converse(t, func(t *talk) {
			told := make(chan error, 1)
			go func() { told <- event.tell(t) }()
			require.Equal(t, event.want, string(t.report(name).Payload))
			require.NoError(t, <-told)
		})
	}
}

// TestWrongEventsAreSaidHere checks that the SDK refuses invalid events, because the
// orchestrator does not answer them.
func TestWrongEventsAreSaidHere(t *testing.T) {
	converse(t, func(t *talk) {
		require.EqualError(t, t.agent.Progress("task-1", 75, ""), "event progress: progress must be from 0 to 1")
		require.EqualError(t, t.agent.Progress("", 0.5, ""), "event progress: taskId must not be empty")
		require.Error(t, t.agent.Progress("task-1", math.NaN(), ""))
		require.EqualError(t, t.agent.Log("info", "x", []int{1}), "event log: context must be an object")
		require.Error(t, t.agent.Log("info", "x", func() {}))
		require.Error(t, t.agent.Wonder("", nil))
		require.Error(t, t.agent.Tell("anything", "text"))
	})
}

func TestWhoeverIsNotAnsweredMayStillTell(t *testing.T) {
	converse(t, func(t *talk) {
		t.peer.End()
		require.NoError(t, t.agent.Wait())
		told := make(chan error, 1)
		go func() { told <- t.agent.Log("info", "goodbye", nil) }()
		t.report("log")
		require.NoError(t, <-told)
	})
}
