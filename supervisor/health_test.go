package supervisor

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/settings"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// TestDeafAgentIsMarkedAndRecovers is the timing of torture row 8. An agent that does not read
// is marked within its write timeout and only ever gets whole lines. Other agents are not
// affected.
//
// Rows: T-04.
func TestDeafAgentIsMarkedAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		heard := make(chan string, 4096)
		reader := func(r *player) int {
			for line := r.read(); line != ""; line = r.read() {
				heard <- line
			}
			return 0
		}
		p := perform(t, Options{}, []settings.Agent{{Name: "deaf"}, {Name: "fine"}}, map[string]part{
			"deaf": func(r *player) int { <-wake; return reader(r) },
			"fine": func(r *player) int {
				for r.read() != "" {
				}
				return 0
			},
		})
		synctest.Wait()
		var want []string
		for i := range 1000 {
			line := fmt.Sprintf("%04d %s", i, strings.Repeat("x", 1000))
			want = append(want, line)
			require.NoError(t, p.Tell(t.Context(), "deaf", []byte(line+"\n")))
			require.NoError(t, p.Tell(t.Context(), "fine", []byte(line+"\n")))
		}
		long := strings.Repeat("y", 200_000)
		require.NoError(t, p.Tell(t.Context(), "deaf", []byte(long+"\n")))
		synctest.Wait()
		require.Zero(t, p.view("fine").Mailbox.Messages, "the agent that reads has read")
		<-time.After(10 * time.Second)
		require.Equal(t, control.StateStalled, p.view("deaf").State)
		require.Equal(t, control.StateRunning, p.view("fine").State)
		close(wake)
		for _, line := range append(want, long) {
			require.Equal(t, line, <-heard)
		}
		require.Equal(t, control.StateRunning, p.view("deaf").State)
		require.NoError(t, p.stop())
	})
}

func TestMailboxIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a", Mailbox: stdin.Limits{Messages: 3, Bytes: 100}}}, map[string]part{"a": deafTo})
		synctest.Wait()
		tell := func(n int) error { return p.Tell(t.Context(), "a", []byte(strings.Repeat("x", n)+"\n")) }
		require.NoError(t, tell(10))
		require.NoError(t, tell(60))
		require.ErrorIs(t, tell(60), stdin.ErrFull, "too many bytes")
		require.NoError(t, tell(1))
		require.ErrorIs(t, tell(1), stdin.ErrFull, "too many messages")
		require.EqualValues(t, 2, p.view("a").Mailbox.Refused)
		var unknown *wire.Error
		require.ErrorAs(t, p.Tell(t.Context(), "b", nil), &unknown)
		require.Equal(t, wire.CodeNotFound, unknown.Code)
		require.NoError(t, p.stop())
	})
}

func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a", Health: settings.Health{Silence: 10 * time.Second}}}, map[string]part{"a": func(r *player) int {
			<-time.After(8 * time.Second)
			r.say("one")
			<-time.After(15 * time.Second)
			r.say("two")
			<-r.signals
			return 0
		}})
		<-time.After(17 * time.Second)
		require.Equal(t, control.StateRunning, p.view("a").State)
		<-time.After(2 * time.Second)
		require.Equal(t, control.StateStalled, p.view("a").State)
		<-time.After(5 * time.Second)
		require.Equal(t, control.StateRunning, p.view("a").State)
		<-time.After(10 * time.Second)
		require.Equal(t, control.StateStalled, p.view("a").State)
		require.NoError(t, p.stop())
	})
}

func TestStalledAgentIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := perform(t, Options{}, []settings.Agent{{Name: "a", Health: settings.Health{Silence: time.Second, Restart: true}}}, map[string]part{"a": untilSignal})
		<-time.After(10 * time.Second)
		require.Equal(t, []time.Duration{2500 * time.Millisecond, 3 * time.Second, 4 * time.Second}, p.gaps("a"), "silence, ladder, delay")
		<-time.After(5 * time.Minute)
		require.Equal(t, control.StateFailed, p.view("a").State, "a stall for ever ends in giving up")
		require.NoError(t, p.stop())
	})
}
