package handlers

import (
	"errors"
	"fmt"

	"orchestrator/wire"
)

// The checks of facts about sessions: see checked.

func (f *sessionOpened) check(*State) error {
	if f.ID == "" {
		return errors.New("the session has no id")
	}
	return nil
}

func (f *sessionClosed) check(s *State) error  { return s.checkSession(f.ID) }
func (f *sessionSaid) check(s *State) error    { return s.checkSession(f.Session) }
func (f *sessionRefused) check(s *State) error { return s.checkSession(f.Session) }

func (f *workAssigned) check(s *State) error {
	if err := s.checkSession(f.Session); err != nil {
		return err
	}
	if s.sessions.byID[f.Session].latest == nil {
		return errors.New("nothing was said in the session that could have assigned it")
	}
	return s.checkTask(f.ID, wire.TaskStates...)
}

func (f *workMoved) check(s *State) error       { return s.checkWork(f.ID) }
func (f *workCompleted) check(s *State) error   { return s.checkWork(f.ID) }
func (f *workTroubled) check(s *State) error    { return s.checkWork(f.TaskID) }
func (f *progressOverdue) check(s *State) error { return s.checkWork(f.ID) }
func (f *deadlinePassed) check(s *State) error  { return s.checkWork(f.ID) }
func (f *reviewExtended) check(s *State) error  { return s.checkWork(f.ID) }

func (f *workRepeated) check(s *State) error {
	if err := s.checkWork(f.ID); err != nil {
		return err
	}
	if s.tasks.byID[f.ID].work().of.latest == nil {
		return errors.New("nothing was said in the session that could have assigned it again")
	}
	return nil
}

func (f *reviewRequested) check(s *State) error {
	if err := s.checkSession(f.Session); err != nil {
		return err
	}
	return s.checkWork(f.ID)
}

func (f *reviewDecided) check(s *State) error {
	if err := s.checkSession(f.Session); err != nil {
		return err
	}
	if s.sessions.byID[f.Session].byReview[f.Review] == nil {
		return fmt.Errorf("there is no request for a review %q", f.Review)
	}
	return nil
}

func (f *reviewEscalated) check(s *State) error {
	if f.QuestionID != "" && s.questions.byID[f.QuestionID] != nil {
		return fmt.Errorf("there is a question %s already", f.QuestionID)
	}
	return s.checkWork(f.ID)
}

func (s *State) checkSession(id string) error {
	if s.sessions.byID[id] == nil {
		return fmt.Errorf("there is no session %q", id)
	}
	return nil
}

func (s *State) checkWork(id string) error {
	if k := s.tasks.byID[id]; k == nil || k.work() == nil {
		return fmt.Errorf("no session has a task %s", id)
	}
	return nil
}
