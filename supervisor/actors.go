package supervisor

import (
	"orchestrator/wire"
)

// An actor that has a name is one run at a time. Where the configuration gives the
// name to another agent, that one waits until the run that has it has ended: until
// then the mail is not its own, and what it sent would be said by two.

// takeActor notes the actor as which a new run has mail.
func (s *Supervisor) takeActor(a *agent) {
	a.as = a.Actor
	if a.as != "" && !wire.PerRun(a.as) {
		s.actors[a.as] = a
	}
}

// actorHolder is the agent that still has the actor that a is to have; nil if none.
func (s *Supervisor) actorHolder(a *agent) *agent {
	actor := a.Actor
	if a.next != nil {
		actor = a.next.Actor
	}
	holder := s.actors[actor]
	if holder == nil || holder == a || holder.as != actor || holder.child == nil && holder.state != wire.StateStarting {
		return nil
	}
	return holder
}

// vacateActor lets those start who have waited for the end of a run.
func (s *Supervisor) vacateActor(a *agent) {
	if s.actors[a.as] == a {
		delete(s.actors, a.as)
		s.wakeWaiting()
	}
}
