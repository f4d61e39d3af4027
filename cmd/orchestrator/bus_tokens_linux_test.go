package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// holds reports whether the token is valid.
func (c *clerk) holds() bool {
	c.hub.t.Helper()
	r := c.ask(c.poll(""), "")
	if r.status != http.StatusOK {
		require.Equal(c.hub.t, http.StatusUnauthorized, r.status, r.text)
	}
	return r.status == http.StatusOK
}

// A new token replaces older ones, at once or after a while. A token may expire and can be
// revoked. All this still holds after a kill.
//
// Rows: E-05, E-76, E-77.
func TestBusTokens(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, "")
	first := b.clerk("HO:one")
	require.True(t, first.holds())
	second := b.clerk("HO:one")
	require.False(t, first.holds(), "at once")
	require.True(t, second.holds())
	third := b.holding("HO:one", b.boss.token("HO:one", `"overlap":3600000`))
	require.True(t, second.holds(), "for an hour")
	require.True(t, third.holds())
	fourth := b.holding("HO:one", b.boss.token("HO:one", `"overlap":1000`))
	waitForThat(t, "end of the old ones", func() bool { return !second.holds() && !third.holds() })
	require.True(t, fourth.holds())
	brief := b.holding("HO:brief", b.boss.token("HO:brief", `"ttl":1000`))
	waitForThat(t, "end of the brief one", func() bool { return !brief.holds() })
	for _, wrong := range []string{`{}`, `{"actor":7}`, `{"actor":"HO:x","ttl":0}`, `{"actor":"HO:x","overlap":-1}`, `{"actor":"HO:x","sub":"ann"}`, `{"sub":"ann"}`} {
		b.boss.spurned(http.StatusBadRequest, "invalid", "POST /api/agents/tokens", wrong)
	}

	global := b.clerk("GO")
	require.True(t, b.holding("HO:two", global.token("HO:two")).holds(), "GO makes tokens wherever it is")
	require.True(t, b.holding("HO:three", (&clerk{visitor: b.person("--role", wire.PersonAdmin), actor: "IO:ann"}).token("HO:three")).holds())
	for _, role := range []string{wire.PersonOperator, wire.PersonViewer} {
		b.person("--role", role).spurned(http.StatusForbidden, "denied", "POST /api/agents/tokens", `{"actor":"HO:four"}`)
	}
	taken := b.clerk("HO:taken")
	b.ask("token", "revoke", b.tokenOf("HO:taken"), "--yes")
	require.False(t, taken.holds())

	b.kill()
	b.open()
	for _, old := range []*clerk{first, second, third, brief, taken} {
		require.False(t, old.holds(), old.actor)
	}
	require.True(t, fourth.holds())
	require.True(t, global.holds())
	b.stop()
}

// tokenOf returns the id of the only token of an actor.
func (b *bureau) tokenOf(actor string) string {
	b.t.Helper()
	var list wire.CredentialList
	b.operated(&list, "list-tokens", `{}`)
	var found []string
	for _, c := range list.Credentials {
		if c.For == actor {
			require.Equal(b.t, "actor", c.Kind)
			found = append(found, c.ID)
		}
	}
	require.Len(b.t, found, 1)
	return found[0]
}

// An agent finds its actor and its credentials in its environment, for the network and for its
// own socket. Both end with the run.
//
// Rows: E-01, E-05, E-19, E-72, E-73, E-78, E-79.
func TestBusFromInsideOfAnAgent(t *testing.T) {
	t.Parallel()
	names := []string{"named", "auto", "kind"}
	b, actors := newBureau(t, writing("named", "PO:named")+writing("auto", "auto")+writing("kind", "S:db"), names...)
	ids := []string{"PO:named", "W:" + actors[1].run, "S:db:" + actors[2].run}
	var before []*clerk
	for i, a := range actors {
		env := environment(t, a)
		require.Equal(t, ids[i], env["ORC_ACTOR"])
		require.Equal(t, b.url, env["ORC_URL"])
		byToken := b.holding(ids[i], env["ORC_TOKEN"])
		within := *b.hub
		within.url = "http://orchestrator"
		bySocket := &clerk{visitor: &visitor{hub: &within, client: overSocket(env["ORC_SOCKET"])}, actor: ids[i]}
		for _, way := range []*clerk{byToken, bySocket} {
			sent := way.send(ids[i], direct, fmt.Sprintf(`{"to":%q}`, "itself"))
			found := way.polls("&cursor=0")
			require.Equal(t, sent, found[len(found)-1])
			require.Equal(t, sent.Seq, way.acks(sent.Seq))
			require.Empty(t, way.polls(""))
			require.Equal(t, http.StatusOK, way.ask("POST /api/bus/heartbeat", `{}`).status)
			way.spurned(http.StatusForbidden, "denied", "POST /api/bus/send", mailLine("GO", ids[i], direct, `{}`))
			way.spurned(http.StatusForbidden, "denied", "GET /api/bus/poll?actor="+ids[(i+1)%3], "")
		}
		other := *bySocket.visitor
		other.header, other.credential = "X-API-Key", environment(t, actors[(i+1)%3])["ORC_TOKEN"]
		other.spurned(http.StatusForbidden, "denied", "GET /api/bus/poll", "")
		require.Equal(t, "active", b.known(ids[i]).Status)
		before = append(before, byToken)
	}
	for i, a := range actors {
		a.die()
		next := b.enters(names[i])
		require.False(t, before[i].holds(), "a token ends with its run")
		env := environment(t, next)
		require.NotEqual(t, env["ORC_TOKEN"], strings.TrimPrefix(before[i].credential, "Bearer "))
		require.Equal(t, i == 0, env["ORC_ACTOR"] == ids[i])
		require.True(t, b.holding(env["ORC_ACTOR"], env["ORC_TOKEN"]).holds())
	}
	b.stop()
}

// Secrets appear neither in the record, nor in logs, nor on command lines.
//
// Rows: E-78.
func TestBusSecretsStandNowhere(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	far := b.clerk("HO:far")
	old := strings.TrimPrefix(far.credential, "Bearer ")
	far = b.holding("HO:far", b.boss.token("HO:far", `"overlap":60000`))
	env := environment(t, actors[0])
	own := b.holding("PO:one", env["ORC_TOKEN"])
	for _, who := range []*clerk{far, own} {
		who.send("GO", direct, `{}`)
		who.spurned(http.StatusForbidden, "denied", "GET /api/bus/poll?actor=GO", "")
		who.spurned(http.StatusBadRequest, "invalid", "POST /api/bus/ack", `{"seq":1000000}`)
	}
	require.Equal(t, http.StatusUnauthorized, b.visitor("Authorization", "Bearer "+old+"x").ask("GET /api/bus/poll", "").status)
	secrets := []string{old, strings.TrimPrefix(far.credential, "Bearer "), env["ORC_TOKEN"]}
	for _, pid := range append(b.processes(), b.process.Process.Pid) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		require.NoError(t, err)
		require.NotContains(t, string(line), "orc_")
	}
	own.holds()
	status := b.ask("status", "--json") + b.ask("events", "--json") + b.ask("token", "ls", "--json")
	b.stop()
	said := []byte(status + b.said.all() + b.cried.all())
	files := 0
	require.NoError(t, filepath.WalkDir(b.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		said = append(said, text...)
		return err
	}))
	require.Greater(t, files, 3, "the record and the logs are among them")
	require.True(t, bytes.Contains(said, []byte("actor.token_issued")))
	for _, secret := range secrets {
		require.Greater(t, len(secret), 20)
		require.False(t, bytes.Contains(said, []byte(secret)))
		require.False(t, bytes.Contains(said, []byte(strings.TrimPrefix(secret, "orc_"))))
	}
}
