package supervisor

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/handlers"
	"orchestrator/supervisor/artifacts"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/hosts"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/events"
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
	Hosts    *hosts.Hosts                      // where agents with a placement run; nil: there are none
	Log      hclog.Logger
	Shutdown time.Duration   // one budget for the whole ordered stop
	Record   dispatch.Record // where facts are stored; nil: nowhere
	Warm     *dispatch.Warm  // follows Record; nil: Restore reads it
	Keep     dispatch.Retention
	Objects  artifacts.Objects       // of the hubs that share Record; nil: there is one hub
	ReadOnly bool                    // Record is read-only: only Look can be called
	Sound    func() error            // returns why new records would be lost, such as a deleted file; nil: not checked
	Deposed  func(error) *wire.Error // returns the refusal of requests if an error of Record says that another hub is at work; nil: there is none
	Rules    handlers.Rules
	Protocol dispatch.Protocol
	Sessions []session.Spec        // the sessions of the configuration, in order
	Tasks    []wire.SubmitTask     // the task blocks of the configuration, for GiveOut
	Price    func(*activity.Usage) // adds the cost to what an agent has used; nil: it is as reported
	Clock    func() time.Duration  // shows whether the date was set: see dispatch.Options
	// Doorway gives a run of an agent access over HTTP, besides its pipe. env holds variables
	// for the run, even if err is not nil. shut is called once, when the run's processes have
	// ended. uid is the user of the run's processes, and 0 if that is the user of this process. A nil
	// Doorway gives no access.
	Doorway func(agent, run string, uid int) (env []string, shut func(), err error)
	// Workshop gives tasks their workspaces and verifies them; nil: nothing does.
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

// A Workshop does what has to be done before messages of agents are decided.
type Workshop interface {
	dispatch.Workshop
	Merging() bool // the queue is at work, and will call Supervisor.Merged
	// Stop ends what is done for an agent that is being stopped, until Resume.
	Stop(agent string)
	Resume(agent string)
}

// Held returns a task that an agent holds, and whether the agent could complete it now.
func (s *Supervisor) Held(agent, task string) (t wire.Task, completable bool) {
	s.dispatcher.Look(func(state *handlers.State) { t, completable = state.Held(agent, task) })
	return t, completable
}

// FolderOf returns the folder of the latest run of an agent.
func (s *Supervisor) FolderOf(agent string) dispatch.Folder {
	return dispatch.FolderOf(s.dispatcher, agent)
}

// Questions returns the first open questions.
func (s *Supervisor) Questions(most int) (all []wire.Question) {
	s.dispatcher.Look(func(state *handlers.State) { all = state.Asked(most) })
	return all
}

// Spending returns the tasks that an agent works on, and what it and the team have used.
func (s *Supervisor) Spending(agent string) (tasks []wire.Task, ofAgent, ofTeam activity.Used) {
	s.dispatcher.Look(func(state *handlers.State) {
		for _, label := range state.TasksOf(agent) {
			if t, _ := state.Held(agent, label.ID); t.State == wire.TaskRunning {
				tasks = append(tasks, t)
			}
		}
		if a := state.Activity(agent); a != nil {
			ofAgent = activity.Used{Input: a.Input, Output: a.Output, Cost: a.Cost, Currency: a.Currency}
		}
		if all := state.Used(); all != nil {
			ofTeam = *all
		}
	})
	return tasks, ofAgent, ofTeam
}

// Park keeps an agent from getting tasks until a time, for a reason. A time in the past ends that.
func (s *Supervisor) Park(agent string, until time.Time, why string) {
	dispatch.NoteFrom(s.dispatcher, agent, &wire.AgentEvent{Name: "limited", Body: &activity.Limited{Until: object.Timestamp(until), Scope: why}})
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
	life   *lifecycle
	broken error // why nothing can be recorded any more
}

// New returns a Supervisor of the given agents. Nothing starts before Run.
func New(o Options, agents []settings.Agent) *Supervisor {
	s := &Supervisor{
		options: o,
		began:   time.Now(),
		done:    make(chan struct{}),
	}
	if o.Upgraded != nil {
		s.began = o.Upgraded.Began
	}
	s.audience = output.NewFeed(output.NewRecentEvents(o.Record == nil), s.heard)
	s.life = s.newLifecycle()
	s.dispatcher = s.newDispatcher()
	s.life.dispatcher = s.dispatcher
	s.Requests = s.dispatcher.Requests()
	s.inbox.wake = make(chan struct{}, 1)
	for _, spec := range agents {
		s.life.enter(spec)
	}
	return s
}

// newDispatcher returns the dispatcher of a Supervisor.
func (s *Supervisor) newDispatcher() *dispatch.Dispatcher {
	alarm := &alarm{log: s.options.Log}
	o := dispatch.Options{
		Record: s.options.Record, Warm: s.options.Warm, ReadOnly: s.options.ReadOnly, Rules: s.options.Rules, Protocol: s.options.Protocol,
		Log: s.options.Log, Alarm: alarm.raise, Watch: s.options.Watch, Done: s.done,
		Show: s.audience.Publish, Closed: s.life.sessionClosed, Broke: s.recordBroke, Deposed: s.options.Deposed, Spoke: s.audience.NoteMessage, Sound: s.options.Sound, Workshop: s.options.Workshop, Price: s.options.Price,
		Clock: s.options.Clock,
	}
	if dir := s.options.StateDir; dir != "" {
		s.artifacts = artifacts.New(dir, alarm.raise)
		s.artifacts.Objects = s.options.Objects
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

// Run starts the agents that start automatically, and works until all have been stopped. ctx,
// Stop or an option ends it.
func (s *Supervisor) Run(ctx context.Context) error {
	defer close(s.done)
	defer s.audience.Recent.Close()
	untend := func() {}
	if s.options.Record != nil {
		go s.dispatcher.Run() // end waits for it
		untend = s.tend()
	}
	s.begin(ctx)
	s.life.idle.check()
	s.life.callers.settle()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	s.cancelled = ctx.Done()
	cancelled := s.cancelled
	for s.life.stopping == nil || !s.life.stopping.over {
		if at, ok := s.life.deadlines.next(); ok {
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
			for d := s.life.deadlines.pop(time.Now()); d != nil; d = s.life.deadlines.pop(time.Now()) {
				d.do()
			}
		case <-cancelled:
			cancelled = nil
			s.life.stop(reasonOf(ctx))
		}
		s.life.callers.settle()
	}
	return s.end(untend)
}

// begin starts the agents, or goes on with those of the program before this one.
func (s *Supervisor) begin(ctx context.Context) {
	e := wire.Event{
		Kind:    events.OrchestratorStarted,
		Text:    fmt.Sprintf("%s is up, %s", s.options.Name, count(len(s.life.order), "agent")),
		Figures: wire.Figures{PID: os.Getpid(), Count: int64(len(s.life.order)), Ordered: s.options.UnsaidEnd},
	}
	if s.options.Upgraded != nil {
		e.Kind, e.Text = events.OrchestratorUpgraded, fmt.Sprintf("%s goes on with version %s", s.options.Name, s.options.Version)
	}
	if s.options.Hosts != nil {
		defer s.options.Hosts.Open()
	}
	placements := placements(s.life)
	for _, p := range placements {
		e.Figures.Kept = append(e.Figures.Kept, p.Agent)
	}
	s.life.event(nil, e)
	s.life.enlist() // after the event, which ends earlier runs: they get no tasks
	if s.options.Upgraded != nil {
		s.life.takeOver(s.options.Upgraded)
		s.options.Upgraded = nil
		s.options.TakenOver()
		return
	}
	s.life.giveOut(ctx, s.options.Tasks)
	for _, p := range placements {
		expect(s.life, p)
	}
	for _, a := range s.life.order {
		if a.Autostart && a.child == nil {
			s.life.want(a, a.freely)
		}
	}
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
func (s *Supervisor) end(untend func()) error {
	s.awaitMakers()
	untend()
	if s.options.Hosts != nil {
		s.options.Hosts.Close()
	}
	s.life.stopping.summary(s.life)
	s.dispatcher.Close()
	for _, a := range s.life.order {
		a.voice.Close()
	}
	s.audience.Close()
	if s.broken != nil {
		return s.broken
	}
	switch {
	case s.life.failed && (s.options.ExitWhenIdle || s.options.AbortOnFailure):
		return ErrAgentsFailed
	case s.options.ExitWhenIdle && s.life.idle.undone():
		return ErrTasksUndone
	case s.options.ExitWhenIdle && s.life.idle.unmerged():
		return ErrUnmerged
	}
	return nil
}

// awaitMakers waits up to a second for the goroutines that create processes. Their contexts are
// done, so they create no more. A file that blocks its reader must not delay the end.
func (s *Supervisor) awaitMakers() {
	made := make(chan struct{})
	go func() {
		_ = s.life.makers.Wait()
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

// heard checks each recorded event, because it may have ended the last task.
func (s *Supervisor) heard(n *output.Notice) {
	if s.options.ExitWhenIdle && s.life.idle.tally.count(n) {
		s.post(s.life.idle.check)
	}
}

// Merged is called when the merge queue is at rest, which may be the end of all work.
func (s *Supervisor) Merged() {
	if s.options.ExitWhenIdle {
		s.post(s.life.idle.check)
	}
}

// recordBroke stops everything when nothing can be recorded any more. Agents on hosts belong to the hub that
// is at work instead, so this one says nothing more to them.
func (s *Supervisor) recordBroke(err error) {
	s.post(func() {
		s.broken = err
		if s.options.Hosts != nil && s.options.Deposed != nil && s.options.Deposed(err) != nil {
			s.options.Hosts.Leave()
		}
		s.life.stop("nothing can be recorded any more")
	})
}

// Restore rebuilds the State from the record and removes unfinished files of earlier runs. It
// must be called before Run.
func (s *Supervisor) Restore(ctx context.Context) error {
	s.artifacts.Clear()
	if err := s.dispatcher.Restore(ctx); err != nil {
		return err
	}
	s.dispatcher.Look(func(state *handlers.State) {
		s.life.restored = state.Seq()
		s.audience.Recent.Begin(s.life.restored)
		s.life.idle.tally.tasks = state.Open()
	})
	return nil
}

// Look answers read-only requests until ctx is done. It starts no agent and records nothing.
func (s *Supervisor) Look(ctx context.Context) {
	defer close(s.done)
	defer s.audience.Recent.Close()
	go s.dispatcher.Run()
	for {
		select {
		case <-s.inbox.wake:
			for _, turn := range s.take() {
				turn()
			}
		case <-ctx.Done():
			s.dispatcher.Close()
			return
		}
	}
}

// Adopt applies changed rules.
func (s *Supervisor) Adopt(rules handlers.Rules) { s.dispatcher.Adopt(rules) }

// Report records an event.
func (s *Supervisor) Report(e *wire.Event) { s.dispatcher.Note(e) }

// A deadline is a function that is to be called at a given time.
type deadline struct {
	at    time.Time
	do    func()
	index int // in the heap; -1 when it is not there
}

// deadlines is a heap of all pending deadlines, soonest first. One timer serves them all.
type deadlines []*deadline

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].at.Before(d[j].at) }

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

// Push implements heap.Interface.
func (d *deadlines) Push(x any) {
	entry := x.(*deadline)
	entry.index = len(*d)
	*d = append(*d, entry)
}

// Pop implements heap.Interface.
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	entry := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	entry.index = -1
	return entry
}

// add adds a deadline and returns it.
func (d *deadlines) add(at time.Time, do func()) *deadline {
	entry := &deadline{at: at, do: do}
	heap.Push(d, entry)
	return entry
}

// drop removes an entry. It ignores a nil entry and one that is no longer in the heap.
func (d *deadlines) drop(entry *deadline) {
	if entry != nil && entry.index >= 0 {
		heap.Remove(d, entry.index)
	}
}

// next returns the time of the soonest deadline, and whether there is one.
func (d deadlines) next() (time.Time, bool) {
	if len(d) == 0 {
		return time.Time{}, false
	}
	return d[0].at, true
}

// pop removes and returns the soonest entry if it is due, or returns nil.
func (d *deadlines) pop(now time.Time) *deadline {
	if len(*d) == 0 || (*d)[0].at.After(now) {
		return nil
	}
	return heap.Pop(d).(*deadline)
}
