package state

import (
	"errors"
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A checked fact names things that must exist. Handle decides only valid facts. A record from
// the log is checked before it is applied. A wrong log or a bug then gives an error and not a
// panic.
type checked interface{ check(s *State) error }

func (ak *AgentKnown) check(*State) error {
	if ak.ID == "" {
		return errors.New("the agent has no name")
	}
	return nil
}

func (f *AgentForgotten) check(s *State) error {
	if s.Agents.ByID[f.ID] == nil {
		return fmt.Errorf("agent %q does not exist", f.ID)
	}
	return nil
}

func (t *TaskCreated) check(s *State) error {
	switch {
	case t.ID == "":
		return errors.New("the task has no id")
	case s.Tasks.ByID[t.ID] != nil:
		return fmt.Errorf("there is a task %s already", t.ID)
	case t.Delegated != nil:
		request, err := t.Delegated.Read()
		if err != nil {
			return err
		}
		t.Decoded = request
	}
	for _, d := range t.Dependencies {
		if s.Tasks.ByID[d.On] == nil {
			return fmt.Errorf("task %s to depend on does not exist", d.On)
		}
	}
	return nil
}

func (t *TaskArchived) check(s *State) error {
	return s.Tasks.checkTask(t.ID, wire.TaskDone, wire.TaskFailed, wire.TaskCancelled)
}

func (t *TaskRecalled) check(s *State) error {
	var kept SnapshotTask
	if s.Tasks.ByID[t.ID] != nil {
		return fmt.Errorf("there is a task %s already", t.ID)
	}
	if err := object.DecodeOwn(t.Task, &kept); err != nil {
		return err
	}
	if kept.View.ID != t.ID || s.Tasks.Archive.Counts[kept.View.State] == 0 {
		return fmt.Errorf("task %s was not archived", t.ID)
	}
	return nil
}

func (t *TaskAssigned) check(s *State) error {
	if s.Agents.ByID[t.Agent] == nil {
		return fmt.Errorf("agent %q does not exist", t.Agent)
	}
	if t.Way == InSession {
		return s.Tasks.checkTask(t.ID, openStates...)
	}
	return s.Tasks.checkMove(t.kind(), t.ID)
}

func (t *TaskStarted) check(s *State) error  { return s.Tasks.checkMove(t.kind(), t.ID) }
func (t *TaskProgress) check(s *State) error { return s.Tasks.checkTask(t.ID, wire.TaskRunning) }
func (t *TaskRequeued) check(s *State) error { return s.Tasks.checkMove(t.kind(), t.ID) }
func (t *TaskDue) check(s *State) error      { return s.Tasks.checkTask(t.ID, wire.TaskPending) }
func (t *TaskDone) check(s *State) error     { return s.Tasks.checkMove(t.kind(), t.ID) }
func (f *TaskFailed) check(s *State) error {
	if t := s.Tasks.ByID[f.ID]; t != nil && t.Delegation() != nil { // there may be no agent for it
		return s.Tasks.checkTask(f.ID, openStates...)
	}
	return s.Tasks.checkMove(f.kind(), f.ID)
}
func (t *TaskPlanned) check(s *State) error   { return s.Tasks.checkMove(t.kind(), t.ID) }
func (t *TaskRevise) check(s *State) error    { return s.Tasks.checkMove(t.kind(), t.ID) }
func (t *TaskCancelled) check(s *State) error { return s.Tasks.checkMove(t.kind(), t.ID) }
func (t *TaskUpdated) check(s *State) error   { return s.Tasks.checkTask(t.ID, openStates...) }
func (t *TaskNoted) check(s *State) error     { return s.Tasks.checkTask(t.ID, wire.TaskStates...) }

func (t *TaskHelp) check(s *State) error {
	if s.Questions.ByID[t.QuestionID] != nil {
		return fmt.Errorf("there is a question %s already", t.QuestionID)
	}
	return s.Tasks.checkMove(t.kind(), t.ID)
}

func (d *DependencyAdded) check(s *State) error {
	t, on := s.Tasks.ByID[d.ID], s.Tasks.ByID[d.Dependency.On]
	switch {
	case t == nil || on == nil:
		return fmt.Errorf("there are no tasks %s and %s", d.ID, d.Dependency.On)
	case d.Shown:
		if _, there := s.Tasks.Graph.Find(t.Node, on.Node, KindOf(d.Dependency.Type), d.Dependency.Contract); !there {
			return fmt.Errorf("task %s does not depend on %s", d.ID, d.Dependency.On)
		}
	case Gates(KindOf(d.Dependency.Type)) && s.Tasks.Graph.Circle(t.Node, on.Node) != nil:
		return fmt.Errorf("task %s would wait for itself", d.ID)
	}
	return nil
}

func (d *DependencyGone) check(s *State) error { return s.Tasks.checkLink(d.ID, d.Number) }

func (d *DependencyResolved) check(s *State) error {
	for _, w := range d.Waiting {
		if err := s.Tasks.checkLink(w.ID, w.Number); err != nil {
			return err
		}
	}
	return nil
}

func (ts *tasks) checkLink(id string, number int64) error {
	t := ts.ByID[id]
	if t == nil {
		return fmt.Errorf("there is no task %s", id)
	}
	if _, there := ts.Graph.Numbered(t.Node, number); !there {
		return fmt.Errorf("task %s has no dependency %d", id, number)
	}
	return nil
}

func (q *QuestionWithdrawn) check(s *State) error { return s.Questions.checkQuestion(q.ID) }

func (ac *AgentCapable) check(s *State) error { return s.Agents.checkAgent(ac.Agent) }
func (sr *ServerRegistered) check(s *State) error {
	switch a := s.Agents.ByID[sr.Agent]; {
	case sr.Agent == "":
		return errors.New("the server has no name")
	case a != nil && a.Remote == nil:
		return fmt.Errorf("%q is the name of an agent that is no server", sr.Agent)
	}
	return nil
}

func (a *ActorStale) check(s *State) error {
	if s.Bus.Actor(a.Actor) == nil {
		return fmt.Errorf("there is no actor %q", a.Actor)
	}
	return nil
}

func (ss *ServerSeen) check(s *State) error { return s.Agents.checkServer(ss.Agent) }
func (sl *ServerLost) check(s *State) error { return s.Agents.checkServer(sl.Agent) }

func (as *agents) checkAgent(name string) error {
	if as.ByID[name] == nil {
		return fmt.Errorf("agent %q does not exist", name)
	}
	return nil
}

func (as *agents) checkServer(name string) error {
	if a := as.ByID[name]; a == nil || a.Remote == nil {
		return fmt.Errorf("there is no server %q", name)
	}
	return nil
}

func (qa *QuestionAsked) check(s *State) error {
	if s.Questions.ByID[qa.ID] != nil {
		return fmt.Errorf("there is a question %s already", qa.ID)
	}
	return nil
}

func (qr *QuestionRejoined) check(s *State) error {
	if qr.Request == nil {
		return errors.New("no caller waits for the question")
	}
	return s.Questions.checkQuestion(qr.ID)
}

func (qa *QuestionAnswered) check(s *State) error { return s.Questions.checkQuestion(qa.ID) }
func (qk *QuestionKept) check(s *State) error     { return s.Questions.checkQuestion(qk.ID) }
func (qe *QuestionExpired) check(s *State) error  { return s.Questions.checkQuestion(qe.ID) }

func (qs *questions) checkQuestion(id string) error {
	if qs.ByID[id] == nil {
		return fmt.Errorf("there is no question %s", id)
	}
	return nil
}

// The checks of facts about sessions: see checked.

func (so *SessionOpened) check(*State) error {
	if so.ID == "" {
		return errors.New("the session has no id")
	}
	return nil
}

func (sc *SessionClosed) check(s *State) error  { return s.Sessions.checkSession(sc.ID) }
func (ss *SessionSaid) check(s *State) error    { return s.Sessions.checkSession(ss.Session) }
func (sr *SessionRefused) check(s *State) error { return s.Sessions.checkSession(sr.Session) }

func (wa *WorkAssigned) check(s *State) error {
	if err := s.Sessions.checkSession(wa.Session); err != nil {
		return err
	}
	if s.Sessions.ByID[wa.Session].latest == nil {
		return errors.New("nothing was said in the session that could have assigned it")
	}
	return s.Tasks.checkTask(wa.ID, wire.TaskStates...)
}

func (wm *WorkMoved) check(s *State) error      { return s.Tasks.checkWork(wm.ID) }
func (wc *WorkCompleted) check(s *State) error  { return s.Tasks.checkWork(wc.ID) }
func (wt *WorkTroubled) check(s *State) error   { return s.Tasks.checkWork(wt.TaskID) }
func (p *ProgressOverdue) check(s *State) error { return s.Tasks.checkWork(p.ID) }
func (d *DeadlinePassed) check(s *State) error  { return s.Tasks.checkWork(d.ID) }
func (re *ReviewExtended) check(s *State) error { return s.Tasks.checkWork(re.ID) }

func (wr *WorkRepeated) check(s *State) error {
	if err := s.Tasks.checkWork(wr.ID); err != nil {
		return err
	}
	if s.Tasks.ByID[wr.ID].Work().Of.latest == nil {
		return errors.New("nothing was said in the session that could have assigned it again")
	}
	return nil
}

func (rr *ReviewRequested) check(s *State) error {
	if err := s.Sessions.checkSession(rr.Session); err != nil {
		return err
	}
	return s.Tasks.checkWork(rr.ID)
}

func (rd *ReviewDecided) check(s *State) error {
	if err := s.Sessions.checkSession(rd.Session); err != nil {
		return err
	}
	if s.Sessions.ByID[rd.Session].ByReview[rd.Review] == nil {
		return fmt.Errorf("there is no request for a review %q", rd.Review)
	}
	return nil
}

func (re *ReviewEscalated) check(s *State) error {
	if re.QuestionID != "" && s.Questions.ByID[re.QuestionID] != nil {
		return fmt.Errorf("there is a question %s already", re.QuestionID)
	}
	return s.Tasks.checkWork(re.ID)
}

func (x *sessions) checkSession(id string) error {
	if x.ByID[id] == nil {
		return fmt.Errorf("session %q does not exist", id)
	}
	return nil
}

func (ts *tasks) checkWork(id string) error {
	if t := ts.ByID[id]; t == nil || t.Work() == nil {
		return fmt.Errorf("no session has a task %s", id)
	}
	return nil
}
