package serve

import (
	"bytes"
	"context"
	"strings"

	"orchestrator/supervisor"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// waitOutcomes waits for changes and returns their outcomes.
type waitOutcomes func(context.Context) ([]control.AgentOutcome, error)

// reload applies the current file. A file with a mistake changes nothing. A caller that
// stops waiting gets no outcomes, but the changes are still made.
func (t *Instance) reload(ctx context.Context, r control.ReloadRequest) (control.ReloadReply, error) {
	reply := control.ReloadReply{FormatVersion: wire.FormatVersion, DryRun: r.DryRun}
	if t.load == nil {
		return reply, &wire.Error{Code: wire.CodeConflict, Message: "this orchestrator runs one command and has no file to reload"}
	}
	wait, err := t.change(ctx, &reply)
	if err != nil || wait == nil {
		return reply, err
	}
	outcomes, err := wait(ctx)
	for _, o := range outcomes {
		for i := range reply.Changes {
			if c := &reply.Changes[i]; c.Agent == o.Name {
				c.OK, c.Outcome = o.OK, o.Text
			}
		}
	}
	return reply, err
}

// change compares the file with the running configuration and makes the changes, for one
// caller at a time. It returns nil if there is nothing to wait for.
func (t *Instance) change(ctx context.Context, reply *control.ReloadReply) (waitOutcomes, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	next, problems := t.load()
	if reply.Errors = problems.Errors(); reply.Errors > 0 {
		var text bytes.Buffer
		_ = problems.Render(&text, false)
		reply.Problems = text.String()
		t.log.Error("the changed configuration is not valid, nothing was changed", "problems", reply.Problems)
		return nil, nil
	}
	changes := config.Compare(t.config, next)
	for _, c := range changes {
		detail := c.Detail
		if detail == "" {
			detail = strings.Join(c.Attributes, ", ")
		}
		reply.Changes = append(reply.Changes, control.ReloadChange{
			Agent: c.Agent, Action: string(c.Action), Detail: detail, Place: c.Place, OK: c.Action != config.ActionRefused,
		})
	}
	if reply.DryRun {
		return nil, nil
	}
	return t.apply(ctx, next, changes)
}

// apply makes the changes that do not need a restart. Later reloads compare with the new
// configuration at once, even while earlier changes are pending.
func (t *Instance) apply(ctx context.Context, next *config.Config, changes []config.Change) (waitOutcomes, error) {
	specs := make(map[string]supervisor.Agent)
	for _, spec := range t.specs(next) {
		specs[spec.Name] = spec
	}
	var todo []supervisor.Change
	for _, c := range changes {
		switch {
		case c.Action == config.ActionRefused:
			t.log.Warn("a change needs a restart of the orchestrator", "change", strings.Join(c.Attributes, ", "), "place", c.Place)
		case c.Agent != "":
			todo = append(todo, supervisor.Change{Action: supervisor.Action(c.Action), Name: c.Agent, Agent: specs[c.Agent]})
		}
	}
	wait, err := t.Super.Apply(ctx, todo, sessions(next))
	if err != nil {
		return nil, err
	}
	t.config = next
	adopted, _ := rules(next)
	t.Super.Adopt(adopted)
	t.log.SetLevel(logLevel(next.Log.Level))
	return wait, nil
}
