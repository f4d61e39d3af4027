package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"orchestrator/handlers"
	"orchestrator/supervisor/artifacts"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/hosts"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// Agents with a placement run on other machines: see package hosts. The hub decides everything about
// them, as it does about the agents on its own machine. The host starts the process with its own copy of
// the configuration.

// hostFor returns the host that is to run an agent, "" for this machine, or why the agent has to wait.
func hostFor(a *agent, all *hosts.Hosts) (host, why string) {
	spec := a.Agent
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

// noteHost remembers the host of a run that was given up, because the next run may have to wait for that host.
func (a *agent) noteHost() {
	a.lostHost = ""
	if there, ok := a.child.(*hosts.Process); ok && there.Lost() {
		a.lostHost = there.Host()
	}
}

// HostsChanged starts agents that wait for a host, if there is one now. It does not block.
func (s *Supervisor) HostsChanged() { s.post(s.life.wakeWaiting) }

// NoteHost records an event of a host.
func (s *Supervisor) NoteHost(kind, host, text string, f wire.Figures) {
	s.dispatcher.Note(&wire.Event{Kind: kind, Text: host + " " + text, Figures: f})
}

// makeElsewhere starts the run on a host, or goes on with the run that an earlier hub has started there.
func (ar *agentRun) makeElsewhere(ctx context.Context) (Process, error) {
	l, a := ar.life, ar.agent
	ar.open()
	env := ar.openDoorway(nil, ar.variables())
	env = slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "ORC_SOCKET=") }) // the host makes one
	o := hosts.Order{
		Host: ar.host, Agent: ar.spec.Name, Block: ar.spec.Block, Run: ar.run, NoStdin: ar.spec.NoStdin, Env: env, Conversation: ar.conversation,
		Listener: ar,
	}
	files := func(p *hosts.Process) {
		l.dispatcher.SetFolder(ar.spec.Name, ar.run, dispatch.Folder{Remote: p})
	}
	if ar.continues {
		p := l.options.Hosts.Expect(o)
		files(p)
		return p, nil
	}
	a.voice.Tell(wire.Event{Kind: events.AgentPlaced, Run: ar.run, Text: "is placed on " + ar.host, Figures: wire.Figures{Host: ar.host}})
	c, err := l.options.Hosts.Start(ctx, o)
	if err != nil {
		ar.shut()
		return nil, err
	}
	files(c) // before its first line is handled, because that waits for the report of the start
	return c, nil
}

// Away implements hosts.Listener.
func (ar *agentRun) Away(yes bool) {
	ar.life.post(func() { ar.life.away(ar.agent, ar.run, ar.host, yes) })
}

// Found implements hosts.Listener.
func (ar *agentRun) Found(mail int64, unfit string) {
	ar.life.post(func() { ar.life.found(ar.agent, ar, mail, unfit) })
}

// Quiet implements hosts.Listener.
func (ar *agentRun) Quiet() (mail int64, waits, ok bool) {
	select {
	case <-ar.handled:
	default:
		return 0, false, false // it is not known to have started
	}
	if ar.channel == nil {
		return 0, false, true
	}
	return ar.channel.Quiet()
}

// Unsound implements hosts.Listener.
func (ar *agentRun) Unsound(seq int64, waits bool) string {
	return unsound(ar.life.dispatcher, ar.life.options.Record, ar.life.restored, ar, seq, waits)
}

// away marks an agent as stalled while its host cannot be reached.
func (l *lifecycle) away(a *agent, run, host string, yes bool) {
	switch {
	case a.run != run || a.child == nil:
	case yes:
		l.stalled(a, &a.far, fmt.Sprintf("is on %s, which has been unreachable since %s", host, time.Now().Format(time.TimeOnly)))
	default:
		l.recovered(a, &a.far, "is on "+host+", which can be reached again")
	}
}

// placements returns the events of the runs that hosts may still have, of agents that are configured. It tells the
// Hosts which hosts were drained.
func (l *lifecycle) placements() (placed []wire.Event) {
	if l.options.Hosts == nil {
		return nil
	}
	var all []wire.Event
	l.dispatcher.Look(func(state *handlers.State) { all = state.Elsewhere() })
	for _, e := range all {
		if e.Kind == events.HostDrained {
			l.options.Hosts.Drained(e.Figures.Host)
		} else if l.agents[e.Agent] != nil {
			placed = append(placed, e)
		}
	}
	return placed
}

// expect goes on with a run that its host may still have. Until the host has joined, the agent is stalled, as
// if its host could not be reached.
func (l *lifecycle) expect(p wire.Event) {
	a, host := l.agents[p.Agent], p.Figures.Host
	a.run, a.wanted, a.freely, a.starts = p.Run, true, true, 1
	ar := l.runOf(a)
	ar.host, ar.session, ar.continues = host, l.sessions.environment(a.Name), true
	defer close(ar.handled)
	l.takeActor(a)
	c, err := ar.makeElsewhere(context.Background())
	if err != nil {
		panic("a run that is expected is not started: " + err.Error())
	}
	a.child, a.speech, a.channel = c, ar.speech, ar.channel
	a.mail = l.mailbox(a, ar, c)
	if ar.channel != nil {
		ar.channel.Open(a.mail)
	}
	a.far = "is on " + host + ", which has not joined this hub yet"
	a.set(control.StateStalled, a.far)
}

// found handles the news that a host still has a run of an earlier hub. The host kills a run that is unfit, or an
// earlier hub has stopped it. Its end counts as ordered, so it does not count against its tasks.
func (l *lifecycle) found(a *agent, ar *agentRun, mail int64, unfit string) {
	switch {
	case a.run != ar.run || a.child == nil:
	case unfit != "":
		a.halt = &stopRequest{reason: unfit, at: time.Now(), begun: true, signalled: true, forced: true, again: true}
		a.set(control.StateStopping, unfit)
		l.event(a, wire.Event{Kind: events.AgentStalled, Text: "cannot continue with this hub and is killed: " + unfit})
	default:
		if ar.channel != nil && !a.NoStdin {
			ar.channel.BringMail(mail)
		}
		l.watchSilence(a)
	}
}

// unrelated lists event kinds that neither reach agents nor originate from them.
var unrelated = map[string]bool{
	events.HubEpoch: true, events.HostJoined: true, events.HostLost: true, events.HostDrained: true, events.AgentPlaced: true,
	events.AgentStalled: true, events.AgentRecovered: true, events.OrchestratorStarted: true, events.OrchestratorIdle: true,
}

// answeredOnly lists kinds of records that reach the agent that has caused them only as the answer to its request.
var answeredOnly = map[string]bool{events.TaskProgress: true, events.TaskStarted: true}

// asked reports whether a request of a run has caused a record, and the run hears only the answer to it. A host repeats
// such a request if the answer has not arrived, and then it is answered from memory.
func asked(r *wire.Record, run string) bool {
	var cause struct {
		Request struct {
			Run string `json:"run"`
		} `json:"request"`
	}
	text := r.Payload
	if r.IsMail() {
		text = []byte(r.Correlation)
	} else if !answeredOnly[r.Kind] {
		return false
	}
	return object.DecodeOwn(text, &cause) == nil && cause.Request.Run == run
}

// maxAsked is how many requests of a run may be repeated, of the replies.Kept that are remembered of an agent.
const maxAsked = 100

// unsound returns why this hub cannot go on with a run of an agent, or "" if it can. It can if none of the records
// after seq, up to the last one of an earlier hub, may have to reach the run, or may come from it. Any goroutine may
// call unsound.
func unsound(d *dispatch.Dispatcher, record dispatch.Record, restored int64, ar *agentRun, seq int64, waits bool) (why string) {
	if seq > restored {
		return "the record was restored to a time before the run's last message"
	}
	answers := 0
	agent, spelled := handlers.Actor{Kind: handlers.Agent, Name: ar.spec.Name}.String(), []byte(strconv.Quote(ar.spec.Name))
	for r, err := range record.Records(context.Background(), seq) {
		switch {
		case err != nil:
			return "the record cannot be read: " + err.Error()
		case r.Seq > restored:
			return ""
		case asked(&r, ar.run):
			if answers++; answers > maxAsked {
				return fmt.Sprintf("the run has more than %d unconfirmed answers", maxAsked)
			}
			continue
		case unrelated[r.Kind], r.IsMail() && r.From != agent: // mail is brought after the last one that has arrived
			continue
		}
		related := waits || len(ar.session) > 0 || r.From == agent || r.To == agent || bytes.Contains(r.Payload, spelled)
		if !related && r.Correlation != "" {
			d.Look(func(state *handlers.State) { related = state.Given(ar.spec.Name, r.Correlation) })
		}
		if related {
			return fmt.Sprintf("it is unknown whether the run received record %d (%s) or caused it", r.Seq, r.Kind)
		}
	}
	return ""
}

// Committed calls dispatch.Committed.
func (s *Supervisor) Committed(note func()) int64 { return s.dispatcher.Committed(note) }

// A Launched is a run on this machine, for a hub on another one.
type Launched struct {
	Process
	folder dispatch.Folder
}

// ReadFile returns the text of a file in the folder of the run, with at most so many bytes.
func (l *Launched) ReadFile(path string, most int64) (string, error) {
	return artifacts.ReadFor(l.folder, path, min(most, hub.MaxArtifactBytes))
}

// Launch starts a run of the agent on this machine, for a hub on another one. The spec has the id and the listener of
// the run, and env has the variables that the hub has sent.
func Launch(ctx context.Context, a *settings.Agent, start func(child.Spec) (Process, error), env []string, conversation string, spec child.Spec) (*Launched, error) {
	own, err := a.Environ(ctx)
	if err != nil {
		return nil, err
	}
	user, err := child.FindUser(a.User)
	if err != nil {
		return nil, err
	}
	fill(a, &spec, append(without(own, env), env...), user)
	l := &Launched{folder: folderOf(a, user)}
	if a.Client.Protocol != "" {
		l.Process, err = startClient(a, start, spec, conversation, nil)
	} else {
		l.Process, err = start(spec)
	}
	return l, err
}
