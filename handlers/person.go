package handlers

import (
	"orchestrator/handlers/state"
	"orchestrator/wire"
)

// heldUp returns the ids of the tasks that questions hold up, for people; nil for agents.
func (td taskDecision) heldUp() map[string]bool {
	if td.from.Kind != Operator {
		return nil
	}
	return td.state.HeldUp()
}

// personal changes a task in an answer to the view of people, if the caller is a person.
func (td taskDecision) personal(k *state.Task, t *wire.Task) {
	if td.from.Kind != Operator {
		return
	}
	if q := td.state.BlockerOf(k); q != nil {
		t.State = wire.TaskNeedsHuman
		t.Details = t.Details.Copy()
		t.Help = &wire.Help{QuestionID: q.View.ID, Question: q.View.Question, Context: q.View.Context}
	}
}
