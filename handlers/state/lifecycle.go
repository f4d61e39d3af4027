package state

import (
	"slices"
	"strings"
	"time"

	"orchestrator/handlers/bus"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// LifecycleKinds are the kinds of record for events of the supervisor. Most do not change the State
// and are recorded for operators.
var LifecycleKinds = map[string]bool{
	events.HubEpoch: true, events.HostJoined: true, events.HostLost: true, events.HostDrained: true, events.AgentPlaced: true,
	events.OrchestratorStarted: true, events.OrchestratorUpgraded: true, events.OrchestratorRemained: true, events.OrchestratorReloaded: true, events.OrchestratorStopping: true, events.OrchestratorStopped: true, events.OrchestratorIdle: true, events.OrchestratorSalvaged: true,
	events.OrchestratorCleared: true, events.OrchestratorStorm: true, events.AgentWaiting: true, events.AgentStarting: true, events.AgentStarted: true,
	events.AgentExited: true, events.AgentEnded: true, events.AgentRestarting: true, events.AgentGaveUp: true, events.AgentStopping: true,
	events.AgentStopped: true, events.AgentLeftOver: true, events.AgentHeldOpen: true, events.AgentStalled: true, events.AgentRecovered: true,
	events.AgentLineCut: true, events.AgentUnlogged: true, events.AgentStdinClosed: true, events.AgentRefused: true,
	events.PersonSignedIn: true, events.AgentNotServed: true, events.AgentUndelivered: true, events.AgentBudget: true,
}

// A lifecycleEvent records an event of the supervisor.
type LifecycleEvent struct {
	What    string       `json:"-"`
	Agent   string       `json:"agent,omitzero"`
	Run     string       `json:"run,omitzero"`
	Text    string       `json:"text"`
	Figures wire.Figures `json:"figures,omitzero"`
}

func (l *LifecycleEvent) kind() string { return l.What }

func (l *LifecycleEvent) apply(s *State, r *wire.Record) {
	switch l.What {
	case events.OrchestratorStarted:
		s.startAnew(r.At, l.Figures.Kept, l.Figures.Ordered)
		return
	case events.OrchestratorUpgraded:
		s.dropCallers()
		return
	case events.OrchestratorStopping:
		s.Stopping = true
		return
	case events.HostDrained:
		if l.Figures.Host != "" { // an operator has decided
			s.Drained = slices.DeleteFunc(s.Drained, func(host string) bool { return host == l.Figures.Host })
		}
		if l.Figures.Ordered {
			s.Drained = append(s.Drained[max(0, len(s.Drained)+1-maxDrained):], l.Figures.Host)
		}
		return
	}
	if a := s.Agents.ByID[l.Agent]; a != nil && a.Remote == nil { // otherwise it was of an agent before the server took its name
		s.Tasks.Queue.removeIdle(a)
		came := a.Takes()
		for _, t := range a.Holds {
			s.Tasks.beforeChange(t)
		}
		l.change(a)
		l.follow(s, a, r)
		l.carry(s, a, r)
		s.AddIdle(a)
		if !came && a.Takes() {
			s.Tasks.Required.markChanged(a)
		}
	}
}

// startAnew handles the start of an orchestrator: no agent runs on its machine, and no HTTP request waits. The runs
// of the kept agents may go on. They are stale until they have been found.
func (s *State) startAnew(at time.Time, kept []string, ordered bool) {
	s.Stopping, s.StartedAt = false, at
	s.resetSilence(at)
	for _, a := range s.Agents.Order {
		if a.Remote != nil {
			continue // it runs elsewhere, and may not even have noticed
		}
		if slices.Contains(kept, a.ID) {
			s.Tasks.Queue.removeIdle(a)
			a.Stale = true
			continue
		}
		s.Tasks.Queue.removeIdle(a)
		a.Wrecked = a.Wrecked || a.Alive() && !ordered
		a.endRun(&s.Bus)
		a.State, a.Stale, a.Unreachable, a.Run, a.Returns = offline, false, false, "", !a.Manual
		s.Sessions.waitAgain(a, at)
		s.updateStanding(a)
	}
	s.dropCallers()
}

// dropCallers forgets the HTTP requests that wait, because their connections are gone.
func (s *State) dropCallers() {
	for _, q := range s.Questions.Open {
		q.Door = false
	}
}

// change applies an event to the state of its agent.
func (l *LifecycleEvent) change(a *KnownAgent) {
	switch l.What {
	case events.AgentStarting:
		a.State, a.Returns, a.Host = Starting, true, ""
	case events.AgentPlaced:
		a.Host = l.Figures.Host
	case events.AgentWaiting, events.AgentRestarting:
		a.Returns = true
	case events.AgentStarted:
		a.State, a.Run, a.Stale, a.Unreachable, a.Ended = Up, l.Run, false, false, false
		for _, t := range a.Holds {
			t.Run = l.Run // its tasks belong to the new run
		}
	case events.AgentStalled, events.AgentRecovered, events.AgentStdinClosed:
		if a.Runs(l.Run) {
			l.hearing(a)
		}
	case events.AgentStopping:
		a.State, a.Returns = Leaving, false
	case events.AgentExited:
		a.State, a.Returns = offline, false
		if l.Figures.ExitCode == nil || *l.Figures.ExitCode != 0 {
			a.State, a.Returns = crashed, true // another event follows if it is not restarted
		}
	case events.AgentStopped:
		a.State, a.Returns = offline, false
	case events.AgentGaveUp:
		a.State, a.Returns = crashed, false
	}
}

// Elsewhere returns the events about other machines that still hold: which runs are placed there, in the order of
// the agents, and which of them are drained.
func (s *State) Elsewhere() (all []wire.Event) {
	for _, a := range s.Agents.Order {
		if a.Host != "" && a.Remote == nil && a.Alive() && (a.State == Up || a.State == Leaving) {
			all = append(all, wire.Event{Kind: events.AgentPlaced, Agent: a.ID, Run: a.Run, Figures: wire.Figures{Host: a.Host}})
		}
	}
	for _, host := range s.Drained {
		all = append(all, wire.Event{Kind: events.HostDrained, Figures: wire.Figures{Host: host, Ordered: true}})
	}
	return all
}

// maxDrained is the number of drained machines that are remembered.
const maxDrained = 1000

// maxPast is the number of ended runs of an agent that are remembered. A session message for one
// of them is refused.
const maxPast = 16

// endRun records that a run has ended and its output was read.
func (a *KnownAgent) endRun(b *bus.Directory[KnownAgent]) {
	if !a.Ended && a.Run != "" {
		if a.Past = append(a.Past, a.Run); len(a.Past) > maxPast {
			a.Past = a.Past[1:]
		}
	}
	a.Ended = true
	if a.Mail != nil {
		b.Unwatch(a.Mail)
	}
}

// follow applies an event to the mail of its agent.
func (l *LifecycleEvent) follow(s *State, a *KnownAgent, r *wire.Record) {
	switch l.What {
	case events.AgentStarted:
		s.attachRun(a, r)
		a.Wrecked, a.Late = false, nil
	case events.AgentEnded:
		if !a.Runs(l.Run) {
			return
		}
		a.endRun(&s.Bus)
		a.Wrecked = !l.Figures.Ordered && (l.Figures.ExitCode == nil || *l.Figures.ExitCode != 0)
	}
}

// carry applies an event to the session messages that wait for its agent.
func (l *LifecycleEvent) carry(s *State, a *KnownAgent, r *wire.Record) {
	switch l.What {
	case events.AgentStarted, events.AgentRecovered:
		if a.Runs(l.Run) && a.Reachable() {
			s.meetRun(a, r.At)
			s.sendKeptResponses(a)
			s.Delegations.RecheckCapacity(a)
		}
		for _, m := range s.Sessions.Seats[a.ID] {
			if l.What == events.AgentStarted {
				m.Number = 0 // each run starts its own numbering
			}
		}
	case events.AgentEnded:
		if a.Runs(l.Run) {
			s.Sessions.loseRun(a, r.At)
		}
	}
}

// hearing applies an event about the responsiveness of an agent: whether it works, and whether
// it can be notified.
func (l *LifecycleEvent) hearing(a *KnownAgent) {
	switch l.What {
	case events.AgentStalled:
		a.Stale = true
	case events.AgentRecovered:
		a.Stale, a.Unreachable = false, false
	case events.AgentStdinClosed:
		a.Unreachable = true
	}
}

// Wrecked reports whether the last run of an agent ended with an error.
func (as *agents) Wrecked(name string) bool {
	a := as.ByID[name]
	return a != nil && a.Wrecked
}

// Late returns the answers that wait for the next run of an agent.
func (as *agents) Late(name string) []*AnsweredByMail {
	if a := as.ByID[name]; a != nil {
		return a.Late
	}
	return nil
}

// IsPlanned reports whether the work on a task waits for its plan. An agent that ends now has not done it.
func (t *Task) IsPlanned() bool {
	return t.View.State == wire.TaskPlanning || t.View.State == wire.TaskPlanReview
}

// Fates returns how each agent that had a task ended, the given one last.
func (t *Task) Fates(last *KnownAgent, how string) string {
	var all []string
	if t.Extra != nil {
		all = append(all, t.Extra.History...)
	}
	return strings.Join(append(all, last.ID+": "+how), "; ")
}
