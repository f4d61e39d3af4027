package jetstream

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"orchestrator/fixtures/natsserver"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/logtest"
	"orchestrator/supervisor/eventlog/logtest/series"
)

// A site is servers of NATS that belong to no hub.
type site struct {
	*natsserver.Servers
	t *testing.T
}

// newSite starts n servers, which change alters before.
func newSite(t *testing.T, n int, change func(i int, o *server.Options)) site {
	shortenElections() // as for the servers of hubs, so that tests are not slower
	return site{Servers: natsserver.New(t, n, change), t: t}
}

// login returns how a hub reaches the servers.
func (c site) login() ServersOptions {
	return ServersOptions{Servers: c.URLs(), Monitors: c.Monitors(), Log: "team", Node: "h1", User: natsserver.User, Credentials: natsserver.Password}
}

// join connects a hub, which a test changes before.
func (c site) join(change func(o *ServersOptions)) (*Engine, error) {
	o := c.login()
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), patient)
	defer cancel()
	e, err := Connect(ctx, o)
	if err == nil {
		c.t.Cleanup(func() { require.NoError(c.t, e.Close()) })
	}
	return e, err
}

func (c site) mustJoin() *Engine {
	e, err := c.join(nil)
	require.NoError(c.t, err)
	return e
}

// A shared log in a stream of other servers keeps the rules of all logs.
func TestServersConformance(t *testing.T) {
	t.Parallel()
	c := newSite(t, 3, nil)
	hubs := []*Engine{c.mustJoin(), c.mustJoin(), c.mustJoin()}
	conforms(t, hubs)
	info, err := hubs[0].info(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, info.Config.Replicas)
}

// Of three servers two are up when the first hub comes. It makes no stream with two copies, which the
// next hub would refuse.
func TestServersWithoutOne(t *testing.T) {
	t.Parallel()
	c := newSite(t, 2, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	early := c.login()
	early.Monitors = append(early.Monitors, fmt.Sprintf("http://127.0.0.1:%d", natsserver.FreePorts(t, 1)[0]))
	early.Logger = hclog.New(&hclog.LoggerOptions{Output: until{text: "waiting for the stream", end: cancel}})
	_, err := Connect(ctx, early)
	require.ErrorIs(t, err, context.Canceled)
	e := c.mustJoin()
	info, err := e.info(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, info.Config.Replicas, "of the hub that knows of two servers")
	_, err = c.join(func(o *ServersOptions) { o.Monitors = early.Monitors })
	require.ErrorContains(t, err, "has 2 copies, not 3; add them: nats stream edit orchestrator-team --replicas 3")
}

// A server is lost and comes back, and hubs continue. When it comes back unsafe, no fact is recorded until it is safe
// again.
func TestServersLost(t *testing.T) {
	t.Parallel()
	c := newSite(t, 3, nil)
	a, b := c.mustJoin(), c.mustJoin()
	la, err := eventlog.OpenShared(t.Context(), filepath.Join(t.TempDir(), "a.db"), unclosed{a})
	require.NoError(t, err)
	lb, err := eventlog.OpenShared(t.Context(), filepath.Join(t.TempDir(), "b.db"), unclosed{b})
	require.NoError(t, err)
	put := func(n int) { require.NoError(t, la.Append(t.Context(), la.Last(), series.Keyed("a", n, 2))) }
	put(0)
	for i := range 3 {
		c.Stop(i)
		put(1 + 2*i)
		joins, err := c.join(nil)
		require.NoError(t, err, "two of three are enough")
		require.NoError(t, joins.Close())
		c.Start(i)
		put(2 + 2*i)
	}
	logtest.Follow(t, lb)
	require.Equal(t, series.All(t, la, 0), series.All(t, lb, 0))
	require.Len(t, series.All(t, la, 0), 14)

	c.Stop(1)
	c.Options[1].SyncAlways = false
	c.Start(1)
	waitFor(t, func() bool { return a.keeper.held() != nil })
	waitFor(t, func() bool { // for a while, the server may not be in touch with its peers
		_, err = a.End(t.Context())
		require.ErrorIs(t, err, eventlog.ErrUnanswered)
		return strings.Contains(err.Error(), "n2: it confirms messages before they are on disk")
	})
	require.ErrorContains(t, errors.New(a.Missing()[0]), "n2")
	waiting := make(chan error, 1)
	go func() { waiting <- la.Append(context.Background(), la.Last(), series.Keyed("a", 8, 2)) }()
	c.Stop(1)
	c.Options[1].SyncAlways = true
	c.Start(1)
	require.NoError(t, <-waiting)
	require.Empty(t, a.Missing())
}

// waitFor waits until a condition is true.
func waitFor(t *testing.T, what func() bool) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(patient); !what(); <-ticker.C {
		require.True(t, time.Now().Before(end), "it does not happen")
	}
}

// A hub that loses its server answers at the next one, so a seat that seems to be vacant is asked again.
func TestSeatAtOtherServer(t *testing.T) {
	t.Parallel()
	c := newSite(t, 3, nil)
	a, err := c.join(func(o *ServersOptions) { o.Servers = o.Servers[:2] })
	require.NoError(t, err)
	b, err := c.join(func(o *ServersOptions) { o.Servers = o.Servers[2:] })
	require.NoError(t, err)
	end, err := a.Serve([]byte("h1"))
	require.NoError(t, err)
	waitFor(t, func() bool { who, _ := b.Ask(t.Context()); return string(who) == "h1" })
	end()
	b.again = patient
	sent, answers := b.conn.Stats().OutMsgs, make(chan string)
	go func() {
		who, err := b.Ask(t.Context())
		for errors.Is(err, eventlog.ErrSilent) {
			who, err = b.Ask(t.Context())
		}
		answers <- string(who)
	}()
	waitFor(t, func() bool { return b.conn.Stats().OutMsgs > sent+1 })
	_, err = a.Serve([]byte("h1 again"))
	require.NoError(t, err)
	require.Equal(t, "h1 again", <-answers)
	used := a.conn.ConnectedServerName()
	c.Stop(slices.IndexFunc(c.Options, func(o *server.Options) bool { return o.ServerName == used }))
	waitFor(t, func() bool {
		who, _ := b.Ask(t.Context())
		return string(who) == "h1 again" && a.conn.ConnectedServerName() != used
	})
	b.again = 0
	require.NoError(t, a.Close())
	waitFor(t, func() bool { _, err := b.Ask(t.Context()); return errors.Is(err, eventlog.ErrVacant) })
}

// Servers that are not safe are refused. The error names the server and the setting.
func TestServersRefused(t *testing.T) {
	t.Parallel()
	lazy := newSite(t, 3, func(i int, o *server.Options) { o.SyncAlways = i != 2 })
	_, err := lazy.join(nil)
	require.ErrorIs(t, err, errUnsafe)
	require.ErrorContains(t, err, "n3: it confirms messages before they are on disk")
	require.ErrorContains(t, err, "sync_interval: always")
	require.NotContains(t, err.Error(), "n1:")
	waitFor(t, func() bool { // a server that seems to be offline at first needs no proof yet, or has no copy yet
		_, err = lazy.join(func(o *ServersOptions) { o.Monitors = o.Monitors[:2] })
		return err != nil && strings.Contains(err.Error(), "n3 has a copy of the record, and none of the monitors belongs to it")
	})
	_, err = lazy.join(func(o *ServersOptions) { o.Credentials = "guessed" })
	require.ErrorIs(t, err, nats.ErrAuthorization)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	silent := lazy.login()
	silent.Monitors = []string{silent.Monitors[0], fmt.Sprintf("http://127.0.0.1:%d", natsserver.FreePorts(t, 1)[0])}
	silent.Logger = hclog.New(&hclog.LoggerOptions{Output: until{text: "its monitor does not answer", end: cancel}})
	_, err = Connect(ctx, silent)
	require.ErrorIs(t, err, context.Canceled)

	for want, change := range map[string]func(i int, o *server.Options){
		"it lets anyone read":                     func(_ int, o *server.Options) { o.Username, o.Password = "", "" },
		"JetStream is not enabled":                func(_ int, o *server.Options) { o.JetStream = false },
		"its max_payload is 1024":                 func(_ int, o *server.Options) { o.MaxPayload = 1024 },
		"it confirms messages before they are on": func(_ int, o *server.Options) { o.SyncAlways = false },
	} {
		_, err := newSite(t, 1, change).join(nil)
		require.ErrorIs(t, err, errUnsafe)
		require.ErrorContains(t, err, "n1: "+want)
	}
	old := report{Name: "n1", Version: "2.11.9"}
	require.ErrorContains(t, old.problem(), "its version is 2.11.9, and the minimum is 2.12")
}

// One server keeps the record alone, with a token. A stream that could lose entries is refused.
func TestOneServer(t *testing.T) {
	t.Parallel()
	c := newSite(t, 1, func(_ int, o *server.Options) { o.Username, o.Password, o.Authorization = "", "", "s3cret" })
	token := func(o *ServersOptions) { o.User = "" }
	e, err := c.join(token)
	require.NoError(t, err)
	l, err := eventlog.OpenShared(t.Context(), filepath.Join(t.TempDir(), "a.db"), unclosed{e})
	require.NoError(t, err)
	huge := series.Keyed("a", 0, 1)
	huge[0].Payload = fmt.Appendf(nil, `"%0*d"`, 3<<20, 0)
	require.NoError(t, l.Append(t.Context(), l.Last(), huge), "in parts, because the server allows 1 MiB")
	require.Less(t, e.Most(), 1<<20)

	looser := e.stream.CachedInfo().Config
	looser.MaxMsgs = 10
	_, err = e.js.UpdateStream(t.Context(), looser)
	require.NoError(t, err)
	_, err = c.join(token)
	require.ErrorContains(t, err, "messages may be removed from the stream orchestrator-team")
}

// Servers are spoken to with TLS, and only if the hub trusts their authority.
func TestServersTLS(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	made := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, made, made, key.Public(), key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	c := newSite(t, 1, func(_ int, o *server.Options) {
		o.TLS, o.TLSConfig = true, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
		o.HTTPSPort, o.HTTPPort = o.HTTPPort, 0
	})
	safe := func(o *ServersOptions) {
		o.Servers[0] = strings.Replace(o.Servers[0], "nats:", "tls:", 1)
		o.Monitors[0] = fmt.Sprintf("https://127.0.0.1:%d", c.Options[0].HTTPSPort)
	}
	e, err := c.join(func(o *ServersOptions) { safe(o); o.TLS = &tls.Config{RootCAs: pool} })
	require.NoError(t, err)
	require.NoError(t, e.conn.ForceReconnect())
	_, err = e.Put(0, eventlog.Entry{First: 1, Count: 1, Part: 1, Of: 1})
	require.NoError(t, err)
	_, err = e.conn.TLSConnectionState()
	require.NoError(t, err)
	_, err = c.join(safe)
	require.ErrorContains(t, err, "certificate signed by unknown authority")
}

// until calls end when a text is written.
type until struct {
	text string
	end  func()
}

func (u until) Write(text []byte) (int, error) {
	if strings.Contains(string(text), u.text) {
		u.end()
	}
	return len(text), nil
}
