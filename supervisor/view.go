package supervisor

import (
	"context"
	"os"
	"path"
	"slices"
	"time"

	"orchestrator/wire"
)

// Status is everything as it is now.
func (s *Supervisor) Status(ctx context.Context) (wire.Status, error) {
	type seen struct {
		status   wire.Status
		children []Process
	}
	got, err := ask(ctx, s, func() seen {
		v := seen{status: s.status()}
		for _, a := range s.order {
			v.status.Agents = append(v.status.Agents, s.view(a))
			v.children = append(v.children, a.child)
		}
		return v
	})
	if err != nil {
		return wire.Status{}, err
	}
	for i, c := range got.children { // reading /proc is not for Run
		if v := &got.status.Agents[i]; c != nil {
			v.CPUMS, v.RSSBytes = c.Usage()
			v.Mailbox.Unread = c.Unread()
		}
	}
	return got.status, nil
}

func (s *Supervisor) status() wire.Status {
	state := "running"
	if s.stopping != nil {
		state = "stopping"
	}
	return wire.Status{
		FormatVersion: wire.FormatVersion,
		Name:          s.options.Name,
		Version:       s.options.Version,
		PID:           os.Getpid(),
		State:         state,
		Config:        s.options.Config,
		StateDir:      s.options.StateDir,
		StartedAt:     wire.Timestamp(s.began),
		UpMS:          time.Since(s.began).Milliseconds(),
	}
}

func (s *Supervisor) view(a *agent) wire.AgentView {
	v := wire.AgentView{
		Name:        a.Name,
		Block:       a.Block,
		Description: a.Description,
		State:       a.state,
		Reason:      a.reason,
		Command:     a.Command,
		Dir:         a.Dir,
		Role:        a.Role,
		DependsOn:   a.DependsOn,
		Run:         a.run,
		Starts:      a.starts,
		Restarts:    a.restarts,
		LastExit:    a.lastExit,
		Output:      a.voice.view(),
		Mailbox:     wire.MailboxView{Refused: a.refused},
	}
	if a.child != nil {
		v.PID = a.child.PID()
		v.StartedAt = wire.Timestamp(a.child.StartedAt())
		v.UpMS = time.Since(a.child.StartedAt()).Milliseconds()
		var refused int64
		v.Mailbox.Messages, v.Mailbox.Bytes, refused = a.mail.waiting()
		v.Mailbox.Refused += refused
	}
	if a.state == wire.StateBackoff {
		v.NextStartMS = max(0, time.Until(a.due.at).Milliseconds())
	}
	return v
}

func (v *voice) view() wire.OutputView {
	v.mu.Lock()
	defer v.mu.Unlock()
	return wire.OutputView{
		Lines:    v.lines.Load(),
		Bytes:    v.bytes.Load(),
		Cut:      v.cut.Load(),
		Unlogged: v.unlogged.Load(),
		File:     v.file,
	}
}

// Seq is the number of the latest event.
func (s *Supervisor) Seq() int64 {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return s.journal.last
}

// Events sends events as they are and, if asked, as they come, until send
// fails or ctx is over.
func (s *Supervisor) Events(ctx context.Context, q EventQuery, send func(wire.Event) error) error {
	seq := q.Since
	for {
		events, grown := s.journal.after(seq)
		for i := range events {
			seq = events[i].Seq
			if !q.wants(&events[i]) {
				continue
			}
			if err := send(events[i]); err != nil {
				return err
			}
		}
		if !q.Follow || grown == nil {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil
		}
	}
}

// EventQuery chooses events.
type EventQuery struct {
	Since  int64  // those behind this number
	After  string // those later than this time, spelled as theirs
	Kind   string // a glob; "": all
	Agents []string
	Follow bool
}

func (q *EventQuery) wants(e *wire.Event) bool {
	if e.Kind == wire.EventGap {
		return true
	}
	if q.Kind != "" {
		if ok, err := path.Match(q.Kind, e.Kind); err != nil || !ok {
			return false
		}
	}
	return (q.After == "" || e.At > q.After) && (len(q.Agents) == 0 || slices.Contains(q.Agents, e.Agent))
}

// Listen hears what happens from the beginning, and, with lines, what agents
// say. It is for before Run.
func (s *Supervisor) Listen(lines bool) *Follower {
	f := newFollower(true)
	f.deaf = !lines
	for _, a := range s.order {
		a.voice.follow(f, 0)
	}
	s.everyone = append(s.everyone, f)
	return f
}

// Follow hears agents from now on, after their last n lines each. None named
// means all, also those that a reload will bring, and the orchestrator itself.
// The caller ends it.
func (s *Supervisor) Follow(ctx context.Context, names []string, n int, waits bool) (*Follower, func(), error) {
	f := newFollower(waits)
	refused, err := ask(ctx, s, func() error {
		chosen, err := s.choose(names)
		for _, a := range chosen {
			a.voice.follow(f, n)
		}
		if len(names) == 0 {
			s.everyone = append(s.everyone, f)
		}
		return err
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return nil, nil, err
	}
	end := func() {
		f.close()
		s.post(func() {
			s.everyone = slices.DeleteFunc(s.everyone, func(o *Follower) bool { return o == f })
			for _, a := range s.order {
				a.voice.unfollow(f)
			}
		})
	}
	return f, end, nil
}
