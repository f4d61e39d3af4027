package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"orchestrator/handlers"
	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/adapter/acp"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
)

// minUptime is how long an agent must be up before a request to start it succeeds.
const minUptime = time.Second

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

// launch creates the agent's process on another goroutine, because reading secrets and forking
// take time. host is where it runs, "" for this machine.
func (l *lifecycle) launch(a *agent, host string) {
	if a.next != nil {
		l.adopt(a, a.next)
		l.enlist()
	}
	a.set(control.StateStarting, "")
	a.run = uuid.NewString()
	a.exit = nil
	l.takeActor(a)
	l.event(a, wire.Event{Kind: events.AgentStarting, Text: "is being started"})
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	m := l.runOf(a)
	m.host, m.session, m.joined = host, l.sessions.environment(a.Name), a.joined
	if a.joined != nil {
		m.spec = byPipe(a.Agent)
	}
	l.starts.Go(func() error {
		c, err := m.make(ctx)
		l.post(func() {
			l.started(a, m, c, err)
			close(m.handled)
		})
		return nil
	})
}

// An agentRun is one run of an agent, from its start. It passes on the output and the exit of the child only after the
// start itself was handled.
type agentRun struct {
	life      *lifecycle
	agent     *agent
	spec      *settings.Agent
	run       string
	session   []string     // environment variables that describe its session
	joined    *connection  // nil for a child process
	host      string       // the machine that it runs on; "" for this one
	handed    *handedAgent // the run so far in an earlier program; nil if it begins
	continues bool         // it was begun on the host by an earlier hub

	conversation string // of the program of the agent; "" without one
	speech       *output.Run
	channel      *dispatch.Channel // nil if all its output is log
	handled      chan struct{}
	shut         func() // closes the sockets that only the run uses
}

// runOf returns the run that an agent begins.
func (l *lifecycle) runOf(a *agent) *agentRun {
	return &agentRun{life: l, agent: a, spec: a.Agent, run: a.run, handled: make(chan struct{})}
}

// listen begins the output of the run.
func (ar *agentRun) listen() {
	ar.speech = ar.agent.voice.Begin(ar.run, ar.spec.MaxLine)
	if ar.handed != nil {
		ar.agent.voice.TakeOver(&ar.handed.Output, ar.speech)
	}
	if ar.spec.Pty {
		ar.speech.Echoes = output.NewEchoFilter()
	}
}

// environ returns the environment of the run. A run that goes on has its environment already.
func (ar *agentRun) environ(ctx context.Context) ([]string, error) {
	if ar.handed != nil {
		return nil, nil
	}
	env, err := ar.spec.Environ(ctx)
	if err == nil {
		err = ctx.Err() // the start was cancelled during Environ
	}
	return env, err
}

// folder returns the folder that files are read from for the run. It is empty for a program that has joined, and for a
// folder with files that the agent may not read. An agent that was confined by an earlier program may have put another
// folder in its place since then.
func (ar *agentRun) folder(user *child.User) dispatch.Folder {
	if ar.joined != nil || ar.handed != nil && ar.spec.Confine != nil {
		return dispatch.Folder{}
	}
	return folderOf(ar.spec, user)
}

// folderOf returns the folder that files are read from, for a run that is just being started.
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

func (ar *agentRun) make(ctx context.Context) (Process, error) {
	if ar.host != "" {
		return ar.makeElsewhere(ctx)
	}
	env, err := ar.environ(ctx)
	if err != nil {
		return nil, err
	}
	user, err := child.FindUser(ar.spec.User)
	if err != nil {
		return nil, err
	}
	ar.life.dispatcher.SetFolder(ar.spec.Name, ar.run, ar.folder(user))
	ar.open()
	own := ar.variables()
	env = ar.openDoorway(user, append(without(env, own), own...))
	spec := child.Spec{Run: ar.run, Listener: ar}
	fill(ar.spec, &spec, env, user)
	c, err := ar.start(spec)
	if err != nil {
		ar.shut()
	}
	return c, err
}

// open begins the output of the run, and its channel.
func (ar *agentRun) open() {
	ar.listen()
	if !ar.spec.Raw {
		ar.channel = ar.life.dispatcher.Channel(ar.spec.Name, ar.run, func(kind, text string, count int64) {
			ar.agent.voice.Tell(wire.Event{Kind: kind, Run: ar.run, Text: text, Figures: wire.Figures{Count: count}})
		})
		ar.channel.LimitBytes(ar.spec.RateBytes, ar.spec.MaxLine)
		ar.speech.Messages = ar.channel
	}
}

// variables returns the variables of the run that are not from the configuration.
func (ar *agentRun) variables() []string {
	env := append([]string{"ORC_AGENT_ID=" + ar.spec.Name, "ORC_ACTOR=" + mail.ActorOfRun(cmp.Or(ar.spec.Actor, "W"), ar.run)}, ar.session...)
	if ar.conversation = ar.life.conversation(ar.spec); ar.conversation != "" {
		env = append(env, "ORC_CONVERSATION="+ar.conversation)
	}
	return env
}

// fill adds the configuration of the agent to a spec.
func fill(a *settings.Agent, spec *child.Spec, env []string, user *child.User) {
	spec.Command, spec.Wrap, spec.Dir, spec.Env, spec.User = a.Command, a.Wrap, a.Dir, env, user
	spec.NoStdin, spec.Pty, spec.Limits, spec.Confine = a.NoStdin, a.Pty, a.Limits, a.Confine
}

// Output implements child.Listener.
func (ar *agentRun) Output(stream child.Stream, chunk []byte) {
	<-ar.handled
	ar.speech.Write(stream, chunk)
}

// Exited implements child.Listener.
func (ar *agentRun) Exited(exit child.Exit) {
	<-ar.handled
	ar.life.post(func() { ar.life.exited(ar.agent, exit) })
}

// Stopped implements child.Listener.
func (ar *agentRun) Stopped(yes bool) {
	ar.life.post(func() { ar.life.frozen(ar.agent, ar.run, yes) })
}

// Lost implements child.Listener.
func (ar *agentRun) Lost(ending child.Ending) {
	<-ar.handled
	ar.life.post(func() { ar.life.leftOver(ar.agent, ending, " of an interrupted turn") })
}

// Ended implements child.Listener.
func (ar *agentRun) Ended(ending child.Ending) {
	ar.speech.End()
	ar.shut()
	ar.life.post(func() { ar.life.ended(ar.agent, ending) })
}

// started handles the result of an attempt to create a process.
func (l *lifecycle) started(a *agent, m *agentRun, c Process, err error) {
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
	a.proof = l.deadlines.add(c.StartedAt().Add(minUptime), func() {}) // wakes settle, which checks the start
	if a.halt != nil || l.stopping != nil {
		l.beginHalt(a)
		return
	}
	l.wakeWaiting()
}

// conversation returns the conversation of the program of an agent, or "". The conversation of a coding agent is only
// for the program and the folder that it began in.
func (l *lifecycle) conversation(spec *settings.Agent) (id string) {
	l.dispatcher.Look(func(s *handlers.State) {
		known := s.Activity(spec.Name)
		if known != nil && (spec.Client.Protocol == "" || known.Kind == spec.Client.Protocol && known.Dir == spec.Dir) {
			id = known.Conversation
		}
	})
	return id
}

// startClient creates the process of a coding agent. The run is the run of spec. A wrap function, if not nil, wraps the
// client of the adapter.
func startClient(a *settings.Agent, start func(child.Spec) (Process, error), spec child.Spec, conversation string, wrap func(adapter.Client) adapter.Client) (Process, error) {
	c := &a.Client
	kind, ok := clients[c.Protocol]
	if !ok {
		return nil, fmt.Errorf("unknown protocol %q", c.Protocol)
	}
	o := c.Opening
	o.Agent, o.Run, o.Dir, o.Protocol = a.Name, spec.Run, a.Dir, c.Protocol
	if c.Resume {
		o.Conversation = conversation
	}
	if c.Protocol != "acp" {
		o.Door = nil // it takes our tools in band
	}
	for _, entry := range spec.Env {
		if name, _, _ := strings.Cut(entry, "="); name == "ORC_SOCKET" || name == "ORC_AGENT_ID" {
			o.DoorEnv = append(o.DoorEnv, entry)
		}
	}
	if o.Door != nil && !spec.User.MayExecute(o.Door[0]) {
		return nil, &child.StartError{
			Reason: fmt.Sprintf("user %q cannot execute %s, which gives the agent its tools", spec.User.Name, o.Door[0]),
			Hint:   "install orchestrator where all users can execute it, for example in /usr/local/bin", Err: os.ErrPermission,
		}
	}
	if c.Protocol == "acp" {
		spec.Env = append(spec.Env, acp.Environ(spec.Command, &o)...)
	}
	spec.Command = kind.launch(spec.Command, &o)
	client := kind.begin()
	var wire *adapter.WireLog
	switch {
	case wrap != nil: // it is only examined
		client = wrap(client)
	case c.WireLog:
		wire = &adapter.WireLog{Dir: filepath.Join(a.Output.Dir, a.Name)}
	}
	program := func(spec child.Spec) (adapter.Program, error) { return start(spec) }
	return adapter.Start(program, spec, adapter.NewMachine(client, &o), a.MaxLine, wire)
}
