package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"orchestrator/supervisor/hosts/link"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hostlink"
	"orchestrator/wire/mail"
)

// A session is the link to a host, from its hello to its end.
type session struct {
	hosts   *Hosts
	conn    *link.Conn
	address string
	host    *host
	over    chan struct{} // closed at its end

	stir    chan struct{} // holds a value if stirred has runs
	mu      sync.Mutex
	stirred map[*run]bool // runs that may have newly settled lines
}

// stirs notes that more of a run may be settled.
func (s *session) stirs(r *run) {
	s.mu.Lock()
	if s.stirred == nil {
		s.stirred = make(map[*run]bool)
	}
	s.stirred[r] = true
	s.mu.Unlock()
	select {
	case s.stir <- struct{}{}:
	default:
	}
}

// takeStirred returns the runs that may have newly settled lines since its last call.
func (s *session) takeStirred() map[*run]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs := s.stirred
	s.stirred = nil
	return runs
}

// Serve serves the link of the host with a name until it ends, and returns why. The runs there go on without it
// for a while, and the next link goes on with them.
func (h *Hosts) Serve(name, address string, conn *link.Conn) (err error) {
	defer conn.Close()
	first, err := conn.Read()
	if err != nil {
		return err
	}
	s := &session{hosts: h, conn: conn, address: address, over: make(chan struct{}), stir: make(chan struct{}, 1)}
	defer close(s.over)
	select {
	case <-h.open:
	case <-time.After(hostlink.Silence):
		return errors.New("the hub is still being started")
	}
	refusal := h.examine(name, first)
	if refusal == nil {
		h.endLink(name, first.Instance)
		s.host, refusal = h.hello(name, s, first)
	}
	if refusal != nil {
		return conn.Send(&hostlink.Line{Type: hostlink.Refused, Error: refusal})
	}
	defer func() { h.lost(s, err) }()
	runs, err := h.welcome(s, first)
	if err != nil {
		return err
	}
	h.note(events.HostJoined, name, "joined from "+address)
	h.options.Owner.HostsChanged()
	resumed := make(chan error, 1)
	go func() { resumed <- s.resume(runs, first) }() // lines are read during resume, because the host does the same
	over := make(chan struct{})
	go s.settle(over) // it may have to wait for the record, and then outlives the link
	err = s.listen()
	_ = conn.Close()
	close(over)
	return cmp.Or(<-resumed, err)
}

// A hub sends a host the settled lines of all runs every settleEvery, because the number of the record grows. After
// input or output, a run is settled within settleSoon: if the hub is lost then, the run need not end.
const (
	settleEvery = time.Second
	settleSoon  = 20 * time.Millisecond
)

// settle tells the host about settled lines of its runs, until over is closed.
func (s *session) settle(over <-chan struct{}) {
	ticker := time.NewTicker(settleEvery)
	defer ticker.Stop()
	told := make(map[string]hostlink.Going)
	for {
		var some map[*run]bool // nil: all
		select {
		case <-over:
			return
		case <-ticker.C:
		case <-s.stir:
			select {
			case <-over:
				return
			case <-time.After(settleSoon):
			}
			some = s.takeStirred()
		}
		marks := s.settled(some)
		if some == nil { // ended runs are forgotten
			maps.DeleteFunc(told, func(run string, _ hostlink.Going) bool { _, there := marks[run]; return !there })
		}
		maps.DeleteFunc(marks, func(run string, g hostlink.Going) bool { return told[run] == g })
		if len(marks) > 0 && s.conn.Send(&hostlink.Line{Type: hostlink.Settled, Runs: marks}) != nil {
			return
		}
		maps.Copy(told, marks)
	}
}

// settled returns the fully settled ones of all or some runs. The number of the last record is read before the numbers
// of the lines. So a line that is dealt with in between has a later record, and another hub does not go on with its
// run.
func (s *session) settled(some map[*run]bool) map[string]hostlink.Going {
	var runs []*run
	var dealt []int64
	seq := s.hosts.options.Owner.Committed(func() {
		s.hosts.mu.Lock()
		defer s.hosts.mu.Unlock()
		for _, r := range s.host.runs {
			if some != nil && !some[r] {
				continue
			}
			if n, all := r.dealtAll(); all && r.link == s && !r.muted {
				runs, dealt = append(runs, r), append(dealt, n)
			}
		}
	})
	marks := make(map[string]hostlink.Going)
	for i, r := range runs {
		if mail, waits, ok := r.order.Listener.Quiet(); ok && r.input.Left() == hostlink.InputRoom {
			marks[r.order.Run] = hostlink.Going{Got: dealt[i], Seq: seq, Mail: mail, Waits: waits}
		}
	}
	return marks
}

// resume sends lines about runs that the host lacks, and lets later lines follow.
func (s *session) resume(runs []*run, hello *hostlink.Line) (err error) {
	for _, r := range runs {
		got := int64(0)
		if hello.Hub == s.hosts.instance {
			got = hello.Runs[r.order.Run].Got
		}
		if err = r.stream.Resume(s.conn, got); err != nil {
			_ = s.conn.Close()
			return err
		}
		if !r.isMuted() {
			r.order.Listener.Away(false)
		}
	}
	return nil
}

// endLink ends the link of a host that dials again, because the hub may not have noticed that it is gone. It does not
// end the link of another host with the same name.
func (h *Hosts) endLink(name, instance string) {
	h.mu.Lock()
	host := h.hosts[name]
	if host == nil || host.link == nil || host.instance != instance {
		h.mu.Unlock()
		return
	}
	before := host.link
	h.mu.Unlock()
	_ = before.conn.Close()
	<-before.over
}

// welcome tells a host which of its runs go on, and returns those. It gives up the runs that the host does not have.
func (h *Hosts) welcome(s *session, hello *hostlink.Line) (resumed []*run, err error) {
	unfit := h.unfitRuns(s, hello)
	w := &hostlink.Line{
		Type: hostlink.Welcome, Version: hostlink.Version, Instance: h.instance, Team: h.options.Team, Epoch: h.options.Epoch, Hub: h.options.Hub, Grace: s.host.grace,
		Runs: map[string]hostlink.Going{},
	}
	h.mu.Lock()
	var gone, found []*run
	for id, r := range s.host.runs {
		_, there := hello.Runs[id]
		got := r.stream.Got()
		switch {
		case r.instance != s.host.instance && !r.expected: // another machine had the name, and may still run it
			continue
		case !there && (r.stream.Known() || r.expected): // it has ended, or the host was started anew
			gone = append(gone, r)
			continue
		case r.expected:
			r.expected, r.muted, r.instance = false, unfit[r] != "", s.host.instance
			found = append(found, r)
		}
		w.Runs[id], r.link, r.lastLink = hostlink.Going{Got: got}, s, s
		resumed = append(resumed, r)
	}
	h.mu.Unlock()
	for _, r := range gone {
		r.giveUp()
	}
	for _, r := range found {
		r.order.Listener.Found(hello.Runs[r.order.Run].Mail, unfit[r])
		if unfit[r] != "" {
			r.stream.Send(&hostlink.Line{Type: hostlink.Kill})
		}
	}
	return resumed, s.conn.Send(w)
}

// unfitRuns returns why this hub cannot go on with expected runs of a host; "" or no entry: it can.
func (h *Hosts) unfitRuns(s *session, hello *hostlink.Line) map[*run]string {
	h.mu.Lock()
	var runs []*run
	for _, r := range s.host.runs {
		if r.expected {
			runs = append(runs, r)
		}
	}
	h.mu.Unlock()
	unfit := make(map[*run]string)
	for _, r := range runs {
		g, there := hello.Runs[r.order.Run]
		switch {
		case !there:
		case g.Unfit:
			unfit[r] = "the hub before this one has not confirmed its output, or has sent it a part of a line"
		default:
			unfit[r] = r.order.Listener.Unsound(g.Seq, g.Waits)
		}
	}
	return unfit
}

// examine returns why a host is refused after its first line, or nil.
func (h *Hosts) examine(name string, l *hostlink.Line) *wire.Error {
	switch {
	case !mail.IsName(name):
		return &wire.Error{
			Code: wire.CodeInvalid, Message: fmt.Sprintf("%.80q cannot be the name of a host, which has at most 63 letters, digits and . _ -, and begins with a letter or a digit", name),
			Hint: "Issue a token for another name: orchestrator token issue --actor HO:NAME",
		}
	case l.Type != hostlink.Hello:
		return &wire.Error{Code: wire.CodeInvalid, Message: fmt.Sprintf("the first line of a link is hello, not %.20q", l.Type)}
	case l.Version != hostlink.Version:
		return &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("the host speaks version %d of the link, and this hub version %d", l.Version, hostlink.Version),
			Hint: "Run the same version of orchestrator on both",
		}
	case l.Epochs[h.options.Team] > h.options.Epoch:
		return &wire.Error{
			Code: wire.CodeConflict, Message: "the host has spoken to a later hub: another one is at work",
			Hint:    "If the log is a new one of the same name, remove the file host/epochs in the state directory of the host",
			Details: map[string]any{"epoch": l.Epochs[h.options.Team]},
		}
	}
	return nil
}

// lost handles the end of a link. The runs are given up when the host must have killed them, unless it has joined
// again before.
func (h *Hosts) lost(s *session, why error) {
	_ = s.conn.Close()
	h.mu.Lock()
	host := s.host
	host.link = nil
	wait, away := hostlink.GivenUp(host.grace), []*run{}
	for _, r := range host.runs {
		if r.link != s {
			continue
		}
		r.link = nil
		away = append(away, r)
		time.AfterFunc(time.Until(host.heard.Add(wait)), func() { h.expire(r, s) })
	}
	h.mu.Unlock()
	text := "its link is gone"
	if !errors.Is(why, io.EOF) {
		text += fmt.Sprintf(" (%v)", why)
	}
	if len(away) > 0 {
		text += fmt.Sprintf("; its agents (%d) are given up if it is not back in %s", len(away), wait)
	}
	h.note(events.HostLost, host.name, text)
	for _, r := range away {
		r.stream.Pause(s.conn)
		r.order.Listener.Away(true)
	}
}

// expire gives up a run without a link, if s was its last session. A nil s means that the run had no session.
func (h *Hosts) expire(r *run, s *session) {
	h.mu.Lock()
	gone := r.link == nil && r.lastLink == s
	h.mu.Unlock()
	if gone {
		r.giveUp()
	}
}

// listen handles the lines of a host until the link ends.
func (s *session) listen() error {
	for {
		l, err := s.conn.Read()
		if err != nil {
			return err
		}
		switch l.Type {
		case hostlink.Beat:
			if err := s.beat(l); err != nil {
				return err
			}
			continue
		case hostlink.Drain:
			s.hosts.mu.Lock()
			agents, first := s.host.leave()
			s.hosts.mu.Unlock()
			if first {
				s.hosts.options.Drain(s.host.name, agents)
			}
			continue
		}
		s.hosts.mu.Lock()
		r := s.host.runs[l.Run]
		current := r != nil && r.link == s
		s.hosts.mu.Unlock()
		if !current {
			continue // of a run that has ended
		}
		if err := r.handle(l); err != nil {
			return err
		}
	}
}

// beat notes that a host is alive, and answers if this hub is certain to be the one at work.
func (s *session) beat(l *hostlink.Line) error {
	h := s.hosts
	h.mu.Lock()
	s.host.heard = time.Now()
	var err error
	answer := &hostlink.Line{Type: hostlink.Beat, Number: l.Number, Epoch: h.options.Epoch, Runs: map[string]hostlink.Going{}}
	for id, u := range l.Figures {
		if r := s.host.runs[id]; r != nil && r.link == s {
			r.usage.Store(&u)
			err = cmp.Or(err, r.stream.Confirm(u.Got))
			answer.Runs[id] = hostlink.Going{Got: r.stream.Got()}
		}
	}
	h.mu.Unlock()
	if err != nil {
		return err
	}
	if h.options.Confirmed != nil && !h.options.Confirmed() {
		return nil
	}
	return s.conn.Send(answer)
}
