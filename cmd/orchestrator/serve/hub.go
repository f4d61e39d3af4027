package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/jetstream"
	"orchestrator/supervisor/turn"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// errDeposed reports that another hub is at work.
var errDeposed = errors.New("another hub is at work")

// A sharedStore is the record of a team with several hubs.
type sharedStore struct {
	log    *eventlog.Shared
	engine eventlog.Engine
	peers  int // how many hubs there are
	looked time.Time
}

// lookAgain is how often a hub asks whether it is still the one at work.
const lookAgain = time.Second

// sound returns ErrMoved if another hub is at work. A log that does not answer proves nothing.
func (s *sharedStore) sound() error {
	if now := time.Now(); now.Sub(s.looked) < lookAgain {
		return nil
	}
	err := s.log.Current(context.Background())
	s.looked = time.Now()
	if errors.Is(err, eventlog.ErrUnanswered) {
		return nil
	}
	return err
}

// giveUp closes the engine if this hub is to end and cannot reach most hubs for a while. Otherwise it
// would wait for them in order to record its end.
func (s *sharedStore) giveUp(ending, ended context.Context, log hclog.Logger) {
	select {
	case <-ending.Done():
	case <-ended.Done():
		return
	}
	for silent := 0; silent < 5; {
		select {
		case <-time.After(time.Second):
		case <-ended.Done():
			return
		}
		if missing := len(s.engine.Missing()); 2*missing > s.peers {
			silent++
		} else {
			silent = 0
		}
	}
	log.Warn("the other hubs cannot be reached, so the end of this one is not recorded", "missing", strings.Join(s.engine.Missing(), ", "))
	_ = s.engine.Close()
}

// standBy opens a shared record and waits until this hub has its turn.
func (t *Instance) standBy(a *cli.App, c *config.Config) error {
	if !c.Store.Shared() {
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if c.Store.Node == "" {
		return &cli.Failure{
			Exit: cli.ExitUsage, Code: wire.CodeInvalid,
			Message: "which of the peers is this hub? " + strings.Join(c.Store.Peers, ", "),
			Because: []string{"Several of them are on this machine, or none is.", "Nothing was started."},
			Hint:    "Say it: orchestrator up --node " + c.Store.Peers[0] + "     or ORC_NODE=" + c.Store.Peers[0],
		}
	}
	door := &standby{own: c.Store.Node, stop: stop}
	t.openFront(door)
	a.Note("%s stands by. Ctrl-C ends it.", c.Store.Node)
	shared, err := openShared(ctx, t, a, c)
	if err != nil {
		if ctx.Err() != nil {
			return cli.ExitWith(cli.ExitOK)
		}
		return cannotShare(err, c.Store)
	}
	t.record, t.shared = shared.log, shared
	hub := turn.Hub{Name: c.Store.Node, Version: cli.Version}
	if len(c.HTTP.Listen) > 0 {
		hub.URL = c.HTTP.Listen[0]
	}
	mine, err := turn.Wait(ctx, turn.Options{Log: shared.log, Engine: shared.engine, Hub: hub, Logger: t.log, Heard: func(who turn.Hub) {
		door.hub.Store(&who)
		a.Note("The hub is %s since fact %d.", who.Name, who.Epoch)
	}})
	switch {
	case ctx.Err() != nil:
		return cli.ExitWith(cli.ExitOK)
	case err != nil:
		return cannotShare(err, c.Store)
	}
	if _, err = turn.Serve(shared.engine, mine); err != nil { // until the engine is closed
		return cannotShare(err, c.Store)
	}
	a.Note("%s is the hub since fact %d.", mine.Name, mine.Epoch)
	return nil
}

// openShared starts the engine of a shared store and opens the copy of it here.
func openShared(ctx context.Context, t *Instance, a *cli.App, c *config.Config) (*sharedStore, error) {
	secret, err := c.StoreCredentials(ctx, a.Environ)
	if err != nil {
		return nil, err
	}
	certificates, err := hubTLS(c.Store)
	if err != nil {
		return nil, err
	}
	engine, err := jetstream.Start(ctx, jetstream.Options{
		Node: c.Store.Node, Peers: c.Store.Peers, Dir: filepath.Join(c.Orchestrator.StateDir, "stream"), Log: c.Store.Log,
		Credentials: secret, TLS: certificates, Logger: t.log,
	})
	if err != nil {
		return nil, err
	}
	log, err := eventlog.OpenShared(ctx, c.Store.Path, engine)
	if err != nil {
		return nil, err
	}
	return &sharedStore{log: log, engine: engine, peers: len(c.Store.Peers)}, nil
}

// hubTLS returns the certificates with which hubs know each other, or nil if none are configured.
func hubTLS(s config.Store) (*tls.Config, error) {
	if s.CA == "" {
		return nil, nil
	}
	text, err := os.ReadFile(s.CA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", s.CA)
	}
	pair, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}

// cannotShare returns the failure for a shared record that cannot be used.
func cannotShare(err error, s config.Store) error {
	f := &cli.Failure{
		Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "cannot use the shared record: " + err.Error(), Because: []string{"Nothing was started."},
	}
	if shorter, ok := errors.AsType[*eventlog.ShorterError](err); ok {
		f.Because = append(f.Because, "The other hubs may have lost their disks, or peers names other hubs than before.")
		f.Hint = "Start the hub that still has them, or, if they may be lost, move " + s.Path + "* away"
		f.Details = map[string]any{"copy": shorter.Copy, "log": shorter.Log}
	}
	return f
}

// A front is the handler of the API: a standby first, and then that of the hub at work.
type front struct{ now atomic.Pointer[http.Handler] }

func (f *front) set(h http.Handler) { f.now.Store(&h) }

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*f.now.Load()).ServeHTTP(w, r) }

// A standby answers while this hub stands by: it says which hub is at work.
type standby struct {
	hub  atomic.Pointer[turn.Hub]
	own  string
	stop func() // ends the standing by
}

// openFront begins to answer at the socket with a handler.
func (t *Instance) openFront(h http.Handler) {
	t.front = new(front)
	t.front.set(h)
	t.server = api.NewServer(t.front, t.log)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		t.server.Serve(ctx, t.listener)
	}()
	t.shut = sync.OnceFunc(func() {
		cancel()
		<-served
	})
}

// ServeHTTP implements http.Handler.
func (s *standby) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && path.Base(r.URL.Path) == "down" {
		defer s.stop()
		text, err := object.Encode(wire.Event{At: object.Timestamp(time.Now()), Kind: events.OrchestratorStopped, Text: s.own + " stands by no longer"})
		if err == nil {
			_, _ = w.Write(append(text, '\n'))
		}
		return
	}
	refusal := &wire.Error{Code: wire.CodeConflict, Message: s.own + " stands by: no hub is at work yet"}
	if who := s.hub.Load(); who != nil {
		refusal.Message = fmt.Sprintf("%s stands by: the hub is %s", s.own, who.Name)
		refusal.Details = map[string]any{"hub": who.Name, "url": who.URL, "epoch": who.Epoch}
	}
	text, err := json.Marshal(wire.Refusal{FormatVersion: wire.FormatVersion, Error: refusal})
	if err != nil {
		http.Error(w, refusal.Message, http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusConflict)
	_, _ = w.Write(text)
}
