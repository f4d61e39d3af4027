package serve

import (
	"context"

	"orchestrator/cmd/orchestrator/why"
	"orchestrator/supervisor/api"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// operations returns the operations of the API that are not decisions.
func (t *Instance) operations() map[string]api.Operation {
	s := t.Super
	agents := func(do func(context.Context, control.AgentsRequest) ([]control.AgentOutcome, error)) api.Operation {
		return api.Do(func(ctx context.Context, r control.AgentsRequest) (control.AgentsReply, error) {
			outcomes, err := do(ctx, r)
			return control.AgentsReply{FormatVersion: wire.FormatVersion, Agents: outcomes}, err
		})
	}
	return map[string]api.Operation{
		"status": api.Do(func(ctx context.Context, _ struct{}) (control.Status, error) {
			status, err := s.Status(ctx)
			status.URLs, status.Upgrade, status.Damage = t.web.All(), t.upgraded.Load(), t.damage.Load()
			if t.shared != nil {
				status.Hub, status.Degraded = t.shared.own.Name, t.shared.degraded()
			}
			return status, err
		}),
		"start-agent":   agents(s.StartAgents),
		"stop-agent":    agents(named(s.StopAgents)),
		"restart-agent": agents(named(s.RestartAgents)),
		"reload":        api.Do(t.reload),
		"upgrade":       api.Do(t.upgrade),
		"list-hosts":    api.Do(t.listHosts),
		"list-hubs":     api.Do(t.listHubs),
		"drain-host":    api.Do(t.drainHost),
		"open-ui":       api.Do(t.web.Open),
		"explain": api.Do(func(ctx context.Context, r control.ExplainRequest) (control.Explanation, error) {
			if r.Of == "" {
				return control.Explanation{}, &wire.Error{Code: wire.CodeInvalid, Message: "of is required: an agent or a task", Details: map[string]any{"pointer": "/of"}}
			}
			text, err := why.Text(ctx, t.listener.Addr().String(), r.Of)
			return control.Explanation{FormatVersion: wire.FormatVersion, Text: text}, err
		}),
		"diff-task":        api.Do(t.workshop.Diff),
		"merge-task":       api.Do(t.workshop.Merge),
		"list-workspaces":  api.Do(t.workshop.List),
		"prune-workspaces": api.Do(t.workshop.Prune),
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
