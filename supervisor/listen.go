package supervisor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"orchestrator/handlers/state"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// Listen follows all events from the beginning and, with lines, the output of agents. It must
// be called before Run.
func (s *Supervisor) Listen(lines bool) *output.Follower {
	f := output.NewFollower(true)
	f.EventsOnly, f.KeepOpen = !lines, true
	for _, a := range s.life.order {
		a.voice.Follow(f)
	}
	s.audience.AddFollower(f)
	return f
}

// follow follows the output of the named agents from now on. No names means all agents, later
// ones included, and the orchestrator itself. Agents do not wait for the follower. The caller
// must call the returned func.
func (s *Supervisor) follow(ctx context.Context, names []string) (*output.Follower, func(), error) {
	f := output.NewFollower(false)
	f.KeepOpen = len(names) == 0
	end := func() {
		f.Close()
		s.post(func() {
			s.audience.RemoveFollower(f)
			for _, a := range s.life.order {
				a.voice.Unfollow(f)
			}
		})
	}
	_, err := ask(ctx, s, func() (any, error) {
		chosen, err := s.life.choose(names)
		for _, a := range chosen {
			a.voice.Follow(f)
		}
		if len(names) == 0 {
			s.audience.AddFollower(f)
		}
		return nil, err
	})
	if err != nil {
		end() // the turn may still come
		return nil, nil, err
	}
	return f, end, nil
}

// Logs sends the last lines of agents, oldest first, and then new lines if asked to. Lines come
// from the tail in memory if it has enough of them, and otherwise from the files. The files
// also hold the lines of earlier runs. Files are read while they are sent, so little of them is
// in memory.
func (s *Supervisor) Logs(ctx context.Context, q output.LogQuery, send func(control.LogLine) error) error {
	var follower *output.Follower
	if q.Follow {
		f, end, err := s.follow(ctx, q.Agents)
		if err != nil {
			return err
		}
		defer end()
		follower = f
		q.Past = output.Stamp(time.Now()) // later lines come from the follower
	}
	places, err := s.places(ctx, q.Agents)
	if err != nil {
		return err
	}
	histories := make([]iter.Seq2[control.LogLine, error], len(places))
	for i := range places {
		histories[i] = places[i].Lines(&q)
	}
	for line, err := range output.Merged(histories) {
		if err == nil {
			err = send(line)
		}
		if err != nil {
			return err
		}
	}
	return q.SendNew(ctx, follower, send)
}

// places returns where the lines of agents are stored.
func (s *Supervisor) places(ctx context.Context, names []string) ([]output.AgentLog, error) {
	return ask(ctx, s, func() ([]output.AgentLog, error) {
		chosen, err := s.life.choose(names)
		var places []output.AgentLog
		for _, a := range chosen {
			places = append(places, output.AgentLog{Agent: a.Name, Dir: filepath.Join(a.Output.Dir, a.Name), Tail: a.voice.Last(a.Output.Tail)})
		}
		return places, err
	})
}

// Seq returns the number of the latest event.
func (s *Supervisor) Seq() int64 { return s.audience.Recent.Latest() }

// Events sends past events and then, if asked to, new ones, until send fails or ctx is done. Events that are no longer
// in memory come from the record. Without a record, the first event sent tells how many are missing.
func (s *Supervisor) Events(ctx context.Context, q output.EventQuery, send func(wire.Event) error) error {
	seq := q.Since
	pass := func(e *wire.Event) error {
		seq = max(seq, e.Seq)
		if !q.Wants(e) {
			return nil
		}
		return send(*e)
	}
	for {
		found, from, grown := s.audience.Recent.After(seq)
		if seq < from {
			if err := s.older(ctx, seq, from, pass); err != nil {
				return err
			}
		}
		for _, n := range found {
			if err := pass(n.Event()); err != nil {
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

// older sends the events after seq, up to last, that are not in memory.
func (s *Supervisor) older(ctx context.Context, seq, last int64, send func(*wire.Event) error) error {
	if s.options.Record == nil {
		return send(&wire.Event{
			Seq:     last,
			At:      object.Timestamp(s.began),
			Kind:    events.OrchestratorGap,
			Text:    fmt.Sprintf("events %d to %d are no longer in memory", seq+1, last),
			Figures: wire.Figures{Gap: last - seq},
		})
	}
	for r, err := range s.options.Record.Records(ctx, seq) {
		if removed, ok := errors.AsType[*wire.RemovedError](err); ok {
			base := min(removed.Base.Seq, last)
			gap := &wire.Event{
				Seq: base, At: object.Timestamp(removed.Base.Removed), Kind: events.OrchestratorGap, Text: removed.Error(),
				Figures: wire.Figures{Gap: base - seq},
			}
			if err := send(gap); err != nil || base == last {
				return err
			}
			return s.older(ctx, base, last, send)
		}
		if err != nil {
			return fmt.Errorf("reading the record: %w", err)
		}
		if r.Seq > last {
			return nil
		}
		e := state.Tell(r)
		if err := send(&e); err != nil {
			return err
		}
	}
	return nil
}

// openDoorway opens the agent's own way to the HTTP interface, and adds the variables for it to
// env. ar.shut is called when the run has ended or could not begin. If Options.Doorway fails,
// the run starts anyway, because it has its pipe.
func (ar *agentRun) openDoorway(user *child.User, env []string) []string {
	l := ar.life
	if ar.shut = func() {}; l.options.Doorway == nil || ar.joined != nil {
		return env
	}
	uid := 0
	if user != nil {
		uid = user.UID
	}
	ways, shut, err := l.options.Doorway(ar.spec.Name, ar.run, uid)
	if err != nil {
		l.options.Log.Warn("an agent cannot get its own socket", "agent", ar.spec.Name, "error", err)
	}
	ar.shut = shut
	return append(without(env, ways), ways...)
}

// without returns env without the variables that are also in other. Of a variable with two values, some programs take
// the first and some the last.
func without(env, other []string) []string {
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(other, func(o string) bool { return strings.HasPrefix(o, name+"=") })
	})
}
