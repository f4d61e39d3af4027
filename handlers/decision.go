package handlers

import (
	"time"

	"orchestrator/handlers/history"
	"orchestrator/handlers/state"
	"orchestrator/wire"
)

// A turn is the handling of one input.
type turn struct {
	sender decision // for the sender of the input
	own    decision // for the orchestrator itself

	state   *state.State
	at      time.Time
	random  [16]byte
	request *wire.Request  // nil unless it is one
	settled bool           // the request is answered, or will be later
	pages   []history.Page // of the log, that the answer needs
	until   int64          // the last record to use, for a repeated answer; 0: all
	out     *Outcome
	took    time.Duration // since the input came
	starts  bool          // the input is the start of the orchestrator: all runs are lost, although the State has them

	lostTasks     []lostTask             // of this turn
	departed      departures             // of this turn
	announcements []*state.TaskAnnounced // that end the turn
	closed        []Letter               // refusals of requests: the turn has closed their questions
}

// A decision has the decisions of an actor in a turn. The actor is the cause of the facts.
type decision struct {
	*turn
	from Actor
}

// by returns the decision of another actor in the same turn.
func (t *turn) by(from Actor) *decision { return &decision{turn: t, from: from} }

// The decisions of each domain are methods of a type of their own, which holds the decision. A
// domain reaches another one through the methods below, so that each such reach is visible.
type (
	taskDecision       struct{ *decision } // tasks: their changes, the right to make them, and the assignment to agents
	linkDecision       struct{ *decision } // dependencies and contracts
	agentDecision      struct{ *decision } // agents and servers: they come, go and are lost
	questionDecision   struct{ *decision } // questions to people and requests for help
	delegationDecision struct{ *decision } // delegated tasks and their responses
	sessionDecision    struct{ *decision } // sessions, their messages and the outboxes of their members
	workDecision       struct{ *decision } // the works of sessions: tasks that an architect has assigned
	reviewDecision     struct{ *decision } // the reviews of works and their escalation to a person
	mailDecision       struct{ *decision } // the message bus: mail, presence and the effects of a message on a task
	accessDecision     struct{ *decision } // keys, tokens and registrations
)

func (d *decision) tasks() taskDecision             { return taskDecision{decision: d} }
func (d *decision) links() linkDecision             { return linkDecision{decision: d} }
func (d *decision) agents() agentDecision           { return agentDecision{decision: d} }
func (d *decision) questions() questionDecision     { return questionDecision{decision: d} }
func (d *decision) delegations() delegationDecision { return delegationDecision{decision: d} }
func (d *decision) sessions() sessionDecision       { return sessionDecision{decision: d} }
func (d *decision) works() workDecision             { return workDecision{decision: d} }
func (d *decision) reviews() reviewDecision         { return reviewDecision{decision: d} }
func (d *decision) mail() mailDecision              { return mailDecision{decision: d} }
func (d *decision) access() accessDecision          { return accessDecision{decision: d} }
