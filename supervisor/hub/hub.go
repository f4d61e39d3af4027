// Package hub is a running orchestrator, without its commands: no flag, no console, no signal.
//
// A [Hub] is a list of [Part]s, which start forwards and stop backwards:
//
//	Place      state directory, socket, process tree
//	listeners  TCP listeners of the API
//	record     event log
//	Standby    turn of this hub, if several share the event log
//	meter      counts and telemetry
//	verifier   one reading of the whole event log
//	notices    notifications to people
//	budgets    budgets of agents
//	works      workspaces and the merge queue
//	door       API
//
// The supervisor is created between meter and verifier, in [Hub.Supervise], and runs in [Hub.Run]. A part has its options,
// its state, and pointers to the parts that it needs. Errors are values here: package serve has their words for people.
package hub

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"

	"orchestrator/supervisor"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/hosts/link"
	"orchestrator/supervisor/hub/team"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/web"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// Options configure a Hub.
type Options struct {
	Version string
	Config  *config.Config
	Environ []string // for the secrets of a shared store
	// Note tells the person at the terminal how a hub stands by.
	Note func(format string, args ...any)
	// MCP returns the handler of MCP clients, who make the requests of an API.
	MCP func(*api.API) http.Handler
	// Commands runs the command lines that programs pass on.
	Commands api.Commands
	// Explain answers explain, by requests at a socket.
	Explain func(ctx context.Context, socket, of string) (string, error)
}

// A Hub is a running orchestrator: its parts, in the order of their start. They stop backwards.
type Hub struct {
	Options
	Parts
	Place *Place
	File  *File
	Super *supervisor.Supervisor // nil before Supervise

	listeners *listeners
	record    *record
	standby   *Standby
	meter     *meter
	verifier  *verifier
	notices   *notices
	budgets   *budgets
	works     *works
	door      *door

	// Parts that neither start nor stop:
	own      *requester
	server   *Server
	machines *machines
	upgrades *upgrades
	web      *web.View
}

// New returns a hub that has not started.
func New(p *Place, f *File, o Options) *Hub {
	h := &Hub{Options: o, Place: p, File: f, own: &requester{log: p.Log}, server: NewServer(p)}
	h.listeners = &listeners{place: p, http: o.Config.HTTP, shared: o.Config.Store.Shared()}
	h.record = &record{place: p, store: o.Config.Store}
	h.standby = &Standby{Options: o, Place: p, Server: h.server, listeners: h.listeners, record: h.record}
	h.meter = &meter{version: o.Version, log: p.Log, own: h.own, record: h.record}
	h.verifier = &verifier{record: h.record, log: p.Log}
	h.notices = &notices{place: p, file: f, own: h.own, config: o.Config}
	h.budgets = &budgets{requester: h.own, config: o.Config}
	h.works = &works{own: h.own, config: o.Config, file: f}
	h.machines = &machines{own: h.own, record: h.record}
	h.upgrades = &upgrades{version: o.Version, place: p, file: f, record: h.record, listeners: h.listeners, server: h.server, own: h.own}
	h.door = &door{hub: h}
	return h
}

// Hold starts the place.
func (h *Hub) Hold(ctx context.Context) error {
	if err := h.Parts.Start(ctx, h.Place); err != nil {
		return err
	}
	h.own.guard = h.Place.Guard
	return nil
}

// Listen starts the listeners and returns their URLs.
func (h *Hub) Listen(ctx context.Context) ([]string, error) {
	err := h.Parts.Start(ctx, h.listeners)
	return h.listeners.urls, err
}

// StandBy opens a shared record and waits for the turn of this hub, until ctx ends.
func (h *Hub) StandBy(ctx context.Context) error { return h.Parts.Start(ctx, h.record, h.standby) }

// Supervise creates the supervisor with the state from the event log, and starts the parts that follow its events. All of its
// errors are about the event log.
func (h *Hub) Supervise(ctx context.Context, o supervisor.Options) error {
	restored := func() {}
	if os.Getenv("GOGC") == "" {
		restored = tendGarbage()
	}
	if !h.Config.Store.Shared() {
		if err := h.Parts.Start(ctx, h.record); err != nil {
			return err
		}
	}
	if err := h.Parts.Start(ctx, h.meter); err != nil {
		return err
	}
	h.prepare(ctx, &o)
	h.Super = supervisor.New(o, h.File.specs(h.Config))
	h.own.Supervisor = h.Super
	h.Place.Guard.team.Store(h.Super)
	h.Place.signer.Tokens = h.Super.Requests.Callers()
	if err := h.Super.Restore(ctx); err != nil {
		return err
	}
	restored()
	h.meter.watch.Begin(h.Super.Seq())
	return h.Parts.Start(ctx, h.verifier, h.notices, h.budgets, h.works)
}

// prepare completes the options of the supervisor.
func (h *Hub) prepare(ctx context.Context, o *supervisor.Options) {
	c, p, r := h.Config, h.Place, h.record
	o.Version, o.StateDir, o.Start, o.Log = h.Version, c.Orchestrator.StateDir, p.Launch, p.Log
	o.Check = r
	o.Clock, o.UnsaidEnd = child.SinceBoot, p.Home.TakeEnd()
	h.budgets.prices.Store(&c.Prices)
	o.Price = h.budgets.price
	o.Shutdown, o.Record, o.Warm, o.Doorway = c.Orchestrator.Shutdown, r.ledger, r.warm, p.Runs.Open
	o.Keep = dispatch.Retention{For: c.Store.KeepFor, Bytes: c.Store.KeepBytes}
	if r.shared != nil {
		o.Objects = r.shared.Engine
	}
	p.Guard.allow(c)
	h.web = h.listeners.openWeb(o.Name, h.server)
	h.upgrades.web = h.web
	o.Rules, o.Protocol = team.Rules(c)
	o.Sessions, o.Tasks = team.Sessions(c), team.Tasks(c)
	o.Watch = h.meter.hooks()
	if p.Before != nil {
		o.Upgraded, o.TakenOver = &p.Before.Team, h.upgrades.settled
	}
	h.machines.prepare(ctx, c)
	h.works.prepare(p)
	o.Hosts, o.Workshop = h.machines.Hosts, h.works.Manager
}

// A WorkError has the reasons why workspaces could not be made, or their commands not run.
type WorkError struct{ Reasons []string }

func (e *WorkError) Error() string { return e.Reasons[0] }

// CheckWork returns a WorkError if tasks could not be verified. A team that runs already goes on.
func (h *Hub) CheckWork(ctx context.Context) error {
	reasons := h.works.Check(ctx, team.Workspaces(h.Config, h.File.Base))
	switch {
	case len(reasons) == 0:
		return nil
	case h.Place.Before != nil || h.standby.front != nil:
		h.Place.Log.Error("tasks cannot be verified", "reasons", reasons)
		return nil
	}
	return &WorkError{reasons}
}

// Serve starts the API.
func (h *Hub) Serve() { _ = h.Parts.Start(context.Background(), h.door) }

// Shut ends the API before the other parts.
func (h *Hub) Shut() { h.door.Stop() }

// A door is the API of a hub.
type door struct {
	hub    *Hub
	ending func() // called when the team is to end; may be nil
	end    func()
}

// Start opens the door.
func (d *door) Start(context.Context) error {
	h := d.hub
	handler := h.api().Handler()
	d.end = func() {}
	if h.standby.front == nil {
		h.server.Serve(handler, h.listeners.open...)
		return nil
	}
	var attending context.Context
	attending, d.end = context.WithCancel(context.Background())
	go h.record.shared.attend(attending, h.Super.SetStalled)
	h.standby.front.set(handler)
	return nil
}

// Stop shuts it. It may be called more than once.
func (d *door) Stop() {
	d.end()
	d.hub.server.Stop()
}

// Run runs the team until its end. The error is ErrDeposed if another hub is at work.
func (h *Hub) Run(ctx context.Context) error {
	ending, end := context.WithCancel(ctx)
	defer end()
	h.door.ending = end
	if h.record.shared != nil {
		ended, over := context.WithCancel(context.Background())
		defer over()
		go h.record.shared.giveUp(ending, ended, h.Place.Log)
	}
	err := h.Super.Run(ctx)
	if h.record.Deposed(err) != nil {
		return ErrDeposed
	}
	return err
}

// Messages returns the number of messages of agents, and the number of rejected ones.
func (h *Hub) Messages() (heard, refused int64) { return h.meter.heard.Load(), h.meter.refusals.Load() }

// Signal returns the text that the terminal gets because of an event.
func (h *Hub) Signal(e *wire.Event) string { return h.notices.signal(e) }

// BeforeUpgrade sets a function that is called right before the program is replaced.
func (h *Hub) BeforeUpgrade(drain func()) { h.upgrades.Drain = drain }

// ShowWeb serves the listener of the web view that the program before this one has had. If the web view is asked for, it
// returns the address that signs in once.
func (h *Hub) ShowWeb(asked bool) (url string) {
	var err error
	before := h.Place.Before
	handed := before != nil && before.TCP[web.Address] != 0
	if (handed || h.web.SignIns.Any()) && len(h.listeners.urls) == 0 { // open pages go on
		_, err = h.web.Own()
	}
	if asked && err == nil {
		url, err = h.web.Show()
	}
	if err != nil {
		h.Place.Log.Error("the web view has no address", "error", err)
		return ""
	}
	return url
}

// api returns the API of the instance.
func (h *Hub) api() *api.API {
	s, callers := h.Super, h.Super.Requests.Callers()
	d := &api.API{
		MaxBody:    h.Config.HTTP.MaxBody,
		Rate:       h.Config.HTTP.Rate,
		Log:        h.Place.Log,
		Runs:       h.Place.Runs,
		Callers:    callers,
		Signer:     h.Place.signer,
		Operations: h.operations(),
		Streams:    map[string]api.Stream{"down": api.DoLines(h.down)},
		Lists:      map[string]api.List{"events": h.own.events, "logs": h.own.logs, "messages": h.own.messages},
		Pipes:      map[string]api.Pipe{"pipe": h.pipe},
		Guard:      h.Place.Guard,
		SignedIn:   h.signedIn,
		Depth:      h.Config.Protocol.MaxDepth,
		Metrics:    h.meter.watch.Metrics,
		Commands:   h.Commands,
		SignIns:    h.web.SignIns,
		Pages:      web.Assets(),
		Link: func(host, address string, conn net.Conn, in *bufio.Reader) error {
			return h.machines.Serve(host, address, link.New(conn, in))
		},
		Version: h.Version,
	}
	if h.record.shared != nil {
		d.Writable, d.AsOf = h.record.shared.writable, s.Seq
	}
	d.MCP = h.MCP(d)
	return d
}

// down stops the team and sends its events until the end.
func (h *Hub) down(ctx context.Context, r control.DownRequest, send func(any) error) error {
	q := output.EventQuery{Since: h.Super.Seq(), Follow: true}
	if h.door.ending != nil {
		h.door.ending()
	}
	if r.Force {
		h.Super.Kill("killed by hand")
	} else {
		h.Super.Stop("stopped by hand")
	}
	return h.Super.Events(ctx, q, func(e wire.Event) error { return send(e) })
}

// NoteEnd notes that a team was stopped in order because of an error of its record, which cannot have that.
func (h *Hub) NoteEnd(err error) {
	_, lost := errors.AsType[*eventlog.LostError](err)
	if !lost && !errors.Is(err, eventlog.ErrFull) && !errors.Is(err, eventlog.ErrDamaged) {
		return
	}
	if err := h.Place.Home.NoteEnd(); err != nil {
		h.Place.Log.Debug("the shutdown was not recorded: the next start treats it as a kill", "error", err)
	}
}

// pipe lets a program join as an agent.
func (h *Hub) pipe(ctx context.Context, query url.Values, accept func() (*api.Conn, error)) error {
	guest, err := h.File.guest(ctx, query)
	if err != nil {
		return err
	}
	return h.Super.Join(ctx, guest, func() (supervisor.Conn, error) {
		conn, err := accept()
		if err != nil {
			return nil, err // avoid a nil pointer in the interface
		}
		return conn, nil
	})
}

// signedIn tells people that somebody has signed in to the web view.
func (h *Hub) signedIn(name, role string) {
	h.Super.Report(&wire.Event{Kind: events.PersonSignedIn, Text: name + " has signed in to the web view as " + role})
}
