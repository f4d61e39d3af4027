package handlers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"orchestrator/handlers/bus"
	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// happenings are the kinds of record for events of the supervisor. Most do not change the State
// and are recorded for operators.
var happenings = map[string]bool{
	events.HubEpoch: true, events.HostJoined: true, events.HostLost: true, events.HostDrained: true, events.AgentPlaced: true,
	events.OrchestratorStarted: true, events.OrchestratorUpgraded: true, events.OrchestratorRemained: true, events.OrchestratorReloaded: true, events.OrchestratorStopping: true, events.OrchestratorStopped: true, events.OrchestratorIdle: true, events.OrchestratorSalvaged: true,
	events.OrchestratorCleared: true, events.OrchestratorStorm: true, events.AgentWaiting: true, events.AgentStarting: true, events.AgentStarted: true,
	events.AgentExited: true, events.AgentEnded: true, events.AgentRestarting: true, events.AgentGaveUp: true, events.AgentStopping: true,
	events.AgentStopped: true, events.AgentLeftOver: true, events.AgentHeldOpen: true, events.AgentStalled: true, events.AgentRecovered: true,
	events.AgentLineCut: true, events.AgentUnlogged: true, events.AgentStdinClosed: true, events.AgentRefused: true,
	events.PersonSignedIn: true, events.AgentNotServed: true, events.AgentUndelivered: true, events.AgentBudget: true,
}

// A lifecycleEvent records an event of the supervisor.
type lifecycleEvent struct {
	what    string
	Agent   string       `json:"agent,omitzero"`
	Run     string       `json:"run,omitzero"`
	Text    string       `json:"text"`
	Figures wire.Figures `json:"figures,omitzero"`
}

func (l *lifecycleEvent) kind() string { return l.what }

func (l *lifecycleEvent) apply(s *core, r *wire.Record) {
	switch l.what {
	case events.OrchestratorStarted:
		awake(s, r.At, l.Figures.Kept, l.Figures.Ordered)
		return
	case events.OrchestratorUpgraded:
		hangUp(s)
		return
	case events.OrchestratorStopping:
		s.stopping = true
		return
	case events.HostDrained:
		if l.Figures.Host != "" { // an operator has decided
			s.drained = slices.DeleteFunc(s.drained, func(host string) bool { return host == l.Figures.Host })
		}
		if l.Figures.Ordered {
			s.drained = append(s.drained[max(0, len(s.drained)+1-maxDrained):], l.Figures.Host)
		}
		return
	}
	if a := s.agents.byID[l.Agent]; a != nil && a.remote == nil { // otherwise it was of an agent before the server took its name
		s.tasks.queue.removeIdle(a)
		came := a.takes()
		for _, k := range a.holds {
			s.tasks.beforeChange(k)
		}
		l.change(a)
		l.follow(s, a, r)
		l.carry(s, a, r)
		s.addIdle(a)
		if !came && a.takes() {
			s.tasks.required.gain(a)
		}
	}
}

// awake handles the start of an orchestrator: no agent runs on its machine, and no HTTP request waits. The runs
// of the kept agents may go on. They are stale until they have been found.
func awake(s *core, at time.Time, kept []string, ordered bool) {
	s.stopping, s.since = false, at
	stirred(s, at)
	for _, a := range s.agents.order {
		if a.remote != nil {
			continue // it runs elsewhere, and may not even have noticed
		}
		if slices.Contains(kept, a.ID) {
			s.tasks.queue.removeIdle(a)
			a.stale = true
			continue
		}
		s.tasks.queue.removeIdle(a)
		a.wrecked = a.wrecked || a.alive() && !ordered
		a.endRun(&s.bus)
		a.state, a.stale, a.deaf, a.run, a.returns = offline, false, false, "", !a.Manual
		s.sessions.waitAgain(a, at)
		s.updateStanding(a)
	}
	hangUp(s)
}

// hangUp forgets the HTTP requests that wait, because their connections are gone.
func hangUp(s *core) {
	for _, q := range s.questions.open {
		q.door = false
	}
}

// change applies an event to the state of its agent.
func (l *lifecycleEvent) change(a *agent) {
	switch l.what {
	case events.AgentStarting:
		a.state, a.returns, a.host = starting, true, ""
	case events.AgentPlaced:
		a.host = l.Figures.Host
	case events.AgentWaiting, events.AgentRestarting:
		a.returns = true
	case events.AgentStarted:
		a.state, a.run, a.stale, a.deaf, a.ended = up, l.Run, false, false, false
		for _, k := range a.holds {
			k.run = l.Run // its tasks belong to the new run
		}
	case events.AgentStalled, events.AgentRecovered, events.AgentStdinClosed:
		if a.runs(l.Run) {
			l.hearing(a)
		}
	case events.AgentStopping:
		a.state, a.returns = leaving, false
	case events.AgentExited:
		a.state, a.returns = offline, false
		if l.Figures.ExitCode == nil || *l.Figures.ExitCode != 0 {
			a.state, a.returns = crashed, true // another event follows if it is not restarted
		}
	case events.AgentStopped:
		a.state, a.returns = offline, false
	case events.AgentGaveUp:
		a.state, a.returns = crashed, false
	}
}

// Elsewhere returns the events about other machines that still hold: which runs are placed there, in the order of
// the agents, and which of them are drained.
func (s *core) Elsewhere() (all []wire.Event) {
	for _, a := range s.agents.order {
		if a.host != "" && a.remote == nil && a.alive() && (a.state == up || a.state == leaving) {
			all = append(all, wire.Event{Kind: events.AgentPlaced, Agent: a.ID, Run: a.run, Figures: wire.Figures{Host: a.host}})
		}
	}
	for _, host := range s.drained {
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
func (a *agent) endRun(b *bus.Directory[agent]) {
	if !a.ended && a.run != "" {
		if a.past = append(a.past, a.run); len(a.past) > maxPast {
			a.past = a.past[1:]
		}
	}
	a.ended = true
	if a.mail != nil {
		b.Unwatch(a.mail)
	}
}

// follow applies an event to the mail of its agent.
func (l *lifecycleEvent) follow(s *core, a *agent, r *wire.Record) {
	switch l.what {
	case events.AgentStarted:
		s.attachRun(a, r)
		a.wrecked, a.late = false, nil
	case events.AgentEnded:
		if !a.runs(l.Run) {
			return
		}
		a.endRun(&s.bus)
		a.wrecked = !l.Figures.Ordered && (l.Figures.ExitCode == nil || *l.Figures.ExitCode != 0)
	}
}

// carry applies an event to the session messages that wait for its agent.
func (l *lifecycleEvent) carry(s *core, a *agent, r *wire.Record) {
	switch l.what {
	case events.AgentStarted, events.AgentRecovered:
		if a.runs(l.Run) && a.reachable() {
			s.meetRun(a, r.At)
			sendKeptResponses(s, a)
			s.delegations.recheckCapacity(a)
		}
		for _, m := range s.sessions.seats[a.ID] {
			if l.what == events.AgentStarted {
				m.number = 0 // each run starts its own numbering
			}
		}
	case events.AgentEnded:
		if a.runs(l.Run) {
			s.sessions.loseRun(a, r.At)
		}
	}
}

// hearing applies an event about the responsiveness of an agent: whether it works, and whether
// it can be notified.
func (l *lifecycleEvent) hearing(a *agent) {
	switch l.what {
	case events.AgentStalled:
		a.stale = true
	case events.AgentRecovered:
		a.stale, a.deaf = false, false
	case events.AgentStdinClosed:
		a.deaf = true
	}
}

// happen records an event of the supervisor, and decides about the tasks of agents that have
// ended.
func (ad agentDecision) happen(e *wire.Event) {
	if !happenings[e.Kind] {
		panic("no kind of happening: " + e.Kind)
	}
	to := ""
	if e.Agent != "" {
		to = agentPrefix + e.Agent
	}
	if ad.starts {
		ad.lose(e) // before the agents' runs are forgotten
	}
	wrecked := ad.state.agents.wrecked(e.Agent)
	late := ad.state.agents.late(e.Agent)
	ad.fact(to, "", &lifecycleEvent{what: e.Kind, Agent: e.Agent, Run: e.Run, Text: e.Text, Figures: e.Figures})
	if a := ad.state.agents.byID[e.Agent]; a != nil && e.Kind == events.AgentStarted {
		ad.tasks().remind(a)
		ad.tasks().recheckAddressed(a)
		if a.remote == nil {
			ad.mail().spawn(a, e, wrecked)
			for _, answer := range late {
				ad.mail().sendAnswer(a, answer)
			}
		}
	}
	if a := ad.state.agents.byID[e.Agent]; a != nil && a.remote == nil && (e.Kind == events.AgentGaveUp || e.Kind == events.AgentStopped) && !ad.state.stopping {
		ad.tasks().giveBack(a)
	}
	if a := ad.state.agents.byID[e.Agent]; a != nil && a.remote == nil && e.Kind == events.AgentEnded && a.runs(e.Run) {
		code := -1
		if e.Figures.ExitCode != nil {
			code = *e.Figures.ExitCode
		}
		ad.mail().terminate(a, e)
		for _, k := range slices.Clone(a.holds) {
			ad.tasks().requeueLost(k, a, e.Text, code, e.Figures.Ordered)
		}
		ad.works().bereaveWorks(a, e.Text, e.Figures.Ordered)
		if e.Figures.Ordered {
			ad.lift(a)
		}
	}
	if e.Kind == events.AgentGaveUp {
		ad.gone(e.Agent)
		if a := ad.state.agents.byID[e.Agent]; a != nil {
			ad.lift(a)
		}
	}
	if ad.starts {
		ad.sessions().reconvene()
		ad.trimServers()
	}
}

// wrecked reports whether the last run of an agent ended with an error.
func (as *agents) wrecked(name string) bool {
	a := as.byID[name]
	return a != nil && a.wrecked
}

// late returns the answers that wait for the next run of an agent.
func (as *agents) late(name string) []*answeredByMail {
	if a := as.byID[name]; a != nil {
		return a.late
	}
	return nil
}

// lostWithUs describes the end of a run that was lost with the orchestrator.
const lostWithUs = "lost when the orchestrator was killed"

// stoppedWithUs describes the end of a run that the orchestrator has stopped, and could not record.
const stoppedWithUs = "stopped in order when nothing could be recorded any more"

// isStart reports whether an input is the start of the orchestrator.
func isStart(m wire.Message) bool {
	e, ok := m.(*wire.Event)
	return ok && e.Kind == events.OrchestratorStarted
}

// lose decides about the tasks of agents that ended together with the previous orchestrator.
func (ad agentDecision) lose(start *wire.Event) {
	how := lostWithUs
	if start.Figures.Ordered {
		how = stoppedWithUs
	}
	for _, a := range ad.state.agents.order {
		if a.remote != nil || slices.Contains(start.Figures.Kept, a.ID) {
			continue
		}
		if a.alive() && !start.Figures.Ordered {
			ad.mail().crashed(a, &wire.Event{Run: a.run, Text: lostWithUs})
		}
		for _, k := range slices.Clone(a.holds) {
			ad.tasks().requeueLost(k, a, how, -1, true)
		}
		ad.works().bereaveWorks(a, how, true)
	}
}

// poison is the number of agents that may crash with a task before it fails.
const poison = 2

// requeueLost decides about a task whose agent has ended. If the agent was told to stop,
// or died with the orchestrator, the task is requeued, whatever on_exit is, and no
// attempt and no death is counted.
func (td taskDecision) requeueLost(k *task, a *agent, how string, code int, ordered bool) {
	switch {
	case k.way == inSession: // see bereaveWorks
	case k.way == assignedDelegated && !k.view.State.Final():
		td.delegations().loseHolder(k, a, how, ordered)
	case k.view.State.Final(): // it has failed together with another task of the agent
	case k.way != dispatched:
		td.retry(k, a, how, code, ordered)
	case k.view.State == wire.TaskAssigned:
		td.requeue(k, &taskRequeued{Why: "its agent ended before it was told", Blameless: true})
	case ordered:
		td.requeue(k, &taskRequeued{Why: td.stopWhy(how), Blameless: true})
	case a.OnExit == "fail", a.OnExit != "requeue" && code != 0:
		td.giveUp(k, fmt.Sprintf("agent %s ended while it had the task: %s", a.ID, how))
	case a.OnExit != "requeue" && k.view.Details.Copy().Verify == nil && !k.isPlanned():
		td.resume(k)
		td.complete(k, &succeeded, end{})
	case k.deaths+1 >= poison:
		td.giveUp(k, fmt.Sprintf("poison: %d runs ended while they had it, the last one with %s", k.deaths+1, how))
	default:
		td.requeue(k, &taskRequeued{Why: "its agent ended: " + how, Death: true})
	}
}

// isPlanned reports whether the work on a task waits for its plan. An agent that ends now has not done it.
func (t *task) isPlanned() bool {
	return t.view.State == wire.TaskPlanning || t.view.State == wire.TaskPlanReview
}

// stopWhy returns the reason to requeue a task whose agent was stopped, or lost with the
// orchestrator.
func (td taskDecision) stopWhy(how string) string {
	if td.starts {
		return "its agent ended: " + how
	}
	return "its agent was stopped"
}

// retry decides about a matched or manually assigned task whose agent has ended or is offline.
// Only its agent can complete such a task. A task that was not begun waits for its agent, unless
// tasks are only for agents that are online.
func (td taskDecision) retry(k *task, a *agent, how string, code int, ordered bool) {
	begun := k.busy() || k.view.State == wire.TaskNeedsHuman
	counts := begun && !ordered
	death := counts && code != 0
	switch {
	case !begun && a.remote == nil && !(td.state.rules.OnlineOnly && k.wants() != nil):
		return
	case !counts:
		td.requeue(k, &taskRequeued{Why: "its agent ended: " + how, Blameless: true})
	case a.OnExit == "fail":
		td.giveUp(k, fmt.Sprintf("agent %s ended while it had the task: %s", a.ID, how))
	case death && k.deaths+1 >= poison:
		td.giveUp(k, fmt.Sprintf("poison: %d runs ended while they had it: %s", k.deaths+1, k.fates(a, how)))
	case td.triedOut(k):
		td.giveUp(k, fmt.Sprintf("given up after %d attempts: %s", k.view.Attempts, k.fates(a, how)))
	default:
		td.requeue(k, &taskRequeued{Why: "its agent ended: " + how, Death: death})
	}
}

// giveBack requeues matched tasks that an agent has not begun, because it is not restarted
// automatically. Manually assigned tasks wait for the agent.
func (td taskDecision) giveBack(a *agent) {
	for _, k := range slices.Clone(a.holds) {
		if k.way == matched && k.view.State == wire.TaskAssigned {
			td.requeue(k, &taskRequeued{Why: "its agent does not run any more", Blameless: true})
		}
	}
	td.delegations().shift(a)
}

// A lostTask is a task that has lost its agent, or that was postponed and is due.
type lostTask struct {
	task *task
	of   string // the agent that it has lost; "": it is due
}

// reassignLost reassigns tasks with requirements and delegated tasks that have lost their agents
// in this turn or are due. It runs at the end of the turn, when all changes of agents are known.
func (td taskDecision) reassignLost() {
	slices.SortStableFunc(td.lostTasks, func(a, b lostTask) int { return queue.Compare(a.task, b.task) })
	for _, o := range td.lostTasks {
		if o.task.delegation() != nil {
			td.delegations().handOver(o.task, o.of, td.departed)
		} else if addressee(o.task) != "" {
			td.giveAgain(o.task)
		} else if td.free(o.task) {
			td.place(o.task, match.Conditions{Online: true, Not: o.of})
		}
	}
}

// fates returns how each agent that had a task ended, the given one last.
func (t *task) fates(last *agent, how string) string {
	var all []string
	if t.more != nil {
		all = append(all, t.more.history...)
	}
	return strings.Join(append(all, last.ID+": "+how), "; ")
}

// giveUp fails a task, which may be waiting for a person.
func (td taskDecision) giveUp(k *task, why string) {
	td.resume(k)
	td.fail(k, failure{why: why})
}

// resume continues a task that waits for a person, without the answer.
func (td taskDecision) resume(k *task) {
	if k.view.State == wire.TaskNeedsHuman {
		td.questions().cancelQuestions(k)
		td.start(k, nil)
	}
}
