package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"orchestrator/handlers"
	"orchestrator/supervisor/artifacts"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// New returns a Supervisor of the given agents. No agent starts before Run.
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
	for i := range agents {
		s.life.enter(&agents[i])
	}
	return s
}

// newDispatcher returns the dispatcher of a Supervisor.
func (s *Supervisor) newDispatcher() *dispatch.Dispatcher {
	alarm := &alarm{log: s.options.Log}
	o := dispatch.Options{
		Record: s.options.Record, Warm: s.options.Warm, ReadOnly: s.options.ReadOnly, Rules: s.options.Rules, Protocol: s.options.Protocol,
		Log: s.options.Log, Alarm: alarm.raise, Watch: s.options.Watch, Done: s.done,
		Audience: s.audience, Owner: s.life, Check: s.options.Check, Workshop: s.options.Workshop, Price: s.options.Price,
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

// begin starts the agents, or goes on with the agents of the program before this one.
func (s *Supervisor) begin(ctx context.Context) {
	e := wire.Event{
		Kind:    events.OrchestratorStarted,
		Text:    fmt.Sprintf("%s is up, %s", s.options.Name, count(len(s.life.order), "agent")),
		Figures: wire.Figures{PID: os.Getpid(), Count: int64(len(s.life.order)), Ordered: s.options.UnsaidEnd},
	}
	if s.options.Upgraded != nil {
		e.Kind, e.Text = events.OrchestratorUpgraded, fmt.Sprintf("%s continues with version %s", s.options.Name, s.options.Version)
	}
	if s.options.Hosts != nil {
		defer s.options.Hosts.Open()
	}
	placements := s.life.placements()
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
		s.life.expect(p)
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
	if s.life.broken != nil {
		return s.life.broken
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
		_ = s.life.starts.Wait()
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

// heard checks each recorded event, because it may have ended the last task.
func (s *Supervisor) heard(n *output.Notice) {
	if s.options.ExitWhenIdle && s.life.idle.tally.count(n) {
		s.post(s.life.idle.check)
	}
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

// Look answers read-only requests until ctx is done. It starts no agent and adds no record.
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
