package agents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orchestrator/wire/delegation"
)

// Responses about a job. Each line is spelled when its turn to be written comes.

// cancel ends a job at once. The result of its skill is ignored; a repeated request waits until
// the skill has returned.
func (s *serving) cancel(j *Delegated, reason string) error {
	s.mu.Lock()
	j.closed = true
	s.mu.Unlock()
	j.stop(fmt.Errorf("%w: %s", ErrCancelled, reason))
	return s.sayEnd(j, &delegation.Response{Status: delegation.Cancelled})
}

// end sends the final response of a job, unless one was sent.
func (s *serving) end(j *Delegated, r *delegation.Response) error {
	s.mu.Lock()
	closed := j.closed
	j.closed = true
	s.mu.Unlock()
	if closed {
		return errOver
	}
	return s.sayEnd(j, r)
}

// sayEnd sends the final response of a closed job. If it cannot be encoded, the artifacts are
// left out, and the job fails unless it was cancelled.
func (s *serving) sayEnd(j *Delegated, r *delegation.Response) error {
	err := s.sayLast(j, r)
	if !errors.Is(err, errUnsaid) {
		return err
	}
	s.mu.Lock()
	j.artifacts = nil
	s.mu.Unlock()
	if r.Status != delegation.Cancelled {
		r = &delegation.Response{Status: delegation.Failed, Fault: &delegation.Fault{
			Code: delegation.FaultInternal, Message: fmt.Sprintf("what came of it cannot be told: %s", err),
		}}
	}
	return s.sayLast(j, r)
}

// sayLast sends a final response, and remembers it.
func (s *serving) sayLast(j *Delegated, r *delegation.Response) error {
	return s.write(func() ([]byte, error) {
		if j.over {
			return nil, errOver
		}
		line, err := j.last(r, time.Now())
		if err == nil {
			j.over = true
			again := r.Status == delegation.Cancelled || r.Fault != nil && r.Fault.Recoverable
			s.conn.remember(&finalWord{task: j.ID, line: line, metadata: r.Metadata, again: again})
		}
		return line, err
	})
}

// say sends a response of a job that is not over.
func (s *serving) say(j *Delegated, spell func() ([]byte, error)) error {
	return s.write(func() ([]byte, error) {
		if j.closed {
			return nil, errOver
		}
		return spell()
	})
}

// write spells and writes a line in its turn. So no line follows a final response, and every
// status is current when written.
func (s *serving) write(spell func() ([]byte, error)) error {
	return s.conn.writeNext(context.Background(), func() ([]byte, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return spell()
	})
}

// again repeats the final response of a task, if it is still remembered.
func (s *serving) again(task string) error {
	word := s.conn.finalWord(task)
	if word == nil {
		return nil
	}
	return s.conn.write(context.Background(), word.line)
}

func (c *Conn) remember(word *finalWord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finals.add(word)
}

func (c *Conn) finalWord(task string) *finalWord {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.finals.byTask[task]
}

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
	case j == nil && word == nil: // the refusal concerns another message
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

// finalResponses holds the latest final responses that a connection has sent. Older ones are
// dropped: the orchestrator knows the outcome of their tasks.
type finalResponses struct {
	byTask map[string]*finalWord
	order  []*finalWord
	size   int
}

// finalWord is a final response.
type finalWord struct {
	task     string
	line     []byte
	metadata delegation.Metadata
	again    bool // a repeated request is done again
	instead  bool // it replaced a final response that was refused
	tries    int  // how often it was refused for the rate limit; used by the serving goroutine
}

// add adds a response. It replaces an older one of the same task.
func (f *finalResponses) add(word *finalWord) {
	if f.byTask == nil {
		f.byTask = make(map[string]*finalWord)
	}
	f.byTask[word.task] = word
	f.order = append(f.order, word)
	f.size += len(word.line)
	for len(f.order) > 1 && (f.size > maxLately || len(f.order) > remembered) {
		oldest := f.order[0]
		f.order[0], f.order = nil, f.order[1:]
		f.size -= len(oldest.line)
		if f.byTask[oldest.task] == oldest {
			delete(f.byTask, oldest.task)
		}
	}
}
