package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/serve/team"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/jetstream"
	"orchestrator/supervisor/eventlog/postgres"
	"orchestrator/supervisor/leadership"
	"orchestrator/wire"
)

// errDeposed reports that another hub is at work.
var errDeposed = errors.New("another hub is at work")

// An engine keeps the record of several hubs, and their artifacts.
type engine interface {
	eventlog.Engine
	eventlog.Objects
}

// A sharedStore is the record of a team with several hubs.
type sharedStore struct {
	log      *eventlog.Shared
	engine   engine
	peers    []string // the hubs; empty: there are any number, and a server keeps the record
	own      leadership.Hub
	roster   *leadership.Roster
	epoch    int64
	atWork   atomic.Bool // this hub has taken its turn
	looked   time.Time
	answered atomic.Pointer[time.Time] // when the log last answered a question
	deposed  atomic.Bool               // another hub is at work
}

// lookAgain is how often a hub asks whether it is still the one at work, and whether the log answers.
// A log that does not answer for tooSilent cannot be written.
const (
	lookAgain = time.Second
	tooSilent = 3 * time.Second
)

// attend asks every lookAgain whether the log answers, and calls stalled with why nothing can be recorded, or nil,
// until ctx ends.
func (s *sharedStore) attend(ctx context.Context, stalled func(*wire.Error)) {
	began := time.Now()
	s.answered.Store(&began) // it has recorded its start
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		asked := time.Now()
		if _, err := s.engine.End(ctx); err == nil {
			s.answered.Store(&asked)
		}
		stalled(s.writable())
		s.roster.Tell(s.report())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// writable returns why nothing can be recorded, if the log does not answer or has another hub.
func (s *sharedStore) writable() *wire.Error {
	if s.deposed.Load() {
		return &wire.Error{Code: api.CodeNoQuorum, Message: "another hub is at work, and this one stops its agents", Hint: "Try again in a few seconds, or ask another hub"}
	}
	if last := s.answered.Load(); last == nil || time.Since(*last) < tooSilent {
		return nil
	}
	missing := s.engine.Missing()
	refusal := &wire.Error{
		Code: api.CodeNoQuorum, Message: s.lost(missing), Hint: "Start them, or ask another hub", Details: map[string]any{"missing": missing},
	}
	switch {
	case len(s.peers) > 0 && len(missing) == 0:
		refusal.Message, refusal.Hint = "nothing can be recorded: the hubs elect a leader, or do not answer each other in time", "Try again"
	case len(s.peers) == 0:
		refusal.Message, refusal.Hint = "nothing can be recorded: the server of the record does not answer: "+strings.Join(missing, ", "), "Start it, or ask another hub"
	}
	return refusal
}

// sound returns ErrMoved if another hub is at work. It returns nil if the log does not answer, which proves nothing.
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

// deposed returns the refusal of requests if an error of the record says that another hub is at work. Such an error
// also says that nothing of the batch was recorded.
func (t *Instance) deposed(err error) *wire.Error {
	if t.shared == nil || !errors.Is(err, eventlog.ErrMoved) {
		return nil
	}
	t.shared.deposed.Store(true)
	return t.shared.writable()
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
		if missing := len(s.engine.Missing()); 2*missing > len(s.peers) {
			silent++
		} else {
			silent = 0
		}
	}
	away := "the other hubs cannot be reached"
	if len(s.peers) == 0 {
		away = "the server of the record does not answer"
	}
	log.Warn(away+", so the end of this hub is not recorded", "missing", strings.Join(s.engine.Missing(), ", "))
	_ = s.engine.Close()
}

// standBy opens a shared record and waits until this hub has its turn.
func (t *Instance) standBy(a *cli.App, c *config.Config) error {
	if !c.Store.Shared() {
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := whichHub(c.Store, "up"); err != nil {
		return err
	}
	if err := notMoved(c); err != nil {
		return err
	}
	certificates, err := hubTLS(c.Store)
	if err != nil {
		return cannotShare(err, c.Store)
	}
	hub := leadership.Hub{Name: c.Store.Node, Version: cli.Version, URL: reachable(c.Store.Node, t.remote)}
	f := t.openFront(hub, certificates, stop)
	a.Note("%s stands by. Ctrl-C ends it.", hub.Name)
	shared, err := openShared(ctx, t, a, c, certificates)
	if err != nil {
		if ctx.Err() != nil {
			return cli.ExitWith(cli.ExitOK)
		}
		return cannotShare(err, c.Store)
	}
	shared.own = hub
	f.shared.Store(shared)
	t.shared, t.record, t.signer.Seed = shared, shared.log, shared.engine.Key()
	o := dispatch.Options{Record: t.record, Log: t.log}
	o.Rules, o.Protocol = team.Rules(c)
	t.warm = dispatch.NewWarm(o)
	mine, err := leadership.Wait(ctx, leadership.Options{
		Log: t.shared.log, Engine: t.shared.engine, Hub: hub, Logger: t.log,
		Followed: func(ctx context.Context) error {
			shared.roster.Tell(shared.report())
			return t.warm.Follow(ctx)
		},
		Heard: func(who leadership.Hub) {
			f.heard(who)
			a.Note("The hub is %s since fact %d.", who.Name, who.Epoch)
		},
	})
	switch {
	case ctx.Err() != nil:
		return cli.ExitWith(cli.ExitOK)
	case err != nil:
		return cannotShare(err, c.Store)
	}
	t.shared.epoch = mine.Epoch
	t.shared.atWork.Store(true)
	f.heard(mine)
	if _, err = leadership.Serve(t.shared.engine, mine); err != nil { // until the engine is closed
		return cannotShare(err, c.Store)
	}
	a.Note("%s is the hub since fact %d.", mine.Name, mine.Epoch)
	return nil
}

// whichHub returns the failure for a configuration that does not say which hub this one is.
func whichHub(s config.Store, verb string) error {
	if s.Node != "" {
		return nil
	}
	return &cli.Failure{
		Exit: cli.ExitUsage, Code: wire.CodeInvalid,
		Message: "which of the peers is this hub? " + strings.Join(s.Peers, ", "),
		Because: []string{"Several of them are on this machine, or none is.", "Nothing was started."},
		Hint:    "Say it: orchestrator " + verb + " --node " + s.Peers[0] + "     or ORC_NODE=" + s.Peers[0],
	}
}

// notMoved returns the failure for a hub that has a record and has never had a part of the shared one. With
// this hub, the others would begin an empty record.
func notMoved(c *config.Config) error {
	if c.Store.Kind != "jetstream" || len(c.Store.Servers) > 0 || !recorded(c.Store.Path) {
		return nil
	}
	if _, err := os.Stat(streamDir(c)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &cli.Failure{
		Exit: cli.ExitConflict, Code: wire.CodeConflict,
		Message: c.Store.Path + " has records, and this hub has never used the shared store",
		Because: []string{"Nothing was started."},
		Hint:    "Move them: orchestrator store move --to jetstream     Or go on without them: move " + term.Word(c.Store.Path) + "* away",
	}
}

// streamDir returns where a hub keeps its part of the shared record.
func streamDir(c *config.Config) string { return filepath.Join(c.Orchestrator.StateDir, "stream") }

// openEngine connects to the servers of a shared store, or starts the one of this hub.
func openEngine(ctx context.Context, t *Instance, a *cli.App, c *config.Config, certificates *tls.Config) (engine, error) {
	secret, err := c.SecretOf(ctx, "store.credentials", a.Environ)
	if err != nil {
		return nil, err
	}
	s := c.Store
	switch {
	case s.Kind == "postgres":
		return postgres.Open(ctx, postgres.Options{URL: s.URL, Credentials: secret, Log: s.Log, Node: s.Node, Logger: t.log})
	case len(s.Servers) > 0:
		return jetstream.Connect(ctx, jetstream.ServersOptions{
			Servers: s.Servers, Monitors: s.Monitors, Log: s.Log, Node: s.Node, User: s.User, Credentials: secret, TLS: certificates, Logger: t.log,
		})
	}
	return jetstream.Start(ctx, jetstream.Options{
		Node: s.Node, Peers: s.Peers, Dir: streamDir(c), Log: s.Log,
		Credentials: secret, TLS: certificates, Logger: t.log, Waiting: func(missing []string) { t.front.missing.Store(&missing) },
	})
}

// openShared starts the engine of a shared store and opens the copy of it here.
func openShared(ctx context.Context, t *Instance, a *cli.App, c *config.Config, certificates *tls.Config) (*sharedStore, error) {
	engine, err := openEngine(ctx, t, a, c, certificates)
	if err != nil {
		return nil, err
	}
	log, err := eventlog.OpenShared(ctx, c.Store.Path, engine)
	if err != nil {
		return nil, err
	}
	roster, err := leadership.NewRoster(engine)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return &sharedStore{log: log, engine: engine, peers: c.Store.Peers, roster: roster}, nil
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

// cannotShare returns the failure for a shared record that cannot be used.
func cannotShare(err error, s config.Store) error {
	f := &cli.Failure{
		Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "cannot use the shared record: " + err.Error(), Because: []string{"Nothing was started."},
	}
	if shorter, ok := errors.AsType[*eventlog.ShorterError](err); ok {
		f.Because = append(f.Because, "The other hubs may have lost their disks, or peers names other hubs than before.")
		if len(s.Peers) == 0 {
			f.Because[1] = "The server may be one that was restored from a backup, or a replica that was behind, or url names another one than before."
		}
		f.Hint = "Start the hub that still has them, or, if they may be lost, move " + s.Path + "* away"
		f.Details = map[string]any{"copy": shorter.Copy, "log": shorter.Log}
		if shorter.Log == 0 {
			f.Hint = "Move the record of this machine there: orchestrator store move --to " + s.Kind + "     Or, if it may be lost, move " + s.Path + "* away"
		}
	}
	if away, ok := errors.AsType[*eventlog.ElsewhereError](err); ok {
		f.Hint = whereMoved(away, s, "orchestrator store move --to "+s.Kind)
		f.Details = map[string]any{"owner": away.Owner, "log": away.Last}
	}
	return f
}
