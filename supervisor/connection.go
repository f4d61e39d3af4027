package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/hosts"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// A connection is a run of an agent by a program that has joined over a connection.
//
// A program that joins under the name of an agent that does not run becomes that agent's run. When it leaves, the agent
// returns to its earlier state and is not restarted. A program that joins under an unused name is a guest: an agent
// that exists as long as its connection. A configuration that is applied during the connection
//
//   - does not change guests, because it does not list them;
//   - may add an agent with the name of a guest. That agent is the guest's heir: it gets the
//     name when the guest has left, and then starts if it starts automatically. An heir that
//     is removed before that is dropped;
//   - changes the agent that a program has joined as. Settings that need a restart wait for
//     the end of the connection. An agent that is removed is stopped with its connection.
type connection struct {
	state  control.State // of the agent before the run
	reason string
	err    error         // why the program could not join; valid when over is closed
	over   chan struct{} // closed when the run has ended, and the name is free

	mu     sync.Mutex
	accept func() (Conn, error) // nil when the program has gone
	pipe   *pipe                // the accepted connection, or nil
}

// lately is how long Join waits for another connection with the same name to end. A connection
// that was cut a moment ago may not have been noticed yet.
const lately = time.Second

// Join runs a connection as an agent and returns when the connection has ended. guest specifies the agent if its name
// is unused. If Join returns an error without having called accept, it has made no change.
func (s *Supervisor) Join(ctx context.Context, guest settings.Agent, accept func() (Conn, error)) error {
	j := &connection{accept: accept, over: make(chan struct{})}
	defer j.withdraw()
	patience := time.NewTimer(lately)
	defer patience.Stop()
	for patient := true; ; {
		// After an early return the run could begin without its caller.
		before, err := ask(context.Background(), s, func() (*connection, error) { return s.life.seat(guest, j) })
		if before == nil || !patient {
			if err != nil {
				return err
			}
			break
		}
		select {
		case <-before.over:
		case <-patience.C:
			patient = false
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return s.sit(j)
}

// sit waits for the end of a connection that has begun its run. It ignores the caller's
// context, because the connection notices by itself when the caller has gone.
func (s *Supervisor) sit(j *connection) error {
	_, err := dispatch.Await(context.Background(), s.done, j.over)
	if err == nil {
		err = j.err
	}
	j.mu.Lock()
	p := j.pipe
	j.mu.Unlock()
	if p != nil {
		<-p.done
	}
	return err
}

// seat begins the run. If another connection has the agent, seat also returns that connection.
func (l *lifecycle) seat(guest settings.Agent, j *connection) (before *connection, err error) {
	if l.stopping != nil {
		return nil, errStopping
	}
	a := l.agents[guest.Name]
	switch {
	case a == nil:
		if err := l.stands(guest.Name); err != nil {
			return nil, err
		}
		a = l.enter(&guest)
		a.guest = true
		l.enlist()
	case a.joined != nil:
		return a.joined, conflict(a, fmt.Sprintf("a program has already joined as %q", a.Name),
			"Join under another name: --as NAME     End the other one: orchestrator agent stop "+a.Name)
	default:
		if err := seated(a); err != nil {
			return nil, err
		}
	}
	j.state, j.reason = a.state, a.reason
	a.joined, a.wanted = j, true
	l.launch(a, "")
	return nil, nil
}

// seated returns an error if no program can join as agent a at present.
func seated(a *agent) error {
	switch {
	case a.removed:
		return conflict(a, fmt.Sprintf("agent %q is no longer in the configuration and is being stopped", a.Name), "Try again in a moment")
	case a.Raw || a.NoStdin:
		return conflict(a, fmt.Sprintf("agent %q takes no messages", a.Name),
			`Its protocol is "raw" or its stdin "null". Join under another name: --as NAME`)
	case a.wanted || a.halt != nil || a.child != nil:
		what := fmt.Sprintf("agent %q runs its own command", a.Name)
		if a.child == nil {
			what = fmt.Sprintf("agent %q is %s, and runs its own command", a.Name, a.state)
		}
		return conflict(a, what, "Stop it first: orchestrator agent stop "+a.Name+"     Or join under another name: --as NAME")
	}
	return nil
}

// stands returns an error if name is the block name of an agent's replicas.
func (l *lifecycle) stands(name string) error {
	var replicas []string
	for _, a := range l.order {
		if a.Block == name {
			replicas = append(replicas, a.Name)
		}
	}
	if replicas == nil {
		return nil
	}
	return &wire.Error{
		Code:    wire.CodeConflict,
		Message: fmt.Sprintf("%q stands for the agents %s", name, strings.Join(replicas, ", ")),
		Details: map[string]any{"agent": name},
		Hint:    "Join under another name: --as NAME",
	}
}

func conflict(a *agent, message, hint string) error {
	return &wire.Error{
		Code: wire.CodeConflict, Message: message, Hint: hint,
		Details: map[string]any{"agent": a.Name, "state": a.state},
	}
}

// withdraw prevents a program that has gone from being accepted.
func (c *connection) withdraw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accept = nil
}

var errGone = errors.New("the program that wanted to join has gone")

// start creates the process of a run: a child, or a connection that has joined.
func (ar *agentRun) start(spec child.Spec) (Process, error) {
	l, j := ar.life, ar.joined
	switch {
	case j == nil && ar.spec.Client.Protocol != "":
		return startClient(ar.spec, l.options.Start, spec, ar.conversation, nil)
	case j == nil:
		return l.options.Start(spec)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.accept == nil {
		return nil, errGone
	}
	conn, err := j.accept()
	if err != nil {
		return nil, err
	}
	p := newPipe(conn, ar)
	p.answers = func(over <-chan struct{}) { l.inputEnded(ar.agent, ar, over) }
	p.parted = func() {
		select {
		case <-j.over:
		case <-l.done:
		}
		l.dispatcher.Settle()
	}
	j.pipe = p
	l.starts.Go(func() error { // so that Run waits until the last message is written
		p.run()
		return nil
	})
	return p, nil
}

// byPipe returns the spec of an agent for a run that is a connection. Such a run has no command and needs no
// environment or terminal.
func byPipe(a *settings.Agent) *settings.Agent {
	spec := *a
	spec.Environ = func(context.Context) ([]string, error) { return nil, nil }
	spec.Pty = false
	return &spec
}

// inputEnded handles the end of a connection's input. The agent gets no more work. After its
// requests are answered, its stdin ends.
func (l *lifecycle) inputEnded(a *agent, m *agentRun, over <-chan struct{}) {
	<-m.handled
	l.post(func() {
		if a.run != m.run || a.child == nil || a.exit != nil || a.halt != nil {
			return
		}
		l.deadlines.drop(a.watch)
		a.set(control.StateStopping, "its input has ended")
		l.event(a, wire.Event{Kind: events.AgentStopping, Text: "its input has ended: it leaves after its last answer"})
	})
	m.channel.Finish(over)
}

// parted ends a run that was a connection or was to be one, without a restart. It reports
// whether it was such a run.
func (l *lifecycle) parted(a *agent, ending child.Ending, why error) bool {
	j := a.joined
	if j == nil {
		return false
	}
	a.joined = nil
	j.err = why
	defer close(j.over)
	if why != nil {
		l.event(a, wire.Event{Kind: events.AgentStopped, Text: "the program did not join"})
	}
	next := a.next
	inherits := a.guest && a.heir != nil
	if inherits {
		next, a.guest, a.heir = a.heir, false, nil
		j.state, j.reason = control.StateStopped, ""
	}
	a.removed = a.removed || a.guest
	if next != nil && !a.removed {
		l.adopt(a, next)
		l.enlist()
	}
	a.lastStop = a.lastExit
	again := !a.removed && (a.afresh || inherits && a.Autostart)
	ordered := a.halt != nil || l.stopping != nil
	if why == nil && !ordered && !again {
		l.dispatcher.Note(&wire.AgentGone{Agent: a.Name})
	}
	switch {
	case ordered:
		l.stopped(a, ending)
	case a.removed:
		a.wanted = false
		a.set(control.StateStopped, "")
		l.leave(a)
		l.stops.gone(a)
	case again:
		a.afresh = false
		a.set(control.StateStopped, "")
		l.want(a, a.freely)
	default:
		a.wanted = false
		a.set(j.state, j.reason)
		l.wakeWaiting()
		l.idle.check()
	}
	return true
}

// unseated returns the reason why a program could not join.
func (l *lifecycle) unseated(a *agent, err error) error {
	if a.halt != nil || l.stopping != nil {
		return &wire.Error{Code: wire.CodeConflict, Message: fmt.Sprintf("agent %q was stopped at the same time", a.Name)}
	}
	return err
}

// setSuccessor applies a configuration change to the name of a guest.
func (a *agent) setSuccessor(c Change) expectation {
	if c.Action == settings.ActionStop {
		a.heir = nil
		return expectation{told: "is gone; the program that joined under its name stays"}
	}
	a.heir = &c.Agent
	return expectation{told: "waits for the pipe with its name to end"}
}

// amend applies settings that take effect at once. If other settings already wait for the end
// of a connection, spec replaces those instead.
func (l *lifecycle) amend(a *agent, spec *settings.Agent) {
	if a.joined != nil && a.next != nil {
		a.next = spec
		return
	}
	l.adopt(a, spec)
}

// origin describes where a run comes from.
func origin(p Process) string {
	if p.PID() == 0 {
		return "joined by pipe"
	}
	if there, ok := p.(*hosts.Process); ok {
		return fmt.Sprintf("pid %d on %s", p.PID(), there.Host())
	}
	return fmt.Sprintf("pid %d", p.PID())
}

// patience returns the time from the notice to the first signal, or to the cut of a connection.
// An agent that has sent no message in this run is not expected to understand the notice.
func (a *agent) patience() time.Duration {
	if a.voice.HasSpoken() {
		return a.Stop.CloseStdin
	}
	return a.Stop.Unspoken
}
