package agents

import (
	"context"
	"fmt"

	"orchestrator/wire/delegation"
)

// Only refused responses get an answer. A question or final response must not be lost: if it is
// refused for the rate limit, it is sent again later, provided that it still holds.

// reasonQuestions is the reason of a refusal if too many questions are open.
const reasonQuestions = "too_many_questions"

// protested handles the refusal of a response.
func (s *serving) protested(task string, why *Refusal) error {
	word, limited := s.conn.finalWord(task), why.Reason() == ReasonLimited
	wrong := why.Code == InvalidRequest && why.Reason() == ""
	switch j := s.job(task); {
	case j != nil && limited: // only questions are repeated
		s.later(task, &j.tries, j.asksAgain)
	case j != nil && (wrong || why.Reason() == reasonQuestions) && s.refuses(j, why):
	case j == nil && word == nil: // the refusal concerns something else
	case j == nil && limited:
		s.later(task, &word.tries, func() ([]byte, error) { return s.lastWord(task) })
	case j == nil && wrong && !word.instead:
		return s.sayInstead(word, why)
	default:
		return fmt.Errorf("task %s: %w", task, why)
	}
	return nil
}

// refuses fails a job's open question with a refusal. It returns false if none is open.
func (s *serving) refuses(j *Delegated, why *Refusal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.question.input == nil {
		return false
	}
	j.question.input <- reply{err: why}
	j.status, j.question = delegation.InProgress, question{}
	return true
}

// sayInstead reports a job as failed, because its final response was refused.
func (s *serving) sayInstead(word *finalWord, why *Refusal) error {
	line, err := checked(delegation.AppendResponse(nil, &delegation.Response{
		ID: word.task, Status: delegation.Failed, Metadata: word.metadata,
		Fault: &delegation.Fault{Code: delegation.FaultInternal, Message: "what came of it was refused: " + why.Message},
	}))
	if err != nil {
		return err
	}
	s.conn.remember(&finalWord{task: word.task, line: line, metadata: word.metadata, instead: true})
	return s.conn.write(context.Background(), line)
}

// later repeats a response after a pause, if it still holds.
func (s *serving) later(task string, tries *int, spell func() ([]byte, error)) {
	s.mu.Lock()
	there := s.repeats[task]
	s.repeats[task] = true
	s.mu.Unlock()
	if there {
		return
	}
	wait := min(pause<<*tries, longPause)
	*tries = min(*tries+1, triesAgain)
	s.beside(func() {
		s.conn.rest(wait)
		s.troubled(s.write(func() ([]byte, error) {
			delete(s.repeats, task)
			return spell()
		}))
	})
}

// asksAgain spells the question of a job once more.
func (d *Delegated) asksAgain() ([]byte, error) {
	if d.question.input == nil || d.closed {
		return nil, errOver
	}
	return d.standing()
}

// lastWord returns the final response of a task, unless the task is being done again.
func (s *serving) lastWord(task string) ([]byte, error) {
	word, j := s.conn.finalWord(task), s.jobs[task]
	if word == nil || j != nil && !j.over {
		return nil, errOver
	}
	return word.line, nil
}
