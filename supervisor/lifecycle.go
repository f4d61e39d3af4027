package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/hosts"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
)

// A lifecycle starts, watches, restarts and stops the agents. Only the goroutine of Run uses it.
type lifecycle struct {
	options    *Options
	dispatcher *dispatch.Dispatcher
	audience   *output.Feed
	post       func(turn func())
	done       <-chan struct{} // closed when Run has ended
	makers     errgroup.Group  // the goroutines that create processes

	agents    map[string]*agent
	actors    map[string]*agent // the agent that holds each named actor
	order     []*agent
	sessions  sessionSpecs
	deadlines deadlines
	storm     stormGuard
	stopping  *stopping // nil until the stop begins
	failed    bool      // agents had failed when the stop began
	restored  int64     // the number of the last record of an earlier life

	callers callers
	stops   orderedStops
	idle    idleness
}

// newLifecycle returns the lifecycle of a Supervisor, without agents and without a dispatcher.
func (s *Supervisor) newLifecycle() *lifecycle {
	l := &lifecycle{
		options: &s.options, audience: s.audience, post: s.post, done: s.done,
		agents: make(map[string]*agent), actors: make(map[string]*agent), sessions: s.options.Sessions,
	}
	l.callers = callers{life: l, waiting: make(map[*agent]bool)}
	l.stops = orderedStops{life: l}
	l.idle = idleness{life: l}
	return l
}

// good is how long an agent must be up before a request to start it succeeds.
const good = time.Second

// want marks an agent as wanted and starts it after the agents that it depends on. A dependency
// that has ended well is not started again.
func (l *lifecycle) want(a *agent, freely bool) {
	a.wanted, a.freely = true, freely
	if !freely {
		for _, name := range a.DependsOn {
			if d := l.agents[name]; d != nil && !d.wanted && d.state != control.StateExited {
				l.want(d, false)
			}
		}
	}
	l.tryStart(a)
}

// tryStart starts an agent that should run and does not, if its dependencies run.
func (l *lifecycle) tryStart(a *agent) {
	switch {
	case l.stopping != nil, !a.wanted, a.removed, a.halt != nil, l.stops.held(a),
		a.state.Live(), a.state == control.StateStarting, a.state == control.StateBackoff:
		return
	}
	if missing := l.missing(a); missing != "" {
		l.wait(a, missing)
		return
	}
	if holder := l.actorHolder(a); holder != nil {
		l.wait(a, holder.Name+", which still is "+holder.as)
		return
	}
	host, why := hostFor(a, l.options.Hosts)
	if why != "" {
		l.wait(a, why)
		return
	}
	l.launch(a, host)
}

func (a *agent) set(state control.State, reason string) { a.state, a.reason = state, reason }

// launch creates the agent's process on another goroutine, because reading secrets and forking
// take time. host is where it runs, "" for this machine.
func (l *lifecycle) launch(a *agent, host string) {
	if a.next != nil {
		l.adopt(a, *a.next)
		l.enlist()
	}
	a.set(control.StateStarting, "")
	a.run = uuid.NewString()
	a.exit = nil
	l.takeActor(a)
	l.event(a, wire.Event{Kind: events.AgentStarting, Text: "is being started"})
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	m := &startRequest{spec: a.Agent, run: a.run, host: host, session: l.sessions.environment(a.Name), joined: a.joined, told: make(chan struct{})}
	if a.joined != nil {
		m.spec = byPipe(a.Agent)
	}
	l.makers.Go(func() error {
		c, err := m.make(ctx, l, a)
		l.post(func() {
			l.started(a, m, c, err)
			close(m.told)
		})
		return nil
	})
}

// A startRequest creates one run of an agent. It passes on what the child reports only after
// the start itself was handled.
type startRequest struct {
	spec    settings.Agent
	run     string
	session []string     // environment variables that describe its session
	joined  *connection  // nil for a child process
	host    string       // the machine that it runs on; "" for this one
	handed  *handedAgent // the run so far in an earlier program; nil if it begins
	goesOn  bool         // it was begun on the host by an earlier hub

	conversation string // of the program of the agent; "" if there is none
	speech       *output.Run
	channel      *dispatch.Channel // nil if all its output is log
	told         chan struct{}
}

// listen begins the output of the run.
func (sr *startRequest) listen(a *agent) {
	sr.speech = a.voice.Begin(sr.run, sr.spec.MaxLine)
	if sr.handed != nil {
		a.voice.TakeOver(&sr.handed.Output, sr.speech)
	}
	if sr.spec.Pty {
		sr.speech.Echoes = output.NewEchoFilter()
	}
}

// environ returns the environment of the run. A run that goes on has its environment already.
func (sr *startRequest) environ(ctx context.Context) ([]string, error) {
	if sr.handed != nil {
		return nil, nil
	}
	env, err := sr.spec.Environ(ctx)
	if err == nil {
		err = ctx.Err() // the start was cancelled meanwhile
	}
	return env, err
}

// folder returns the folder from which files are read for the run. There is none for another program,
// or if it has files that are read for the agent but not by it. An agent that was confined by an earlier
// program may have put another folder in its place since then.
func (sr *startRequest) folder(user *child.User) dispatch.Folder {
	if sr.joined != nil || sr.handed != nil && sr.spec.Confine != nil {
		return dispatch.Folder{}
	}
	return folderOf(&sr.spec, user)
}

// folderOf returns the folder from which files are read for a run that is just being started.
func folderOf(a *settings.Agent, user *child.User) dispatch.Folder {
	f := dispatch.Folder{Path: a.Dir, Do: user.Do}
	if !a.Confine.MayReadAll(f.Path) {
		return dispatch.Folder{}
	}
	_ = user.Do(func() (err error) { // a folder that is not there ends the start
		f.Is, err = os.Stat(f.Path)
		return err
	})
	return f
}

func (sr *startRequest) make(ctx context.Context, l *lifecycle, a *agent) (Process, error) {
	if sr.host != "" {
		return sr.makeElsewhere(ctx, l, a)
	}
	env, err := sr.environ(ctx)
	if err != nil {
		return nil, err
	}
	user, err := child.FindUser(sr.spec.User)
	if err != nil {
		return nil, err
	}
	l.dispatcher.SetFolder(sr.spec.Name, sr.run, sr.folder(user))
	sr.open(l, a)
	own := sr.variables(l)
	env, shut := l.doorway(sr, user, append(without(env, own), own...))
	spec := sr.callbacks(l, a, shut)
	fill(&sr.spec, &spec, env, user)
	c, err := sr.start(l, a, spec)
	if err != nil {
		shut()
	}
	return c, err
}

// open begins the output of the run, and its channel.
func (sr *startRequest) open(l *lifecycle, a *agent) {
	sr.listen(a)
	if !sr.spec.Raw {
		sr.channel = l.dispatcher.Channel(sr.spec.Name, sr.run, func(kind, text string, count int64) {
			a.voice.Tell(wire.Event{Kind: kind, Run: sr.run, Text: text, Figures: wire.Figures{Count: count}})
		})
		sr.channel.LimitBytes(sr.spec.RateBytes, sr.spec.MaxLine)
		sr.speech.Messages = sr.channel
	}
}

// variables returns the variables of the run that are not from the configuration.
func (sr *startRequest) variables(l *lifecycle) []string {
	env := append([]string{"ORC_AGENT_ID=" + sr.spec.Name, "ORC_ACTOR=" + mail.ActorOfRun(cmp.Or(sr.spec.Actor, "W"), sr.run)}, sr.session...)
	if sr.conversation = l.conversation(&sr.spec); sr.conversation != "" {
		env = append(env, "ORC_CONVERSATION="+sr.conversation)
	}
	return env
}

// fill adds to a spec what the configuration says of the agent.
func fill(a *settings.Agent, spec *child.Spec, env []string, user *child.User) {
	spec.Command, spec.Wrap, spec.Dir, spec.Env, spec.User = a.Command, a.Wrap, a.Dir, env, user
	spec.NoStdin, spec.Pty, spec.Limits, spec.Confine = a.NoStdin, a.Pty, a.Limits, a.Confine
}

// callbacks returns the spec of the run with what is called when something happens to it. shut is called
// at its end.
func (sr *startRequest) callbacks(l *lifecycle, a *agent, shut func()) child.Spec {
	return child.Spec{
		Run:     sr.run,
		NoStdin: sr.spec.NoStdin,
		Output: func(stream child.Stream, chunk []byte) {
			<-sr.told
			sr.speech.Write(stream, chunk)
		},
		Exited: func(exit child.Exit) {
			<-sr.told
			l.post(func() { l.exited(a, exit) })
		},
		Stopped: func(yes bool) { l.post(func() { l.frozen(a, sr.run, yes) }) },
		Lost: func(ending child.Ending) {
			<-sr.told
			l.post(func() { l.leftOver(a, ending, " of an interrupted turn") })
		},
		Ended: func(ending child.Ending) {
			sr.speech.End()
			shut()
			l.post(func() { l.ended(a, ending) })
		},
	}
}

// started handles the result of an attempt to create a process.
func (l *lifecycle) started(a *agent, m *startRequest, c Process, err error) {
	a.cancel()
	if err != nil {
		l.startFailed(a, err)
		return
	}
	a.child = c
	a.deaf, a.silent, a.stopped, a.far = "", "", "", ""
	a.starts++
	a.mail = l.mailbox(a, m, c)
	a.channel, a.speech = m.channel, m.speech
	if m.channel != nil {
		m.channel.Open(a.mail)
	}
	a.set(control.StateRunning, "")
	if l.options.Workshop != nil {
		l.options.Workshop.Resume(a.Name)
	}
	l.idle.over = false
	text := origin(c)
	if a.starts > 1 {
		text += fmt.Sprintf(", start %d", a.starts)
	}
	l.event(a, wire.Event{Kind: events.AgentStarted, Text: text, Figures: wire.Figures{PID: c.PID(), Attempt: a.starts}})
	if m.channel != nil && !a.NoStdin {
		m.channel.BringMail(0)
	}
	l.watchSilence(a)
	a.proof = l.deadlines.add(c.StartedAt().Add(good), func() {}) // wakes settle, which checks the start
	if a.halt != nil || l.stopping != nil {
		l.beginHalt(a)
		return
	}
	l.wakeWaiting()
}

// The exit codes that shells use for programs that did not start.
const (
	notRunnable = 126
	notFound    = 127
)

// startFailed handles an attempt that created no process. A lack of resources may pass; any
// other error needs a person.
func (l *lifecycle) startFailed(a *agent, err error) {
	defer l.vacateActor(a)
	if l.parted(a, child.Ending{}, l.unseated(a, err)) {
		return
	}
	var refused *child.StartError
	temporary := errors.As(err, &refused) && refused.Temporary
	text := err.Error()
	if refused != nil && refused.Hint != "" {
		text += "; " + refused.Hint
	}
	switch {
	case a.halt != nil || l.stopping != nil:
		l.stopped(a, child.Ending{})
	case errors.Is(err, hosts.ErrUnknownAgent):
		l.wait(a, "a host with it in its file")
		l.post(l.wakeWaiting) // on another host, or it says why there is none
	case temporary:
		l.restartIn(a, a.Restart.MaxDelay, text, 0)
	case errors.Is(err, fs.ErrNotExist):
		l.fail(a, text, notFound)
	default:
		l.fail(a, text, notRunnable)
	}
}

// exited handles the death of the leader. Other processes of its tree may still run.
func (l *lifecycle) exited(a *agent, exit child.Exit) {
	a.exit = &exit
	a.mail.EndWaits()
	up := exit.At.Sub(a.child.StartedAt())
	a.lastExit, a.lastUp = exit.String(), up
	a.set(control.StateStopping, exit.String()+", its tree is being cleared")
	l.deadlines.drop(a.watch)
	l.deadlines.drop(a.proof)
	if a.halt == nil {
		figures := exitFigures(exit, false)
		figures.PID, figures.UpMS = a.child.PID(), up.Milliseconds()
		l.event(a, wire.Event{Kind: events.AgentExited, Text: fmt.Sprintf("%s after %s", exit, short(up)), Figures: figures})
		return
	}
	stopWork(l, a)
	// stopped reports a requested stop as a whole. What the leader left behind has the rest of
	// the stop sequence: a wrapper dies at once, but its program may have something to finish.
	if !a.halt.signalled {
		l.signalRung(a)
	}
}

// exitFigures returns how a run ended, and whether the end was requested.
func exitFigures(exit child.Exit, ordered bool) wire.Figures {
	if exit.Signal != 0 {
		return wire.Figures{Signal: child.SignalName(exit.Signal), Ordered: ordered}
	}
	return wire.Figures{ExitCode: &exit.Code, Ordered: ordered}
}

// ended handles the end of a run's whole process tree. It decides what happens next.
func (l *lifecycle) ended(a *agent, ending child.Ending) {
	exit := *a.exit
	a.noteHost()
	l.clearUp(a, ending)
	l.event(a, wire.Event{Kind: events.AgentEnded, Text: exit.String(), Figures: exitFigures(exit, a.halt != nil && !a.halt.crash || l.stopping != nil)})
	a.endedRun = a.run
	defer l.vacateActor(a)
	if l.parted(a, ending, nil) {
		return
	}
	switch {
	case a.halt != nil || l.stopping != nil:
		l.stopped(a, ending)
		return
	case a.afresh:
		a.afresh = false
		a.set(control.StateStopped, "")
		l.want(a, a.freely)
		return
	}
	v := a.history.after(a.Restart, exit.Code, exit.String(), a.lastUp, exit.At, rand.Float64())
	switch {
	case v.again:
		l.restartIn(a, v.delay+l.spread(a, exit.At), "", v.attempt)
	case v.why != "":
		l.fail(a, v.why, exit.Code)
	default:
		a.wanted = false
		a.set(control.StateExited, exit.String())
		l.dispatcher.Note(&wire.AgentGone{Agent: a.Name})
		l.wakeWaiting()
		l.idle.check()
	}
}

// clearUp releases the resources of a run and reports the left-over processes.
func (l *lifecycle) clearUp(a *agent, ending child.Ending) {
	if a.halt != nil {
		ending.LeftOver = nil // stopped reports them
	}
	l.leftOver(a, ending, "")
	if ending.HeldOpen {
		l.event(a, wire.Event{
			Kind:    events.AgentHeldOpen,
			Text:    "its output was held open from outside its tree and cut off" + heldBy(ending.HeldBy),
			Figures: wire.Figures{LeftOver: views(ending.HeldBy)},
		})
	}
	l.dispatcher.Detach(a.Name, a.run)
	a.mail.Drop()
	_, _, refused := a.mail.Waiting()
	a.refused += refused
	a.survivors = len(ending.Survivors)
	a.child, a.mail, a.exit = nil, nil, nil
}

// leftOver reports processes that were ended, and those that could not be. What they are left of is part of the text.
func (l *lifecycle) leftOver(a *agent, ending child.Ending, of string) {
	if len(ending.LeftOver) > 0 {
		l.event(a, wire.Event{
			Kind:    events.AgentLeftOver,
			Text:    "ended " + leftOvers(ending.LeftOver) + of,
			Figures: wire.Figures{LeftOver: views(ending.LeftOver), Count: int64(len(ending.LeftOver))},
		})
	}
	if len(ending.Survivors) > 0 {
		l.options.Log.Error("processes do not die", "agent", a.Name, "processes", names(ending.Survivors))
		l.event(a, wire.Event{
			Kind:    events.AgentLeftOver,
			Text:    "could not end " + leftOvers(ending.Survivors) + of,
			Figures: wire.Figures{LeftOver: views(ending.Survivors)},
		})
	}
	if ending.Unverified {
		l.event(a, wire.Event{Kind: events.AgentLeftOver, Text: "its tree could not be looked at to the end; there may be more of it"})
	}
}

// restartIn schedules the restart of an agent after a delay.
func (l *lifecycle) restartIn(a *agent, delay time.Duration, why string, attempt int) {
	a.set(control.StateBackoff, why)
	text := "restart in " + short(delay)
	if attempt > 0 {
		text = fmt.Sprintf("restart %d of %d in %s", attempt, a.Restart.Burst, short(delay))
	}
	if why != "" {
		text = why + "; " + text
	}
	l.event(a, wire.Event{
		Kind:    events.AgentRestarting,
		Text:    text,
		Figures: wire.Figures{Attempt: attempt, Burst: a.Restart.Burst, DelayMS: delay.Milliseconds()},
	})
	l.startLater(a, delay)
}

// startLater starts an agent in the state backoff after a delay.
func (l *lifecycle) startLater(a *agent, delay time.Duration) {
	a.due = l.deadlines.add(time.Now().Add(delay), func() {
		a.set(control.StateStopped, "")
		a.restarts++
		l.tryStart(a)
	})
}

// fail marks an agent as failed for good. code is its last exit code, or the code that a shell
// uses for a program that did not start. It is -1 if neither is the cause.
func (l *lifecycle) fail(a *agent, why string, code int) {
	a.wanted = false
	a.set(control.StateFailed, why)
	l.event(a, wire.Event{Kind: events.AgentGaveUp, Text: why, Figures: wire.Figures{ExitCode: &code}})
	a.lastStop = why
	if l.options.AbortOnFailure {
		l.stop(a.Name + " failed")
		return
	}
	l.idle.check()
}

// gaveUp describes why there were too many restarts.
func gaveUp(endings []string, r settings.Restart) string {
	return fmt.Sprintf("it ended %d times within %s (%s), the limit is %s",
		len(endings), r.Window, strings.Join(endings, ", "), count(r.Burst, "restart"))
}
