package supervisor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/hosts"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// Agents with a placement run on other machines: see package hosts. The hub decides everything about
// them as for others. The host starts the process by its own copy of the configuration.

// hostFor returns the host on which an agent is to run, "" for this machine, or why it has to wait.
func hostFor(a *agent, all *hosts.Hosts) (host, why string) {
	spec := &a.Agent
	if a.next != nil {
		spec = a.next
	}
	if spec.Placement == nil || a.joined != nil {
		return "", ""
	}
	if all == nil {
		return "", "a host, and none can join here"
	}
	p := *spec.Placement
	if a.lostHost != "" && spec.Wait {
		p.Only = a.lostHost
	}
	return all.Find(spec.Name, spec.Block, p)
}

// noteHost remembers the host of a run that ended because its link was gone.
func (a *agent) noteHost() {
	a.lostHost = ""
	if there, ok := a.child.(*hosts.Process); ok && there.Lost() {
		a.lostHost = there.Host()
	}
}

// HostsChanged starts the agents that have waited for a host. It does not block.
func (s *Supervisor) HostsChanged() { s.post(s.life.wakeWaiting) }

// NoteHost records an event of a host.
func (s *Supervisor) NoteHost(kind, host, text string) {
	s.dispatcher.Note(&wire.Event{Kind: kind, Text: host + " " + text})
}

// makeElsewhere starts the run on a host.
func (sr *startRequest) makeElsewhere(l *lifecycle, a *agent) (Process, error) {
	l.dispatcher.House(sr.spec.Name, sr.run, dispatch.Folder{})
	sr.open(l, a)
	env, shut := l.doorway(sr, nil, sr.variables(l))
	env = slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "ORC_SOCKET=") }) // the host makes one
	a.voice.Tell(wire.Event{Kind: events.AgentPlaced, Run: sr.run, Text: "is placed on " + sr.host})
	c, err := l.options.Hosts.Start(hosts.Order{
		Host: sr.host, Agent: sr.spec.Name, Block: sr.spec.Block, Env: env, Conversation: sr.conversation,
		Away: func(yes bool) { l.post(func() { away(l, a, sr.run, sr.host, yes) }) },
	}, sr.callbacks(l, a, shut))
	if err != nil {
		shut()
		return nil, err
	}
	return c, nil
}

// away handles an agent whose host cannot be reached, or can again.
func away(l *lifecycle, a *agent, run, host string, yes bool) {
	switch {
	case a.run != run || a.child == nil:
	case yes:
		l.stalled(a, &a.far, fmt.Sprintf("is on %s, which cannot be reached since %s", host, time.Now().Format(time.TimeOnly)))
	default:
		l.recovered(a, &a.far, "is on "+host+", which can be reached again")
	}
}

// Launch starts a run of the agent on this machine for a hub elsewhere. The spec has its callbacks, and
// env its variables from the hub.
func (a *Agent) Launch(ctx context.Context, start func(child.Spec) (Process, error), env []string, conversation string, spec child.Spec) (Process, error) {
	own, err := a.Environ(ctx)
	if err != nil {
		return nil, err
	}
	user, err := child.FindUser(a.User)
	if err != nil {
		return nil, err
	}
	a.fill(&spec, append(without(own, env), env...), user)
	if a.Client != nil {
		return a.startClient(start, spec, conversation, nil)
	}
	return start(spec)
}
