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

// sayLast says a final response, and remembers it.
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
