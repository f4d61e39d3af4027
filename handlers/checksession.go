package handlers

import (
	"errors"
	"fmt"

	"orchestrator/wire"
)

// The checks of facts about sessions: see checked.

func (so *sessionOpened) check(*State) error {
	if so.ID == "" {
		return errors.New("the session has no id")
	}
	return nil
}

func (sc *sessionClosed) check(s *State) error  { return s.sessions.checkSession(sc.ID) }
func (ss *sessionSaid) check(s *State) error    { return s.sessions.checkSession(ss.Session) }
func (sr *sessionRefused) check(s *State) error { return s.sessions.checkSession(sr.Session) }

func (wa *workAssigned) check(s *State) error {
	if err := s.sessions.checkSession(wa.Session); err != nil {
		return err
	}
	if s.sessions.byID[wa.Session].latest == nil {
		return errors.New("nothing was said in the session that could have assigned it")
	}
	return s.tasks.checkTask(wa.ID, wire.TaskStates...)
}

func (wm *workMoved) check(s *State) error      { return s.tasks.checkWork(wm.ID) }
func (wc *workCompleted) check(s *State) error  { return s.tasks.checkWork(wc.ID) }
func (wt *workTroubled) check(s *State) error   { return s.tasks.checkWork(wt.TaskID) }
func (p *progressOverdue) check(s *State) error { return s.tasks.checkWork(p.ID) }
func (d *deadlinePassed) check(s *State) error  { return s.tasks.checkWork(d.ID) }
func (re *reviewExtended) check(s *State) error { return s.tasks.checkWork(re.ID) }

func (wr *workRepeated) check(s *State) error {
	if err := s.tasks.checkWork(wr.ID); err != nil {
		return err
	}
	if s.tasks.byID[wr.ID].work().of.latest == nil {
		return errors.New("nothing was said in the session that could have assigned it again")
	}
	return nil
}

func (rr *reviewRequested) check(s *State) error {
	if err := s.sessions.checkSession(rr.Session); err != nil {
		return err
	}
	return s.tasks.checkWork(rr.ID)
}

func (rd *reviewDecided) check(s *State) error {
	if err := s.sessions.checkSession(rd.Session); err != nil {
		return err
	}
	if s.sessions.byID[rd.Session].byReview[rd.Review] == nil {
		return fmt.Errorf("there is no request for a review %q", rd.Review)
	}
	return nil
}

func (re *reviewEscalated) check(s *State) error {
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
