// Package serve holds the commands that run, start, stop and maintain an orchestrator: up,
// run, pipe, reload, down, store and backup.
//
// An [Instance] joins the parts of a running orchestrator: the event log, the supervisor,
// the listeners and the console. Package console prints what the instance does, and check
// runs programs in an instance of its own. No other command imports the supervisor.
package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/serve/team"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/budget"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/home"
	"orchestrator/supervisor/hosts"
	"orchestrator/supervisor/hosts/link"
	"orchestrator/supervisor/notify"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/telemetry"
	"orchestrator/supervisor/web"
	"orchestrator/supervisor/workspace"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
	"orchestrator/wire/mail"
)

// An Instance is an orchestrator in this process.
type Instance struct {
	log    hclog.Logger
	Home   *home.Home
	host   *child.Host
	Super  *supervisor.Supervisor
	record ledger
	warm   *dispatch.Warm // of a hub that stood by
	shared *sharedStore   // nil unless the store is shared
	hosts  *hosts.Hosts   // the machines that have joined
	front  *front         // nil unless this hub has stood by
	shut   func()         // ends the API of front
	ending func()         // called when the team is to end

	looksOver func()                         // stops lookOver; may be nil
	damage    atomic.Pointer[control.Damage] // found by lookOver
	workshop  *workspace.Manager
	notifier  *notify.Notifier
	merging   *workspace.Queue                        // nil if branches are merged only when a person says so
	keeper    *budget.Keeper                          // nil if no agent has a budget
	prices    atomic.Pointer[map[string]config.Price] // of models
	members   atomic.Pointer[[]budget.Member]         // of the configuration
	terminal  atomic.Pointer[notify.Terminal]

	watch    *telemetry.Telemetry
	shutdown time.Duration // the budget of the ordered stop
	listener *api.Socket   // the operators' socket
	remote   []net.Listener
	urls     []string  // URLs of remote
	runs     *api.Runs // agents with their own sockets
	signer   *api.Signer
	http     config.HTTP
	depth    int // maximum nesting of messages

	guard    *guard
	own      *requester
	budgeted *budgetTeam

	heard, refusals atomic.Int64 // number of agents' messages, and of rejected ones

	// Set for a team with a file.
	turn   chan struct{} // holds a value during a reload
	config *config.Config
	load   func() (*config.Config, config.Problems)
	Base   []string // environment that agents inherit
	chosen []string // agents named to start; if empty, the file decides
	noDeps bool     // do not start their dependencies

	server   *api.Server
	web      *web.View
	upgraded atomic.Pointer[control.Upgrade] // the latest
	before   *handover                       // what the program before this one has left; nil if there was none
	drain    func()                          // prints what waits, and erases the rows of the terminal; may be nil
}

// NewTeam returns an instance that holds nothing yet.
func NewTeam() *Instance { return &Instance{turn: make(chan struct{}, 1)} }

// Hold acquires the state directory, the socket and the process tree. It also ends agents
// that an earlier orchestrator left running.
func (t *Instance) Hold(stateDir, socket string, log hclog.Logger) error {
	var held *home.Home
	var err error
	if t.before != nil {
		held, err = home.TakeOver(stateDir, t.before.Locks)
	} else {
		held, err = OpenHome(stateDir, socket)
	}
	if err != nil {
		return err
	}
	t.Home, t.log, t.guard = held, log, &guard{log: log}
	t.own = &requester{log: log, guard: t.guard}
	t.budgeted = &budgetTeam{requester: t.own}
	if err := t.open(socket); err != nil {
		t.Release()
		return err
	}
	return nil
}

// Run runs a short command with the environment that agents inherit.
func (t *Instance) Run(command []string, dir string) error {
	_, err := t.host.Run(context.Background(), command, dir, t.Base)
	return err
}

// OpenHome opens the state directory of the orchestrator with a socket. A killed orchestrator
// holds the directory until the kernel has closed its files. It leaves a socket at which it does
// not answer, and OpenHome waits for its end.
func OpenHome(stateDir, socket string) (*home.Home, error) {
	for deadline := time.Now().Add(api.Answering); ; time.Sleep(10 * time.Millisecond) {
		held, err := home.Open(stateDir)
		if _, busy := errors.AsType[*home.BusyError](err); !busy || time.Now().After(deadline) {
			return held, err
		}
		if there, unknown := api.Answers(socket, api.Answering); there || unknown != nil {
			return nil, err
		}
	}
}

func (t *Instance) open(socket string) error {
	var err error
	if err = home.MakeSocketDir(socket, t.Home.Dir); err != nil {
		return fmt.Errorf("making the folder of the socket: %w", err)
	}
	// The socket is opened first: if another orchestrator answers there, its agents must
	// not be ended.
	options := child.Options{Home: t.Home.Dir, UserDir: t.Home.UserDir, Hidden: []string{home.UserDir(t.Home.Dir)}, Watchdog: true}
	var runs []api.HandedRun
	if t.before != nil {
		t.listener, err = api.Inherit(t.before.Socket)
		options.Upgraded, runs = &t.before.Children, t.before.Runs
	} else {
		t.listener, err = api.Listen(socket)
	}
	if err != nil {
		return fmt.Errorf("opening the socket: %w", err)
	}
	t.host, err = child.NewHost(options)
	if err != nil {
		return err
	}
	if t.before == nil {
		t.clearEarlier()
	}
	trace := func(pid int) (api.Origin, error) {
		o, err := t.host.Origin(pid)
		return api.Origin(o), err
	}
	t.runs = api.NewRuns(t.listener, runs...)
	t.listener.Trace, t.runs.Trace = trace, trace
	t.runs.Connections, t.runs.UserDir = t.guard.connections, t.Home.UserDir
	t.signer = &api.Signer{Path: filepath.Join(t.Home.Dir, "jwt.key")}
	return nil
}

// clearEarlier ends the agents that a killed orchestrator left running.
func (t *Instance) clearEarlier() {
	ended, survivors := t.host.ClearEarlier()
	ended = append(t.host.Swept(), ended...)
	t.Home.ClearUserDir()
	t.Home.ClearMerges()
	if len(ended) > 0 {
		t.log.Warn("ended what an earlier orchestrator had left running", "processes", programs(ended))
	}
	if len(survivors) > 0 {
		t.log.Error("processes of an earlier orchestrator do not die", "processes", programs(survivors))
	}
}

// Release releases everything. The instance cannot be used afterwards.
func (t *Instance) Release() {
	if t.shut != nil {
		t.shut()
	}
	if t.listener != nil {
		_ = t.listener.Close()
	}
	for _, l := range t.remote {
		_ = l.Close()
	}
	if t.notifier != nil {
		t.notifier.Close()
	}
	if t.keeper != nil {
		t.keeper.Close()
	}
	t.merging.Close()
	if t.watch != nil { // before the event log, which it may read
		t.watch.Close()
	}
	if t.looksOver != nil {
		t.looksOver()
	}
	if t.record != nil {
		if err := t.record.Close(); err != nil {
			t.log.Error("the record could not be closed", "error", err)
		}
	}
	if t.host != nil {
		if left := t.host.Close(); len(left) > 0 {
			t.log.Warn("ended processes that no agent could be found for", "processes", programs(left))
		}
	}
	// The socket is removed next to last. Clients that wait for the end wait for its
	// removal, and may start another orchestrator at once.
	if t.listener != nil {
		t.listener.Remove()
		home.RemoveSocketDir(t.listener.Addr().String(), t.Home.Dir)
	}
	t.Home.Close()
}

// runCommand runs the command of a secret as a child process.
func (t *Instance) runCommand(ctx context.Context, command []string, dir string, env []string) ([]byte, error) {
	return t.host.Run(ctx, command, dir, env)
}

// Supervise creates the supervisor of a configuration with the state from the event log.
func (t *Instance) Supervise(c *config.Config, o supervisor.Options) error {
	if os.Getenv("GOGC") == "" {
		tendGarbage()
	}
	ctx := context.Background()
	var err error
	if t.record == nil { // otherwise it was opened while this hub stood by
		if t.record, err = openRecord(ctx, c.Store); err != nil {
			return cannotRecord(err, c.Store)
		}
	}
	o.Version, o.StateDir, o.Start, o.Log = cli.Version, c.Orchestrator.StateDir, t.start, t.log
	o.Sound, o.Deposed = t.sound, t.deposed
	t.prices.Store(&c.Prices)
	o.Clock, o.UnsaidEnd = child.SinceBoot, t.Home.TakeEnd()
	o.Price = func(u *activity.Usage) { price(*t.prices.Load(), u) }
	o.Shutdown, o.Record, o.Warm, o.Doorway = c.Orchestrator.Shutdown, t.record, t.warm, t.runs.Open
	o.Keep = dispatch.Retention{For: c.Store.KeepFor, Bytes: c.Store.KeepBytes}
	if t.shared != nil {
		o.Objects = t.shared.engine
	}
	t.allow(c)
	t.web = t.openWeb(o.Name)
	t.shutdown, t.http, t.depth = c.Orchestrator.Shutdown, c.HTTP, c.Protocol.MaxDepth
	o.Rules, o.Protocol = team.Rules(c)
	o.Sessions, o.Tasks = team.Sessions(c), team.Tasks(c)
	o.Watch = t.observe()
	if t.before != nil {
		o.Upgraded, o.TakenOver = &t.before.Team, t.settled
	}
	o.Hosts, o.Workshop = t.openHosts(ctx, c), t.openWorkshop(c)
	t.Super = supervisor.New(o, t.specs(c))
	t.own.Supervisor = t.Super
	t.guard.team.Store(t.Super)
	callers := t.Super.Requests.Callers()
	t.signer.Issued = callers.TokenIssued
	t.signer.Recorded = func(c api.Claims) bool { return callers.TokenRecorded(c.ID, c.Subject, c.Role, c.ExpiresAt) }
	if err := t.Super.Restore(ctx); err != nil {
		return cannotRecord(err, c.Store)
	}
	t.watch.Begin(t.Super.Seq())
	t.looksOver = t.lookOver()
	t.tell(c)
	limit(t, c)
	mergeWhenDone(t, c)
	return nil
}

// sound returns an error if the state directory or the event log was deleted or replaced.
// New facts would then be lost with this process.
func (t *Instance) sound() error {
	name, open := t.Home.Lock()
	if err := eventlog.InPlace(name, open); err != nil {
		return err
	}
	if t.shared != nil {
		if err := t.shared.sound(); err != nil {
			return err
		}
	}
	if log, ok := t.record.(interface{ Sound() error }); ok {
		return log.Sound()
	}
	return nil
}

// lookOver reads the whole event log once in the background, so that damage is logged, and shown in
// the status, before a request meets it. The returned function stops the reading.
func (t *Instance) lookOver() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		base, err := t.record.Base(ctx)
		if err != nil {
			return // the record was read to this point when it was opened
		}
		for r, err := range t.record.Records(ctx, base.Seq) {
			if _, removed := errors.AsType[*wire.RemovedError](err); removed {
				return // old facts are being removed, which verifies them
			}
			if err != nil {
				if ctx.Err() == nil {
					t.damage.Store(damageOf(err))
					t.log.Error("the record is damaged: reading there fails, and everything else goes on", "error", err, "see", "orchestrator store check")
				}
				return
			}
			if r.Seq%512 == 0 { // at most about 50,000 facts a second
				select {
				case <-ctx.Done():
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// damageOf describes the error of a reader.
func damageOf(err error) *control.Damage {
	d := &control.Damage{Text: err.Error()}
	if chain, ok := errors.AsType[*eventlog.ChainError](err); ok {
		d.Seq = chain.Seq
	}
	return d
}

// start starts a process for the supervisor.
func (t *Instance) start(spec child.Spec) (supervisor.Process, error) {
	c, err := t.before.adopt(t.host, spec)
	if c == nil && err == nil {
		c, err = t.host.Start(spec)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// door returns the API of the instance.
func (t *Instance) door() *api.API {
	s, callers := t.Super, t.Super.Requests.Callers()
	d := &api.API{
		MaxBody:    t.http.MaxBody,
		Rate:       t.http.Rate,
		Log:        t.log,
		Runs:       t.runs,
		Agent:      callers.AgentOf,
		Actor:      callers.ActorOf,
		Signer:     t.signer,
		Operations: t.operations(),
		Streams:    map[string]api.Stream{"down": api.DoLines(t.down)},
		Lists:      map[string]api.List{"events": t.events, "logs": t.logs, "messages": t.messages},
		Pipes:      map[string]api.Pipe{"pipe": t.pipe},
		Ask:        callers.Ask,
		Do:         callers.Do,
		OpenMail:   callers.OpenMail,
		Note:       callers.Note,
		MayOperate: t.guard.mayOperate,
		Trespass:   t.guard.report,
		SignedIn:   t.signedIn,
		Depth:      t.depth,
		Metrics:    t.watch.Metrics,
		SignIns:    t.web.SignIns,
		Pages:      web.Assets(),
		Link: func(host, address string, conn net.Conn, in *bufio.Reader) error {
			return t.hosts.Serve(host, address, link.New(conn, in))
		},
		Version: cli.Version,
	}
	if t.shared != nil {
		d.Writable, d.AsOf = t.shared.writable, s.Seq
	}
	d.MCP = serveMCP(d)
	return d
}

// Serve starts the API. The returned function shuts it down.
func (t *Instance) Serve() (shut func()) {
	if t.front != nil {
		t.runs.Answer = t.server.Answer
		attending, enough := context.WithCancel(context.Background())
		go t.shared.attend(attending, t.Super.SetStalled)
		t.front.set(t.door().Handler())
		return func() {
			enough()
			t.shut()
		}
	}
	open, cancel := context.WithCancel(context.Background())
	server := api.NewServer(t.door().Handler(), t.log)
	t.runs.Answer, t.server = server.Answer, server
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(open, append(t.remote, t.listener)...)
	}()
	return func() {
		cancel()
		<-served
	}
}

// down stops the team and sends its events until the end.
func (t *Instance) down(ctx context.Context, r control.DownRequest, send func(any) error) error {
	q := output.EventQuery{Since: t.Super.Seq(), Follow: true}
	if t.ending != nil {
		t.ending()
	}
	if r.Force {
		t.Super.Kill("killed by hand")
	} else {
		t.Super.Stop("stopped by hand")
	}
	return t.Super.Events(ctx, q, func(e wire.Event) error { return send(e) })
}

func (t *Instance) events(ctx context.Context, query url.Values, send func(any) error) error {
	q := output.EventQuery{
		After:  query.Get("after"),
		Kind:   query.Get("type"),
		Task:   query.Get("task"),
		Agents: query["agent"],
		Follow: query.Get("follow") == "true",
	}
	since, err := number(query, "since", 0)
	if err != nil {
		return err
	}
	q.Since = since
	return t.Super.Events(ctx, q, func(e wire.Event) error { return send(e) })
}

func (t *Instance) logs(ctx context.Context, query url.Values, send func(any) error) error {
	n, err := number(query, "n", output.AllLines)
	if err != nil {
		return err
	}
	q := output.LogQuery{
		Agents: query["agent"],
		Last:   int(min(n, 1<<30)),
		Stream: query.Get("stream"),
		After:  query.Get("after"),
		Until:  query.Get("until"),
		Follow: query.Get("follow") == "true",
	}
	return t.Super.Logs(ctx, q, func(l control.LogLine) error { return send(l) })
}

// messages lists the messages of all actors.
func (t *Instance) messages(ctx context.Context, query url.Values, send func(any) error) error {
	q := dispatch.MailQuery{
		Topic: query.Get("topic"), Actor: query.Get("actor"),
		Follow: query.Get("follow") == "true", People: query.Get("housekeeping") == "false",
	}
	var err error
	if q.Since, err = number(query, "since", 0); err != nil {
		return err
	}
	last, err := number(query, "n", 0)
	if err != nil {
		return err
	}
	q.Last = int(min(last, maxMessages))
	return t.Super.Requests.Messages(ctx, q, func(m mail.Message) error { return send(m) })
}

// maxMessages is the limit of n. The last messages are found from the end and are all kept
// in memory until the first one is found.
const maxMessages = 100_000

// number returns a number of a query, or otherwise if it is missing.
func number(query url.Values, name string, otherwise int64) (int64, error) {
	text := query.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, &wire.Error{Code: wire.CodeInvalid, Message: fmt.Sprintf("%s is %q, and should be a number from 0", name, text)}
	}
	return n, nil
}

// CannotHold returns the failure for an error of Hold.
func CannotHold(err error, stateDir string) error {
	if busy, ok := errors.AsType[*home.BusyError](err); ok {
		return &cli.Failure{
			Exit: cli.ExitConflict, Code: wire.CodeConflict,
			Message: "an orchestrator already runs here" + busyDetail(busy),
			Hint:    "Look at it: orchestrator status     Stop it: orchestrator down     Another one: --state-dir DIR",
			Details: map[string]any{"pid": busy.PID, "state_dir": stateDir},
		}
	}
	f := &cli.Failure{
		Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "cannot start in " + stateDir + ": " + err.Error(),
		Because: []string{"Nothing was started."}, Hint: "Keep the state elsewhere: --state-dir DIR     or in the file: orchestrator { state_dir = … }",
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		f.Hint = "Make room there: df -h " + term.Word(stateDir) + "     Or keep the state elsewhere: --state-dir DIR"
	}
	return f
}

func busyDetail(busy *home.BusyError) string {
	if busy.PID == 0 {
		return ""
	}
	if busy.Since.IsZero() {
		return fmt.Sprintf(" (pid %d)", busy.PID)
	}
	return fmt.Sprintf(" (pid %d, since %s)", busy.PID, busy.Since.Local().Format("15:04"))
}

// observe creates the telemetry and returns the hooks of the supervisor for it.
func (t *Instance) observe() dispatch.Hooks {
	t.watch = telemetry.New(telemetry.Options{
		Version:     cli.Version,
		Operations:  operationNames(),
		Status:      t.glance,
		ResumePoint: t.hindsight,
		Records:     t.record.Records,
		Env:         os.Getenv,
		Warn:        t.log.Warn,
	})
	w := dispatch.Hooks{Judged: t.judged, Recorded: t.watch.Recorded}
	if t.watch.Tracing() {
		w.Asked = func(a dispatch.Asked) { t.watch.Asked(telemetry.Asked(a)) }
		w.Answered = func(a dispatch.Answered) { t.watch.Answered(telemetry.Answered(a)) }
	}
	return w
}

// judged counts messages and passes them on to the telemetry.
func (t *Instance) judged(door, kind string, code wire.Code, messages int) {
	if door == doorOfAgents {
		t.heard.Add(int64(messages))
		if code != "" {
			t.refusals.Add(int64(messages))
		}
	}
	t.watch.Judged(door, kind, code, messages)
}

// doorOfAgents is the name of the API on the stdio of agents.
const doorOfAgents = "stdio"

func (t *Instance) glance(ctx context.Context) (control.Status, error) {
	return t.Super.QuickStatus(ctx)
}

func (t *Instance) hindsight(ctx context.Context, since int64) (behind int64, sessions []string, err error) {
	h, err := t.Super.Requests.ResumePoint(ctx, since)
	return h.Behind, h.Sessions, err
}

// operationNames returns the operations that package handlers decides.
func operationNames() []string {
	var names []string
	for _, o := range wire.Operations {
		names = append(names, o.Name)
	}
	return names
}
