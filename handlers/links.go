package handlers

import (
	"orchestrator/handlers/state"
	"orchestrator/wire/hub"
)

// odd records a warning about a task.
func (td taskDecision) odd(t *state.Task, o hub.Oddity) {
	td.fact("", t.View.ID, &state.DocumentWarning{What: o.Kind, ID: t.View.ID, Name: t.View.Name, Agent: state.AgentOf(td.from.String()), Pointer: o.Pointer, Text: o.Text})
}
