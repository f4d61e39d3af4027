package supervisor

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// enlist tells who there is.
func (s *Supervisor) enlist() {
	roster := &wire.Roster{}
	for _, a := range s.order {
		roster.Agents = append(roster.Agents, wire.Member{
			ID: a.Name, Role: a.Role, Capabilities: a.Offers, Capacity: a.Capacity, OnExit: a.OnExit, Deaf: a.Raw || a.NoStdin,
		})
	}
	s.dispatcher.note(roster)
	s.dispatcher.offers.store(roster)
}

// offers are the capabilities that somebody has. The readers of all agents look
// at them to tell a task request from a message that is misspelt.
type offers struct {
	atomic.Pointer[map[string]bool]
}

func (o *offers) store(r *wire.Roster) {
	names := make(map[string]bool)
	for _, m := range r.Agents {
		for _, name := range m.Capabilities {
			names[name] = true
		}
	}
	o.Store(&names)
}

func (o *offers) has(name string) bool {
	names := o.Load()
	return names != nil && (*names)[name]
}

// channel makes the channel of a run that is about to begin.
func (s *Supervisor) channel(a *agent, m *maker) *channel {
	return &channel{
		dispatcher: s.dispatcher,
		actor:      handlers.Actor{Kind: handlers.Agent, Name: m.spec.Name, Run: m.run},
		reader:     wire.Reader{Agent: m.spec.Name, Depth: s.options.Protocol.Depth, Capability: s.dispatcher.offers.has},
		payloads:   wire.Payloads{Depth: s.options.Protocol.Depth},
		bucket:     s.options.Protocol.bucket(),
		complain: func(kind, text string, count int64) {
			a.voice.tell(wire.Event{Kind: kind, Run: m.run, Text: text, Figures: wire.Figures{Count: count}})
		},
	}
}

// Restore takes up what was recorded in earlier lives. It is for before Run.
func (s *Supervisor) Restore(ctx context.Context) error {
	if err := s.dispatcher.restore(ctx, s.options.Rules); err != nil {
		return err
	}
	s.audience.journal.begin(s.dispatcher.last)
	s.tally.tasks = s.dispatcher.state.Open()
	return nil
}

// Ask has an operation done for somebody who waits for its answer here: an
// operator, or an agent that does not use its pipe. The answer is a document of
// package wire, and a refusal a *wire.Error.
func (s *Supervisor) Ask(ctx context.Context, from handlers.Actor, operation string, payload []byte) (any, error) {
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	now := time.Now()
	r := &wire.Request{ID: uuid.NewString(), Operation: operation, Timestamp: wire.Timestamp(now), Payload: payload}
	if err := handlers.Prepare(r, s.options.Protocol.Depth); err != nil {
		s.dispatcher.audit.note(now, from, "request:"+operation, wire.Quote(r.ID), err)
		return nil, err
	}
	from.Run = doorPrefix + strconv.FormatInt(s.dispatcher.doors.Add(1), 10)
	answer := s.dispatcher.posts.wait(from.Run)
	defer s.dispatcher.posts.leave(from.Run)
	s.dispatcher.submit([]handlers.Input{{At: now, From: from, Message: r, Random: chance()}}, new(work))
	letter, err := await(ctx, s, answer)
	if err != nil {
		return nil, err
	}
	if letter.Refusal != nil {
		return nil, letter.Refusal
	}
	if err := s.dispatcher.complete(&letter); err != nil {
		return nil, err
	}
	return letter.Payload, nil
}

// AgentOf finds the agent that a key speaks for.
func (s *Supervisor) AgentOf(key string) (name string, err error) {
	known := false
	s.dispatcher.look(func(state *handlers.State) { name, known = state.AgentOf(handlers.HashKey(key)) })
	if !known {
		return "", &wire.Error{Code: wire.CodeDenied, Message: "the key is not known"}
	}
	return name, nil
}
