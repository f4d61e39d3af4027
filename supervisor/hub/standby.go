package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"orchestrator/supervisor/api"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/jetstream"
	"orchestrator/supervisor/eventlog/postgres"
	"orchestrator/supervisor/hub/team"
	"orchestrator/supervisor/leadership"
)

// ErrDeposed reports that another hub is at work.
var ErrDeposed = errors.New("another hub is at work")

// ErrEnded reports that a hub was ended while it stood by.
var ErrEnded = errors.New("this hub no longer stands by")

// A Standby is the part of a hub that opens a shared record and waits for its turn. Another record needs no turn.
type Standby struct {
	Options
	Place     *Place
	Server    *Server
	listeners *listeners
	record    *record
	front     *front // nil unless this hub has stood by
}

// NewStandby returns the standby of a place, for a command that uses no hub.
func NewStandby(p *Place, o Options) *Standby {
	return &Standby{Options: o, Place: p, Server: NewServer(p), listeners: &listeners{place: p}, record: &record{place: p, store: o.Config.Store}}
}

// Stop ends the API, and that only: the record is stopped after it.
func (s *Standby) Stop() { s.Server.Stop() }

// Start waits until this hub has its turn, or ctx ends.
func (s *Standby) Start(ctx context.Context) error {
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
func (s *Standby) await(ctx context.Context) error {
	c := s.Config
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	certificates, err := TLS(c.Store)
	if err != nil {
		return err
	}
	hub := leadership.Hub{Name: c.Store.Node, Version: s.Version, URL: reachable(c.Store.Node, s.listeners.open)}
	f := s.OpenFront(hub, certificates, stop)
	s.Note("%s stands by. Ctrl-C ends it.", hub.Name)
	shared, err := s.OpenShared(ctx, certificates)
	if err != nil {
		if ctx.Err() != nil {
			return ErrEnded
		}
		return err
	}
	shared.own = hub
	f.shared.Store(shared)
	r := s.record
	r.shared, r.ledger, s.Place.signer.Seed = shared, shared.Log, shared.Engine.Key()
	o := dispatch.Options{Record: r.ledger, Log: s.Place.Log}
	o.Rules, o.Protocol = team.Rules(c)
	r.warm = dispatch.NewWarm(o)
	mine, err := leadership.Wait(ctx, leadership.Options{
		Log: shared.Log, Engine: shared.Engine, Hub: hub, Logger: s.Place.Log,
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
	if _, err = leadership.Serve(shared.Engine, mine); err != nil { // until the engine is closed
		return err
	}
	s.Note("%s is the hub since fact %d.", mine.Name, mine.Epoch)
	return nil
}

// OpenFront begins to answer for a hub that stands by.
func (s *Standby) OpenFront(own leadership.Hub, certificates *tls.Config, stop func()) *front {
	s.front = &front{own: own.Name, stop: stop, over: make(chan struct{})}
	f := &api.Forwarder{Node: own.Name, Hub: s.front, Runs: s.Place.Runs, Signer: s.Place.signer, Log: s.Place.Log}
	if certificates != nil {
		f.Roots = certificates.RootCAs
	}
	s.front.set(f.Handler())
	s.Server.Serve(s.front, s.listeners.open...)
	return s.front
}

// StreamDir returns where a hub keeps its part of the shared record.
func StreamDir(c *config.Config) string { return filepath.Join(c.Orchestrator.StateDir, "stream") }

// OpenEngine connects to the servers of a shared store, or starts the one of this hub.
func (s *Standby) OpenEngine(ctx context.Context, certificates *tls.Config) (engine, error) {
	secret, err := s.Config.SecretOf(ctx, "store.credentials", s.Environ)
	if err != nil {
		return nil, err
	}
	c := s.Config.Store
	switch {
	case c.Kind == "postgres":
		return postgres.Open(ctx, postgres.Options{URL: c.URL, Credentials: secret, Log: c.Log, Node: c.Node, Logger: s.Place.Log})
	case len(c.Servers) > 0:
		return jetstream.Connect(ctx, jetstream.ServersOptions{
			Servers: c.Servers, Monitors: c.Monitors, Log: c.Log, Node: c.Node, User: c.User, Credentials: secret, TLS: certificates, Logger: s.Place.Log,
		})
	}
	return jetstream.Start(ctx, jetstream.Options{
		Node: c.Node, Peers: c.Peers, Dir: StreamDir(s.Config), Log: c.Log,
		Credentials: secret, TLS: certificates, Logger: s.Place.Log, Waiting: func(missing []string) { s.front.missing.Store(&missing) },
	})
}

// OpenShared starts the engine of a shared store and opens the copy of it here.
func (s *Standby) OpenShared(ctx context.Context, certificates *tls.Config) (*sharedStore, error) {
	engine, err := s.OpenEngine(ctx, certificates)
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
	return &sharedStore{Log: log, Engine: engine, peers: s.Config.Store.Peers, roster: roster}, nil
}

// TLS returns the certificates of hubs for each other and for their servers, or nil if none are
// configured. The default authority is the system's.
func TLS(s config.Store) (*tls.Config, error) {
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
