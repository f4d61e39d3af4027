package jetstream

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Options describe the hubs, and the server in this process.
type Options struct {
	Node        string      // the peer that is this hub
	Peers       []string    // the addresses, host:port, of all hubs, which are also their names
	Dir         string      // where the server keeps its files
	Log         string      // the name of the team
	Credentials string      // a secret of the hubs
	TLS         *tls.Config // for connections between hubs; may be nil if all are on this machine
	Logger      hclog.Logger
	Waiting     func(missing []string) // called now and then while Start waits for other hubs; may be nil
}

// Timings of connections. With the defaults, minutes may pass until a server notices that another
// one has been cut off.
const (
	pingInterval  = time.Second
	pingsOut      = 2
	writeDeadline = 2 * time.Second
)

// check returns an error if the hubs could not find each other, or would not be safe from other programs.
func (o *Options) check() error {
	switch {
	case !slices.Contains(o.Peers, o.Node):
		return fmt.Errorf("%s is not one of the hubs %v", o.Node, o.Peers)
	case o.Credentials == "":
		return errors.New("the hubs have no credentials")
	case o.TLS == nil && !slices.ContainsFunc(o.Peers, func(peer string) bool { return !onLoopback(peer) }):
		return nil
	case o.TLS == nil:
		return errors.New("hubs on several machines need certificates")
	}
	return nil
}

// onLoopback reports whether a peer is on this machine and cannot be reached from other machines.
func onLoopback(peer string) bool {
	host, _, _ := net.SplitHostPort(peer)
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// password returns the password of all servers. It follows from the credentials, and has no characters that a URL
// would escape.
func (o *Options) password() string {
	sum := sha256.Sum256([]byte("orchestrator hub " + o.Log + "\n" + o.Credentials))
	return hex.EncodeToString(sum[:])
}

// serverOptions returns the settings of the server.
func (o *Options) serverOptions() (*server.Options, error) {
	host, text, err := net.SplitHostPort(o.Node)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("the port of %s: %w", o.Node, err)
	}
	if !onLoopback(o.Node) {
		host = "" // a name may be of an address that other machines use to reach this one
	}
	so := &server.Options{
		ServerName: o.Node, Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, // without a port it starts no routes
		JetStream: true, StoreDir: o.Dir, SyncAlways: true, JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 50,
		MaxPayload: maxEntry + 64<<10, PingInterval: pingInterval, MaxPingsOut: pingsOut, WriteDeadline: writeDeadline,
		Username: "hub", Password: o.password(),
	}
	if len(o.Peers) == 1 {
		return so, nil
	}
	so.Cluster = server.ClusterOpts{
		Name: "orchestrator-" + o.Log, Host: host, Port: port, Username: "hub", Password: o.password(), PoolSize: -1, NoAdvertise: true,
		PingInterval: pingInterval, MaxPingsOut: pingsOut, WriteDeadline: writeDeadline, TLSConfig: o.TLS, TLSTimeout: 2,
	}
	for _, peer := range o.Peers {
		if peer != o.Node {
			so.Routes = append(so.Routes, &url.URL{Scheme: "nats-route", User: url.UserPassword("hub", o.password()), Host: peer})
		}
	}
	return so, nil
}

// Start starts a server, joins the servers of the other hubs, and opens the stream of the team. It waits until most
// hubs have joined, or until ctx ends.
func Start(ctx context.Context, o Options) (*Engine, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	so, err := o.serverOptions()
	if err != nil {
		return nil, err
	}
	shortenElections()
	s, err := server.NewServer(so)
	if err != nil {
		return nil, fmt.Errorf("starting the server of the shared log: %w", err)
	}
	s.SetLoggerV2(serverLog{o.Logger}, false, false, false)
	s.Start()
	e := &Engine{log: o.Log, logger: o.Logger, keeper: &ownServer{options: o, server: s}, node: o.Node, copies: len(o.Peers), waiting: o.Waiting, closed: make(chan struct{})}
	if e.conn, err = connectInside(s, o); err == nil {
		err = e.openStream(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// connectInside connects to the server in this process.
func connectInside(s *server.Server, o Options) (*nats.Conn, error) {
	if !s.ReadyForConnections(10 * time.Second) {
		return nil, fmt.Errorf("the server of the shared log does not listen at %s: is another program there?", o.Node)
	}
	conn, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo("hub", o.password()),
		nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond), nats.ReconnectJitter(0, 0))
	if err != nil {
		return nil, fmt.Errorf("connecting to the server of the shared log: %w", err)
	}
	return conn, nil
}

// An ownServer is the server in this process, with the servers of the other hubs.
type ownServer struct {
	options Options
	server  *server.Server
}

// missing returns the hubs that are not connected to this one.
func (s *ownServer) missing(bool) []string {
	there := map[string]bool{s.options.Node: true}
	if routes, err := s.server.Routez(nil); err == nil {
		for _, r := range routes.Routes {
			there[r.RemoteName] = true
		}
	}
	missing := slices.Clone(s.options.Peers)
	return slices.DeleteFunc(missing, func(peer string) bool { return there[peer] })
}

func (s *ownServer) held() error { return nil }

func (s *ownServer) close() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// serverLog passes the log of the server on, mostly at lower levels: this program itself reports the events that
// concern people.
type serverLog struct{ to hclog.Logger }

func (l serverLog) Noticef(format string, v ...any) { l.to.Debug(fmt.Sprintf(format, v...)) }
func (l serverLog) Warnf(format string, v ...any)   { l.to.Debug(fmt.Sprintf(format, v...)) }
func (l serverLog) Fatalf(format string, v ...any)  { l.to.Error(fmt.Sprintf(format, v...)) }
func (l serverLog) Errorf(format string, v ...any)  { l.to.Debug(fmt.Sprintf(format, v...)) }
func (l serverLog) Debugf(format string, v ...any)  { l.to.Trace(fmt.Sprintf(format, v...)) }
func (l serverLog) Tracef(format string, v ...any)  { l.to.Trace(fmt.Sprintf(format, v...)) }

// These are variables of the server. TestElections reads them back, and a version of the server
// without them cannot be linked.
var (
	//go:linkname minElectionTimeout github.com/nats-io/nats-server/v2/server.minElectionTimeout
	minElectionTimeout time.Duration
	//go:linkname maxElectionTimeout github.com/nats-io/nats-server/v2/server.maxElectionTimeout
	maxElectionTimeout time.Duration
	//go:linkname hbInterval github.com/nats-io/nats-server/v2/server.hbInterval
	hbInterval time.Duration
	//go:linkname lostQuorumInterval github.com/nats-io/nats-server/v2/server.lostQuorumInterval
	lostQuorumInterval time.Duration
	//go:linkname lostQuorumCheck github.com/nats-io/nats-server/v2/server.lostQuorumCheck
	lostQuorumCheck time.Duration
)

// shortenElections makes servers that are started later notice a lost leader after 1.5 to 3 seconds.
// The other times keep their proportions.
var shortenElections = sync.OnceFunc(func() {
	minElectionTimeout, maxElectionTimeout = 1500*time.Millisecond, 3*time.Second
	hbInterval = 400 * time.Millisecond
	lostQuorumInterval, lostQuorumCheck = 4*time.Second, 4*time.Second
})
