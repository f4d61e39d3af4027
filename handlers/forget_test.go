package handlers

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/access"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// TestClosedSessionsAreForgotten checks that a State keeps only the sessions that closed last. A
// session with a forgotten name is a new one.
func TestClosedSessionsAreForgotten(t *testing.T) {
	c := newCrowded(t, Rules{KeepClosed: 2})
	members := []wire.SessionMember{{AgentID: "a", AgentType: session.AgentArchitect}, {AgentID: "b", AgentType: session.AgentDeveloper}}
	sync := func(ids ...string) {
		set := &wire.AgentSet{Agents: []wire.Member{{ID: "a", Role: wire.RolePlanner}, {ID: "b", Role: wire.RoleWorker}}}
		for _, id := range ids {
			set.Sessions = append(set.Sessions, wire.SessionSpec{ID: id, Members: members})
		}
		c.do(Actor{}, set)
		requireSound(t, c.state)
	}
	known := func() (ids []string) {
		for _, s := range c.state.sessions.order {
			ids = append(ids, s.spec.ID)
		}
		return ids
	}
	sync("s0", "s1", "s2")
	sync("s0", "s2")
	sync("s2")
	require.Equal(t, []string{"s0", "s1", "s2"}, known())
	sync()
	require.Equal(t, []string{"s0", "s2"}, known(), "s1 closed first")
	c.state = restored(t, c.state.rules, spelled(t, c.state))
	require.Equal(t, []string{"s0", "s2"}, known())
	sync("s1")
	require.Equal(t, []string{"s0", "s2", "s1"}, known())
	require.Len(t, c.state.sessions.seats["a"], 3)
	for i := range 50 {
		sync(fmt.Sprint("t", i))
	}
	require.Equal(t, []string{"t47", "t48", "t49"}, known())
}

// TestServersWithoutKeysAreForgotten checks that a State keeps few servers with revoked keys,
// and every server that has a key.
func TestServersWithoutKeysAreForgotten(t *testing.T) {
	c := newCrowded(t, Rules{KeepClosed: 2})
	register := func(name string) (key string) {
		token := c.ask("issue-registration", &wire.IssueRegistration{}).Letters[0].Payload.(*wire.IssuedRegistration).Token
		c.ask("register-agent", &wire.Register{Token: token, Name: name})
		for k := range c.state.access.All() {
			if k.Kind == access.Key && k.For == name {
				return k.ID
			}
		}
		return ""
	}
	register("stays")
	early := register("early")
	for i := range 9 {
		c.ask("revoke-key", &wire.Revoke{ID: register(fmt.Sprint("m", i))})
		requireSound(t, c.state)
	}
	c.ask("revoke-key", &wire.Revoke{ID: early}) // it came first, and is the last to lose its key
	c.state = restored(t, c.state.rules, spelled(t, c.state))
	c.ask("revoke-key", &wire.Revoke{ID: register("m9")})
	var names []string
	for _, a := range c.state.agents.order {
		names = append(names, a.ID)
	}
	require.Equal(t, []string{"a", "stays", "early", "m9"}, names)
	require.Len(t, slices.Collect(c.state.access.All()), 1, "credentials that are spent or revoked")
	register("m0")
	requireSound(t, c.state)
}

// TestAbortedSessionsAreKept checks that an aborted session is kept, because it reopens at the
// next start.
func TestAbortedSessionsAreKept(t *testing.T) {
	x := newSessions()
	for i, aborted := range []bool{true, false, false} {
		x.put(&sessionState{spec: wire.SessionSpec{ID: fmt.Sprint("s", i)}, file: true, aborted: aborted, closedAt: int64(i + 1)})
	}
	x.trim(1)
	require.NotNil(t, x.byID["s0"])
	require.Nil(t, x.byID["s1"])
	require.NotNil(t, x.byID["s2"])
}
