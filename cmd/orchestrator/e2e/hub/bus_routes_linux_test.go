package hub

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
)

// busRequests has a valid request for each route of the bus except the health route.
var busRequests = [][2]string{
	{"POST /api/bus/send", `{"from_actor":"HO:one","to_actor":"GO","topic":"message.direct","payload":{}}`},
	{"GET /api/bus/poll", ``}, {"POST /api/bus/ack", `{"seq":1}`}, {"POST /api/bus/heartbeat", ``},
	{"GET /api/sse/events", ``}, {"POST /api/agents/tokens", `{"actor":"HO:new"}`},
}

// Over TCP every request needs a credential, also from this machine. Only the version is public.
//
// Rows: E-05, E-79, E-80, E-83, K-06, K-18.
func TestBusIsClosed(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, "")
	before := len(storyOf(b.Hub))
	other := b.clerk("HO:one")
	for name, who := range map[string]*stage.Caller{
		"nobody": b.Anonymous(), "an unknown token": b.Caller("Authorization", "Bearer orc_nobodysToken"), "an unknown key": b.Caller("X-API-Key", "orc_nobodysToken"),
		"an empty one": b.Caller("Authorization", "Bearer "), "another scheme": b.Caller("Authorization", "Basic R086R08="),
		"somebody's name": b.Caller("Authorization", "Bearer HO:one"), "half a token": b.Caller("Authorization", strings.TrimSuffix(other.Credential, other.Credential[len(other.Credential)-1:])),
		"an empty key": b.Caller("X-API-Key", ""), "no signature": b.Caller("Authorization", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ."),
	} {
		for _, request := range busRequests {
			r := spurned(who, http.StatusUnauthorized, "unauthenticated", request[0], request[1])
			require.False(t, r.Error.Recoverable, "%s: %s", name, request[0])
		}
		r := who.Ask("GET /health", "")
		require.Equal(t, http.StatusOK, r.Status, name)
		require.Equal(t, `{"protocol_version":"1.0"}`, r.Text)
	}
	require.Len(t, storyOf(b.Hub), before+1, "nothing has happened but the token")
	require.Equal(t, `{"protocol_version":"1.0"}`, b.boss.Ask("GET /health", "").Text, "by the socket as well")
	b.Stop()
}

// Unknown paths, wrong methods, invalid JSON and bodies over the limit are refused.
//
// Rows: E-06, E-23, K-06.
func TestBusWhatIsNotThere(t *testing.T) {
	t.Parallel()
	const small = "http {\n  listen   = [\"127.0.0.1:0\"]\n  rate     = 1000000\n  max_body = \"4MiB\"\n}\n"
	b, actors := openBureau(t, small+writing("one", "PO:one"), "one")
	b.ReadDocument()
	one := b.clerk("HO:one")
	seq := one.send("HO:one", stage.Direct, `{}`).Seq
	whole := one.Ask(one.poll("&cursor=0"), "").Text
	for _, path := range []string{
		"/api/bus", "/api/bus/nope", "/api/bus/send/", fmt.Sprint("/api/bus/", seq), fmt.Sprint("/api/bus/messages/", seq), "/api/sse",
		"/api/sse/events/1", "/api/agents", "/api/agents/tokens/1", "/health/x", "/api/v1/bus/send",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			r, err := one.Try(method+" "+path, `{}`)
			require.NoError(t, err)
			require.Equal(t, http.StatusNotFound, r.Status, "%s %s: %s", method, path, r.Text)
		}
	}
	for _, request := range append(busRequests, [2]string{"GET /health", ""}) {
		own, path, _ := strings.Cut(request[0], " ")
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if method != own {
				r := one.Ask(method+" "+path, `{}`)
				require.Equal(t, http.StatusMethodNotAllowed, r.Status, "%s %s: %s", method, path, r.Text)
				require.Contains(t, r.Header.Get("Allow"), own)
			}
		}
	}
	for _, kind := range [][2]string{{"Content-Type", "text/plain"}, {"Content-Type", "application/json; charset=latin1"}, {"Content-Encoding", "gzip"}} {
		asked, err := http.NewRequest(http.MethodPost, b.Url+"/api/bus/send", strings.NewReader(busRequests[0][1]))
		require.NoError(t, err)
		asked.Header.Set("Authorization", one.Credential)
		asked.Header.Set(kind[0], kind[1])
		answer, err := one.Client.Do(asked)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusUnsupportedMediaType, answer.StatusCode, kind)
	}
	spurned(one.Caller, http.StatusRequestEntityTooLarge, "too_large", "POST /api/bus/send", strings.Repeat(" ", 4<<20)+busRequests[0][1])
	r := spurned(b.boss.Caller, http.StatusConflict, "conflict", "POST /api/agents/tokens", `{"actor":"PO:one"}`)
	require.Equal(t, "actor_taken", r.Error.Details["reason"])
	actors[0].Settle()
	require.Equal(t, whole, one.Ask(one.poll("&cursor=0"), "").Text, "nothing of what is kept has changed")
	b.Stop()
}

// An agent with a new actor in each run has no actor while it does not run.
//
// Rows: E-72, K-06.
func TestBusOfOneWhoDoesNotRun(t *testing.T) {
	t.Parallel()
	b, _ := newBureau(t, writing("idle", "W", "autostart = false"))
	idle := b.AgentCaller("idle")
	for _, request := range busRequests[:len(busRequests)-1] {
		r, err := idle.Try(request[0], strings.Replace(request[1], "HO:one", "W:idle", 1))
		require.NoError(t, err)
		require.Equal(t, http.StatusConflict, r.Status, "%s: %s", request[0], r.Text)
		require.Contains(t, r.Text, `"reason":"no_actor"`)
	}
	for _, request := range busRequests[:len(busRequests)-1] { // the document describes it
		spurned(idle, http.StatusConflict, "conflict", request[0], strings.Replace(request[1], "HO:one", "W:idle", 1))
	}
	b.Stop()
}

// A caller is only the actor of its token, key or pipe: it sends as that actor, reads its mail
// and acks it.
//
// Rows: E-19, E-20, E-21, E-31, E-32, E-52, E-68, E-76, K-18, T-35, T-41.
func TestBusOnlyAsOneself(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one")+writing("per", "W"), "one", "per")
	far, program, ann := b.clerk("HO:far"), b.AgentCaller("one"), b.Person()
	others := []string{"GO", "HO:other", "PO:other", "IO:shai", "W:" + actors[1].Run + "x", "S:db:1", "Bus", "Governor"}
	first := b.boss.send("HO:other", stage.Direct, `{}`).Seq
	before := b.boss.send("PO:one", stage.Direct, `{}`).Seq
	for id, who := range map[string]*stage.Caller{"HO:far": far.Caller, "PO:one": program, "IO:ann": ann} {
		for _, other := range others {
			status, code := http.StatusForbidden, "denied"
			if other == "Bus" || other == "Governor" { // no caller can be one of these
				status, code = http.StatusBadRequest, "invalid"
			}
			spurned(who, http.StatusForbidden, "denied", "POST /api/bus/send", stage.MailLine(other, "HO:x", stage.Direct, `{}`))
			spurned(who, status, code, "POST /api/bus/heartbeat", fmt.Sprintf(`{"actor":%q}`, other))
			spurned(who, http.StatusForbidden, "denied", "GET /api/bus/poll?actor="+other, "")
			spurned(who, http.StatusForbidden, "denied", "POST /api/bus/ack", fmt.Sprintf(`{"actor":%q,"seq":%d}`, other, first))
			spurned(who, http.StatusForbidden, "denied", "GET /api/sse/events?actor="+other, "")
		}
		spurned(who, http.StatusForbidden, "denied", "POST /api/bus/send", stage.MailLine(id, "broadcast", "broadcast.all", `{}`))
		if id != "IO:ann" {
			spurned(who, http.StatusForbidden, "denied", "POST /api/agents/tokens", `{"actor":"HO:new"}`)
		}
		require.Equal(t, http.StatusOK, who.Ask("POST /api/bus/heartbeat", "").Status)
	}
	for _, a := range actors {
		for _, other := range []string{"GO", "HO:far"} {
			a.Refused("UNAUTHORIZED", "send-message", stage.MailLine(other, "HO:x", stage.Direct, `{}`))
			a.Refused("UNAUTHORIZED", "poll-messages", fmt.Sprintf(`{"actor":%q}`, other))
			a.Refused("UNAUTHORIZED", "ack-messages", fmt.Sprintf(`{"actor":%q,"seq":%d}`, other, first))
			a.Refused("UNAUTHORIZED", "heartbeat", fmt.Sprintf(`{"actor":%q}`, other))
		}
		a.Refused("UNAUTHORIZED", "send-message", `{"to_actor":"broadcast","topic":"broadcast.all","payload":{}}`)
		a.Refused("UNAUTHORIZED", "issue-token", `{"actor":"HO:new"}`)
	}
	require.Empty(t, b.clerk("HO:x").polls("&cursor=0"), "and nothing of it was kept")
	require.Empty(t, about(far.polls("&cursor=0"), "broadcast.all"))
	require.Equal(t, []int64{first}, seqs(b.clerk("HO:other").polls("")))
	require.Equal(t, []int64{before}, seqs((&clerk{Caller: program, actor: "PO:one"}).polls("")))
	b.Stop()
}

// Callers over the rate limit learn when to retry, and their requests have no effect. Each
// credential has its own limit.
//
// Rows: E-57, K-06.
func TestBusTooOftenOverHTTP(t *testing.T) {
	t.Parallel()
	const many = 30
	b, _ := openBureau(t, "http {\n  listen = [\"127.0.0.1:0\"]\n  rate   = 1\n}\n")
	far, other := b.clerk("HO:far"), b.clerk("HO:other")
	errands := make([]errand, many)
	for i := range errands {
		errands[i] = errand{who: far.Caller, request: "POST /api/bus/send", body: stage.MailLine("HO:far", "GO", stage.Direct, `{}`)}
	}
	var kept []int64
	for _, r := range atOnce(b.Hub, errands) {
		if r.Status == http.StatusOK {
			kept = append(kept, readSent(t, r.Text).Seq)
			continue
		}
		require.Equal(t, http.StatusTooManyRequests, r.Status, r.Text)
		require.Contains(t, r.Text, `"recoverable":true`)
		require.Regexp(t, `^[1-9]\d*$`, r.Header.Get("Retry-After"))
	}
	require.NotEmpty(t, kept)
	require.Less(t, len(kept), many)
	other.send("GO", stage.Direct, `{"quick":true}`)
	sent := about(b.boss.polls(""), stage.Direct)
	require.Len(t, sent, len(kept)+1)
	require.ElementsMatch(t, kept, seqs(sent[:len(kept)]))
	b.Stop()
}

// certified makes a certificate for this machine: two files, and a pool that trusts it.
func certified(t *testing.T) (certificate, key string, pool *x509.CertPool) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	made := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, made, made, &secret.PublicKey, secret)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(secret)
	require.NoError(t, err)
	write := func(name, kind string, der []byte) (path string, text []byte) {
		path, text = filepath.Join(t.TempDir(), name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
		require.NoError(t, os.WriteFile(path, text, 0o600))
		return path, text
	}
	certificate, text := write("bus.pem", "CERTIFICATE", der)
	key, _ = write("bus.key", "PRIVATE KEY", pkcs8)
	pool = x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	return certificate, key, pool
}

// With a certificate, only TLS of the newest version is spoken.
//
// Rows: E-04.
func TestBusOverTLS(t *testing.T) {
	t.Parallel()
	certificate, key, pool := certified(t)
	b, _ := openBureau(t, fmt.Sprintf("http {\n  listen = [\"127.0.0.1:0\"]\n  certificate = %q\n  key = %q\n}\n", certificate, key))
	require.True(t, strings.HasPrefix(b.Url, "https://"), b.Url)
	far := b.clerk("HO:far")
	by := func(most uint16) {
		far.Client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10, MaxVersion: most}, DisableKeepAlives: true}}
	}
	for _, version := range []uint16{tls.VersionTLS13, 0} {
		by(version)
		require.Equal(t, stage.Direct, far.send("GO", stage.Direct, `{}`).Topic)
		require.Empty(t, far.polls(""))
	}
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11, tls.VersionTLS12} {
		by(version)
		for _, request := range append(busRequests, [2]string{"GET /health", ""}) {
			_, err := far.Try(request[0], request[1])
			require.ErrorContains(t, err, "protocol version", request[0])
		}
	}
	plain, err := http.Get(strings.Replace(b.Url, "https:", "http:", 1) + "/health")
	if err == nil { // the answer in plain text is that TLS is required
		_, _ = io.Copy(io.Discard, plain.Body)
		require.NoError(t, plain.Body.Close())
		require.Equal(t, http.StatusBadRequest, plain.StatusCode)
	}
	require.Len(t, b.boss.polls(""), 2)
	b.Stop()
}

// holds reports whether the token is valid.
func (c *clerk) holds() bool {
	c.Hub.T.Helper()
	r := c.Ask(c.poll(""), "")
	if r.Status != http.StatusOK {
		require.Equal(c.Hub.T, http.StatusUnauthorized, r.Status, r.Text)
	}
	return r.Status == http.StatusOK
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
	stage.WaitFor(t, "end of the old ones", func() bool { return !second.holds() && !third.holds() })
	require.True(t, fourth.holds())
	brief := b.holding("HO:brief", b.boss.token("HO:brief", `"ttl":1000`))
	stage.WaitFor(t, "end of the brief one", func() bool { return !brief.holds() })
	for _, wrong := range []string{`{}`, `{"actor":7}`, `{"actor":"HO:x","ttl":0}`, `{"actor":"HO:x","overlap":-1}`, `{"actor":"HO:x","sub":"ann"}`, `{"sub":"ann"}`} {
		spurned(b.boss.Caller, http.StatusBadRequest, "invalid", "POST /api/agents/tokens", wrong)
	}

	global := b.clerk("GO")
	require.True(t, b.holding("HO:two", global.token("HO:two")).holds(), "GO makes tokens wherever it is")
	require.True(t, b.holding("HO:three", (&clerk{Caller: b.Person("--role", wire.PersonAdmin), actor: "IO:ann"}).token("HO:three")).holds())
	for _, role := range []string{wire.PersonOperator, wire.PersonViewer} {
		spurned(b.Person("--role", role), http.StatusForbidden, "denied", "POST /api/agents/tokens", `{"actor":"HO:four"}`)
	}
	taken := b.clerk("HO:taken")
	b.Ask("token", "revoke", b.tokenOf("HO:taken"), "--yes")
	require.False(t, taken.holds())

	b.Kill()
	b.Open()
	for _, old := range []*clerk{first, second, third, brief, taken} {
		require.False(t, old.holds(), old.actor)
	}
	require.True(t, fourth.holds())
	require.True(t, global.holds())
	b.Stop()
}

// tokenOf returns the id of the only token of an actor.
func (b *bureau) tokenOf(actor string) string {
	b.T.Helper()
	var list wire.CredentialList
	b.Operated(&list, "list-tokens", `{}`)
	var found []string
	for _, c := range list.Credentials {
		if c.For == actor {
			require.Equal(b.T, "actor", c.Kind)
			found = append(found, c.ID)
		}
	}
	require.Len(b.T, found, 1)
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
	ids := []string{"PO:named", "W:" + actors[1].Run, "S:db:" + actors[2].Run}
	var before []*clerk
	for i, a := range actors {
		env := environment(t, a)
		require.Equal(t, ids[i], env["ORC_ACTOR"])
		require.Equal(t, b.Url, env["ORC_URL"])
		byToken := b.holding(ids[i], env["ORC_TOKEN"])
		within := *b.Hub
		within.Url = "http://orchestrator"
		bySocket := &clerk{Caller: &stage.Caller{Hub: &within, Client: overSocket(env["ORC_SOCKET"])}, actor: ids[i]}
		for _, way := range []*clerk{byToken, bySocket} {
			sent := way.send(ids[i], stage.Direct, fmt.Sprintf(`{"to":%q}`, "itself"))
			found := way.polls("&cursor=0")
			require.Equal(t, sent, found[len(found)-1])
			require.Equal(t, sent.Seq, way.acks(sent.Seq))
			require.Empty(t, way.polls(""))
			require.Equal(t, http.StatusOK, way.Ask("POST /api/bus/heartbeat", `{}`).Status)
			spurned(way.Caller, http.StatusForbidden, "denied", "POST /api/bus/send", stage.MailLine("GO", ids[i], stage.Direct, `{}`))
			spurned(way.Caller, http.StatusForbidden, "denied", "GET /api/bus/poll?actor="+ids[(i+1)%3], "")
		}
		other := *bySocket.Caller
		other.Header, other.Credential = "X-API-Key", environment(t, actors[(i+1)%3])["ORC_TOKEN"]
		spurned(&other, http.StatusForbidden, "denied", "GET /api/bus/poll", "")
		require.Equal(t, "active", b.known(ids[i]).Status)
		before = append(before, byToken)
	}
	for i, a := range actors {
		a.Kill()
		next := b.NextReady(names[i])
		require.False(t, before[i].holds(), "a token ends with its run")
		env := environment(t, next)
		require.NotEqual(t, env["ORC_TOKEN"], strings.TrimPrefix(before[i].Credential, "Bearer "))
		require.Equal(t, i == 0, env["ORC_ACTOR"] == ids[i])
		require.True(t, b.holding(env["ORC_ACTOR"], env["ORC_TOKEN"]).holds())
	}
	b.Stop()
}

// Secrets appear neither in the record, nor in logs, nor on command lines.
//
// Rows: E-78.
func TestBusSecretsStandNowhere(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	far := b.clerk("HO:far")
	old := strings.TrimPrefix(far.Credential, "Bearer ")
	far = b.holding("HO:far", b.boss.token("HO:far", `"overlap":60000`))
	env := environment(t, actors[0])
	own := b.holding("PO:one", env["ORC_TOKEN"])
	for _, who := range []*clerk{far, own} {
		who.send("GO", stage.Direct, `{}`)
		spurned(who.Caller, http.StatusForbidden, "denied", "GET /api/bus/poll?actor=GO", "")
		spurned(who.Caller, http.StatusBadRequest, "invalid", "POST /api/bus/ack", `{"seq":1000000}`)
	}
	require.Equal(t, http.StatusUnauthorized, b.Caller("Authorization", "Bearer "+old+"x").Ask("GET /api/bus/poll", "").Status)
	secrets := []string{old, strings.TrimPrefix(far.Credential, "Bearer "), env["ORC_TOKEN"]}
	for _, pid := range append(b.Processes(), b.Process.Process.Pid) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		require.NoError(t, err)
		require.NotContains(t, string(line), "orc_")
	}
	own.holds()
	status := b.Ask("status", "--json") + b.Ask("events", "--json") + b.Ask("token", "ls", "--json")
	b.Stop()
	said := []byte(status + b.Stdout.All() + b.Stderr.All())
	files := 0
	require.NoError(t, filepath.WalkDir(b.Dir, func(path string, entry fs.DirEntry, err error) error {
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
