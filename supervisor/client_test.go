package supervisor

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestConversationOfTheRunBefore checks that a run gets the conversation that the run before has
// reported, and that a coding agent gets only one of its own program and folder.
func TestConversationOfTheRunBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents, parts, all := talkers(t, Agent{Name: "a"})
		a := all[0]
		p := perform(t, Options{Record: newLedger()}, agents, parts)
		synctest.Wait()
		given := func() (found []string) {
			for _, pair := range a.run.spec.Env {
				if strings.HasPrefix(pair, "ORC_CONVERSATION=") {
					found = append(found, pair)
				}
			}
			return found
		}
		require.Empty(t, given())
		require.Nil(t, p.view("a").Activity)
		a.says(`{"type":"event:session","id":"1","timestamp":"2026-11-21T14:00:00Z","payload":{"id":"c-1","kind":"claude","dir":"/repo"}}`)
		require.Equal(t, "c-1", p.view("a").Activity.Conversation)
		for _, want := range []struct{ protocol, dir, id string }{
			{"claude", "/repo", "c-1"}, {"codex", "/repo", ""}, {"claude", "/other", ""},
		} {
			spec := &Agent{Name: "a", Dir: want.dir, Client: &Client{Protocol: want.protocol}}
			require.Equal(t, want.id, p.life.conversation(spec), want)
		}
		restart := p.ask(p.RestartAgents, "a")
		<-time.After(time.Minute)
		require.Len(t, restart.outcomes(), 1)
		require.Equal(t, []string{"ORC_CONVERSATION=c-1"}, given())
		require.NoError(t, p.stop())
	})
}
