package jetstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats.go"

	"orchestrator/supervisor/eventlog"
)

// ServersOptions describe servers of NATS that this program does not run.
type ServersOptions struct {
	Servers     []string    // their URLs, such as tls://n1:4222
	Monitors    []string    // the URLs of their monitors, such as http://n1:8222
	Log         string      // the name of the team
	Node        string      // the name of this hub, which the servers show to their administrator
	User        string      // the user with the password Credentials; may be ""
	Credentials string      // the text of a creds file, or a password, or a token without a user; "" with a certificate
	TLS         *tls.Config // the authority of the servers and the certificate of this hub; may be nil
	Logger      hclog.Logger
}

// errUnsafe reports that the servers could lose confirmed entries, or let other programs read them.
var errUnsafe = errors.New("the servers are not safe")

// Times of servers. Their monitors are asked every proofInterval whether the servers are safe. If a monitor falls
// silent, the proof of its server holds for proofLasts, because the server may have been started anew. If the server of
// a hub ends, the hub is usually connected to another one within changeServer.
const (
	changeServer  = 500 * time.Millisecond
	proofInterval = 5 * time.Second
	proofLasts    = 12 * proofInterval
	proofPatience = 2 * time.Second
	minPayload    = 64 << 10 // bytes of a message that a server must take at least
)

// oldest is the oldest version of a server that is used: major and minor number.
var oldest = [2]int{2, 12}

// Connect connects to servers, makes sure that they are safe, and opens the stream of the team. It
// waits for servers that do not answer, until ctx ends.
func Connect(ctx context.Context, o ServersOptions) (*Engine, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	s := &otherServers{options: o, proven: map[string]time.Time{}, client: &http.Client{Timeout: proofPatience, Transport: &http.Transport{TLSClientConfig: o.TLS, Proxy: nil}}}
	s.watching, s.stop = context.WithCancel(context.Background())
	e := &Engine{log: o.Log, logger: o.Logger, keeper: s, again: changeServer, closed: make(chan struct{})}
	err := e.reach(ctx, s)
	if err == nil {
		err = e.openStream(ctx)
	}
	if err == nil {
		err = e.until(ctx, "proof that the servers sync", func(ctx context.Context) error { return s.judge(ctx, e) })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the shared log at %s: %w", strings.Join(s.addresses(), ","), err), e.Close())
	}
	s.watch.Go(func() { s.keepJudging(e) })
	return e, nil
}

// reach connects to a server, and asks the monitors how many servers there are.
func (e *Engine) reach(ctx context.Context, s *otherServers) error {
	err := e.until(ctx, "the servers", func(context.Context) (err error) {
		e.conn, err = nats.Connect(strings.Join(s.options.Servers, ","), s.options.connection()...)
		return err
	})
	if err != nil {
		return err
	}
	return e.until(ctx, "the monitors of the servers", func(ctx context.Context) error {
		size, silent, err := s.ask(ctx)
		if e.copies = size; err == nil && size == 0 {
			return silent
		}
		return err
	})
}

// until calls do until it succeeds, or fails with an error that is permanent.
func (e *Engine) until(ctx context.Context, what string, do func(context.Context) error) error {
	told := time.Now()
	for wait := pause; ; wait = min(2*wait, longestWait) {
		err := do(ctx)
		if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); err == nil || untrusted || permanent(err) {
			return err
		}
		if time.Since(told) > 2*time.Second {
			told = time.Now()
			e.logger.Info("waiting for "+what, "error", err)
		}
		if ended := e.rest(ctx, wait); ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// permanent reports whether an error would be the same after a while.
func permanent(err error) bool {
	for _, e := range []error{errUnsafe, nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrSecureConnWanted, nats.ErrNkeysNotSupported} {
		if errors.Is(err, e) {
			return true
		}
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	return unknown
}

// connection returns the options of a connection.
func (o *ServersOptions) connection() []nats.Option {
	options := []nats.Option{
		nats.Name("orchestrator " + o.Node), nats.Timeout(proofPatience), nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(pingsOut),
		nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.IgnoreDiscoveredServers(), nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { o.Logger.Warn("the shared log", "error", err) }),
		func(n *nats.Options) error { n.TLSConfig = o.TLS; return nil },
	}
	if strings.HasPrefix(o.Servers[0], "tls:") {
		options = append(options, nats.Secure())
	}
	switch {
	case strings.Contains(o.Credentials, "-----BEGIN NATS USER JWT-----"):
		options = append(options, nats.UserCredentialBytes([]byte(o.Credentials)))
	case o.User != "":
		options = append(options, nats.UserInfo(o.User, o.Credentials))
	case o.Credentials != "":
		options = append(options, nats.Token(o.Credentials))
	}
	return options
}

// otherServers are servers that this program does not run.
type otherServers struct {
	options ServersOptions
	client  *http.Client

	watching context.Context // ends with close
	stop     func()
	watch    sync.WaitGroup

	proven map[string]time.Time  // when servers have proven last that they are safe, by name; used by one goroutine at a time
	hold   atomic.Pointer[error] // why writing is not allowed; nil: it is
}

// A report is the answer of the monitor of a server, in the parts that matter here.
type report struct {
	Name         string `json:"server_name"`
	Version      string `json:"version"`
	AuthRequired bool   `json:"auth_required"`
	MaxPayload   int    `json:"max_payload"`
	JetStream    struct {
		Config *struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
		Meta struct {
			Size int `json:"cluster_size"`
		} `json:"meta"`
	} `json:"jetstream"`
}

// problem returns why a server is not safe.
func (r *report) problem() error {
	version := strings.SplitN(r.Version, ".", 3)
	var number [2]int
	for i := range min(len(version), 2) {
		number[i], _ = strconv.Atoi(version[i])
	}
	what := ""
	switch {
	case slices.Compare(number[:], oldest[:]) < 0:
		what = fmt.Sprintf("its version is %s, and the minimum is %d.%d", r.Version, oldest[0], oldest[1])
	case r.JetStream.Config == nil:
		what = "JetStream is not enabled there"
	case !r.JetStream.Config.SyncAlways:
		what = "it confirms messages before they are on disk. Set this in its configuration, and restart it: jetstream { sync_interval: always }"
	case !r.AuthRequired:
		what = "it lets anyone read and write the record. Set users or accounts in its configuration: authorization { … }"
	case r.MaxPayload < minPayload:
		what = fmt.Sprintf("its max_payload is %d bytes, and the minimum is %d", r.MaxPayload, minPayload)
	default:
		return nil
	}
	return fmt.Errorf("%w: %s: %s", errUnsafe, r.Name, what)
}

// ask asks all monitors. It returns the number of servers, or 0 if no monitor answers; the errors of monitors that do
// not answer; and the problems of servers that are not safe. Each server has its own monitor, so the number is at least
// the number of monitors: a cluster that is starting counts fewer.
func (s *otherServers) ask(ctx context.Context) (size int, silent, unsafe error) {
	reports, failed := make([]*report, len(s.options.Monitors)), make([]error, len(s.options.Monitors))
	var all sync.WaitGroup
	for i, monitor := range s.options.Monitors {
		all.Go(func() { reports[i], failed[i] = s.fetch(ctx, monitor) })
	}
	all.Wait()
	var problems []error
	for i, r := range reports {
		if failed[i] == nil {
			problem := r.problem()
			delete(s.proven, r.Name)
			if problem == nil {
				s.proven[r.Name] = time.Now()
			}
			problems = append(problems, problem)
			size = max(size, r.JetStream.Meta.Size, len(s.options.Monitors))
		}
	}
	return size, errors.Join(failed...), errors.Join(problems...)
}

// fetch asks one monitor.
func (s *otherServers) fetch(ctx context.Context, monitor string) (*report, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(monitor, "/")+"/varz", nil)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var r report
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&r); err != nil || r.Name == "" {
		return nil, fmt.Errorf("%s is not the monitor of a NATS server: it answers %s", monitor, response.Status)
	}
	return &r, nil
}

// judge returns an error unless all servers that have a copy of the stream, and are up, have proven that
// they are safe.
func (s *otherServers) judge(ctx context.Context, e *Engine) error {
	info, err := e.info(ctx)
	if err != nil {
		return e.unknown("which servers have the shared log", err)
	}
	up := []string{e.conn.ConnectedServerName()}
	if c := info.Cluster; c != nil && c.Leader != "" {
		up = []string{c.Leader}
		for _, r := range c.Replicas {
			if !r.Offline {
				up = append(up, r.Name)
			}
		}
	}
	_, silent, err := s.ask(ctx)
	if unproven := slices.DeleteFunc(up, func(name string) bool { return time.Since(s.proven[name]) < proofLasts }); err == nil && len(unproven) > 0 {
		names := strings.Join(unproven, ", ")
		err = fmt.Errorf("%w: %s has a copy of the record, and none of the monitors belongs to it", errUnsafe, names)
		if silent != nil {
			err = fmt.Errorf("%s has a copy of the record, but its monitor does not answer: %w", names, silent)
		}
	}
	return err
}

// keepJudging calls judge every proofInterval until close. While it fails, held returns the error.
func (s *otherServers) keepJudging(e *Engine) {
	ticker := time.NewTicker(proofInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.watching.Done():
			return
		case <-ticker.C:
		}
		err := s.judge(s.watching, e)
		switch held := s.held(); {
		case errors.Is(err, eventlog.ErrUnanswered), s.watching.Err() != nil:
		case err != nil && (held == nil || held.Error() != err.Error()):
			e.logger.Error("nothing is recorded", "error", err)
			s.hold.Store(&err)
		case err == nil && held != nil:
			e.logger.Info("the servers of the shared log are safe again")
			s.hold.Store(nil)
		}
	}
}

func (s *otherServers) held() error {
	if err := s.hold.Load(); err != nil {
		return *err
	}
	return nil
}

// addresses returns the hosts and ports of the servers.
func (s *otherServers) addresses() []string {
	at := make(map[string]bool)
	for _, server := range s.options.Servers {
		if u, err := url.Parse(server); err == nil {
			at[u.Host] = true
		}
	}
	return slices.Sorted(maps.Keys(at))
}

// missing implements keeper. It returns why writing is not allowed, or the servers if they do not answer.
func (s *otherServers) missing(silent bool) []string {
	if err := s.held(); err != nil {
		return []string{err.Error()}
	}
	if silent {
		return s.addresses()
	}
	return nil
}

func (s *otherServers) close() {
	s.stop()
	s.watch.Wait()
	s.client.CloseIdleConnections()
}
