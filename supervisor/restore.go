package supervisor

import (
	"context"

	"orchestrator/handlers"
)

// Restore rebuilds the State from the record and removes unfinished files of earlier runs. It
// must be called before Run.
func (s *Supervisor) Restore(ctx context.Context) error {
	s.artifacts.clear()
	if err := s.dispatcher.Restore(ctx); err != nil {
		return err
	}
	s.dispatcher.Look(func(state *handlers.State) {
		s.audience.Recent.Begin(state.Seq())
		s.life.idle.tally.tasks = state.Open()
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
