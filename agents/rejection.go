package agents

import (
	"context"
	"fmt"

	"orchestrator/wire"
)

// A response has no answer, unless it is refused. What is refused because there is too
// much just now is said again later, as it is then: a question and a final response
// must not get lost.

// reasonQuestions is why one question too many is refused.
const reasonQuestions = "too_many_questions"

// protested is about something that was said of a task and is refused.
func (s *serving) protested(task string, why *Refusal) error {
	word, limited := s.conn.finalWord(task), why.Reason() == ReasonLimited
	wrong := why.Code == InvalidRequest && why.Reason() == ""
	switch j := s.job(task); {
	case j != nil && limited: // words other than a question need not be said again
		s.later(task, &j.tries, j.asksAgain)
	case j != nil && (wrong || why.Reason() == reasonQuestions) && s.refuses(j, why):
	case j == nil && word == nil: // it is about something else, which no caller waits for
	case j == nil && limited:
		s.later(task, &word.tries, func() ([]byte, error) { return s.lastWord(task) })
	case j == nil && wrong && !word.instead:
		return s.sayInstead(word, why)
	default:
		return fmt.Errorf("task %s: %w", task, why)
	}
	return nil
}

// refuses tells a job that its question was refused; false when it asks nothing.
func (s *serving) refuses(j *Delegated, why *Refusal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.question.input == nil {
		return false
	}
	j.question.input <- reply{err: why}
	j.status, j.question = wire.ResponseInProgress, question{}
	return true
}

// sayInstead says that a job has failed, because what came of it was refused.
func (s *serving) sayInstead(word *finalWord, why *Refusal) error {
	line, err := checked(wire.AppendTaskResponse(nil, &wire.TaskResponse{
		ID: word.task, Status: wire.ResponseFailed, Metadata: word.metadata,
		Fault: &wire.TaskFault{Code: wire.FaultInternal, Message: "what came of it was refused: " + why.Message},
	}))
	if err != nil {
		return err
	}
	s.conn.remember(&finalWord{task: word.task, line: line, metadata: word.metadata, instead: true})
	return s.conn.write(context.Background(), line)
}

// later says something again after a while, if it still holds.
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
func (j *Delegated) asksAgain() ([]byte, error) {
	if j.question.input == nil || j.closed {
		return nil, errOver
	}
	return j.standing()
}

// lastWord is the final response of a task, unless it is done again by now.
func (s *serving) lastWord(task string) ([]byte, error) {
	word, j := s.conn.finalWord(task), s.jobs[task]
	if word == nil || j != nil && !j.over {
		return nil, errOver
	}
	return word.line, nil
}
