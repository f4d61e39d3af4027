package documents

import (
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/session"
)

// Words are the lists of words that schema tags name.
var Words = map[string][]string{
	"wire.TaskState": texts(wire.TaskStates), "wire.TaskStatuses": wire.TaskStatuses, "wire.HubStates": hubStates(), "wire.AgentStatuses": wire.AgentStatuses,
	"wire.PersonRoles": wire.PersonRoles,

	"wire.actorStatuses":   {wire.ActorActive, wire.ActorStale, wire.ActorOffline, wire.ActorQuiet},
	"wire.serverStatuses":  {wire.ServerOnline, wire.ServerOffline},
	"wire.validations":     {wire.ValidationStandard, wire.ValidationStrict},
	"wire.sessionStates":   {wire.SessionOpen, wire.SessionClosed},
	"wire.sessionSources":  {wire.SessionFromFile, wire.SessionByHand},
	"wire.reviewVerdicts":  append(slices.Clone(session.Verdicts), session.VerdictNone),
	"wire.deliveryErrors":  {session.DeliveryTimeout, session.DeliveryRejected, session.DeliveryMalformed},
	"wire.assignedNotices": {wire.AssignedMessage, wire.PlanFirstMessage},
	"wire.spokenCodes":     {"INVALID_REQUEST", "INVALID_MESSAGE_TYPE", "UNAUTHORIZED", "NOT_FOUND", "TIMEOUT", "INTERNAL_ERROR"},
	"wire.phases": {
		wire.PhaseHeld, wire.PhaseAssigned, wire.PhaseWorking, wire.PhaseCompleted, wire.PhaseReviewing, wire.PhaseRevise, wire.PhaseRedesign, wire.PhaseHuman, wire.PhaseOver,
	},

	"session.Types": session.Types, "session.AgentTypes": session.AgentTypes, "session.Priorities": session.Priorities,
	"session.DependencyTypes": session.DependencyTypes, "session.Outcomes": session.Outcomes, "session.ChangeTypes": session.ChangeTypes,
	"session.FocusAreas": session.FocusAreas, "session.Verdicts": session.Verdicts, "session.Severities": session.Severities,
	"session.Categories": session.Categories, "session.Fixes": session.Fixes, "session.FeedbackTypes": session.FeedbackTypes,
	"session.AbortScopes": session.AbortScopes, "session.Escalations": session.Escalations, "session.ExecutionErrors": session.ExecutionErrors,
	"session.Suggestions": session.Suggestions,

	"delegation.Statuses": delegation.Statuses, "delegation.Acts": delegation.Acts, "delegation.Priorities": delegation.Priorities,

	"hub.DependencyTypes": hub.DependencyTypes, "hub.ContractStatuses": hub.ContractStatuses, "hub.SpecPriorities": hub.SpecPriorities,
	"hub.SpecReferences": hub.SpecReferences, "hub.SpecTesting": hub.SpecTesting,
}

func texts[T ~string](of []T) (all []string) {
	for _, word := range of {
		all = append(all, string(word))
	}
	return all
}

// hubStates returns the states as the hub calls them.
func hubStates() (all []string) {
	for _, state := range wire.TaskStates {
		if word := state.Hub(); !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}
