package handlers

import (
	"errors"
	"fmt"
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A checked fact names things that must exist. Handle decides only valid facts. A record from
// the log is checked before it is applied. A wrong log or a bug then gives an error and not a
// panic.
type checked interface{ check(s *core) error }

func (ak *agentKnown) check(*core) error {
	if ak.ID == "" {
		return errors.New("the agent has no name")
	}
	return nil
}

func (f *agentForgotten) check(s *core) error {
	if s.agents.byID[f.ID] == nil {
		return fmt.Errorf("there is no agent %q", f.ID)
	}
	return nil
}

func (t *taskCreated) check(s *core) error {
	switch {
	case t.ID == "":
		return errors.New("the task has no id")
	case s.tasks.byID[t.ID] != nil:
		return fmt.Errorf("there is a task %s already", t.ID)
	case t.Delegated != nil:
		request, err := t.Delegated.read()
		if err != nil {
			return err
		}
		t.decoded = request
	}
	for _, d := range t.Dependencies {
		if s.tasks.byID[d.On] == nil {
			return fmt.Errorf("there is no task %s to depend on", d.On)
		}
	}
	return nil
}

func (t *taskArchived) check(s *core) error {
	return s.tasks.checkTask(t.ID, wire.TaskDone, wire.TaskFailed, wire.TaskCancelled)
}

func (t *taskRecalled) check(s *core) error {
	var kept snapshotTask
	if s.tasks.byID[t.ID] != nil {
		return fmt.Errorf("there is a task %s already", t.ID)
	}
	if err := object.DecodeOwn(t.Task, &kept); err != nil {
		return err
	}
	if kept.View.ID != t.ID || s.tasks.archive.counts[kept.View.State] == 0 {
		return fmt.Errorf("task %s was not archived", t.ID)
	}
	return nil
}

func (t *taskAssigned) check(s *core) error {
	if s.agents.byID[t.Agent] == nil {
		return fmt.Errorf("there is no agent %q", t.Agent)
	}
	if t.Way == inSession {
		return s.tasks.checkTask(t.ID, openStates...)
	}
	return s.tasks.checkTask(t.ID, wire.TaskPending, wire.TaskAssigned)
}

// heldStates are the states of a task that an agent holds; openStates are those of any open
// task.
var (
	heldStates = []wire.TaskState{
		wire.TaskAssigned, wire.TaskPlanning, wire.TaskPlanReview, wire.TaskRunning, wire.TaskNeedsHuman, wire.TaskInReview, wire.TaskVerifying,
	}
	openStates = append([]wire.TaskState{wire.TaskPending}, heldStates...)
)

func (t *taskStarted) check(s *core) error {
	return s.tasks.checkTask(t.ID, wire.TaskAssigned, wire.TaskPlanReview, wire.TaskNeedsHuman)
}
func (t *taskProgress) check(s *core) error { return s.tasks.checkTask(t.ID, wire.TaskRunning) }
func (t *taskRequeued) check(s *core) error { return s.tasks.checkTask(t.ID, heldStates...) }
func (t *taskDue) check(s *core) error      { return s.tasks.checkTask(t.ID, wire.TaskPending) }
func (t *taskDone) check(s *core) error {
	return s.tasks.checkTask(t.ID, heldStates...)
}
func (f *taskFailed) check(s *core) error {
	if k := s.tasks.byID[f.ID]; k != nil && k.delegation() != nil { // there may be no agent for it
		return s.tasks.checkTask(f.ID, openStates...)
	}
	return s.tasks.checkTask(f.ID, heldStates...)
}
func (t *taskPlanned) check(s *core) error   { return s.tasks.checkTask(t.ID, wire.TaskPlanning) }
func (t *taskRevise) check(s *core) error    { return s.tasks.checkTask(t.ID, wire.TaskPlanReview) }
func (t *taskCancelled) check(s *core) error { return s.tasks.checkTask(t.ID, openStates...) }
func (t *taskUpdated) check(s *core) error   { return s.tasks.checkTask(t.ID, openStates...) }
func (t *taskNoted) check(s *core) error     { return s.tasks.checkTask(t.ID, wire.TaskStates...) }

func (t *taskHelp) check(s *core) error {
	if s.questions.byID[t.QuestionID] != nil {
		return fmt.Errorf("there is a question %s already", t.QuestionID)
	}
	return s.tasks.checkTask(t.ID, wire.TaskRunning)
}

func (d *dependencyAdded) check(s *core) error {
	k, on := s.tasks.byID[d.ID], s.tasks.byID[d.Dependency.On]
	switch {
	case k == nil || on == nil:
		return fmt.Errorf("there are no tasks %s and %s", d.ID, d.Dependency.On)
	case d.Shown:
		if _, there := s.tasks.graph.Find(k.node, on.node, kindOf(d.Dependency.Type), d.Dependency.Contract); !there {
			return fmt.Errorf("task %s does not depend on %s", d.ID, d.Dependency.On)
		}
	case gates(kindOf(d.Dependency.Type)) && s.tasks.graph.Circle(k.node, on.node) != nil:
		return fmt.Errorf("task %s would wait for itself", d.ID)
	}
	return nil
}

func (d *dependencyGone) check(s *core) error { return s.tasks.checkLink(d.ID, d.Number) }

func (d *dependencyResolved) check(s *core) error {
	for _, w := range d.Waiting {
		if err := s.tasks.checkLink(w.ID, w.Number); err != nil {
			return err
		}
	}
	return nil
}

func (t *tasks) checkLink(id string, number int64) error {
	k := t.byID[id]
	if k == nil {
		return fmt.Errorf("there is no task %s", id)
	}
	if _, there := t.graph.Numbered(k.node, number); !there {
		return fmt.Errorf("task %s has no dependency %d", id, number)
	}
	return nil
}

func (q *questionWithdrawn) check(s *core) error { return s.questions.checkQuestion(q.ID) }

func (ac *agentCapable) check(s *core) error { return s.agents.checkAgent(ac.Agent) }
func (sr *serverRegistered) check(s *core) error {
	switch a := s.agents.byID[sr.Agent]; {
	case sr.Agent == "":
		return errors.New("the server has no name")
	case a != nil && a.remote == nil:
		return fmt.Errorf("%q is the name of an agent that is no server", sr.Agent)
	}
	return nil
}

func (a *actorStale) check(s *core) error {
	if s.bus.Actor(a.Actor) == nil {
		return fmt.Errorf("there is no actor %q", a.Actor)
	}
	return nil
}

func (ss *serverSeen) check(s *core) error { return s.agents.checkServer(ss.Agent) }
func (sl *serverLost) check(s *core) error { return s.agents.checkServer(sl.Agent) }

func (as *agents) checkAgent(name string) error {
	if as.byID[name] == nil {
		return fmt.Errorf("there is no agent %q", name)
	}
	return nil
}

func (as *agents) checkServer(name string) error {
	if a := as.byID[name]; a == nil || a.remote == nil {
		return fmt.Errorf("there is no server %q", name)
	}
	return nil
}

// checkTask returns an error unless a task exists and is in one of some states.
func (t *tasks) checkTask(id string, states ...wire.TaskState) error {
	k := t.byID[id]
	switch {
	case k == nil:
		return fmt.Errorf("there is no task %s", id)
	case !slices.Contains(states, k.view.State):
		return fmt.Errorf("task %s is %s", id, k.view.State)
	}
	return nil
}

func (qa *questionAsked) check(s *core) error {
	if s.questions.byID[qa.ID] != nil {
		return fmt.Errorf("there is a question %s already", qa.ID)
	}
	return nil
}

func (qr *questionRejoined) check(s *core) error {
	if qr.Request == nil {
		return errors.New("no caller waits for the question")
	}
	return s.questions.checkQuestion(qr.ID)
}

func (qa *questionAnswered) check(s *core) error { return s.questions.checkQuestion(qa.ID) }
func (qk *questionKept) check(s *core) error     { return s.questions.checkQuestion(qk.ID) }
func (qe *questionExpired) check(s *core) error  { return s.questions.checkQuestion(qe.ID) }

func (qs *questions) checkQuestion(id string) error {
	if qs.byID[id] == nil {
		return fmt.Errorf("there is no question %s", id)
	}
	return nil
}

// The checks of facts about sessions: see checked.

func (so *sessionOpened) check(*core) error {
	if so.ID == "" {
		return errors.New("the session has no id")
	}
	return nil
}

func (sc *sessionClosed) check(s *core) error  { return s.sessions.checkSession(sc.ID) }
func (ss *sessionSaid) check(s *core) error    { return s.sessions.checkSession(ss.Session) }
func (sr *sessionRefused) check(s *core) error { return s.sessions.checkSession(sr.Session) }

func (wa *workAssigned) check(s *core) error {
	if err := s.sessions.checkSession(wa.Session); err != nil {
		return err
	}
	if s.sessions.byID[wa.Session].latest == nil {
		return errors.New("nothing was said in the session that could have assigned it")
	}
	return s.tasks.checkTask(wa.ID, wire.TaskStates...)
}

func (wm *workMoved) check(s *core) error      { return s.tasks.checkWork(wm.ID) }
func (wc *workCompleted) check(s *core) error  { return s.tasks.checkWork(wc.ID) }
func (wt *workTroubled) check(s *core) error   { return s.tasks.checkWork(wt.TaskID) }
func (p *progressOverdue) check(s *core) error { return s.tasks.checkWork(p.ID) }
func (d *deadlinePassed) check(s *core) error  { return s.tasks.checkWork(d.ID) }
func (re *reviewExtended) check(s *core) error { return s.tasks.checkWork(re.ID) }

func (wr *workRepeated) check(s *core) error {
	if err := s.tasks.checkWork(wr.ID); err != nil {
		return err
	}
	if s.tasks.byID[wr.ID].work().of.latest == nil {
		return errors.New("nothing was said in the session that could have assigned it again")
	}
	return nil
}

func (rr *reviewRequested) check(s *core) error {
	if err := s.sessions.checkSession(rr.Session); err != nil {
		return err
	}
	return s.tasks.checkWork(rr.ID)
}

func (rd *reviewDecided) check(s *core) error {
	if err := s.sessions.checkSession(rd.Session); err != nil {
		return err
	}
	if s.sessions.byID[rd.Session].byReview[rd.Review] == nil {
		return fmt.Errorf("there is no request for a review %q", rd.Review)
	}
	return nil
}

func (re *reviewEscalated) check(s *core) error {
	if re.QuestionID != "" && s.questions.byID[re.QuestionID] != nil {
		return fmt.Errorf("there is a question %s already", re.QuestionID)
	}
	return s.tasks.checkWork(re.ID)
}

func (x *sessions) checkSession(id string) error {
	if x.byID[id] == nil {
		return fmt.Errorf("there is no session %q", id)
	}
	return nil
}

func (t *tasks) checkWork(id string) error {
	if k := t.byID[id]; k == nil || k.work() == nil {
		return fmt.Errorf("no session has a task %s", id)
	}
	return nil
}
