package hub

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"orchestrator/supervisor"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/hub/team"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// waitOutcomes waits for changes and returns their outcomes.
type waitOutcomes func(context.Context) ([]control.AgentOutcome, error)

// Reload applies the current file, unless it has a mistake. A caller that
// stops waiting gets no outcomes, but the changes are still made.
func (h *Hub) Reload(ctx context.Context, r control.ReloadRequest) (control.ReloadReply, error) {
	reply := control.ReloadReply{FormatVersion: wire.FormatVersion, DryRun: r.DryRun}
	if h.File.Load == nil {
		return reply, &wire.Error{Code: wire.CodeConflict, Message: "this orchestrator runs one command and has no file to reload"}
	}
	wait, err := h.change(ctx, r, &reply)
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
// caller at a time. It returns nil after a dry run and a mistake.
func (h *Hub) change(ctx context.Context, r control.ReloadRequest, reply *control.ReloadReply) (waitOutcomes, error) {
	if err := h.File.lock(ctx); err != nil {
		return nil, err
	}
	defer h.File.unlock()
	next, problems := h.File.Load()
	why := "the changed configuration is not valid; nothing was changed"
	if refuseEmpty(problems) {
		why = "the file is empty: nothing was changed; to stop the agents: orchestrator down"
	}
	if reply.Errors = problems.Errors(); reply.Errors > 0 {
		var text bytes.Buffer
		_ = problems.Render(&text, false)
		reply.Problems = text.String()
		h.Place.Log.Error(why, "problems", reply.Problems)
		return nil, nil
	}
	commands := next.Commands()
	reply.Digest = DigestOf(commands)
	if r.Expect != "" && r.Expect != reply.Digest {
		return nil, &wire.Error{Code: wire.CodeConflict, Message: "the commands of the file have changed again since they were shown"}
	}
	reply.Commands = compareCommands(h.File.Config.Commands(), commands)
	changes := config.Compare(h.File.Config, next)
	for _, c := range changes {
		detail := c.Detail
		if detail == "" {
			detail = strings.Join(c.Attributes, ", ")
		}
		reply.Changes = append(reply.Changes, control.ReloadChange{
			Agent: c.Agent, Action: string(c.Action), Detail: detail, Place: c.Place, OK: c.Action != settings.ActionRefused,
		})
	}
	if reply.DryRun {
		return nil, nil
	}
	for _, c := range reply.Commands {
		if slices.Equal(c.Before, c.After) {
			h.Place.Log.Info("the rights, folder or environment of a command have changed", "of", c.Of, "command", c.After)
			continue
		}
		h.Place.Log.Info("a command has changed", "of", c.Of, "before", c.Before, "after", c.After)
	}
	return h.apply(ctx, next, changes)
}

// refuseEmpty makes an error of the warning about an empty file, and reports whether there is one. An
// editor that truncates a file before it writes, or a full disk, must not stop a team.
func refuseEmpty(problems config.Problems) bool {
	i := slices.IndexFunc(problems, func(p config.Problem) bool { return p.Code == config.CodeEmptyFile })
	if i < 0 {
		return false
	}
	p := &problems[i]
	p.Severity, p.Detail = config.SeverityError, "It declares no agents."
	p.Hint = "To stop the agents: orchestrator down"
	return true
}

// DigestOf identifies a list of commands.
func DigestOf(commands []config.Command) string {
	sum := sha256.New()
	for i := range commands {
		sum.Write([]byte(commands[i].Print))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// compareCommands returns the commands that were added, removed or changed.
func compareCommands(before, after []config.Command) []control.CommandChange {
	var changes []control.CommandChange
	old := make(map[string]config.Command)
	for _, c := range before {
		old[c.Of] = c
	}
	for _, c := range after {
		was := old[c.Of]
		delete(old, c.Of)
		if was.Print != c.Print {
			changes = append(changes, control.CommandChange{Of: c.Of, Place: c.Place, Before: was.Argv, After: c.Argv})
		}
	}
	for _, c := range before {
		if _, gone := old[c.Of]; gone {
			changes = append(changes, control.CommandChange{Of: c.Of, Place: c.Place, Before: c.Argv})
		}
	}
	return changes
}

// apply makes the changes that do not need a restart. Later reloads compare with the new
// configuration at once, even while earlier changes are pending.
func (h *Hub) apply(ctx context.Context, next *config.Config, changes []config.Change) (waitOutcomes, error) {
	specs := make(map[string]settings.Agent)
	for _, spec := range h.File.specs(next) {
		specs[spec.Name] = spec
	}
	if reasons := h.works.Check(ctx, team.Workspaces(next, h.File.Base)); len(reasons) > 0 {
		return nil, &wire.Error{Code: wire.CodeInvalid, Message: strings.Join(reasons, "; "), Hint: "Nothing was changed. See: orchestrator help verified"}
	}
	var todo []supervisor.Change
	for _, c := range changes {
		switch {
		case c.Action == settings.ActionRefused:
			h.Place.Log.Warn("a change needs a restart of the orchestrator", "change", strings.Join(c.Attributes, ", "), "place", c.Place)
		case c.Agent != "":
			todo = append(todo, supervisor.Change{Action: c.Action, Name: c.Agent, Agent: specs[c.Agent]})
		}
	}
	adopted, _ := team.Rules(next)
	h.Super.Adopt(adopted) // first: they decide about the changes
	wait, err := h.Super.Apply(ctx, todo, team.Sessions(next))
	if err != nil {
		before, _ := team.Rules(h.File.Config)
		h.Super.Adopt(before)
		return nil, err
	}
	if err := h.Super.GiveOut(ctx, team.Tasks(next)); err != nil {
		return nil, err
	}
	h.File.Config = next
	h.Place.Guard.allow(next)
	h.machines.SetRules(next.Hosts)
	h.works.Set(team.Workspaces(next, h.File.Base))
	h.notices.tell(next)
	h.budgets.limit(next)
	h.works.merge(next)
	h.Place.Log.SetLevel(LogLevel(next.Log.Level))
	return wait, nil
}

// LogLevel returns the level that a configuration names, or the usual one.
func LogLevel(word string) hclog.Level {
	if level := hclog.LevelFromString(word); level != hclog.NoLevel {
		return level
	}
	return hclog.Info
}
