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
	m := l.startOf(a)
	m.host, m.session, m.joined = host, l.sessions.environment(a.Name), a.joined
	if a.joined != nil {
		m.spec = byPipe(a.Agent)
	}
	l.makers.Go(func() error {
		c, err := m.make(ctx)
		l.post(func() {
			l.started(a, m, c, err)
			close(m.told)
		})
		return nil
	})
}

// A startRequest creates one run of an agent. It passes on the output and the exit of the child only after the
// start itself was handled.
type startRequest struct {
	life    *lifecycle
	agent   *agent
	spec    settings.Agent
	run     string
	session []string     // environment variables that describe its session
	joined  *connection  // nil for a child process
	host    string       // the machine that it runs on; "" for this one
	handed  *handedAgent // the run so far in an earlier program; nil if it begins
	goesOn  bool         // it was begun on the host by an earlier hub

	conversation string // of the program of the agent; "" without one
	speech       *output.Run
	channel      *dispatch.Channel // nil if all its output is log
	told         chan struct{}
	shut         func() // closes the sockets that only the run uses
}

// startOf returns a request for the run of an agent.
func (l *lifecycle) startOf(a *agent) *startRequest {
	return &startRequest{life: l, agent: a, spec: a.Agent, run: a.run, told: make(chan struct{})}
}

// listen begins the output of the run.
func (sr *startRequest) listen() {
	sr.speech = sr.agent.voice.Begin(sr.run, sr.spec.MaxLine)
	if sr.handed != nil {
		sr.agent.voice.TakeOver(&sr.handed.Output, sr.speech)
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
		err = ctx.Err() // the start was cancelled during Environ
	}
	return env, err
}

// folder returns the folder that files are read from for the run. It is empty for a program that has joined, and for a
// folder with files that the agent may not read. An agent that was confined by an earlier program may have put another
// folder in its place since then.
func (sr *startRequest) folder(user *child.User) dispatch.Folder {
	if sr.joined != nil || sr.handed != nil && sr.spec.Confine != nil {
		return dispatch.Folder{}
	}
	return folderOf(&sr.spec, user)
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

func (sr *startRequest) make(ctx context.Context) (Process, error) {
	if sr.host != "" {
		return sr.makeElsewhere(ctx)
	}
	env, err := sr.environ(ctx)
	if err != nil {
		return nil, err
	}
	user, err := child.FindUser(sr.spec.User)
	if err != nil {
		return nil, err
	}
	sr.life.dispatcher.SetFolder(sr.spec.Name, sr.run, sr.folder(user))
	sr.open()
	own := sr.variables()
	env = sr.openDoorway(user, append(without(env, own), own...))
	spec := child.Spec{Run: sr.run, Listener: sr}
	fill(&sr.spec, &spec, env, user)
	c, err := sr.start(spec)
	if err != nil {
		sr.shut()
	}
	return c, err
}

// open begins the output of the run, and its channel.
func (sr *startRequest) open() {
	sr.listen()
	if !sr.spec.Raw {
		sr.channel = sr.life.dispatcher.Channel(sr.spec.Name, sr.run, func(kind, text string, count int64) {
			sr.agent.voice.Tell(wire.Event{Kind: kind, Run: sr.run, Text: text, Figures: wire.Figures{Count: count}})
		})
		sr.channel.LimitBytes(sr.spec.RateBytes, sr.spec.MaxLine)
		sr.speech.Messages = sr.channel
	}
}

// variables returns the variables of the run that are not from the configuration.
func (sr *startRequest) variables() []string {
	env := append([]string{"ORC_AGENT_ID=" + sr.spec.Name, "ORC_ACTOR=" + mail.ActorOfRun(cmp.Or(sr.spec.Actor, "W"), sr.run)}, sr.session...)
	if sr.conversation = sr.life.conversation(&sr.spec); sr.conversation != "" {
		env = append(env, "ORC_CONVERSATION="+sr.conversation)
	}
	return env
}

// fill adds the configuration of the agent to a spec.
func fill(a *settings.Agent, spec *child.Spec, env []string, user *child.User) {
	spec.Command, spec.Wrap, spec.Dir, spec.Env, spec.User = a.Command, a.Wrap, a.Dir, env, user
	spec.NoStdin, spec.Pty, spec.Limits, spec.Confine = a.NoStdin, a.Pty, a.Limits, a.Confine
}

// Output implements child.Listener.
func (sr *startRequest) Output(stream child.Stream, chunk []byte) {
	<-sr.told
	sr.speech.Write(stream, chunk)
}

// Exited implements child.Listener.
func (sr *startRequest) Exited(exit child.Exit) {
	<-sr.told
	sr.life.post(func() { sr.life.exited(sr.agent, exit) })
}

// Stopped implements child.Listener.
func (sr *startRequest) Stopped(yes bool) {
	sr.life.post(func() { sr.life.frozen(sr.agent, sr.run, yes) })
}

// Lost implements child.Listener.
func (sr *startRequest) Lost(ending child.Ending) {
	<-sr.told
	sr.life.post(func() { sr.life.leftOver(sr.agent, ending, " of an interrupted turn") })
}

// Ended implements child.Listener.
func (sr *startRequest) Ended(ending child.Ending) {
	sr.speech.End()
	sr.shut()
	sr.life.post(func() { sr.life.ended(sr.agent, ending) })
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
