package supervisor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/handlers"
	"orchestrator/supervisor/artifacts"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/hosts"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// Options configure a Supervisor.
type Options struct {
	Name     string
	Version  string
	Config   string // the configuration file, for display
	StateDir string
	Start    func(child.Spec) (Process, error) // creates a process
	Hosts    *hosts.Hosts                      // where agents with a placement run; nil: no hosts
	Log      hclog.Logger
	Shutdown time.Duration   // one budget for the whole ordered stop
	Record   dispatch.Record // where facts are stored; nil: nowhere
	Warm     *dispatch.Warm  // follows Record; nil: Restore reads it
	Keep     dispatch.Retention
	Objects  artifacts.Objects    // of the hubs that share Record; nil: there is one hub
	ReadOnly bool                 // Record is read-only: only Look can be called
	Check    dispatch.RecordCheck // nil: Record is not checked
	Rules    handlers.Rules
	Protocol dispatch.Protocol
	Sessions []session.Spec        // the sessions of the configuration, in order
	Tasks    []wire.SubmitTask     // the task blocks of the configuration, for GiveOut
	Price    func(*activity.Usage) // adds the cost to an agent's usage; nil: the usage stays as reported
	Clock    func() time.Duration  // shows whether the date was set: see dispatch.Options
	// Doorway gives a run of an agent access over HTTP, besides its pipe. env holds variables
	// for the run, even if err is not nil. shut is called once, when the run's processes have
	// ended. uid is the user of the run's processes, and 0 if that is the user of this process. A nil
	// Doorway gives no access.
	Doorway func(agent, run string, uid int) (env []string, shut func(), err error)
	// Workshop gives tasks their workspaces and verifies them; nil: tasks have neither.
	Workshop Workshop
	// Watch observes requests and records.
	Watch dispatch.Hooks
	// UnsaidEnd is set if the orchestrator before this one has stopped in order, and could not record it.
	UnsaidEnd bool
	// Upgraded is the state of the team in the program before this one, which Start goes on with: its
	// runs keep their ids. It is nil if the team starts.
	Upgraded *Handover
	// TakenOver is called when the agents of Upgraded go on.
	TakenOver func()
	// ExitWhenIdle ends Run when every agent has ended for good.
	ExitWhenIdle bool
	// AbortOnFailure ends Run when the first agent fails for good.
	AbortOnFailure bool
}

// A Workshop does the work before decisions about messages of agents.
type Workshop interface {
	dispatch.Workshop
	Merging() bool // the queue is at work, and will call Supervisor.Merged
	// Stop ends the work for an agent that is being stopped, until Resume.
	Stop(agent string)
	Resume(agent string)
}

// Park keeps an agent from getting tasks until a time, for a reason. A time in the past ends that.
func (s *Supervisor) Park(agent string, until time.Time, why string) {
	s.dispatcher.NoteFrom(agent, &wire.AgentEvent{Name: "limited", Body: &activity.Limited{Until: object.Timestamp(until), Scope: why}})
}

// Note submits a message of the orchestrator itself.
func (s *Supervisor) Note(m wire.Message) { s.dispatcher.Note(m) }

// Settle waits until everything that was noted is durable.
func (s *Supervisor) Settle() { s.dispatcher.Settle() }

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
	artifacts  *artifacts.Store // nil without a state directory
	audience   *output.Feed
	began      time.Time
	done       chan struct{}   // closed when Run has ended
	cancelled  <-chan struct{} // closed when Run is to end; used only by the goroutine of Run

	inbox struct {
		mu    sync.Mutex
		turns []func()
		wake  chan struct{}
	}

	// Used only by the goroutine of Run.
	life *lifecycle
}

// Keeping returns the number of facts of the snapshot in progress, or 0.
func (s *Supervisor) Keeping() int64 { return s.dispatcher.Keeping() }

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

// Merged is called when the merge queue is at rest, which may be the end of all work.
func (s *Supervisor) Merged() {
	if s.options.ExitWhenIdle {
		s.post(s.life.idle.check)
	}
}

// Adopt applies changed rules.
func (s *Supervisor) Adopt(rules handlers.Rules) { s.dispatcher.Adopt(rules) }

// Report records an event.
func (s *Supervisor) Report(e *wire.Event) { s.dispatcher.Note(e) }
