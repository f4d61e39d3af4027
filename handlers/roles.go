package handlers

import (
	"slices"

	"orchestrator/wire"
)

func queryAgents(ad agentDecision, q *wire.QueryAgents) (*wire.AgentList, *wire.Error) {
	if roles := ad.state.agents.rolesWithout(q.Role); roles != nil {
		return nil, wire.UnknownRole(q.Role, "/payload/role", roles)
	}
	wanted := func(a *agent) bool {
		return (q.Status == "" || q.Status == a.status()) && a.offers(q.Role, q.Capabilities)
	}
	n := 0
	for _, a := range ad.state.agents.order {
		if wanted(a) {
			n++
		}
	}
	answer := &wire.AgentList{Agents: make([]wire.Agent, 0, n)}
	for _, a := range ad.state.agents.order {
		if wanted(a) {
			answer.Agents = append(answer.Agents, a.shown())
		}
	}
	return answer, nil
}

// rolesWithout returns the roles of the team, or nil if a role is one of them: it is a role
// of every team, or that of an agent.
func (as *agents) rolesWithout(role string) []string {
	if role == "" || slices.Contains(wire.Roles, role) {
		return nil
	}
	roles := slices.Clone(wire.Roles)
	for _, a := range as.order {
		if a.Role == role {
			return nil
		}
		if !slices.Contains(roles, a.Role) {
			roles = append(roles, a.Role)
		}
	}
	return roles
}
