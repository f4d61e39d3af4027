package link

import (
	"fmt"
	"sync"

	"orchestrator/wire/hostlink"
)

// A Stream is the lines about one run. It outlives links: lines that the other side does not have are kept,
// and sent again through the next link. Its methods may be called concurrently.
type Stream struct {
	run string

	sending sync.Mutex // held while lines are sent, which keeps their order
	conn    *Conn      // nil: there is no link

	mu   sync.Mutex // guards what follows
	kept []*hostlink.Line
	last int64 // the number of the last line of this side
	got  int64 // the number of the last line of the other side
}

// NewStream returns the stream of a run without a link.
func NewStream(run string) *Stream { return &Stream{run: run} }

// Send sends a line, now or as soon as there is a link. The line must not be changed afterwards.
func (s *Stream) Send(l *hostlink.Line) {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.mu.Lock()
	s.last++
	l.Run, l.M = s.run, s.last
	s.kept = append(s.kept, l)
	s.mu.Unlock()
	s.pass(l)
}

// pass sends a line through the link, if there is one. An error ends the link. s.sending must be held.
func (s *Stream) pass(l *hostlink.Line) {
	if s.conn == nil {
		return
	}
	l.Got = s.Got()
	if s.conn.Send(l) != nil {
		s.conn = nil
	}
}

// Receive notes a line of the other side, and reports whether it is new.
func (s *Stream) Receive(l *hostlink.Line) (fresh bool, err error) {
	if err := s.Confirm(l.Got); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.M > s.got+1 || l.M < 1:
		return false, fmt.Errorf("line %d of run %s follows line %d", l.M, s.run, s.got)
	case l.M <= s.got:
		return false, nil
	}
	s.got = l.M
	return true, nil
}

// Confirm notes that the other side has the lines up to a number.
func (s *Stream) Confirm(got int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if got < 0 || got > s.last {
		return fmt.Errorf("the other side has line %d of run %s, and %d were sent", got, s.run, s.last)
	}
	n := 0
	for n < len(s.kept) && s.kept[n].M <= got {
		n++
	}
	clear(s.kept[:n])
	if s.kept = s.kept[n:]; len(s.kept) == 0 {
		s.kept = nil
	}
	return nil
}

// Got returns the number of the last line of the other side.
func (s *Stream) Got() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got
}

// Resume goes on through a link. The other side has the lines up to a number.
func (s *Stream) Resume(conn *Conn, got int64) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	if err := s.Confirm(got); err != nil {
		return err
	}
	s.mu.Lock()
	again := s.kept
	if first := s.last - int64(len(again)); got < first {
		s.mu.Unlock()
		return fmt.Errorf("the other side has lost lines %d to %d of run %s", got+1, first, s.run)
	}
	again = append([]*hostlink.Line(nil), again...) // kept changes while they are sent
	s.mu.Unlock()
	s.conn = conn
	for _, l := range again {
		s.pass(l)
	}
	return nil
}

// Pause ends the use of a link, if it is still the one in use.
func (s *Stream) Pause(conn *Conn) {
	s.sending.Lock()
	defer s.sending.Unlock()
	if s.conn == conn {
		s.conn = nil
	}
}
