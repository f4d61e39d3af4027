package hosts

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"orchestrator/supervisor/hosts/link"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hostlink"
)

// A session is the link to a host, from its hello to its end. Hosts.mu guards its runs.
type session struct {
	hosts   *Hosts
	conn    *link.Conn
	address string
	host    *host
	runs    map[string]*run
}

// Serve serves the link of the host with a name until it ends, and returns why.
func (h *Hosts) Serve(name, address string, conn *link.Conn) error {
	defer conn.Close()
	first, err := conn.Read()
	if err != nil {
		return err
	}
	s := &session{hosts: h, conn: conn, address: address, runs: make(map[string]*run)}
	refusal := h.examine(first)
	if refusal == nil {
		s.host, refusal = h.hello(name, s, first)
	}
	if refusal != nil {
		return conn.Send(&hostlink.Line{Type: hostlink.Refused, Error: refusal})
	}
	h.endEarlier(s)
	if err := conn.Send(&hostlink.Line{Type: hostlink.Welcome, Version: hostlink.Version, Epoch: h.options.Epoch, Hub: h.options.Hub}); err != nil {
		h.lost(s)
		return err
	}
	h.options.Note(events.HostJoined, name, "joined from "+address)
	h.options.Changed()
	err = s.listen()
	h.lost(s)
	return err
}

// examine returns why a first line begins no link.
func (h *Hosts) examine(l *hostlink.Line) *wire.Error {
	switch {
	case l.Type != hostlink.Hello:
		return &wire.Error{Code: wire.CodeInvalid, Message: fmt.Sprintf("the first line of a link is hello, not %.20q", l.Type)}
	case l.Version != hostlink.Version:
		return &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("the host speaks version %d of the link, and this hub version %d", l.Version, hostlink.Version),
			Hint: "Run the same version of orchestrator on both",
		}
	case l.Epoch > h.options.Epoch:
		return &wire.Error{
			Code: wire.CodeConflict, Message: "the host has spoken to a later hub: another one is at work", Details: map[string]any{"epoch": l.Epoch},
		}
	}
	return nil
}

// endEarlier ends the runs of earlier links of a host, which dials only when its agents have ended.
func (h *Hosts) endEarlier(s *session) {
	h.mu.Lock()
	runs := slices.Collect(maps.Values(s.host.runs))
	h.mu.Unlock()
	for _, r := range runs {
		if r.session != s {
			r.giveUp()
		}
	}
}

// lost handles the end of a link. The runs end when the host has killed them for certain.
func (h *Hosts) lost(s *session) {
	h.mu.Lock()
	it := s.host
	current := it.link == s
	if current {
		it.link = nil
	}
	runs, heard := slices.Collect(maps.Values(s.runs)), it.heard
	h.mu.Unlock()
	if current {
		text := "its link is gone"
		if len(runs) > 0 {
			text += fmt.Sprintf("; its agents (%d) are given up in at most %s", len(runs), hostlink.GivenUp)
		}
		h.options.Note(events.HostLost, it.name, text)
	}
	for _, r := range runs {
		r.input.Shut()
		time.AfterFunc(time.Until(heard.Add(hostlink.GivenUp)), r.giveUp)
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
			s.hosts.options.Drain(s.host.name)
			continue
		}
		s.hosts.mu.Lock()
		r := s.runs[l.Run]
		s.hosts.mu.Unlock()
		if r == nil {
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
	for id, u := range l.Figures {
		if r := s.runs[id]; r != nil {
			r.usage.Store(&u)
		}
	}
	h.mu.Unlock()
	if h.options.Confirmed != nil && !h.options.Confirmed() {
		return nil
	}
	return s.conn.Send(&hostlink.Line{Type: hostlink.Beat, Number: l.Number, Epoch: h.options.Epoch})
}
