package supervisor

import (
	"context"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// enlist submits the present agents and sessions to the dispatcher.
func (s *Supervisor) enlist() {
	roster := &wire.AgentSet{Sessions: s.sessions}
	for _, a := range s.order {
		roster.Agents = append(roster.Agents, wire.Member{
			ID: a.Name, Role: a.Role, Capabilities: a.Offers, Capacity: a.Capacity, OnExit: a.OnExit, Deaf: a.Raw || a.NoStdin,
			Names: a.Names, Abilities: a.Abilities, Actor: a.Actor,
		})
	}
	s.dispatcher.Note(roster)
}

// Restore rebuilds the State from the record and removes unfinished files of earlier runs. It
// must be called before Run.
func (s *Supervisor) Restore(ctx context.Context) error {
	s.artifacts.clear()
	if err := s.dispatcher.Restore(ctx); err != nil {
		return err
	}
	s.dispatcher.Look(func(state *handlers.State) {
		s.audience.Recent.Begin(state.Seq())
		s.tally.tasks = state.Open()
	})
	return nil
}

// Look answers read-only requests until ctx is done. It starts no agent and records nothing.
func (s *Supervisor) Look(ctx context.Context) {
	defer close(s.done)
	defer s.audience.Recent.Close()
	go s.dispatcher.Run()
	for {
		select {
		case <-s.inbox.wake:
			for _, turn := range s.take() {
				turn()
			}
		case <-ctx.Done():
			s.dispatcher.Close()
			return
		}
	}
}

// Adopt applies changed rules.
func (s *Supervisor) Adopt(rules handlers.Rules) { s.dispatcher.Adopt(rules) }
