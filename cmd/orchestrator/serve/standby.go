package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"orchestrator/supervisor/api"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/jetstream"
	"orchestrator/supervisor/eventlog/postgres"
	"orchestrator/supervisor/hub/team"
	"orchestrator/supervisor/leadership"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// ErrDeposed reports that another hub is at work.
var ErrDeposed = errors.New("another hub is at work")

// ErrEnded reports that a hub was ended while it stood by.
var ErrEnded = errors.New("this hub stands by no longer")

// A standby is the part of a hub that opens a shared record and waits for its turn. Without a shared record it does nothing.
type standby struct {
	Options
	place     *Place
	server    *Server
	listeners *listeners
	record    *record
	front     *front // nil unless this hub has stood by
}

// newStandby returns the standby of a place, for a command that uses no hub.
func newStandby(p *Place, o Options) *standby {
	return &standby{Options: o, place: p, server: NewServer(p), listeners: &listeners{place: p}, record: &record{place: p, store: o.Config.Store}}
}

// Stop ends the API, and that only: the record is stopped after it.
func (s *standby) Stop() { s.server.Stop() }

// Start waits until this hub has its turn, or ctx ends.
func (s *standby) Start(ctx context.Context) error {
	if !s.Config.Store.Shared() {
		return nil
	}
	err := s.await(ctx)
	if err != nil {
		s.Stop()
	}
	return err
}

// await opens the shared record and waits for the turn of this hub.
func (s *standby) await(ctx context.Context) error {
	c := s.Config
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	certificates, err := hubTLS(c.Store)
	if err != nil {
		return err
	}
	hub := leadership.Hub{Name: c.Store.Node, Version: s.Version, URL: reachable(c.Store.Node, s.listeners.open)}
	f := s.openFront(hub, certificates, stop)
	s.Note("%s stands by. Ctrl-C ends it.", hub.Name)
	shared, err := s.openShared(ctx, certificates)
	if err != nil {
		if ctx.Err() != nil {
			return ErrEnded
		}
		return err
	}
	shared.own = hub
	f.shared.Store(shared)
	r := s.record
	r.shared, r.ledger, s.place.signer.Seed = shared, shared.log, shared.engine.Key()
	o := dispatch.Options{Record: r.ledger, Log: s.place.Log}
	o.Rules, o.Protocol = team.Rules(c)
	r.warm = dispatch.NewWarm(o)
	mine, err := leadership.Wait(ctx, leadership.Options{
		Log: shared.log, Engine: shared.engine, Hub: hub, Logger: s.place.Log,
		Followed: func(ctx context.Context) error {
			shared.roster.Tell(shared.report())
			return r.warm.Follow(ctx)
		},
		Heard: func(who leadership.Hub) {
			f.heard(who)
			s.Note("The hub is %s since fact %d.", who.Name, who.Epoch)
		},
	})
	switch {
	case ctx.Err() != nil:
		return ErrEnded
	case err != nil:
		return err
	}
	shared.epoch = mine.Epoch
	shared.atWork.Store(true)
	f.heard(mine)
	if _, err = leadership.Serve(shared.engine, mine); err != nil { // until the engine is closed
		return err
	}
	s.Note("%s is the hub since fact %d.", mine.Name, mine.Epoch)
	return nil
}

// openFront begins to answer for a hub that stands by.
func (s *standby) openFront(own leadership.Hub, certificates *tls.Config, stop func()) *front {
	s.front = newFront()
	f := &api.Forwarder{
		Node: own.Name, Hub: s.front.atWork, Runs: s.place.runs, Signer: s.place.signer, Log: s.place.Log, Again: s.front, Waits: s.front.waits,
		Hubs: func() any { return s.front.listHubs(own.Name) },
		Down: func(w http.ResponseWriter) {
			defer stop()
			e := wire.Event{At: object.Timestamp(time.Now()), Kind: events.OrchestratorStopped, Text: own.Name + " stands by no longer"}
			if text, err := object.Encode(e); err == nil {
				_, _ = w.Write(append(text, '\n'))
			}
		},
	}
	if certificates != nil {
		f.Roots = certificates.RootCAs
	}
	s.front.set(f.Handler())
	s.server.Serve(s.front, s.listeners.open...)
	return s.front
}

// streamDir returns where a hub keeps its part of the shared record.
func streamDir(c *config.Config) string { return filepath.Join(c.Orchestrator.StateDir, "stream") }

// openEngine connects to the servers of a shared store, or starts the one of this hub.
func (s *standby) openEngine(ctx context.Context, certificates *tls.Config) (engine, error) {
	secret, err := s.Config.SecretOf(ctx, "store.credentials", s.Environ)
	if err != nil {
		return nil, err
	}
	c := s.Config.Store
	switch {
	case c.Kind == "postgres":
		return postgres.Open(ctx, postgres.Options{URL: c.URL, Credentials: secret, Log: c.Log, Node: c.Node, Logger: s.place.Log})
	case len(c.Servers) > 0:
		return jetstream.Connect(ctx, jetstream.ServersOptions{
			Servers: c.Servers, Monitors: c.Monitors, Log: c.Log, Node: c.Node, User: c.User, Credentials: secret, TLS: certificates, Logger: s.place.Log,
		})
	}
	return jetstream.Start(ctx, jetstream.Options{
		Node: c.Node, Peers: c.Peers, Dir: streamDir(s.Config), Log: c.Log,
		Credentials: secret, TLS: certificates, Logger: s.place.Log, Waiting: func(missing []string) { s.front.missing.Store(&missing) },
	})
}

// openShared starts the engine of a shared store and opens the copy of it here.
func (s *standby) openShared(ctx context.Context, certificates *tls.Config) (*sharedStore, error) {
	engine, err := s.openEngine(ctx, certificates)
	if err != nil {
		return nil, err
	}
	log, err := eventlog.OpenShared(ctx, s.Config.Store.Path, engine)
	if err != nil {
		return nil, err
	}
	roster, err := leadership.NewRoster(engine)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return &sharedStore{log: log, engine: engine, peers: s.Config.Store.Peers, roster: roster}, nil
}

// hubTLS returns the certificates with which hubs know each other and their servers, or nil if none are
// configured. Without an authority it is that of the system.
func hubTLS(s config.Store) (*tls.Config, error) {
	if s.CA == "" && s.Certificate == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if s.CA != "" {
		text, err := os.ReadFile(s.CA)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate", s.CA)
		}
	}
	if s.Certificate == "" {
		return c, nil
	}
	pair, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
	if err != nil {
		return nil, err
	}
	c.Certificates, c.ClientCAs, c.ClientAuth = []tls.Certificate{pair}, c.RootCAs, tls.RequireAndVerifyClientCert
	return c, nil
}
