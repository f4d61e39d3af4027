package link

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"orchestrator/wire/hostlink"
)

// A Stream is the lines about one run. It outlives links: lines that the other side does not have are kept,
// and sent again through the next link. Its methods may be called concurrently.
type Stream struct {
	run string

	sending sync.Mutex // held while lines are sent, which keeps their order
	conn    *Conn      // nil without a link

	mu       sync.Mutex // guards the fields below
	kept     []*hostlink.Line
	last     int64 // the number of the last line of this side
	got      int64 // the number of the last line of the other side
	started  bool  // the other side knows that the run has started
	retained retained
}

// retained holds the lines that another hub would need: stdout, and the end of the run. A line is removed when it
// is settled. All lines are dropped when they become more than maxRetained.
type retained struct {
	lines   []*hostlink.Line
	cost    int
	dropped int64 // the number of the last one that was dropped before it was settled; 0: none
	within  bool  // stdout goes on in a line after its beginning was dropped
}

// maxRetained is the largest cost of the retained lines.
const maxRetained = hostlink.OutputRoom / 2

// cost returns the share of a line in the room for output.
func cost(l *hostlink.Line) int { return len(l.Bytes) + hostlink.PieceCost }

func (r *retained) add(l *hostlink.Line) {
	r.lines = append(r.lines, l)
	if r.cost += cost(l); r.cost > maxRetained {
		r.dropped = l.M
		for _, l := range r.lines {
			if isStdout(l) {
				r.within = !bytes.HasSuffix(l.Bytes, []byte("\n"))
			}
		}
		r.lines, r.cost = nil, 0
	}
}

func isStdout(l *hostlink.Line) bool { return l.Type == hostlink.Output && !l.Stderr }

// settle removes the lines up to a number. An unfinished line of stdout at the end stays.
func (r *retained) settle(n int64) {
	end := 0
	for end < len(r.lines) && r.lines[end].M <= n {
		end++
	}
	var rest []*hostlink.Line
	for i := end - 1; i >= 0; i-- {
		l := r.lines[i]
		if !isStdout(l) {
			continue
		}
		at := bytes.LastIndexByte(l.Bytes, '\n')
		if part := l.Bytes[at+1:]; len(part) > 0 {
			rest = append(rest, &hostlink.Line{Type: l.Type, Run: l.Run, M: l.M, Bytes: part})
		}
		if at >= 0 {
			r.within = false
			break
		}
	}
	if n >= r.dropped && !r.within {
		r.dropped = 0
	}
	slices.Reverse(rest)
	r.lines, r.cost = append(rest, r.lines[end:]...), 0
	for _, l := range r.lines {
		r.cost += cost(l)
	}
}

// NewStream returns the stream of a run without a link.
func NewStream(run string) *Stream { return &Stream{run: run} }

// Send sends a line, now or as soon as there is a link. The line must not be changed afterwards. Only the first line
// about the start of the run is sent.
func (s *Stream) Send(l *hostlink.Line) {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.mu.Lock()
	again := l.Type == hostlink.Started && s.started
	if s.started = s.started || l.Type == hostlink.Started; !again {
		s.number(l)
	}
	s.mu.Unlock()
	if !again {
		s.pass(l)
	}
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

// SendRetained sends a line as Send does, and retains it for another hub until it is settled.
func (s *Stream) SendRetained(l *hostlink.Line) {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.mu.Lock()
	s.number(l)
	s.retained.add(l)
	s.mu.Unlock()
	s.pass(l)
}

// number numbers and keeps a line. s.mu must be held.
func (s *Stream) number(l *hostlink.Line) {
	s.last++
	l.Run, l.M = s.run, s.last
	s.kept = append(s.kept, l)
}

// Settle notes that the lines up to a number are settled. It fails if not so many were sent.
func (s *Stream) Settle(n int64) error {
	if err := s.Confirm(n); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retained.settle(n)
	return nil
}

// Fit reports whether another hub can be sent all that it needs, and has room for it.
func (s *Stream) Fit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	took := 0
	for _, l := range s.unsettled() {
		took += cost(l)
	}
	return s.retained.dropped == 0 && took <= hostlink.OutputRoom
}

// unsettled returns the lines to send to another hub: retained lines, and lines without a confirmation of this hub.
// s.mu must be held.
func (s *Stream) unsettled() (all []*hostlink.Line) {
	confirmed := s.last - int64(len(s.kept))
	for _, l := range s.retained.lines {
		if l.M <= confirmed {
			all = append(all, l)
		}
	}
	for _, l := range s.kept {
		if l.Type != hostlink.Taken && l.Type != hostlink.Started && l.Type != hostlink.File { // another hub does not wait for them
			all = append(all, l)
		}
	}
	return all
}

// without returns lines about a run, except for lines of stdout that drop chooses. Drop gets a line of stdout and the
// number of the line that has its end.
func without(all []*hostlink.Line, drop func(text []byte, n int64) bool) (left []*hostlink.Line) {
	var open []byte // the beginning of a line of stdout
	keep := func(text []byte) {
		for piece := range slices.Chunk(text, hostlink.MaxPiece) {
			left = append(left, &hostlink.Line{Type: hostlink.Output, Bytes: piece})
		}
	}
	for _, l := range all {
		if !isStdout(l) {
			if l.Type == hostlink.Exited || l.Type == hostlink.Ended {
				keep(open)
				open = nil
			}
			left = append(left, l)
			continue
		}
		var kept []byte
		for line := range bytes.Lines(append(open, l.Bytes...)) {
			if open = nil; !bytes.HasSuffix(line, []byte("\n")) {
				open = bytes.Clone(line)
			} else if !drop(line, l.M) {
				kept = append(kept, line...)
			}
		}
		keep(kept)
	}
	keep(open)
	return left
}

// Last returns the number of the last line of this side.
func (s *Stream) Last() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Restart begins the numbers anew, for another hub: with the unsettled lines, except for lines of stdout that drop
// chooses. It returns their cost in the room for output, and whether the other hub gets all lines that it needs.
func (s *Stream) Restart(drop func(text []byte, n int64) bool) (took int, fit bool) {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	again := without(s.unsettled(), drop)
	fit = s.retained.dropped == 0
	s.kept, s.last, s.got, s.started, s.conn = nil, 0, 0, false, nil
	s.retained = retained{}
	for _, l := range again {
		copied := *l
		s.number(&copied)
		if copied.Type == hostlink.Output {
			took += cost(&copied)
		}
		s.retained.add(&copied)
	}
	return took, fit && took <= hostlink.OutputRoom
}

// Receive notes a line of the other side, and reports whether it is new. It fails if lines before it are missing.
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

// Confirm notes that the other side has the lines up to a number. It fails if not so many were sent.
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

// Known reports whether the other side has ever had a line.
func (s *Stream) Known() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got > 0 || s.last > int64(len(s.kept))
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
