package supervisor

import (
	"orchestrator/wire/control"
	"orchestrator/wire/mail"
)

// A named actor belongs to one run at a time. If the configuration gives the name to another
// agent, that agent starts only after the run that holds the name has ended. Otherwise two
// agents would send as the same actor and read the same mail.

// takeActor records which actor the new run of a uses for its mail.
func (s *Supervisor) takeActor(a *agent) {
	a.as = a.Actor
	if a.as != "" && !mail.PerRun(a.as) {
		s.actors[a.as] = a
	}
}

// actorHolder returns the agent that still holds the actor that a needs, or nil.
func (s *Supervisor) actorHolder(a *agent) *agent {
	actor := a.Actor
	if a.next != nil {
		actor = a.next.Actor
	}
	holder := s.actors[actor]
	if holder == nil || holder == a || holder.as != actor || holder.child == nil && holder.state != control.StateStarting {
		return nil
	}
	return holder
}

// vacateActor releases the actor of an ended run and wakes the agents that waited for it.
func (s *Supervisor) vacateActor(a *agent) {
	if s.actors[a.as] == a {
		delete(s.actors, a.as)
		s.wakeWaiting()
	}
}
