package hub

import (
	"context"

	"orchestrator/supervisor/api"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// operations returns the operations of the API that are not decisions.
func (h *Hub) operations() map[string]api.Operation {
	s := h.Super
	agents := func(do func(context.Context, control.AgentsRequest) ([]control.AgentOutcome, error)) api.Operation {
		return api.Do(func(ctx context.Context, r control.AgentsRequest) (control.AgentsReply, error) {
			outcomes, err := do(ctx, r)
			return control.AgentsReply{FormatVersion: wire.FormatVersion, Agents: outcomes}, err
		})
	}
	return map[string]api.Operation{
		"status": api.Do(func(ctx context.Context, _ struct{}) (control.Status, error) {
			status, err := s.Status(ctx)
			status.URLs, status.Upgrade, status.Damage = h.web.All(), h.upgrades.latest.Load(), h.verifier.damage.Load()
			if h.record.shared != nil {
				status.Hub, status.Degraded = h.record.shared.own.Name, h.record.shared.degraded()
			}
			return status, err
		}),
		"start-agent":   agents(s.StartAgents),
		"stop-agent":    agents(named(s.StopAgents)),
		"restart-agent": agents(named(s.RestartAgents)),
		"reload":        api.Do(h.Reload),
		"upgrade":       api.Do(h.upgrades.upgrade),
		"list-hosts":    api.Do(h.machines.listHosts),
		"list-hubs":     api.Do(h.record.listHubs),
		"drain-host":    api.Do(h.machines.drainHost),
		"open-ui":       api.Do(h.web.Open),
		"explain": api.Do(func(ctx context.Context, r control.ExplainRequest) (control.Explanation, error) {
			if r.Of == "" {
				return control.Explanation{}, &wire.Error{Code: wire.CodeInvalid, Message: "of is required: an agent or a task", Details: map[string]any{"pointer": "/of"}}
			}
			text, err := h.Explain(ctx, h.Place.socket.Addr().String(), r.Of)
			return control.Explanation{FormatVersion: wire.FormatVersion, Text: text}, err
		}),
		"diff-task":        api.Do(h.works.Diff),
		"merge-task":       api.Do(h.works.Merge),
		"list-workspaces":  api.Do(h.works.List),
		"prune-workspaces": api.Do(h.works.Prune),
	}
}

// named refuses a request that neither names agents nor asks for all.
func named(do func(context.Context, control.AgentsRequest) ([]control.AgentOutcome, error)) func(context.Context, control.AgentsRequest) ([]control.AgentOutcome, error) {
	return func(ctx context.Context, r control.AgentsRequest) ([]control.AgentOutcome, error) {
		if (len(r.Agents) == 0) != r.All {
			return nil, &wire.Error{
				Code: wire.CodeInvalid, Message: `send the names of agents, or "all": true`, Details: map[string]any{"pointer": "/agents"},
				Hint: "orchestrator agent ls lists the names",
			}
		}
		return do(ctx, r)
	}
}
