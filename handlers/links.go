package handlers

import (
	"orchestrator/handlers/state"
	"orchestrator/wire/hub"
)

// odd records a warning about a task.
func (td taskDecision) odd(k *state.Task, o hub.Oddity) {
	td.fact("", k.View.ID, &state.DocumentWarning{What: o.Kind, ID: k.View.ID, Name: k.View.Name, Agent: state.AgentOf(td.from.String()), Pointer: o.Pointer, Text: o.Text})
}
