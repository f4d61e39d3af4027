package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"orchestrator/handlers"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// Options configure a Supervisor.
type Options struct {
	Name     string
	Version  string
	Config   string // the configuration file, for display
	StateDir string
	Start    func(child.Spec) (Process, error) // creates a process
	Log      hclog.Logger
	Shutdown time.Duration   // one budget for the whole ordered stop
	Record   dispatch.Record // where facts are stored; nil: nowhere
	ReadOnly bool            // Record is read-only: only Look can be called
	Sound    func() error    // returns why new records would be lost, such as a deleted file; nil: not checked
	Rules    handlers.Rules
	Protocol dispatch.Protocol
	Sessions []wire.SessionSpec // the sessions of the configuration, in order
	// Doorway gives a run of an agent access over HTTP, besides its pipe. env holds variables
	// for the run, even if err is not nil. shut is called once, when the run's processes have
	// ended. A nil Doorway gives no access.
	Doorway func(agent, run string) (env []string, shut func(), err error)
	// Watch observes requests and records.
	Watch dispatch.Hooks
	// ExitWhenIdle ends Run when every agent has ended for good.
	ExitWhenIdle bool
	// AbortOnFailure ends Run when the first agent fails for good.
	AbortOnFailure bool
}

// ErrAgentsFailed is returned by Run when ExitWhenIdle or AbortOnFailure ended it, and not
// every agent had ended well.
var ErrAgentsFailed = errors.New("agents failed")

// A Supervisor runs agents. Its methods are safe for concurrent use; their work is done by the
// goroutine of Run.
type Supervisor struct {
	// Requests performs the operations of callers outside the pipes of agents.
	Requests dispatch.Requests

	options    Options
	dispatcher *dispatch.Dispatcher
	artifacts  *artifacts // nil without a state directory
	audience   *output.Feed
	tally      idleCounter
	began      time.Time
	done       chan struct{} // closed when Run has ended
	makers     errgroup.Group

	inbox struct {
		mu    sync.Mutex
		turns []func()
		wake  chan struct{}
	}

	// Used only by the goroutine of Run.
	agents    map[string]*agent
	actors    map[string]*agent // the agent that holds each named actor
	order     []*agent
	sessions  []wire.SessionSpec
	deadlines deadlines
	storm     stormGuard
	idle      bool      // the end of all work was reported
	lingering *deadline // the next check whether the work has ended
	stopping  *stopping // nil until the stop begins
	failed    bool      // agents had failed when the stop began
	broken    error     // why nothing can be recorded any more

	expecting   map[*agent]bool // agents with a waiting expectation
	processions []*orderedStop
}

// An agent is the runtime state of an Agent. Only the goroutine of Run uses it.
type agent struct {
	Agent
	voice *output.Agent

	state     control.State
	reason    string
	wanted    bool // it should run
	freely    bool // it runs without its dependencies
	removed   bool // no longer in the configuration
	next      *Agent
	as        string      // the named actor of its latest run, or ""
	joined    *connection // the connection that is its run, or nil
	guest     bool        // not in the configuration: exists as long as its connection
	heir      *Agent      // for a guest: the configured agent of the same name
	run       string
	child     Process
	mail      *stdin.Mailbox
	exit      *child.Exit // exit of the current run, once the leader is dead
	lastExit  string
	lastUp    time.Duration
	lastStop  string // how its last stop went
	endedRun  string // the last run that has ended
	survivors int    // processes left by its last run
	starts    int
	restarts  int
	refused   int64 // messages refused in earlier runs
	history   history
	halt      *stopRequest // nil unless a stop was requested
	due       *deadline    // the next restart, or the next rung of the stop
	watch     *deadline    // the next check for silence
	proof     *deadline    // when the start counts as successful
	expected  []expectation
	cancel    context.CancelFunc // cancels the start in progress
	afresh    bool               // start it again, on request, when its tree is empty

	deaf, silent, stopped string    // reasons for stalling, by cause
	thaw                  *deadline // when it counts as stopped by a signal
}

// New returns a Supervisor of the given agents. Nothing starts before Run.
func New(o Options, agents []Agent) *Supervisor {
	s := &Supervisor{
		options:  o,
		began:    time.Now(),
		done:     make(chan struct{}),
		agents:   make(map[string]*agent),
		actors:   make(map[string]*agent),
		sessions: o.Sessions,

		expecting: make(map[*agent]bool),
	}
	s.audience = output.NewFeed(output.NewRecentEvents(o.Record == nil), s.heard)
	s.dispatcher = s.newDispatcher()
	s.Requests = s.dispatcher.Requests()
	s.inbox.wake = make(chan struct{}, 1)
	for _, spec := range agents {
		s.enter(spec)
	}
	return s
}

// newDispatcher returns the dispatcher of a Supervisor.
func (s *Supervisor) newDispatcher() *dispatch.Dispatcher {
	alarm := &alarm{log: s.options.Log}
	o := dispatch.Options{
		Record: s.options.Record, ReadOnly: s.options.ReadOnly, Rules: s.options.Rules, Protocol: s.options.Protocol,
		Log: s.options.Log, Alarm: alarm.raise, Watch: s.options.Watch, Done: s.done,
		Show: s.audience.Publish, Closed: s.sessionClosed, Broke: s.recordBroke, Spoke: s.audience.NoteMessage, Sound: s.options.Sound,
	}
	if dir := s.options.StateDir; dir != "" {
		s.artifacts = newArtifacts(dir, alarm)
		o.Artifacts = s.artifacts
		o.Audit = func(gap dispatch.AuditGap) dispatch.AuditFile { return auditFile(dir, gap) }
	}
	return dispatch.New(o)
}

// auditFile returns the audit of a state directory. Its size is bounded, with the files of
// earlier runs.
func auditFile(stateDir string, gap dispatch.AuditGap) *output.File {
	dir := filepath.Join(stateDir, "audit")
	return &output.File{
		Dir: dir, Prefix: output.RunPrefix(output.NextRun(dir)), Suffix: ".jsonl", Limits: output.Limits{MaxSize: 16 << 20, Keep: 8},
		Note: gap,
	}
}

// enter adds an agent that does not run yet.
func (s *Supervisor) enter(spec Agent) *agent {
	a := &agent{Agent: spec, state: control.StateStopped}
	a.voice = output.NewAgent(spec.Name, spec.Output, func(e wire.Event) {
		s.post(func() { s.event(a, e) })
	})
	s.audience.AddAgent(a.voice)
	s.agents[spec.Name] = a
	s.order = append(s.order, a)
	return a
}

// Run starts the agents that start automatically, and works until all have been stopped. ctx,
// Stop or an option ends it.
func (s *Supervisor) Run(ctx context.Context) error {
	defer close(s.done)
	defer s.audience.Recent.Close()
	if s.options.Record != nil {
		go s.dispatcher.Run() // end waits for it
	}
	s.event(nil, wire.Event{
		Kind:    events.OrchestratorStarted,
		Text:    fmt.Sprintf("%s is up, %s", s.options.Name, count(len(s.order), "agent")),
		Figures: wire.Figures{PID: os.Getpid(), Count: int64(len(s.order))},
	})
	s.enlist() // after EventUp, which ends earlier runs: they get no tasks
	for _, a := range s.order {
		if a.Autostart {
			s.want(a, a.freely)
		}
	}
	s.checkIdle()
	s.settle()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	cancelled := ctx.Done()
	for s.stopping == nil || !s.stopping.over {
		if at, ok := s.deadlines.next(); ok {
			timer.Reset(time.Until(at))
		} else {
			timer.Reset(time.Hour)
		}
		select {
		case <-s.inbox.wake:
			for _, turn := range s.take() {
				turn()
			}
		case <-timer.C:
			for d := s.deadlines.pop(time.Now()); d != nil; d = s.deadlines.pop(time.Now()) {
				d.do()
			}
		case <-cancelled:
			cancelled = nil
			s.stop(reasonOf(ctx))
		}
		s.settle()
	}
	return s.end()
}

// reasonOf describes why ctx ended.
func reasonOf(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != nil && cause != context.Canceled {
		return cause.Error()
	}
	return "asked to"
}

// Keeping returns the number of facts of the snapshot in progress, or 0.
func (s *Supervisor) Keeping() int64 { return s.dispatcher.Keeping() }

// end waits for the goroutines that create processes, records the summary, and closes the
// dispatcher.
func (s *Supervisor) end() error {
	s.awaitMakers()
	s.stopping.summary(s)
	s.dispatcher.Close()
	for _, a := range s.order {
		a.voice.Close()
	}
	s.audience.Close()
	if s.broken != nil {
		return s.broken
	}
	switch {
	case s.failed && (s.options.ExitWhenIdle || s.options.AbortOnFailure):
		return ErrAgentsFailed
	case s.options.ExitWhenIdle && s.undone():
		return ErrTasksUndone
	}
	return nil
}

// awaitMakers waits up to a second for the goroutines that create processes. Their contexts are
// done, so they create no more. A file that blocks its reader must not delay the end.
func (s *Supervisor) awaitMakers() {
	made := make(chan struct{})
	go func() {
		_ = s.makers.Wait()
		close(made)
	}()
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	select {
	case <-made:
	case <-patience.C:
		s.options.Log.Warn("an agent's environment is still being read, and is given up")
	}
}

// post queues a turn for Run. It never blocks.
func (s *Supervisor) post(turn func()) {
	s.inbox.mu.Lock()
	s.inbox.turns = append(s.inbox.turns, turn)
	s.inbox.mu.Unlock()
	select {
	case s.inbox.wake <- struct{}{}:
	default:
	}
}

// take removes and returns the queued turns.
func (s *Supervisor) take() []func() {
	s.inbox.mu.Lock()
	defer s.inbox.mu.Unlock()
	turns := s.inbox.turns
	s.inbox.turns = nil
	return turns
}

// ask calls question on Run's goroutine and returns the result.
func ask[T any](ctx context.Context, s *Supervisor, question func() (T, error)) (T, error) {
	type answered struct {
		answer T
		err    error
	}
	answer := make(chan answered, 1)
	s.post(func() {
		v, err := question()
		answer <- answered{v, err}
	})
	got, err := dispatch.Await(ctx, s.done, answer)
	if err != nil {
		return got.answer, err
	}
	return got.answer, got.err
}

// event records an event, which is then also shown to followers.
func (s *Supervisor) event(a *agent, e wire.Event) {
	if a != nil {
		e.Agent = a.Name
		if e.Run == "" {
			e.Run = a.run
		}
	}
	s.dispatcher.Note(&e)
}

// heard checks each recorded event, because it may have ended the last task.
func (s *Supervisor) heard(n *output.Notice) {
	if s.options.ExitWhenIdle && s.tally.count(n) {
		s.post(s.checkIdle)
	}
}

// recordBroke stops everything when nothing can be recorded any more.
func (s *Supervisor) recordBroke(err error) {
	s.post(func() {
		s.broken = err
		s.stop("nothing can be recorded any more")
	})
}

// choose returns the agents with the given names or blocks, in order. No names means all.
func (s *Supervisor) choose(names []string) ([]*agent, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(s.order), func(a *agent) bool { return a.removed }), nil
	}
	var chosen []*agent
	for _, name := range names {
		found := false
		for _, a := range s.order {
			if (a.Name == name || a.Block == name) && !a.removed {
				found = true
				if !slices.Contains(chosen, a) {
					chosen = append(chosen, a)
				}
			}
		}
		if !found {
			return nil, s.unknown(name)
		}
	}
	return chosen, nil
}

func (s *Supervisor) unknown(name string) error {
	var names []string
	for _, a := range s.order {
		names = append(names, a.Name)
	}
	known := strings.Join(names[:min(len(names), 20)], ", ")
	if len(names) > 20 {
		known += fmt.Sprintf(" and %d more", len(names)-20)
	}
	return &wire.Error{
		Code:    wire.CodeNotFound,
		Message: fmt.Sprintf("there is no agent %q", name),
		Details: map[string]any{"agent": name, "agents": names},
		Hint:    "The agents are " + known,
	}
}
