package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"orchestrator/handlers"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
)

// Options of a Supervisor.
type Options struct {
	Name     string
	Version  string
	Config   string // the file, for people
	StateDir string
	Start    func(child.Spec) (Process, error) // makes a process
	Log      hclog.Logger
	Shutdown time.Duration // one budget for the whole ordered stop
	Record   Record        // where facts are kept; nil: nowhere
	ReadOnly bool          // Record takes no facts: only Look can be called
	Sound    func() error  // why what is recorded would be lost, such as a deleted file; nil: nothing is asked
	Rules    handlers.Rules
	Protocol Protocol
	Sessions []wire.SessionSpec // those of the configuration, in its order
	// Doorway lets a run of an agent in at another door than its pipe. env is
	// what the run is told of it, and counts beside an error as well; shut is
	// called once, when nothing is left of the run. nil: there is no such door.
	Doorway func(agent, run string) (env []string, shut func(), err error)
	// Watch sees what happens; it has no part in it.
	Watch Hooks
	// ExitWhenIdle ends Run when every agent has ended for good.
	ExitWhenIdle bool
	// AbortOnFailure ends Run when the first agent fails for good.
	AbortOnFailure bool
}

// ErrAgentsFailed is what Run returns when it ended by ExitWhenIdle or
// AbortOnFailure, and not every agent had ended well.
var ErrAgentsFailed = errors.New("agents failed")

// ErrOver is the error of a supervisor that has ended.
var ErrOver = &wire.Error{Code: wire.CodeConflict, Message: "the orchestrator has stopped"}

// Supervisor runs agents. Its methods may be called from anywhere; what they
// do happens in Run.
type Supervisor struct {
	options    Options
	dispatcher *dispatcher
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

	// What follows belongs to Run.
	agents    map[string]*agent
	actors    map[string]*agent // who is, of those that have names
	order     []*agent
	sessions  []wire.SessionSpec
	deadlines deadlines
	storm     stormGuard
	idle      bool      // said that all have ended
	lingering *deadline // it is asked again then whether the work has ended
	stopping  *stopping // nil until the stop begins
	failed    bool      // agents had failed when the stop began
	broken    error     // why nothing can be recorded any more

	expecting   map[*agent]bool // those for which an expectation waits
	processions []*orderedStop
}

// agent is an Agent as it runs. It belongs to Run.
type agent struct {
	Agent
	voice *output.Agent

	state     wire.State
	reason    string
	wanted    bool // it should run
	freely    bool // without the agents it depends on
	removed   bool // no longer in the configuration
	next      *Agent
	as        string      // the actor of its latest run; "" for one that has no name
	joined    *connection // who has its run by a connection; nil: none
	guest     bool        // it is not in the configuration, and there as long as its connection
	heir      *Agent      // of a guest: who has its name in the configuration
	run       string
	child     Process
	mail      *stdin.Mailbox
	exit      *child.Exit // of the current run, when the leader is dead
	lastExit  string
	lastUp    time.Duration
	lastStop  string // how its last stop went
	endedRun  string // the last run that has ended
	survivors int    // of its last run
	starts    int
	restarts  int
	refused   int64 // messages, in earlier runs
	history   history
	halt      *stopRequest // nil unless it is being stopped by order
	due       *deadline    // the next restart, or the next rung of the stop
	watch     *deadline    // the next look at its silence
	proof     *deadline    // when a start counts as good
	expected  []expectation
	cancel    context.CancelFunc // of the start that is being made
	afresh    bool               // it starts again as soon as its tree is empty: it was asked for

	deaf, silent, stopped string    // why it is stalled, for each cause
	thaw                  *deadline // it counts as stopped by a signal then
}

// New makes a supervisor of some agents. Nothing starts before Run.
func New(o Options, agents []Agent) *Supervisor {
	o.Protocol = o.Protocol.orDefault()
	o.Rules.Depth = o.Protocol.Depth
	s := &Supervisor{
		options:    o,
		dispatcher: newDispatcher(o),
		audience:   &output.Feed{Recent: output.NewRecentEvents(o.Record == nil), Outputs: make(map[string]*output.Agent)},
		began:      time.Now(),
		done:       make(chan struct{}),
		agents:     make(map[string]*agent),
		actors:     make(map[string]*agent),
		sessions:   o.Sessions,

		expecting: make(map[*agent]bool),
	}
	s.audience.OnNotice = s.heard
	s.dispatcher.show = s.audience.Publish
	s.dispatcher.closed = s.sessionClosed
	s.dispatcher.broke = s.recordBroke
	s.inbox.wake = make(chan struct{}, 1)
	for _, spec := range agents {
		s.enter(spec)
	}
	return s
}

// enter adds an agent that does not run yet.
func (s *Supervisor) enter(spec Agent) *agent {
	a := &agent{Agent: spec, state: wire.StateStopped}
	a.voice = output.NewAgent(spec.Name, spec.Output, func(e wire.Event) {
		s.post(func() { s.event(a, e) })
	})
	s.audience.AddAgent(a.voice)
	s.agents[spec.Name] = a
	s.order = append(s.order, a)
	return a
}

// Run starts what is to be started by itself and works until everything has
// been stopped: by ctx, by Stop, or by an option.
func (s *Supervisor) Run(ctx context.Context) error {
	defer close(s.done)
	defer s.audience.Recent.Close()
	if s.options.Record != nil {
		go s.dispatcher.keepRecording() // end waits for it
	}
	s.event(nil, wire.Event{
		Kind:    wire.EventUp,
		Text:    fmt.Sprintf("%s is up, %s", s.options.Name, count(len(s.order), "agent")),
		Figures: wire.Figures{PID: os.Getpid(), Count: int64(len(s.order))},
	})
	s.enlist() // after the runs of an earlier life have been given up: nothing is given to them
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

// reasonOf is why ctx ended, in words.
func reasonOf(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != nil && cause != context.Canceled {
		return cause.Error()
	}
	return "asked to"
}

// Keeping returns how many facts the last snapshot is being made of, 0 when none is.
func (s *Supervisor) Keeping() int64 { return s.dispatcher.keeping.Load() }

// end collects the goroutines that made children, says the last word, and
// sums up.
func (s *Supervisor) end() error {
	s.awaitMakers()
	s.stopping.summary(s)
	s.dispatcher.close()
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

// awaitMakers waits for the goroutines that make processes. Their contexts are
// over, so none makes one any more; a file that does not let itself be read
// must not hold up the end.
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

// post has a turn done by Run. It never waits.
func (s *Supervisor) post(turn func()) {
	s.inbox.mu.Lock()
	s.inbox.turns = append(s.inbox.turns, turn)
	s.inbox.mu.Unlock()
	select {
	case s.inbox.wake <- struct{}{}:
	default:
	}
}

// take empties the inbox.
func (s *Supervisor) take() []func() {
	s.inbox.mu.Lock()
	defer s.inbox.mu.Unlock()
	turns := s.inbox.turns
	s.inbox.turns = nil
	return turns
}

// ask has a question answered by Run.
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
	got, err := await(ctx, s, answer)
	if err != nil {
		return got.answer, err
	}
	return got.answer, got.err
}

// await waits for what a turn will send.
func await[T any](ctx context.Context, s *Supervisor, answer <-chan T) (T, error) {
	var none T
	select {
	case v := <-answer:
		return v, nil
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case <-s.done:
		select {
		case v := <-answer: // answered in the last turn
			return v, nil
		default:
			return none, ErrOver
		}
	}
}

// event has recorded what happened, and those who follow are told.
func (s *Supervisor) event(a *agent, e wire.Event) {
	if a != nil {
		e.Agent = a.Name
		if e.Run == "" {
			e.Run = a.run
		}
	}
	s.dispatcher.note(&e)
}

// heard looks at each event that was told: the last task may have ended with it.
func (s *Supervisor) heard(n *output.Notice) {
	if s.options.ExitWhenIdle && s.tally.count(n) {
		s.post(s.checkIdle)
	}
}

// recordBroke follows a record that takes nothing any more.
func (s *Supervisor) recordBroke(err error) {
	s.post(func() {
		s.broken = err
		s.stop("nothing can be recorded any more")
	})
}

// choose finds agents by name or block, in order; none named means all.
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
