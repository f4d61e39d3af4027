package documents

import (
	"maps"
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
	"orchestrator/wire/session"
)

// Words are the lists of words that schema tags name. The words of payloads are in wire.Words.
var Words = func() map[string][]string {
	maps.Copy(words, wire.Words)
	return words
}()

var words = map[string][]string{
	"wire.TaskState": texts(wire.TaskStates), "wire.TaskStatuses": wire.TaskStatuses, "wire.HubStates": hubStates(), "wire.AgentStatuses": wire.AgentStatuses,

	"mail.states":            {mail.StateKept, mail.StateWritten, mail.StateInContext, mail.StateRefused, mail.StateAcked},
	"mail.actorStatuses":     {mail.ActorActive, mail.ActorStale, mail.ActorOffline, mail.ActorQuiet},
	"hub.serverStatuses":     {hub.ServerOnline, hub.ServerOffline},
	"session.states":         {session.Open, session.Closed},
	"session.sources":        {session.FromFile, session.ByHand},
	"session.reviewVerdicts": append(slices.Clone(session.Verdicts), session.VerdictNone),
	"session.deliveryErrors": {session.DeliveryTimeout, session.DeliveryRejected, session.DeliveryMalformed},
	"wire.assignedNotices":   {wire.AssignedMessage, wire.PlanFirstMessage},
	"wire.spokenCodes":       {"INVALID_REQUEST", "INVALID_MESSAGE_TYPE", "UNAUTHORIZED", "NOT_FOUND", "TIMEOUT", "INTERNAL_ERROR"},
	"session.phases": {
		session.PhaseHeld, session.PhaseAssigned, session.PhaseWorking, session.PhaseCompleted, session.PhaseReviewing, session.PhaseRevise, session.PhaseRedesign, session.PhaseHuman, session.PhaseOver,
	},

	"session.Types": session.Types, "session.AgentTypes": session.AgentTypes, "session.Priorities": session.Priorities,
	"session.DependencyTypes": session.DependencyTypes, "session.Outcomes": session.Outcomes, "session.ChangeTypes": session.ChangeTypes,
	"session.FocusAreas": session.FocusAreas, "session.Verdicts": session.Verdicts, "session.Severities": session.Severities,
	"session.Categories": session.Categories, "session.Fixes": session.Fixes, "session.FeedbackTypes": session.FeedbackTypes,
	"session.AbortScopes": session.AbortScopes, "session.ExecutionErrors": session.ExecutionErrors,
	"session.Suggestions": session.Suggestions,

	"delegation.Statuses": delegation.Statuses, "delegation.Acts": delegation.Acts, "delegation.Priorities": delegation.Priorities,

	"hub.DependencyTypes": hub.DependencyTypes, "hub.ContractStatuses": hub.ContractStatuses, "hub.SpecPriorities": hub.SpecPriorities,
	"hub.MergeStates": hub.MergeStates, "hub.SpecReferences": hub.SpecReferences, "hub.SpecTesting": hub.SpecTesting,
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
