package state

import (
	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// AgentNamed returns the agent with a name, a server id or a run id, or nil.
func (as *agents) AgentNamed(name string) *KnownAgent {
	if a := as.ByID[name]; a != nil {
		return a
	}
	for _, a := range as.Order {
		if a.ServerID == name || a.Run == name && name != "" {
			return a
		}
	}
	return nil
}

// remember stores the answer to the request that caused an assignment.
func (t *TaskAssigned) remember(s *State, r *wire.Record, k *Task) {
	if t.Request == nil {
		return
	}
	if t.Way == Matched {
		s.saveReply(AgentOf(r.From), t.Request, &wire.Assignment{
			Status: hub.Assigned, ServerID: s.Agents.ByID[t.Agent].ServerID, ServerName: t.Agent, MatchScore: t.Score,
		}, nil)
		return
	}
	s.saveTaskReply(r, t.Request, k)
}

func OnlineWord(online bool) string {
	if online {
		return hub.ServerOnline
	}
	return hub.ServerOffline
}

// Given returns the tasks that an agent has been assigned and has not begun.
func (ts *tasks) Given(a *KnownAgent) *wire.TaskList {
	answer := &wire.TaskList{Tasks: []wire.Task{}}
	if a == nil {
		return answer
	}
	for _, t := range a.Holds {
		if t.View.State == wire.TaskAssigned || t.View.State == wire.TaskPlanning {
			v := ts.Shown(t)
			v.WaitsFor = ts.WaitsFor(t)
			ts.ShowInputs(t, &v)
			ts.ShowResults(t, &v)
			answer.Tasks = append(answer.Tasks, v)
		}
	}
	return answer
}

// Match returns the first task that some agent fits, and the agent. One of them is new in this
// round.
func (tq *taskQueue) Match() (first *Task, to *KnownAgent) {
	for _, d := range tq.Fresh {
		if t := d.Head(); t != nil && (first == nil || queue.Before(t, first)) {
			if a := tq.mostPatient(d); a != nil {
				first, to = t, a
			}
		}
	}
	for _, a := range tq.Freed {
		first, to = tq.better("", a, first, to)
		for _, c := range a.Capabilities {
			first, to = tq.better(c, a, first, to)
		}
	}
	return first, to
}

// better returns the first task that fits, and its agent: one under a capability of a, or the
// best so far.
func (tq *taskQueue) better(under string, a *KnownAgent, first *Task, to *KnownAgent) (*Task, *KnownAgent) {
	for _, d := range tq.Waiting.Under(under) {
		if t := d.Head(); (first == nil || queue.Before(t, first)) && tq.fits(d, a) {
			first, to = t, a
		}
	}
	return first, to
}

// mostPatient returns the first free agent that fits a bucket.
func (tq *taskQueue) mostPatient(d *bucket) *KnownAgent {
	for _, a := range tq.Free {
		if tq.fits(d, a) {
			return a
		}
	}
	return nil
}

// fits reports whether an agent can get the tasks of a bucket. It must receive notices, or be a
// server that polls.
func (tq *taskQueue) fits(d *bucket, a *KnownAgent) bool {
	asks := &d.Asks
	return a.ActorID != asks.submitter && a.Hears() && a.Offers(asks.role, asks.capabilities) &&
		(asks.wants == nil || tq.index.Fits(&asks.wants.Demand, a.ID, match.Conditions{}))
}

// Settled starts a new round after everything was dispatched.
func (tq *taskQueue) Settled() {
	clear(tq.Fresh)
	clear(tq.Freed)
	tq.Fresh, tq.Freed = tq.Fresh[:0], tq.Freed[:0]
	tq.round++
}
